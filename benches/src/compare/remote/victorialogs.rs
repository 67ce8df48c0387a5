//! VictoriaLogs: one stream, loaded as JSON lines, asked in LogsQL.

use super::http::{Place, Server};
use super::{load, push_text};
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Sort, Take, Task, Way};
use anyhow::{Context, Result, bail};
use haystore_server::answer::json::push_timestamp;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write as _};

const BODY_BYTES: usize = 4_000_000;

/// A VictoriaLogs server.
#[derive(Debug)]
pub struct VictoriaLogs {
    task: Task,
    server: Server,
    bytes_before: u64,
}

impl VictoriaLogs {
    /// Nothing loaded yet.
    pub fn new(task: &Task, server: Server) -> Self {
        VictoriaLogs { task: task.clone(), server, bytes_before: 0 }
    }

    /// Bytes of everything that the server keeps.
    fn all_bytes(&self) -> Result<u64> {
        let metrics = self.server.get("/metrics")?;
        data_bytes(&metrics).context("/metrics has no vl_data_size_bytes")
    }

    /// Hands the lines that `filter` finds in this run's stream to `take`.
    fn query(&self, filter: &str, take: Take<'_>) -> Result<()> {
        let query = format!("{{job=\"haystore-compare\",run=\"{}\"}}{filter}", self.task.run);
        let place = Place { path: "/select/logsql/query", query: &[("query", &query)] };
        let mut answer = BufReader::with_capacity(1 << 18, self.server.post_reader(place, b"")?);
        let mut row = Vec::new();
        while answer.read_until(b'\n', &mut row)? > 0 {
            let found: Value = serde_json::from_slice(&row).context("the answer is no JSON")?;
            let Some(line) = found["_msg"].as_str() else { bail!("a row without _msg: {found}") };
            take(line.as_bytes())?;
            row.clear();
        }
        Ok(())
    }
}

/// The sum of the metrics `vl_data_size_bytes{…}`; `None` when there is none.
fn data_bytes(metrics: &str) -> Option<u64> {
    let values = metrics.lines().filter(|line| line.starts_with("vl_data_size_bytes{"));
    let values = values.map(|line| line.rsplit_once(' ').and_then(|(_, value)| value.parse::<f64>().ok()));
    values.reduce(|sum, value| Some(sum? + value?)).flatten().map(|bytes| bytes as u64)
}

/// `text` as a string of LogsQL that a regex matches as it is.
fn pattern(text: &str) -> Value {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    Value::from(out)
}

impl Peer for VictoriaLogs {
    fn name(&self) -> &'static str {
        "victorialogs"
    }

    fn keeps(&self) -> Keeps {
        let how = "one stream, JSON lines over HTTP, flushed; words asked as phrases, other strings as a regex; size by /metrics, \
                   before and after";
        Keeps { bytes: Bytes::Utf8, order: Order::None, substring: Way::Scan, token: Way::Index, fields: "time, stream", how }
    }

    fn is_here(&self) -> bool {
        false
    }

    fn ingest(&mut self) -> Result<()> {
        self.bytes_before = self.all_bytes()?;
        let run = &self.task.run;
        let render = |out: &mut Vec<u8>, time: i64, line: &[u8]| {
            out.extend_from_slice(b"{\"_time\":\"");
            push_timestamp(out, time);
            // Writing to a Vec does not fail.
            let _ = write!(out, "\",\"job\":\"haystore-compare\",\"run\":\"{run}\",\"_msg\":");
            push_text(out, line);
            out.extend_from_slice(b"}\n");
        };
        let query = [("_stream_fields", "job,run"), ("_time_field", "_time"), ("_msg_field", "_msg")];
        let place = Place { path: "/insert/jsonline", query: &query };
        let mut send = |body: &[u8]| self.server.post(place, "application/stream+json", body).map(|_| ());
        load(&self.task, BODY_BYTES, &render, &mut send)?;
        self.server.get("/internal/force_flush").map(|_| ())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        Ok(Some(self.all_bytes()?.saturating_sub(self.bytes_before)))
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        let filter = match needle.sort {
            Sort::Token | Sort::Absent => format!(" {}", Value::from(needle.text.as_str())),
            Sort::Substring | Sort::Given => format!(" ~{}", pattern(&needle.text)),
        };
        self.query(&filter, take)
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        self.query("", take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::fake::{Fake, LINES, both, task};

    #[test]
    fn metrics_and_patterns() {
        let metrics = "a 1\nvl_data_size_bytes{type=\"indexdb\"} 10\nvl_data_size_bytes{type=\"storage\"} 2e3\n";
        assert_eq!(data_bytes(metrics), Some(2010));
        assert_eq!(data_bytes("a 1\n"), None);
        assert_eq!(pattern("a.b").to_string(), r#""a\\.b""#);
    }

    #[test]
    fn lines_are_loaded_flushed_and_asked() {
        let (_folder, task) = task(LINES);
        let mut looks = 0;
        let fake = Fake::new(move |asked| match asked.line.as_str() {
            "GET /metrics" => {
                looks += 1;
                (200, format!("vl_data_size_bytes{{type=\"storage\"}} {}\n", looks * 500).into_bytes())
            }
            line if line.contains("/select/") => (200, b"{\"_time\":\"x\",\"_msg\":\"first\"}\n".to_vec()),
            _ => (200, Vec::new()),
        });
        let mut victoria = VictoriaLogs::new(&task, Server::new(&fake.url).unwrap());
        victoria.ingest().unwrap();
        assert_eq!(victoria.stored_bytes().unwrap(), Some(500));
        assert_eq!(both(&mut victoria, "bc1.", Sort::Substring), (vec!["first".into()], vec!["first".into()]));
        assert_eq!(both(&mut victoria, "abc123def", Sort::Token).0, ["first"]);

        let asked = fake.requests();
        assert_eq!(asked[1].decoded(), "POST /insert/jsonline?_stream_fields=job,run&_time_field=_time&_msg_field=_msg");
        let row: Value = serde_json::from_str(asked[1].text().lines().nth(1).unwrap()).unwrap();
        let line = LINES.lines().nth(1).unwrap();
        let expected = serde_json::json!({"_time": "2023-11-14T22:13:21.000000000Z", "job": "haystore-compare", "run": "7", "_msg": line});
        assert_eq!(row, expected);
        assert_eq!(asked[2].line, "GET /internal/force_flush");
        let selector = "POST /select/logsql/query?query={job=\"haystore-compare\",run=\"7\"}";
        assert_eq!(asked[4].decoded(), format!("{selector} ~\"bc1\\\\.\""));
        assert_eq!(asked[5].decoded(), selector);
        assert_eq!(asked[6].decoded(), format!("{selector} \"abc123def\""));
    }
}
