//! Files to a server: bodies cut at line ends, sent one after the other.
//!
//! What holds: a body ends where a line ends, and, when it can, before a line that begins with no blank, so that a
//! stack trace stays with the line it belongs to; the format is decided once, by the first body. A CSV header is a
//! record once, in the first body; the others begin with it too, and say that it is repeated, so that all records know their columns.

use super::{Settings, Source, Summary};
use crate::cli::args::Timestamps;
use crate::cli::client::Client;
use crate::cli::seam::{self, CsvLook, Tally};
use crate::cli::terminal::{self, Interrupt};
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use std::io::Read;

/// Bytes of a body, apart from a line that is longer. Small enough that a server appends it as one batch: wholly or not at all.
const BODY_BYTES: usize = 3_000_000;

/// Sends `sources` to the server at `url`.
///
/// # Errors
/// When the server cannot be reached at all; none of a single file's.
pub fn ingest(url: &str, settings: &Settings, sources: Vec<Source>, bar: &ProgressBar, interrupt: &Interrupt) -> Result<Summary> {
    let client = Client::new(url, &settings.tenant)?;
    let mut summary = Summary::default();
    for source in sources {
        match send(&client, settings, &source, bar, interrupt) {
            Ok(one) => summary.add(one),
            Err(error) => {
                bar.suspend(|| terminal::say("error", format_args!("{}: {error:#}", source.name())));
                summary.failed += 1;
            }
        }
        if summary.interrupted {
            break;
        }
    }
    Ok(summary)
}

fn send(client: &Client, settings: &Settings, source: &Source, bar: &ProgressBar, interrupt: &Interrupt) -> Result<Summary> {
    let options = settings.read_options(source);
    let input = Box::new(seam::decoded(Box::new(bar.wrap_read(source.open().context("cannot open it")?)))?);
    let mut bodies = Bodies { input, rest: Vec::new(), ended: false };
    let mut summary = Summary { files: 1, tally: Tally::default(), ..Summary::default() };
    let mut sent = 0u64;
    bodies.fill(BODY_BYTES)?;
    let look = seam::look(&bodies.rest, bodies.ended, &options)?;
    let mut is_first = true;
    while let Some(mut body) = bodies.next_body(look.csv.as_ref().map(|csv| csv.delimiter))? {
        if interrupt.raised() {
            return Ok(Summary { interrupted: true, files: 0, ..summary });
        }
        let body_bytes = body.len() as u64;
        // A file loses no line, whatever its other lines are.
        let mut query = vec![("format", look.format.to_string()), ("odd_lines", "keep".to_string())];
        query.extend(options.labels.iter().map(|(k, v)| ("label", format!("{k}={v}"))));
        match &look.csv {
            Some(csv) => query.extend(csv_query(csv, std::mem::take(&mut is_first), &mut body)),
            None => query.extend(options.time_field.clone().map(|field| ("time_field", field))),
        }
        let timestamps = if options.timestamps == Timestamps::None { "none" } else { "auto" };
        query.push(("timestamps", timestamps.to_string()));
        let answer = client.ingest(&query, &body, interrupt).with_context(|| format!("stopped behind byte {sent} (unpacked)"))?;
        sent += body_bytes;
        summary.raw_bytes += body_bytes;
        summary.records += answer.records;
        summary.tally.rejected += answer.rejected;
        summary.tally.reasons.extend(answer.reasons);
    }
    Ok(summary)
}

/// How a body of separated values is read; puts the header before one that has none.
fn csv_query(csv: &CsvLook, is_first: bool, body: &mut Vec<u8>) -> Vec<(&'static str, String)> {
    let header = match &csv.header {
        None => "none",
        Some(_) if is_first => "first",
        Some(header) => {
            body.splice(..0, header.iter().copied().chain([b'\n']));
            "repeated"
        }
    };
    let mut query = vec![("header", header.to_string()), ("delimiter", char::from(csv.delimiter).to_string())];
    query.extend(csv.time_field.clone().map(|field| ("time_field", field)));
    query
}

/// Cuts an input into bodies.
struct Bodies {
    input: Box<dyn Read + Send>,
    /// Read, not yet given out.
    rest: Vec<u8>,
    ended: bool,
}

impl Bodies {
    /// Reads until `bytes` wait to be given out, or the input ends.
    fn fill(&mut self, bytes: usize) -> Result<()> {
        while !self.ended && self.rest.len() < bytes {
            let missing = (bytes - self.rest.len()) as u64;
            self.ended = (&mut self.input).take(missing).read_to_end(&mut self.rest)? == 0;
        }
        Ok(())
    }

    /// The next body; of separated values, given their `delimiter`, it ends with a record, which may hold newlines.
    fn next_body(&mut self, delimiter: Option<u8>) -> Result<Option<Vec<u8>>> {
        let mut wanted = BODY_BYTES;
        loop {
            self.fill(wanted)?;
            if self.ended {
                let rest = std::mem::take(&mut self.rest);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let end = match delimiter {
                Some(delimiter) => Some(seam::whole_csv_records(&self.rest, delimiter)).filter(|&end| end > 0),
                None => cut(&self.rest),
            };
            if let Some(end) = end {
                let rest = self.rest.split_off(end);
                return Ok(Some(std::mem::replace(&mut self.rest, rest)));
            }
            // No line ends in it: one line that is longer than a body.
            wanted += BODY_BYTES;
        }
    }
}

/// How far behind the last line end a better one is looked for.
const CUT_SEARCH_BYTES: usize = 256 << 10;

/// Where `bytes`, which go on, are best cut.
fn cut(bytes: &[u8]) -> Option<usize> {
    let last = memchr::memrchr(b'\n', bytes)? + 1;
    let from = bytes.len().saturating_sub(CUT_SEARCH_BYTES);
    let good = memchr::memrchr_iter(b'\n', &bytes[from..])
        .map(|at| from + at + 1)
        .find(|&end| bytes.get(end).is_some_and(|next| !next.is_ascii_whitespace()));
    Some(good.unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_end_where_records_end() {
        assert_eq!(cut(b"a\nb\nc"), Some(4));
        assert_eq!(cut(b"a\nb\n\tat x\n\tat"), Some(2), "the trace stays with b");
        assert_eq!(cut(b"a\n"), Some(2), "what follows is not known");
        assert_eq!(cut(b"abc"), None);
    }

    #[test]
    fn no_body_ends_inside_a_record_of_separated_values() {
        let record = "1,\"a\nb \"\"c\"\"\n\nd\",e\n";
        let text = record.repeat(BODY_BYTES * 5 / 2 / record.len()).into_bytes();
        let mut bodies = Bodies { input: Box::new(std::io::Cursor::new(text.clone())), rest: Vec::new(), ended: false };
        let mut all = Vec::new();
        while let Some(body) = bodies.next_body(Some(b',')).unwrap() {
            assert!(body.starts_with(b"1,") && body.ends_with(b"e\n"));
            all.extend_from_slice(&body);
        }
        assert!(all == text);
    }

    #[test]
    fn bodies_together_are_the_input() {
        let mut text = b"head\n".repeat(1_200_000);
        text.extend_from_slice(&vec![b'x'; 9 << 20]);
        text.extend_from_slice(b"\nlast without newline");
        let mut bodies = Bodies { input: Box::new(std::io::Cursor::new(text.clone())), rest: Vec::new(), ended: false };
        let mut all = Vec::new();
        let mut sizes = Vec::new();
        while let Some(body) = bodies.next_body(None).unwrap() {
            sizes.push(body.len());
            all.extend_from_slice(&body);
        }
        assert!(all == text);
        assert!(sizes.len() >= 3 && sizes.iter().all(|&s| s <= 13 << 20), "{sizes:?}");
    }
}
