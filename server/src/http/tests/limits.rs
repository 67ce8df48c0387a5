//! The named limits: past each, one request fails and the rest goes on.

use super::client::Connection;
use super::{ServeConfig, Server, bounded, metric};
use std::io::Write;
use std::time::Duration;

const LINES: &str = "/api/v1/ingest?format=lines&timestamps=none";

fn bomb(unpacked: usize) -> Vec<u8> {
    let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    w.write_all(&vec![b'a'; unpacked]).unwrap();
    w.finish().unwrap()
}

#[tokio::test]
async fn bodies_too_large_are_refused_packed_or_not() {
    let config = ServeConfig { body_bytes_max: 100_000, ..ServeConfig::default() };
    let server = Server::with(config).await;
    let big = vec![b'x'; 100_001];
    assert_eq!(server.post(LINES, &[], &big).await.status, 413);
    let chunked = [b"186a1\r\n", big.as_slice(), b"\r\n0\r\n\r\n"].concat();
    assert_eq!(server.post(LINES, &[("Transfer-Encoding", "chunked")], &chunked).await.status, 413);
    assert_eq!(server.post(LINES, &[("Content-Encoding", "gzip")], &bomb(100_001)).await.status, 413);
    assert_eq!(server.post(LINES, &[("Content-Encoding", "gzip")], &bomb(50_000_000)).await.status, 413);
    let json = [("Content-Encoding", "gzip"), ("Content-Type", "application/json")];
    assert_eq!(server.post("/loki/api/v1/push", &json, &bomb(50_000_000)).await.status, 413);
    // A snappy block that claims to be large.
    assert_eq!(server.post("/loki/api/v1/push", &[], b"\xff\xff\xff\xff\x0f\0").await.status, 413);
    assert_eq!(server.post(LINES, &[("Content-Encoding", "gzip")], &bomb(100_000)).await.status, 200);
    assert_eq!(server.get("/api/v1/scan").await.body.len(), 100_001);
    server.stop().await;
}

#[tokio::test]
async fn long_lines_are_refused_one_by_one() {
    let server = Server::with(ServeConfig { line_bytes_max: 1000, ..ServeConfig::default() }).await;
    let body = format!("before\n{}\nafter\n{}\n", "x".repeat(1001), "y".repeat(1000));
    let answer = server.post(LINES, &[], body.as_bytes()).await;
    assert_eq!((answer.status, &answer.json()["accepted"], &answer.json()["errors"][0]["record"]), (400, &3.into(), &2.into()));
    assert_eq!(server.get("/api/v1/scan").await.text(), format!("before\nafter\n{}\n", "y".repeat(1000)));
    let push = format!(r#"{{"streams":[{{"stream":{{}},"values":[["1","{}"],["2","ok"]]}}]}}"#, "x".repeat(1001));
    let answer = server.post("/loki/api/v1/push", &[("Content-Type", "application/json")], push.as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with("1 of 2 entries were rejected, 1 were kept; entry 1: the line has 1001 bytes"), "{}", answer.text());
    server.stop().await;
}

#[tokio::test]
async fn the_ingest_budget_answers_429_and_recovers() {
    let server = Server::with(ServeConfig { ingest_bytes_max: 200_000, ..ServeConfig::default() }).await;
    let mut slow = Connection::open(server.address).await;
    let head = format!("POST {LINES} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 180000\r\n\r\n");
    slow.send(head.as_bytes()).await;
    metric(&server, "haystore_http_requests_in_flight 2").await;
    let refused = server.post(LINES, &[], &vec![b'y'; 50_000]).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    let mut body = vec![b'x'; 179_999];
    body.push(b'\n');
    slow.send(&body).await;
    assert_eq!(slow.answer().await.status, 200);
    assert_eq!(server.post(LINES, &[], b"y").await.status, 200);
    // One request may be as large as the whole budget, and larger.
    assert_eq!(server.post(LINES, &[], &vec![b'y'; 250_000]).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_stalled_sender_is_dropped() {
    let server = Server::with(ServeConfig { stall_max: Duration::from_millis(100), ..ServeConfig::default() }).await;
    let mut slow = Connection::open(server.address).await;
    slow.send(format!("POST {LINES} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc").as_bytes()).await;
    assert_eq!(slow.answer().await.status, 408);
    assert_eq!(server.get("/api/v1/scan").await.text(), "");
    server.stop().await;
}

#[tokio::test]
async fn too_many_scans_wait_then_get_429() {
    let config = ServeConfig { scans_max: 1, queue_wait_max: Duration::from_millis(50), ..ServeConfig::default() };
    let server = Server::with(config).await;
    let line = vec![b'x'; 1 << 20];
    server.fill(&[], (0..40).map(|i| (i, line.as_slice()))).await;
    let mut slow = Connection::open(server.address).await;
    slow.send(b"GET /api/v1/scan HTTP/1.1\r\nHost: x\r\n\r\n").await;
    slow.read_some(1000).await;
    let refused = server.get("/api/v1/scan").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    // Searches have places of their own.
    assert_eq!(server.get("/api/v1/search?limit=1&output=raw").await.body.len(), (1 << 20) + 1);
    drop(slow);
    metric(&server, "haystore_scans_running 0").await;
    assert_eq!(server.get("/api/v1/scan").await.body.len(), 40 * ((1 << 20) + 1));
    server.stop().await;
}

#[tokio::test]
async fn limits_of_queries_are_told() {
    let server = Server::with(ServeConfig { search_records_max: 10, query_bytes_max: 1000, ..ServeConfig::default() }).await;
    for path in
        ["/api/v1/search?limit=11", "/api/v1/search?limit=0", "/api/v1/search?limit=x", "/loki/api/v1/query_range?query=%7B%7D&limit=11"]
    {
        assert_eq!(server.get(path).await.status, 400, "{path}");
    }
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(server.post("/api/v1/search?limit=1", &form, &vec![b'a'; 1001]).await.status, 413);
    bounded(server.stop()).await;
}
