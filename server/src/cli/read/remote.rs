//! `search` and `scan` through a server: its answer's bytes are ours, apart from its last line.
//!
//! What holds: an answer that broke off is an error, never a short result.

use crate::cli::args::{Order, Output, ReadArgs, ScanArgs, SearchArgs};
use crate::cli::client::Client;
use crate::cli::terminal::{self, Interrupt, Stdout};
use crate::cli::units::{of, size};
use crate::cli::{Outcome, open};
use anyhow::{Context, Result, bail, ensure};
use std::io::Read;

type Query = Vec<(&'static str, String)>;

/// Bytes taken from the answer at once.
const READ_BYTES: u64 = 256 << 10;
/// The last line of a scan's NDJSON begins so.
const END_LINE: &[u8] = b"{\"end\":";

/// Finds the first records.
pub(super) async fn search(args: SearchArgs, mut query: Query, interrupt: &Interrupt) -> Result<Outcome> {
    query.push(("limit", args.limit.to_string()));
    query.push(("direction", if args.direction == Order::Forward { "forward" } else { "backward" }.to_string()));
    query.push(("output", form(&args.read).to_string()));
    let client = client(&args.read)?;
    let stop = interrupt.clone();
    let copying = tokio::task::spawn_blocking(move || -> Result<u64> {
        let response = client.records("/api/v1/search", &query)?;
        let next = response.headers().get("x-haystore-next-cursor").and_then(|v| v.to_str().ok()).map(str::to_string);
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let copied = copy(&mut body, Stdout::new(), false, &stop)?;
        if let Some(next) = next {
            terminal::say("", format_args!("more may follow; go on with --after {next}"));
        }
        Ok(copied.bytes)
    });
    match interrupt.or(copying).await {
        None => Ok(Outcome::Interrupted),
        Some(bytes) => Ok(if bytes?? == 0 { Outcome::Nothing } else { Outcome::Done }),
    }
}

/// Writes everything.
pub(super) async fn scan(args: ScanArgs, mut query: Query, interrupt: &Interrupt) -> Result<Outcome> {
    query.push(("format", form(&args.read).to_string()));
    let client = client(&args.read)?;
    let ends_with_line = args.read.output == Output::Ndjson;
    let stop = interrupt.clone();
    let copying = tokio::task::spawn_blocking(move || -> Result<Copied> {
        let mut body = client.records("/api/v1/scan", &query)?.into_body().into_with_config().limit(u64::MAX).reader();
        copy(&mut body, Stdout::new(), ends_with_line, &stop)
    });
    let Some(copied) = interrupt.or(copying).await else { return Ok(Outcome::Interrupted) };
    let copied = copied??;
    match copied.records {
        Some(records) => terminal::say("", format_args!("{}, {}", of(records, "record"), size(copied.bytes))),
        None => terminal::say("", size(copied.bytes)),
    }
    Ok(Outcome::Done)
}

fn client(args: &ReadArgs) -> Result<Client> {
    Client::new(args.server.as_deref().unwrap_or_default(), &open::tenant(&args.tenant)?)
}

fn form(args: &ReadArgs) -> &'static str {
    if args.output == Output::Raw { "raw" } else { "ndjson" }
}

/// What was copied.
#[derive(Debug, PartialEq, Eq)]
struct Copied {
    bytes: u64,
    /// As the last line said, checked against the lines seen.
    records: Option<u64>,
}

/// Copies `body` to `out`. With `ends_with_line` the last line is kept back and checked.
fn copy(body: &mut impl Read, mut out: Stdout, ends_with_line: bool, stop: &Interrupt) -> Result<Copied> {
    let (mut bytes, mut lines) = (0, 0);
    // What follows the last but one line end; empty without `ends_with_line`.
    let mut kept = Vec::new();
    while !stop.raised() {
        let read = body.by_ref().take(READ_BYTES).read_to_end(&mut kept).context("the server's answer broke off")?;
        if read == 0 {
            break;
        }
        let whole = match ends_with_line {
            true => memchr::memrchr(b'\n', kept.strip_suffix(b"\n").unwrap_or(&kept)).map_or(0, |at| at + 1),
            false => kept.len(),
        };
        lines += memchr::memchr_iter(b'\n', &kept[..whole]).count() as u64;
        bytes += whole as u64;
        out.buffer().extend_from_slice(&kept[..whole]);
        kept.drain(..whole);
        out.settle()?;
    }
    out.flush()?;
    if !ends_with_line || stop.raised() {
        return Ok(Copied { bytes, records: None });
    }
    if !kept.starts_with(END_LINE) {
        bail!("the server's answer broke off: the line with its count is missing");
    }
    let end: serde_json::Value = serde_json::from_slice(&kept).context("the server's last line")?;
    let records = end.pointer("/end/records").and_then(serde_json::Value::as_u64).context("the server's last line has no count")?;
    ensure!(records == lines, "the server counted {records} records, {lines} arrived");
    Ok(Copied { bytes, records: Some(records) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn copied(body: &[u8], ends_with_line: bool) -> (Result<Copied>, Vec<u8>) {
        let sink = Sink::default();
        let done = copy(&mut &body[..], Stdout::to(Box::new(sink.clone())), ends_with_line, &Interrupt::default());
        let bytes = sink.0.lock().unwrap().clone();
        (done, bytes)
    }

    #[test]
    fn the_last_line_is_checked_and_kept_back() {
        let lines = b"{\"line\":\"x\"}\n".repeat(70_000);
        let body = [&lines[..], b"{\"end\":{\"records\":70000}}\n"].concat();
        let (done, out) = copied(&body, true);
        assert_eq!(done.unwrap(), Copied { bytes: lines.len() as u64, records: Some(70_000) });
        assert!(out == lines);
        let (done, out) = copied(b"{\"end\":{\"records\":0}}\n", true);
        assert_eq!((done.unwrap().records, out.len()), (Some(0), 0));
        for broken in [&lines[..], b"", b"{\"end\":{\"records\":1}}\n", b"{\"a\":1}\n{\"end\":{\"rec"] {
            assert!(copied(broken, true).0.is_err());
        }
    }

    #[test]
    fn raw_answers_pass_as_they_are() {
        let body = b"a\n\xff\n{\"end\":{}}\n";
        let (done, out) = copied(body, false);
        assert_eq!((done.unwrap().records, &out[..]), (None, &body[..]));
    }
}
