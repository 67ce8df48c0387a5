//! What goes in: files of lines in pieces, sums to compare what comes out, ids to look for, bodies to push.

use anyhow::{Context, Result};
use haystore::{Batch, Labels};
use haystore_server::answer::json::{push_labels, push_string};
use haystore_server::cli::args::{InputFormat, Timestamps};
use haystore_server::cli::seam::{ReadOptions, Records};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Lines whatever their order: equal sums are, but for chance, equal lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Lines.
    pub lines: u64,
    /// Their bytes, a newline each.
    pub bytes: u64,
    hashes: u64,
}

impl Sum {
    /// Adds a line, without its newline.
    pub fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64 + 1;
        let half = line.len() / 2;
        let hash = u64::from(crc32fast::hash(line)) << 32 | u64::from(crc32fast::hash(&line[half..]));
        self.hashes = self.hashes.wrapping_add(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    }

    /// Of all lines that `input` gives.
    ///
    /// # Errors
    /// Those of the input.
    pub fn of(input: impl Read) -> Result<Sum> {
        let mut sum = Sum::default();
        let mut input = BufReader::with_capacity(1 << 20, input);
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            sum.add(line.strip_suffix(b"\n").unwrap_or(&line));
            line.clear();
        }
        Ok(sum)
    }
}

/// The records of a file, as `haystore ingest` reads them.
pub fn records(path: &Path, labels: Labels) -> Result<Records> {
    let options = ReadOptions {
        format: InputFormat::Auto,
        labels,
        timestamps: Timestamps::Auto,
        time_field: None,
        line_bytes_max: 16 << 20,
        batch_bytes_max: usize::MAX,
        now_ns: haystore_server::cli::open::now_ns(),
    };
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Records::open(Box::new(file), &options, None)
}

/// `batch` as the body of a Loki push.
pub fn push_body(batch: &Batch, body: &mut Vec<u8>) {
    body.clear();
    body.extend_from_slice(b"{\"streams\":[");
    let mut rows: Vec<usize> = (0..batch.len()).collect();
    rows.sort_by_key(|&row| batch.row_streams()[row]);
    let mut stream = None;
    for row in rows {
        let record = batch.get(row);
        let next = batch.row_streams()[row];
        if stream == Some(next) {
            body.push(b',');
        } else {
            if stream.is_some() {
                body.extend_from_slice(b"]},");
            }
            body.extend_from_slice(b"{\"stream\":");
            push_labels(body, record.labels);
            body.extend_from_slice(b",\"values\":[");
            stream = Some(next);
        }
        body.extend_from_slice(format!("[\"{}\",", record.timestamp).as_bytes());
        push_string(body, &String::from_utf8_lossy(record.line));
        body.push(b']');
    }
    body.extend_from_slice(if stream.is_some() { b"]}]}" } else { b"]}" });
}

/// Up to `count` strings of `len` bytes that stand in the file's lines, evenly spread, with the longest runs of letters and digits first.
pub fn needles(path: &Path, count: u64) -> Result<Vec<String>> {
    let size = std::fs::metadata(path)?.len();
    let mut found = Vec::new();
    for i in 0..count {
        let mut file = File::open(path)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(size * (2 * i + 1) / (2 * count)))?;
        let mut lines = BufReader::new(file.take(1 << 20)).split(b'\n').skip(1);
        let token = lines.by_ref().take(400).find_map(|line| line.ok().and_then(|line| token_of(&line)));
        found.extend(token);
    }
    Ok(found)
}

/// The longest run of letters and digits that has both, when it is as long as an id.
fn token_of(line: &[u8]) -> Option<String> {
    let runs = line.split(|b| !b.is_ascii_alphanumeric());
    let ids = runs.filter(|r| (10..=40).contains(&r.len()) && r.iter().any(u8::is_ascii_digit) && r.iter().any(u8::is_ascii_lowercase));
    ids.max_by_key(|r| r.len()).map(|r| String::from_utf8_lossy(r).into_owned())
}

/// A string like `needle` that is nowhere: its letters and digits turned round.
pub fn absent(needle: &str) -> String {
    let turn = |b: u8| match b {
        b'0'..=b'9' => b'0' + (b - b'0' + 3) % 10,
        b'a'..=b'f' => b'a' + (b - b'a' + 2) % 6,
        other => other,
    };
    needle.bytes().rev().map(|b| char::from(turn(b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_know_no_order_and_no_other_lines() {
        let of = |text: &str| Sum::of(text.as_bytes()).unwrap();
        assert_eq!(of("a\nbc\n"), of("bc\na\n"));
        assert_ne!(of("a\nbc\n"), of("a\nbd\n"));
        assert_ne!(of("a\n"), of("a\na\n"));
        assert_eq!((of("a\nbc").lines, of("a\nbc").bytes), (2, 5));
    }

    #[test]
    fn bodies_are_json() {
        let mut batch = Batch::new();
        for (t, app, line) in [(1, "a", "x\"y"), (2, "b", "z"), (3, "a", "w")] {
            let labels = Labels::new([("app", app)]);
            batch.push_record(t, &labels, line.as_bytes(), &haystore::Metadata::default(), &haystore::Format::Text).unwrap();
        }
        let mut body = Vec::new();
        push_body(&batch, &mut body);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({"streams": [
            {"stream": {"app": "a"}, "values": [["1", "x\"y"], ["3", "w"]]},
            {"stream": {"app": "b"}, "values": [["2", "z"]]},
        ]});
        assert_eq!(body, expected);
    }
}
