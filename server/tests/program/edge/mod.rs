//! Cases that make other log stores lose or alter data; docs/edge-cases.md says which test shows which case.

mod damage;
mod limits;
mod times;
mod values;

use crate::support::{Client, Folder, Server};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const EVERYTHING: &str = "/loki/api/v1/query_range?query=%7B%7D&start=0&end=9000000000000000000&limit=100000&direction=forward";

/// A Loki push of one stream: timestamps, lines, metadata.
fn push(client: &Client, labels: serde_json::Value, entries: &[(i64, &str, serde_json::Value)]) -> u16 {
    let values: Vec<_> = entries.iter().map(|(time, line, metadata)| serde_json::json!([time.to_string(), line, metadata])).collect();
    let body = serde_json::json!({"streams": [{"stream": labels, "values": values}]});
    client.post("/loki/api/v1/push", &JSON, body.to_string().as_bytes()).status
}

/// The records of a search for everything.
fn records(client: &Client) -> Vec<serde_json::Value> {
    client.get("/api/v1/search?limit=100000").ok().text().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Hands a server to `check` in every state of what `fill` put in: in memory, recovered, flushed, compacted.
fn in_every_state(fill: impl Fn(&Client), check: impl Fn(&Client, &str)) {
    let folder = Folder::new();
    let start = || -> Server { folder.serve(&["--flush-age", "1d", "--compact-every", "1d"]) };
    let server = start();
    fill(&server.client());
    check(&server.client(), "in memory");
    server.kill();
    let server = start();
    check(&server.client(), "recovered");
    server.stop();
    let server = start();
    check(&server.client(), "flushed");
    server.stop();
    folder.ok(&["compact"]);
    let server = start();
    check(&server.client(), "compacted");
    server.stop();
    folder.ok(&["verify"]);
}
