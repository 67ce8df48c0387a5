//! Loki's API.

use super::client::Answer;
use super::{Server, quoted};
use prost::Message;
use serde_json::{Value, json};
use std::io::Write;

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const PUSH: &str = "/loki/api/v1/push";

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    streams: Vec<Stream>,
}

#[derive(Clone, PartialEq, Message)]
struct Stream {
    #[prost(string, tag = "1")]
    labels: String,
    #[prost(message, repeated, tag = "2")]
    entries: Vec<Entry>,
    #[prost(uint64, tag = "3")]
    hash: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(message, optional, tag = "1")]
    timestamp: Option<Time>,
    #[prost(bytes = "vec", tag = "2")]
    line: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    metadata: Vec<Pair>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

fn protobuf(streams: Vec<Stream>) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(&Request { streams }.encode_to_vec()).unwrap()
}

fn entry(seconds: i64, nanos: i32, line: &[u8]) -> Entry {
    Entry { timestamp: Some(Time { seconds, nanos }), line: line.to_vec(), metadata: vec![] }
}

/// Entries of all streams, as (timestamp, line).
fn entries(answer: &Answer) -> Vec<(i64, String)> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let result = json["data"]["result"].as_array().unwrap().clone();
    let values = result.iter().flat_map(|s| s["values"].as_array().unwrap().clone());
    values.map(|v| (v[0].as_str().unwrap().parse().unwrap(), v[1].as_str().unwrap().to_string())).collect()
}

#[tokio::test]
async fn json_and_protobuf_pushes_are_kept() {
    let server = Server::start().await;
    let body = r#"{"streams":[{"stream":{"app":"j"},"values":[["1000000001","one \"q\"",{"trace":"t1"}],["1000000001","one \"q\""],["1000000002",""]]}]}"#;
    let answer = server.post(PUSH, &JSON, body.as_bytes()).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(br#"{"streams":[{"stream":{"app":"z"},"values":[["1000000003","packed"]]}]}"#).unwrap();
    let gzip = [("Content-Type", "application/json; charset=utf-8"), ("Content-Encoding", "gzip")];
    assert_eq!(server.post(PUSH, &gzip, &gz.finish().unwrap()).await.status, 204);
    let metadata = vec![Pair { name: "k".into(), value: "v".into() }];
    let stream = Stream {
        labels: r#"{app="p", path="C:\\x"}"#.into(),
        entries: vec![entry(1, 4, b"\xff\xfe"), Entry { metadata, ..entry(1, 5, b"meta") }],
        hash: 9,
    };
    assert_eq!(server.post(PUSH, &[("Content-Type", "application/x-protobuf")], &protobuf(vec![stream.clone()])).await.status, 204);
    let snappy = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    assert_eq!(server.post(PUSH, &snappy, &protobuf(vec![Stream { labels: "{app=\"p2\"}".into(), ..stream }])).await.status, 204);
    let scan = server.get("/api/v1/scan").await;
    assert_eq!(scan.body, b"one \"q\"\none \"q\"\n\npacked\n\xff\xfe\n\xff\xfe\nmeta\nmeta\n");
    let first = server.get("/api/v1/search?limit=1").await.json();
    assert_eq!(
        first,
        json!({"timestamp": "1970-01-01T00:00:01.000000001Z", "labels": {"app": "j"}, "line": "one \"q\"", "metadata": {"trace": "t1"}})
    );
    let query = format!("/loki/api/v1/query_range?query={}&start=0&end=100", quoted(r#"{app="p"}"#));
    assert_eq!(entries(&server.get(&query).await), [(1_000_000_005, "meta".to_string()), (1_000_000_004, "\u{fffd}\u{fffd}".to_string())]);
    let flags = [("X-Loki-Response-Encoding-Flags", "categorize-labels")];
    let answer = server.post(&query, &flags, b"").await.json();
    assert_eq!(answer["data"]["result"][0]["values"][0], json!(["1000000005", "meta", {"structuredMetadata": {"k": "v"}}]));
    server.stop().await;
}

#[tokio::test]
async fn bad_entries_are_counted_and_bad_bodies_refused() {
    let server = Server::start().await;
    let body = r#"{"streams":[{"stream":{"a":"b"},"values":[["5","five"],["soon","x"],["99999999999999999999","y"],["6","six"]]}]}"#;
    let answer = server.post(PUSH, &JSON, body.as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("2 of 4 entries were rejected, 2 were kept; entry 2: timestamp \"soon\""), "{}", answer.text());
    let streams = vec![
        Stream { labels: "{a=b}".into(), entries: vec![entry(1, 0, b"lost")], hash: 0 },
        Stream { labels: "{a=\"c\"}".into(), entries: vec![entry(0, 7, b"seven"), entry(i64::MAX, 0, b"far")], hash: 0 },
    ];
    let answer = server.post(PUSH, &[], &protobuf(streams)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("2 of 3 entries were rejected, 1 were kept"), "{}", answer.text());
    assert_eq!(server.get("/api/v1/scan").await.text(), "five\nsix\nseven\n");
    for (headers, body) in [
        (&JSON[..], b"{\"streams\":[{\"stream\":{},\"values\":[[\"1\",\"cut".as_slice()),
        (&JSON[..], b""),
        (&[], b"not snappy"),
        (&[], &snap::raw::Encoder::new().compress_vec(b"\xff\xff").unwrap()),
    ] {
        let answer = server.post(PUSH, headers, body).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    }
    assert_eq!(server.post(PUSH, &[("Content-Type", "text/xml")], b"x").await.status, 415);
    assert_eq!(server.get("/api/v1/scan").await.text(), "five\nsix\nseven\n");
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("haystore_ingest_records_rejected_total{protocol=\"loki_json\"} 2"), "{metrics}");
    assert!(metrics.contains("haystore_ingest_records_rejected_total{protocol=\"loki_protobuf\"} 2"), "{metrics}");
    server.stop().await;
}

/// Pages as clients of Loki's API do: `start` (or `end`) moves to the last entry's timestamp, and what was seen there is dropped.
async fn pages(server: &Server, direction: &str, batch: usize) -> Vec<(i64, String)> {
    let (mut start, mut end) = (0, 2_000_000_000_000_i64);
    let mut found: Vec<(i64, String)> = Vec::new();
    loop {
        let path = format!("/loki/api/v1/query_range?query=%7B%7D&start={start}&end={end}&limit={batch}&direction={direction}");
        let mut page = entries(&server.get(&path).await);
        page.sort_by_key(|(t, _)| if direction == "forward" { *t } else { -*t });
        let full = page.len() == batch;
        let border = found.last().map(|(t, _)| *t);
        let seen = found.iter().filter(|(t, _)| Some(*t) == border).count();
        let fresh: Vec<_> = page.into_iter().skip(seen).collect();
        assert!(!full || !fresh.is_empty());
        found.extend(fresh);
        if !full {
            return found;
        }
        let last = found.last().unwrap().0;
        if direction == "forward" { start = last } else { end = last + 1 }
    }
}

#[tokio::test]
async fn paging_by_time_loses_and_doubles_nothing() {
    let server = Server::start().await;
    let lines: Vec<String> = (0..100).map(|i| format!("line {i:03}")).collect();
    // Runs of up to four equal timestamps, in two streams.
    let base = 1_000_000_000_000;
    server.fill(&[("s", "a")], lines[..60].iter().enumerate().map(|(i, l)| (base + i as i64 / 4, l.as_bytes()))).await;
    server.fill(&[("s", "b")], lines[60..].iter().enumerate().map(|(i, l)| (base + 100 + i as i64 / 2, l.as_bytes()))).await;
    for direction in ["forward", "backward"] {
        for batch in [5, 7, 33, 100, 101] {
            let mut found: Vec<String> = pages(&server, direction, batch).await.into_iter().map(|(_, l)| l).collect();
            assert_eq!(found.len(), 100, "{direction} {batch}");
            found.sort();
            assert_eq!(found, lines, "{direction} {batch}");
        }
    }
    let path = "/loki/api/v1/query_range?query=%7B%7D&start=0&end=2000000000000&direction=forward&limit=";
    let warned = server.get(&format!("{path}3")).await.json();
    assert!(warned["warnings"][0].as_str().unwrap().contains("larger limit"));
    assert!(server.get(&format!("{path}5")).await.json().get("warnings").is_none());
    server.stop().await;
}

#[tokio::test]
async fn ranges_defaults_and_errors() {
    let server = Server::start().await;
    let now = crate::http::state::now();
    let hour = 3600 * 1_000_000_000;
    server.fill(&[("a", "b")], [(now - 2 * hour, b"old".as_slice()), (now - hour / 2, b"new"), (5, b"five"), (6, b"six")]).await;
    let lines = |answer: Answer| entries(&answer).into_iter().map(|(_, l)| l).collect::<Vec<_>>();
    assert_eq!(lines(server.get("/loki/api/v1/query_range?query=%7B%7D").await), ["new"]);
    assert_eq!(lines(server.get("/loki/api/v1/query_range?query=%7B%7D&since=3h").await), ["new", "old"]);
    assert_eq!(lines(server.get("/loki/api/v1/query?query=%7B%7D").await), ["new"]);
    assert_eq!(lines(server.get("/loki/api/v1/query?query=%7B%7D&time=1970-01-01T00:00:00.000000005Z").await), ["five"]);
    // The start is included, the end is not.
    assert_eq!(lines(server.get("/loki/api/v1/query_range?query=%7B%7D&start=0&end=0.000000006").await), ["five"]);
    let body = format!("query={}&start=0.000000006&end=1&direction=FORWARD", quoted(r#"{a=~"."} |~ "^s""#));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(lines(server.post("/loki/api/v1/query_range", &form, body.as_bytes()).await), ["six"]);
    for path in [
        "query_range",
        "query_range?query=%7B",
        "query_range?query=%7B%7D&start=5&end=5",
        "query_range?query=%7B%7D&start=x",
        "labels?start=x",
        "series?match%5B%5D=%7Ba",
        "query?query=%7B%7D&direction=x",
    ] {
        let answer = server.get(&format!("/loki/api/v1/{path}")).await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    }
    let health = server.get("/loki/api/v1/query?query=vector(1)%2Bvector(1)").await.json();
    assert_eq!(health["data"]["result"][0]["value"][1], "2");
    server.stop().await;
}

#[tokio::test]
async fn labels_values_and_series() {
    let server = Server::start().await;
    let now = crate::http::state::now();
    server.fill(&[("app", "x"), ("env", "p")], [(now, b"1".as_slice())]).await;
    server.fill(&[("app", "y")], [(now, b"1".as_slice())]).await;
    server.fill(&[("old", "z")], [(5, b"1".as_slice())]).await;
    let data = |answer: Answer| answer.json()["data"].clone();
    assert_eq!(data(server.get("/loki/api/v1/labels").await), json!(["app", "env"]));
    assert_eq!(data(server.post("/loki/api/v1/labels?start=0", &[], b"").await), json!(["app", "env", "old"]));
    assert_eq!(data(server.get("/loki/api/v1/label/app/values").await), json!(["x", "y"]));
    let query = quoted(r#"{env="p"}"#);
    assert_eq!(data(server.get(&format!("/loki/api/v1/label/app/values?query={query}")).await), json!(["x"]));
    assert_eq!(data(server.get("/loki/api/v1/label/none/values").await), json!([]));
    assert_eq!(data(server.get("/loki/api/v1/series").await), json!([{"app": "x", "env": "p"}, {"app": "y"}]));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("match[]={}&match[]={}&start=0", quoted(r#"{app="y"}"#), quoted(r#"{old="z"}"#));
    assert_eq!(data(server.post("/loki/api/v1/series", &form, body.as_bytes()).await), json!([{"app": "y"}, {"old": "z"}]));
    assert_eq!(data(server.get("/loki/api/v1/series?match%5B%5D=%7Bapp%3D%22none%22%7D").await), Value::Array(vec![]));
    server.stop().await;
}
