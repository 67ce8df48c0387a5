//! ClickHouse: a MergeTree table of times and lines, over its HTTP interface, in `RowBinary`, which keeps every byte.

use super::http::{Place, Server};
use super::load;
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::{Context, Result, ensure};
use std::io::{BufReader, Read};

const BODY_BYTES: usize = 8_000_000;
/// The longest line that is believed.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// A ClickHouse server.
#[derive(Debug)]
pub struct ClickHouse {
    task: Task,
    server: Server,
}

impl ClickHouse {
    /// Nothing loaded yet.
    pub fn new(task: &Task, server: Server) -> Self {
        ClickHouse { task: task.clone(), server }
    }

    fn table(&self) -> String {
        format!("haystore_compare_{}", self.task.run)
    }

    fn run(&self, sql: &str) -> Result<String> {
        self.server.post("/", "text/plain", sql.as_bytes())
    }

    /// Hands the only column of what `sql` selects to `take`.
    fn select(&self, sql: &str, parameters: &[(&str, &str)], take: Take<'_>) -> Result<()> {
        let answer = self.server.post_reader(Place { path: "/", query: parameters }, sql.as_bytes())?;
        let mut rows = BufReader::with_capacity(1 << 18, answer);
        let mut line = Vec::new();
        while let Some(bytes) = read_length(&mut rows)? {
            ensure!(bytes <= LINE_BYTES_MAX, "the answer is no RowBinary");
            line.clear();
            rows.by_ref().take(bytes).read_to_end(&mut line)?;
            ensure!(line.len() as u64 == bytes, "the answer ends inside a line");
            take(&line)?;
        }
        Ok(())
    }
}

/// A length as `RowBinary` has it, seven bits a byte; `None` at the end.
fn read_length(input: &mut impl Read) -> Result<Option<u64>> {
    let mut length = 0;
    for i in 0..10 {
        let mut byte = [0];
        if input.read(&mut byte)? == 0 {
            ensure!(i == 0, "the answer ends inside a length");
            return Ok(None);
        }
        length |= u64::from(byte[0] & 127) << (7 * i);
        if byte[0] < 128 {
            return Ok(Some(length));
        }
    }
    anyhow::bail!("the answer is no RowBinary")
}

fn push_length(out: &mut Vec<u8>, mut length: usize) {
    while length > 127 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
}

/// `text` as the value of a query's parameter.
fn parameter(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r").replace('\0', "\\0")
}

impl Peer for ClickHouse {
    fn name(&self) -> &'static str {
        "clickhouse"
    }

    fn keeps(&self) -> Keeps {
        let how = "MergeTree ordered by time, line under ZSTD(3), merged by OPTIMIZE FINAL; asked with position(line, needle)";
        Keeps { bytes: Bytes::Exact, order: Order::None, substring: Way::Scan, token: Way::Scan, fields: "time", how }
    }

    fn is_here(&self) -> bool {
        false
    }

    fn ingest(&mut self) -> Result<()> {
        let table = self.table();
        let columns = "timestamp DateTime64(9, 'UTC'), line String CODEC(ZSTD(3))";
        self.run(&format!("CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY timestamp"))?;
        let insert = format!("INSERT INTO {table} (timestamp, line) FORMAT RowBinary");
        let render = |out: &mut Vec<u8>, time: i64, line: &[u8]| {
            out.extend_from_slice(&time.to_le_bytes());
            push_length(out, line.len());
            out.extend_from_slice(line);
        };
        let place = Place { path: "/", query: &[("query", &insert)] };
        let mut send = |body: &[u8]| self.server.post(place, "application/octet-stream", body).map(|_| ());
        load(&self.task, BODY_BYTES, &render, &mut send)?;
        self.run(&format!("OPTIMIZE TABLE {table} FINAL")).map(|_| ())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        let table = self.table();
        let of_table = format!("active AND database = currentDatabase() AND table = '{table}'");
        let bytes = self.run(&format!("SELECT sum(bytes_on_disk) FROM system.parts WHERE {of_table} FORMAT TabSeparated"))?;
        Ok(Some(bytes.trim().parse().context("system.parts gives no number")?))
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        let sql = format!("SELECT line FROM {} WHERE position(line, {{needle:String}}) > 0 FORMAT RowBinary", self.table());
        self.select(&sql, &[("param_needle", &parameter(&needle.text))], take)
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        self.select(&format!("SELECT line FROM {} FORMAT RowBinary", self.table()), &[], take)
    }

    fn remove(&mut self) -> Result<()> {
        self.run(&format!("DROP TABLE IF EXISTS {}", self.table())).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Sort;
    use crate::remote::fake::{Fake, LINES, both, task};

    #[test]
    fn lengths_are_seven_bits_a_byte() {
        for length in [0, 1, 127, 128, 300, 1 << 20] {
            let mut bytes = Vec::new();
            push_length(&mut bytes, length);
            assert_eq!(read_length(&mut bytes.as_slice()).unwrap(), Some(length as u64));
        }
        assert_eq!(read_length(&mut &b""[..]).unwrap(), None);
        assert!(read_length(&mut &b"\x80"[..]).is_err());
        assert_eq!(parameter("a\\b\tc\n"), "a\\\\b\\tc\\n");
    }

    #[test]
    fn a_table_is_made_filled_asked_and_dropped() {
        let (_folder, task) = task(LINES);
        let fake = Fake::new(|asked| match asked.text() {
            sql if sql.starts_with("SELECT sum") => (200, b"4321\n".to_vec()),
            sql if sql.starts_with("SELECT line") => (200, b"\x05first\x00".to_vec()),
            _ => (200, Vec::new()),
        });
        let mut clickhouse = ClickHouse::new(&task, Server::new(&fake.url).unwrap());
        clickhouse.ingest().unwrap();
        assert_eq!(clickhouse.stored_bytes().unwrap(), Some(4321));
        let lines = vec!["first".to_string(), String::new()];
        assert_eq!(both(&mut clickhouse, "a\tb", Sort::Token), (lines.clone(), lines));
        clickhouse.remove().unwrap();

        let asked = fake.requests();
        assert!(asked[0].text().starts_with("CREATE TABLE haystore_compare_7 (timestamp DateTime64(9, 'UTC'), line String"));
        assert_eq!(asked[1].decoded(), "POST /?query=INSERT INTO haystore_compare_7 (timestamp, line) FORMAT RowBinary");
        let mut rows = Vec::new();
        for (line, time) in LINES.lines().zip([1_700_000_000_000_000_000_i64, 1_700_000_001_000_000_000]) {
            rows.extend_from_slice(&time.to_le_bytes());
            rows.push(line.len() as u8);
            rows.extend_from_slice(line.as_bytes());
        }
        assert_eq!(asked[1].body, rows);
        assert_eq!(asked[2].text(), "OPTIMIZE TABLE haystore_compare_7 FINAL");
        assert!(asked[3].text().contains("table = 'haystore_compare_7'"));
        assert_eq!(asked[4].decoded(), "POST /?param_needle=a\\tb");
        assert!(asked[4].text().contains("position(line, {needle:String}) > 0"));
        assert_eq!(asked[5].text(), "SELECT line FROM haystore_compare_7 FORMAT RowBinary");
        assert_eq!(asked[6].text(), "DROP TABLE IF EXISTS haystore_compare_7");
    }
}
