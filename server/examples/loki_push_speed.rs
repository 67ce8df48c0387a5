//! How fast a Loki push is read, in MB of body a second on one core: `cargo run --release --example loki_push_speed`.

use haystore_server::ingest::loki::{parse_json, parse_protobuf};
use haystore_server::ingest::request::RecordLimits;
use std::time::Instant;

const LINES: [&str; 3] = [
    r#"2024-05-14T09:26:53.123456Z INFO  [worker-7] c.e.orders.Checkout - order 8812734 paid by customer 55120, total 129.90 EUR, took 34 ms"#,
    r#"203.0.113.87 - - [14/May/2024:09:26:53 +0000] "GET /shop/item/99812?ref=mail HTTP/1.1" 200 5312 "https://example.com/" "Mozilla/5.0 (X11)""#,
    r#"{"level":"warn","ts":1715678813.123,"caller":"store/cache.go:118","msg":"evicted","key":"session:8f3e12","age":"1h2m"}"#,
];

fn body(lines: &[&str], metadata: &str) -> String {
    let mut out = String::from(r#"{"streams":[{"stream":{"app":"shop","host":"web-1"},"values":["#);
    for i in 0..200_000_u64 {
        let line = serde_json::Value::from(lines[i as usize % lines.len()]).to_string();
        out += &format!("{}[\"{}\",{line}{metadata}]", if i > 0 { "," } else { "" }, 1_715_678_813_000_000_000 + i);
    }
    out + "]}]}"
}

fn protobuf(lines: &[&str]) -> Vec<u8> {
    let mut entries = Vec::new();
    let field = |out: &mut Vec<u8>, number: u8, bytes: &[u8]| {
        out.push(number << 3 | 2);
        prost::encoding::encode_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    };
    field(&mut entries, 1, br#"{app="shop", host="web-1"}"#);
    for i in 0..200_000_u64 {
        let (mut time, mut entry) = (vec![8], Vec::new());
        prost::encoding::encode_varint(1_715_678_813 + i, &mut time);
        field(&mut entry, 1, &time);
        field(&mut entry, 2, lines[i as usize % lines.len()].as_bytes());
        field(&mut entries, 2, &entry);
    }
    let mut out = Vec::new();
    field(&mut out, 1, &entries);
    out
}

fn main() {
    let limits = RecordLimits { line_bytes_max: 16 << 20, request_records_max: 4_000_000 };
    let time = |name: &str, bytes: &[u8], json: bool| {
        let mut best = f64::MAX;
        for _ in 0..7 {
            let begun = Instant::now();
            let parsed = if json { parse_json(bytes, &limits) } else { parse_protobuf(bytes, &limits) };
            assert!(parsed.is_ok_and(|p| p.batch.len() == 200_000));
            best = best.min(begun.elapsed().as_secs_f64());
        }
        println!("{name:>28}: {:4.0} MB/s of body", bytes.len() as f64 / 1e6 / best);
    };
    time("json, no escapes", body(&LINES[..1], "").as_bytes(), true);
    time("json, a third with escapes", body(&LINES, "").as_bytes(), true);
    time("json, all escapes", body(&LINES[2..], "").as_bytes(), true);
    time(
        "json, structured metadata",
        body(&LINES[..1], r#",{"trace_id":"0af7651916cd43dd8448eb211c80319c","pod":"shop-77"}"#).as_bytes(),
        true,
    );
    time("protobuf", &protobuf(&LINES), false);
}
