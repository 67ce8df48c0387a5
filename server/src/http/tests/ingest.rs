//! `POST /api/v1/ingest`.

use super::Server;
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut w = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

const LINES: &str = "/api/v1/ingest?format=lines&timestamps=none&label=app%3Dx&label=env=a=b";

#[tokio::test]
async fn lines_come_back_byte_for_byte() {
    let server = Server::start().await;
    let long = vec![b'x'; 1 << 20];
    let body = [b"first\n\n\xff\xfe\0nul\r\ntwice\ntwice\n", long.as_slice(), b"\nlast"].concat();
    let answer = server.post(LINES, &[], &body).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{\"accepted\":7,\"rejected\":0,\"errors\":[]}\n"));
    let answer = server.get("/api/v1/scan?format=raw").await;
    assert_eq!(answer.body, [&body, b"\n".as_slice()].concat());
    let records = server.get("/api/v1/search?limit=3").await;
    let third: serde_json::Value = serde_json::from_str(records.text().lines().nth(2).unwrap()).unwrap();
    assert_eq!(third["line_base64"], "//4AbnVsDQ==");
    assert_eq!(third["labels"], serde_json::json!({"app": "x", "env": "a=b"}));
    assert!(third.get("line").is_none());
    server.stop().await;
}

#[tokio::test]
async fn every_content_encoding_is_taken() {
    let server = Server::start().await;
    let mut expected = String::new();
    for (encoding, packed) in [
        ("identity", b"identity\n".to_vec()),
        ("gzip", gzip(b"gzip\n")),
        ("deflate", deflate(b"deflate\n")),
        ("zstd", zstd::encode_all(b"zstd\n".as_slice(), 1).unwrap()),
        ("snappy", snap::raw::Encoder::new().compress_vec(b"snappy\n").unwrap()),
    ] {
        let answer = server.post(LINES, &[("Content-Encoding", encoding)], &packed).await;
        assert_eq!(answer.status, 200, "{encoding}: {}", answer.text());
        expected += &format!("{encoding}\n");
    }
    let chunked = server.post(LINES, &[("Transfer-Encoding", "chunked")], b"5\r\nchunk\r\n3\r\ned\n\r\n0\r\n\r\n").await;
    assert_eq!(chunked.status, 200);
    expected += "chunked\n";
    let mut found: Vec<String> = server.get("/api/v1/scan").await.text().lines().map(str::to_string).collect();
    let mut expected: Vec<String> = expected.lines().map(str::to_string).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let wrong = server.post(LINES, &[("Content-Encoding", "gzip")], b"plain text").await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    let cut = server.post(LINES, &[("Content-Encoding", "zstd")], &zstd::encode_all([7; 1000].as_slice(), 1).unwrap()[..12]).await;
    assert_eq!(cut.status, 400, "{}", cut.text());
    let unknown = server.post(LINES, &[("Content-Encoding", "br")], b"x").await;
    assert_eq!(unknown.status, 415, "{}", unknown.text());
    server.stop().await;
}

#[tokio::test]
async fn a_half_bad_batch_keeps_its_good_half() {
    let server = Server::start().await;
    let answer = server.post("/api/v1/ingest?format=ndjson", &[], b"{\"a\":1}\nnot json\n\n{\"a\":1e999,\"a\":2}\n{\"a\":\n").await;
    assert_eq!(answer.status, 400);
    let json = answer.json();
    assert_eq!((&json["accepted"], &json["rejected"]), (&2.into(), &2.into()));
    assert_eq!(json["errors"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/api/v1/scan").await.text(), "{\"a\":1}\n{\"a\":1e999,\"a\":2}\n");
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("haystore_ingest_records_accepted_total{protocol=\"native\"} 2"), "{metrics}");
    assert!(metrics.contains("haystore_ingest_records_rejected_total{protocol=\"native\"} 2"), "{metrics}");
    server.stop().await;
}

#[tokio::test]
async fn wrong_parameters_are_told() {
    let server = Server::start().await;
    for path in ["?format=xml", "?label=novalue", "?label=%3Dv", "?timestamps=maybe"] {
        let answer = server.post(&format!("/api/v1/ingest{path}"), &[], b"x").await;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.json()["error"].is_string());
    }
    let answer = server.post("/api/v1/ingest", &[("Content-Type", "image/png")], b"x").await;
    assert_eq!(answer.status, 415);
    assert_eq!(server.get("/api/v1/scan").await.text(), "");
    server.stop().await;
}
