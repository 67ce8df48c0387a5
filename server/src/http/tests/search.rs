//! `GET|POST /api/v1/search`.

use super::client::Answer;
use super::{Server, quoted};

fn lines(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.complete);
    answer.text().lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["line"].as_str().unwrap().to_string()).collect()
}

async fn filled() -> Server {
    let server = Server::start().await;
    let all: Vec<String> = (0..10).map(|i| format!("a{i}")).collect();
    // Two and two share a nanosecond.
    server.fill(&[("s", "a")], all.iter().enumerate().map(|(i, l)| (i as i64 / 2, l.as_bytes()))).await;
    server.fill(&[("s", "b")], [(2, b"b0".as_slice()), (2, b"b0"), (9, b"late \"needle\"")]).await;
    server
}

#[tokio::test]
async fn records_come_as_asked_by_get_form_and_json() {
    let server = filled().await;
    let all = ["a0", "a1", "a2", "a3", "a4", "a5", "b0", "b0", "a6", "a7", "a8", "a9", "late \"needle\""];
    assert_eq!(lines(&server.get("/api/v1/search").await), all);
    let backward: Vec<_> = all.iter().rev().copied().collect();
    assert_eq!(lines(&server.get("/api/v1/search?direction=backward&query=").await), backward);
    let query = quoted(r#"{s="b"} |= "needle""#);
    let expected = ["late \"needle\""];
    assert_eq!(lines(&server.get(&format!("/api/v1/search?query={query}")).await), expected);
    assert_eq!(lines(&server.get("/api/v1/search?query=needle").await), expected);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(lines(&server.post("/api/v1/search", &form, format!("query={query}").as_bytes()).await), expected);
    let json = [("Content-Type", "application/json; charset=utf-8")];
    let body = br#"{"query":"{s=\"b\"}","limit":1,"direction":"backward"}"#;
    assert_eq!(lines(&server.post("/api/v1/search", &json, body).await), expected);
    assert_eq!(server.post("/api/v1/search", &[("Content-Type", "text/xml")], b"x").await.status, 415);
    assert_eq!(server.get("/api/v1/search?query=a9&output=raw").await.text(), "a9\n");
    let (from, to) = ("1970-01-01T00:00:00.000000003Z", "1970-01-01T00:00:00.000000009Z");
    assert_eq!(lines(&server.get(&format!("/api/v1/search?from={from}&to={to}")).await), ["a6", "a7", "a8", "a9"]);
    assert_eq!(lines(&server.get(&format!("/api/v1/search?from={from}&to={from}")).await), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_cut_result_says_so_and_pages_exactly() {
    let server = filled().await;
    for direction in ["forward", "backward"] {
        let whole = lines(&server.get(&format!("/api/v1/search?direction={direction}")).await);
        assert_eq!(whole.len(), 13);
        for limit in [1, 2, 3, 5, 12, 13] {
            let mut found = Vec::new();
            let mut after = String::new();
            loop {
                let answer = server.get(&format!("/api/v1/search?direction={direction}&limit={limit}{after}")).await;
                found.extend(lines(&answer));
                match answer.header("x-haystore-next-cursor") {
                    Some(cursor) => after = format!("&after={cursor}"),
                    None => break,
                }
                assert!(found.len() < 13);
            }
            assert_eq!(found, whole, "{direction} {limit}");
        }
    }
    let json = server.get("/api/v1/search?limit=2&output=json").await;
    let next = json.header("x-haystore-next-cursor").unwrap().to_string();
    let json = json.json();
    assert_eq!(json["records"][1]["timestamp"], "1970-01-01T00:00:00.000000000Z");
    assert_eq!((&json["summary"]["records"], &json["summary"]["truncated"]), (&2.into(), &true.into()));
    assert_eq!(json["summary"]["next"].as_str().unwrap(), next);
    let whole = server.get("/api/v1/search?output=json&query=none").await.json();
    assert_eq!((&whole["records"], &whole["summary"]["next"]), (&serde_json::json!([]), &serde_json::Value::Null));
    server.stop().await;
}

#[tokio::test]
async fn wrong_requests_are_told() {
    let server = Server::start().await;
    for path in ["?query=%7Ba%3D%7D", "?from=yesterday-ish", "?after=zz", "?output=xml", "?direction=up", "?from=2&to=1"] {
        let answer = server.get(&format!("/api/v1/search{path}")).await;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.json()["error"].is_string(), "{path}");
    }
    server.stop().await;
}
