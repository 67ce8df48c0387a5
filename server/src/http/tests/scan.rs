//! `GET|POST /api/v1/scan`, and how its stream ends.

use super::client::Connection;
use super::{Server, bounded, metric};
use crate::http::stream::channel;
use std::time::Duration;

#[tokio::test]
async fn the_end_says_count_and_checksum() {
    let server = Server::start().await;
    server.fill(&[("a", "b")], [(1, b"one".as_slice()), (1, b""), (1, b"\xff\0\r"), (2, b"two\nlines")]).await;
    let raw = server.get("/api/v1/scan?format=raw").await;
    assert_eq!(raw.body, b"one\n\n\xff\0\r\ntwo\nlines\n");
    assert!(raw.complete);
    let crc = format!("{:08x}", crc32fast::hash(&raw.body));
    assert_eq!((raw.trailer("x-haystore-count"), raw.trailer("x-haystore-crc32")), (Some("4"), Some(crc.as_str())));
    assert_eq!(raw.header("trailer"), Some("X-Haystore-Count, X-Haystore-Crc32"));
    let ndjson = server.post("/api/v1/scan?format=ndjson", &[], b"").await;
    assert_eq!(ndjson.trailer("x-haystore-crc32"), Some(crc.as_str()));
    let text = ndjson.text();
    let records: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(records.len(), 5);
    assert_eq!(records[3]["line"], "two\nlines");
    assert_eq!(records[4], serde_json::json!({"end": {"records": 4, "line_bytes": 15, "crc32": crc}}));
    let part = server.get("/api/v1/scan?query=two").await;
    assert_eq!((part.text().as_str(), part.trailer("x-haystore-count")), ("two\nlines\n", Some("1")));
    let none = server.get("/api/v1/scan?query=three&format=ndjson").await;
    assert_eq!(none.text(), "{\"end\":{\"records\":0,\"line_bytes\":0,\"crc32\":\"00000000\"}}\n");
    assert_eq!(server.get("/api/v1/scan?format=csv").await.status, 400);
    metric(&server, "haystore_scans_total{end=\"complete\"} 4").await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_goes_ends_its_scan_and_a_slow_one_gets_all() {
    let server = Server::start().await;
    let line = vec![b'x'; 100_000];
    server.fill(&[], (0..500).map(|i| (i, line.as_slice()))).await;
    let mut gone = Connection::open(server.address).await;
    gone.send(b"GET /api/v1/scan HTTP/1.1\r\nHost: x\r\n\r\n").await;
    gone.read_some(100_000).await;
    metric(&server, "haystore_scans_running 1").await;
    drop(gone);
    metric(&server, "haystore_scans_running 0").await;
    metric(&server, "haystore_scans_total{end=\"client_gone\"} 1").await;
    let mut slow = Connection::open(server.address).await;
    slow.send(b"GET /api/v1/scan HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = slow.answer().await;
    assert!(answer.complete);
    assert_eq!(answer.body.len(), 500 * 100_001);
    server.stop().await;
}

#[tokio::test]
async fn a_stalled_client_is_dropped() {
    let config = crate::ServeConfig { stall_max: Duration::from_millis(100), ..crate::ServeConfig::default() };
    let server = Server::with(config).await;
    let line = vec![b'x'; 1 << 20];
    server.fill(&[], (0..40).map(|i| (i, line.as_slice()))).await;
    let mut stalled = Connection::open(server.address).await;
    stalled.send(b"GET /api/v1/scan HTTP/1.1\r\nHost: x\r\n\r\n").await;
    metric(&server, "haystore_scans_total{end=\"client_gone\"} 1").await;
    assert!(!stalled.answer().await.complete);
    server.stop().await;
}

#[tokio::test]
async fn a_stalled_client_loses_its_connection_even_when_all_is_produced() {
    let config = crate::ServeConfig { stall_max: Duration::from_millis(100), answer_pieces_max: 1000, ..crate::ServeConfig::default() };
    let server = Server::with(config).await;
    let line = vec![b'x'; 1 << 20];
    server.fill(&[], (0..20).map(|i| (i, line.as_slice()))).await;
    let mut stalled = Connection::open(server.address).await;
    stalled.send(b"GET /api/v1/scan HTTP/1.1\r\nHost: x\r\n\r\n").await;
    metric(&server, "haystore_scans_total{end=\"complete\"} 1").await;
    // The one that asks is left.
    metric(&server, "haystore_http_connections 1").await;
    assert!(!stalled.answer().await.complete);
    server.stop().await;
}

#[tokio::test]
async fn a_producer_that_fails_never_ends_cleanly() {
    let (sender, body) = channel(2, Duration::from_secs(5));
    let body = std::sync::Mutex::new(Some(body));
    let body = std::sync::Arc::new(body);
    let take = move || {
        let body = body.clone();
        async move { body.lock().unwrap().take().unwrap() }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, axum::Router::new().route("/", axum::routing::get(take))).await });
    let producer = tokio::spawn(async move {
        sender.send(&mut b"some".to_vec()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    });
    let answer = super::request(address, "GET", "/", &[], b"").await;
    assert_eq!((answer.text().as_str(), answer.complete), ("some", false));
    bounded(producer).await.unwrap();
    serving.abort();
}
