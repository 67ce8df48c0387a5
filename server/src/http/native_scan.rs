//! `GET|POST /api/v1/scan`: everything that matches, oldest first, as one stream.
//!
//! What holds: the store is read at the client's pace; the answer ends cleanly only when the scan is complete, and then says
//! how many records it had and the CRC-32 of their raw form (each line and a newline), whatever the form asked for.

use super::language;
use super::metrics::ScanEnd;
use super::native_search::{after, range};
use super::params::Params;
use super::problem::NativeProblem;
use super::state::{App, tenant};
use super::stream::{Gone, Sender, channel};
use crate::answer::json::push_fmt;
use crate::answer::{ndjson, raw};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use haystore::{Batch, Scan, ScanRequest};

/// The trailer with the number of records.
pub const COUNT_TRAILER: &str = "x-haystore-count";
/// The trailer with the CRC-32 of the raw form, eight lower-case hex digits.
pub const CRC_TRAILER: &str = "x-haystore-crc32";

/// The handler.
pub async fn scan(State(app): State<App>, request: Request<Body>) -> Result<Response, NativeProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let tenant = tenant(&headers)?;
    let request =
        ScanRequest { query: language::native_query(params.get("query").unwrap_or(""))?, range: range(&params)?, after: after(&params)? };
    let raw = params.word("format", &["raw", "ndjson"])? == 0;
    let turn = app.scan_turn().await?;
    let scan = app.store.scan(&tenant, request).await?;
    let (sender, body) = channel(app.config.answer_pieces_max, app.config.stall_max);
    tokio::spawn(async move {
        let _turn = turn;
        let _running = app.metrics.scan();
        run(&app, scan, sender, raw).await;
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(if raw { "application/octet-stream" } else { "application/x-ndjson" })),
        (header::TRAILER, HeaderValue::from_static("X-Haystore-Count, X-Haystore-Crc32")),
    ];
    Ok((headers, body).into_response())
}

/// What was sent so far.
#[derive(Default)]
struct Sent {
    records: u64,
    line_bytes: u64,
    crc: crc32fast::Hasher,
}

enum Stop {
    Gone,
    Failed(haystore::Error),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Stop::Gone
    }
}

impl From<haystore::Error> for Stop {
    fn from(error: haystore::Error) -> Self {
        Stop::Failed(error)
    }
}

async fn run(app: &App, mut scan: Scan, sender: Sender, raw: bool) {
    let mut sent = Sent::default();
    let mut outcome = pump(app, &mut scan, &sender, raw, &mut sent).await;
    if outcome.is_ok() {
        outcome = finish(sender, raw, &sent).await.map_err(Stop::from);
    }
    app.metrics.scan_ended(match outcome {
        Ok(()) => ScanEnd::Complete,
        Err(Stop::Gone) => {
            tracing::debug!(records = sent.records, "a scan's client went away");
            ScanEnd::ClientGone
        }
        Err(Stop::Failed(e)) => {
            tracing::error!(error = %e, records = sent.records, "a scan failed; its connection is broken off");
            ScanEnd::Failed
        }
    });
}

async fn pump(app: &App, scan: &mut Scan, sender: &Sender, raw: bool, sent: &mut Sent) -> Result<(), Stop> {
    let mut out = Vec::new();
    loop {
        let batch = tokio::select! {
            () = sender.gone() => return Err(Stop::Gone),
            batch = scan.next() => batch?,
        };
        let Some(batch) = batch else {
            return Ok(sender.send(&mut out).await?);
        };
        send_batch(sender, &batch, raw, sent, &mut out).await?;
        app.metrics.scan_sent(batch.len() as u64, batch.line_bytes() as u64);
    }
}

async fn send_batch(sender: &Sender, batch: &Batch, as_raw: bool, sent: &mut Sent, out: &mut Vec<u8>) -> Result<(), Stop> {
    for record in batch.iter() {
        if as_raw {
            raw::push_record(out, record);
        } else {
            ndjson::push_record(out, record)?;
        }
        sent.crc.update(record.line);
        sent.crc.update(b"\n");
        sent.records += 1;
        sent.line_bytes += record.line.len() as u64;
        sender.offer(out).await?;
    }
    Ok(())
}

async fn finish(sender: Sender, raw: bool, sent: &Sent) -> Result<(), Gone> {
    let crc = sent.crc.clone().finalize();
    if !raw {
        let mut out = Vec::new();
        let (records, line_bytes) = (sent.records, sent.line_bytes);
        push_fmt(&mut out, format_args!("{{\"end\":{{\"records\":{records},\"line_bytes\":{line_bytes},\"crc32\":\"{crc:08x}\"}}}}\n"));
        sender.send(&mut out).await?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert(COUNT_TRAILER, HeaderValue::from(sent.records));
    // Eight hex digits are a header's value.
    trailers.insert(CRC_TRAILER, HeaderValue::from_str(&format!("{crc:08x}")).unwrap_or(HeaderValue::from_static("")));
    sender.end(Some(trailers)).await
}
