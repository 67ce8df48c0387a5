//! Loki: one stream, pushed as JSON, asked by `query_range` page by page.

use super::http::{Place, Server};
use super::{load, push_text};
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use crate::peers::tree_bytes;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Bytes of a push: Loki takes 4 MB a second by default, and more is only more waiting.
const BODY_BYTES: usize = 1_000_000;
/// Lines of a page, Loki's default limit.
const PAGE_LINES: usize = 5000;
/// The longest time that one query may span, by default 30 days and an hour.
const SPAN_NS: i64 = 29 * 86_400_000_000_000;
/// How long its folder is watched until it grows no more.
const SETTLE_LOOKS: u32 = 60;
const SETTLE_PAUSE: Duration = Duration::from_millis(500);

/// A Loki server.
#[derive(Debug)]
pub struct Loki {
    task: Task,
    server: Server,
    data_dir: Option<PathBuf>,
    bytes_before: u64,
}

impl Loki {
    /// Nothing pushed yet. `data_dir` is the folder where the server keeps its data.
    pub fn new(task: &Task, server: Server, data_dir: Option<PathBuf>) -> Self {
        Loki { task: task.clone(), server, data_dir, bytes_before: 0 }
    }

    fn selector(&self) -> String {
        format!("{{job=\"haystore-compare\",run=\"{}\"}}", self.task.run)
    }

    /// First and last time pushed, as [`load`] gives them.
    fn times(&self) -> (i64, i64) {
        // A day holds more nanoseconds than there are lines.
        self.task.times.unwrap_or((self.task.logs.now_ns, self.task.logs.now_ns + 86_400_000_000_000))
    }

    /// Hands the lines that `query` finds to `take`, oldest first.
    fn query(&self, query: &str, take: Take<'_>) -> Result<()> {
        let (first, last) = self.times();
        let mut start = first;
        while start <= last {
            let end = start.saturating_add(SPAN_NS).min(last.saturating_add(1));
            let page = self.page(query, start, end)?;
            // Where a page is full, more lines of its last time may follow: that time begins the next page.
            let newest = page.last().map_or(start, |line| line.0);
            let is_full = page.len() >= PAGE_LINES;
            ensure!(!is_full || newest > start, "more than {PAGE_LINES} lines have the time {newest}: Loki cannot give them in pages");
            for (_, line) in page.iter().filter(|line| !is_full || line.0 < newest) {
                take(line.as_bytes())?;
            }
            start = if is_full { newest } else { end };
        }
        Ok(())
    }

    /// Up to [`PAGE_LINES`] lines with their times, from `start` to before `end`.
    fn page(&self, query: &str, start: i64, end: i64) -> Result<Vec<(i64, String)>> {
        let (start, end, limit) = (start.to_string(), end.to_string(), PAGE_LINES.to_string());
        let query = [("query", query), ("start", &start), ("end", &end), ("limit", &limit), ("direction", "forward")];
        let mut answer = self.server.get_json(Place { path: "/loki/api/v1/query_range", query: &query })?;
        let mut lines = Vec::new();
        for stream in answer["data"]["result"].as_array_mut().context("Loki's answer holds no result")? {
            for value in stream["values"].as_array_mut().into_iter().flatten() {
                let time = value[0].as_str().and_then(|t| t.parse().ok()).context("a line without a time")?;
                let Value::String(line) = value[1].take() else { continue };
                lines.push((time, line));
            }
        }
        lines.sort_by_key(|line| line.0);
        Ok(lines)
    }
}

impl Peer for Loki {
    fn name(&self) -> &'static str {
        "loki"
    }

    fn keeps(&self) -> Keeps {
        let how = "one stream, pushed as JSON over HTTP and flushed; asked with |=; equal lines of one time are kept once";
        Keeps { bytes: Bytes::Utf8, order: Order::Time, substring: Way::Scan, token: Way::Scan, fields: "time, labels", how }
    }

    fn is_here(&self) -> bool {
        false
    }

    fn ingest(&mut self) -> Result<()> {
        self.bytes_before = self.data_dir.as_deref().map_or(Ok(0), tree_bytes)?;
        let head = format!("{{\"streams\":[{{\"stream\":{{\"job\":\"haystore-compare\",\"run\":\"{}\"}},\"values\":[", self.task.run);
        let render = |out: &mut Vec<u8>, time: i64, line: &[u8]| {
            // Writing to a Vec does not fail.
            let _ = write!(out, "[\"{time}\",");
            push_text(out, line);
            out.extend_from_slice(b"],");
        };
        let mut push = |rows: &[u8]| {
            let body = [head.as_bytes(), rows.strip_suffix(b",").unwrap_or(rows), b"]}]}"].concat();
            self.server.post("/loki/api/v1/push", "application/json", &body).map(|_| ())
        };
        load(&self.task, BODY_BYTES, &render, &mut push).context("old logs need reject_old_samples: false in Loki's limits_config")?;
        self.server.post("/flush", "text/plain", b"").map(|_| ())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        let Some(folder) = &self.data_dir else { return Ok(None) };
        let mut bytes = tree_bytes(folder)?;
        for _ in 0..SETTLE_LOOKS {
            sleep(SETTLE_PAUSE);
            let now = tree_bytes(folder)?;
            if now == bytes {
                break;
            }
            bytes = now;
        }
        Ok(Some(bytes.saturating_sub(self.bytes_before)))
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        // A JSON string is a string of LogQL, too.
        self.query(&format!("{} |= {}", self.selector(), Value::from(needle.text.as_str())), take)
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        self.query(&self.selector(), take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Sort;
    use crate::remote::fake::{Fake, LINES, both, task};

    #[test]
    fn lines_are_pushed_flushed_and_asked() {
        let (folder, task) = task(LINES);
        let answer = r#"{"status":"success","data":{"resultType":"streams","result":[
            {"stream":{"level":"b"},"values":[["1700000001000000000","second"]]},
            {"stream":{"level":"a"},"values":[["1700000000000000000","first"]]}]}}"#;
        let fake = Fake::new(move |asked| match asked.line.starts_with("GET") {
            true => (200, answer.into()),
            false => (204, Vec::new()),
        });
        let data = folder.path().to_path_buf();
        let mut loki = Loki::new(&task, Server::new(&fake.url).unwrap(), Some(data.clone()));
        loki.ingest().unwrap();
        std::fs::write(data.join("chunk"), [0; 100]).unwrap();
        assert_eq!(loki.stored_bytes().unwrap(), Some(100));
        let (found, all) = both(&mut loki, "a\"b", Sort::Token);
        assert_eq!((found.as_slice(), all), (&["first".to_string(), "second".to_string()][..], found.clone()));

        let asked = fake.requests();
        assert_eq!(asked[0].line, "POST /loki/api/v1/push");
        let body: Value = serde_json::from_slice(&asked[0].body).unwrap();
        let lines: Vec<&str> = LINES.lines().collect();
        let stream = serde_json::json!({"job": "haystore-compare", "run": "7"});
        let values = serde_json::json!([["1700000000000000000", lines[0]], ["1700000001000000000", lines[1]]]);
        assert_eq!(body, serde_json::json!({"streams": [{"stream": stream, "values": values}]}));
        assert_eq!(asked[1].line, "POST /flush");
        let range = "&start=1700000000000000000&end=1700000001000000001&limit=5000&direction=forward";
        let selector = "GET /loki/api/v1/query_range?query={job=\"haystore-compare\",run=\"7\"}";
        assert_eq!(asked[2].decoded(), format!("{selector} |= \"a\\\"b\"{range}"));
        assert_eq!(asked[3].decoded(), format!("{selector}{range}"));
    }

    #[test]
    fn pages_go_on_at_the_last_time() {
        let (_folder, task) = task(LINES);
        let page = |times: std::ops::Range<i64>| {
            let values: Vec<_> = times.map(|t| serde_json::json!([(1_700_000_000_000_000_000 + t).to_string(), t.to_string()])).collect();
            serde_json::json!({"data": {"result": [{"values": values}]}}).to_string().into_bytes()
        };
        let lines = PAGE_LINES as i64;
        let fake = Fake::new(move |asked| match asked.line.contains("start=1700000000000000000&") {
            true => (200, page(0..lines)),
            false => (200, page(lines - 1..lines + 3)),
        });
        let mut loki = Loki::new(&task, Server::new(&fake.url).unwrap(), None);
        let (_, all) = both(&mut loki, "x", Sort::Token);
        assert_eq!(all, (0..lines + 3).map(|t| t.to_string()).collect::<Vec<_>>());
        assert_eq!(loki.stored_bytes().unwrap(), None);
    }
}
