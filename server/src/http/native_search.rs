//! `GET|POST /api/v1/search`: the first records that match, with the place to go on.

use super::language;
use super::params::Params;
use super::problem::{NativeProblem, Problem};
use super::state::{App, now, tenant};
use super::stream::{Gone, Sender, channel};
use crate::answer::json::push_fmt;
use crate::answer::{ndjson, raw};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use haystore::query::time;
use haystore::{Cursor, Direction, Error, RecordRef, Result as StoreResult, SearchRequest, SearchResult};
use std::ops::RangeInclusive;

/// The records returned when no `limit` is given.
const LIMIT_DEFAULT: usize = 1000;

/// The answer's header with the cursor to go on at; missing when nothing was cut.
pub const CURSOR_HEADER: &str = "x-haystore-next-cursor";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Ndjson,
    Json,
    Raw,
}

/// The handler.
pub async fn search(State(app): State<App>, request: Request<Body>) -> Result<Response, NativeProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let tenant = tenant(&headers)?;
    let request = SearchRequest {
        query: language::native_query(params.get("query").unwrap_or(""))?,
        range: range(&params)?,
        limit: limit(&app, &params, LIMIT_DEFAULT)?,
        direction: [Direction::Forward, Direction::Backward][params.word("direction", &["forward", "backward"])?],
        after: after(&params)?,
    };
    let output = [Output::Ndjson, Output::Json, Output::Raw][params.word("output", &["ndjson", "json", "raw"])?];
    let turn = app.search_turn().await?;
    let result = {
        let _running = app.metrics.search();
        app.store.search(&tenant, request).await?
    };
    app.metrics.search_found(result.records.len() as u64);
    let next = result.next.as_ref().map(Cursor::to_text);
    let (sender, body) = channel(app.config.answer_pieces_max, app.config.stall_max);
    tokio::spawn(async move {
        let _turn = turn;
        let _running = app.metrics.search();
        send(sender, &result, output).await;
    });
    let content_type = match output {
        Output::Ndjson => "application/x-ndjson",
        Output::Json => "application/json",
        Output::Raw => "application/octet-stream",
    };
    let mut response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
    if let Some(next) = next {
        let value = HeaderValue::from_str(&next).map_err(|_| Error::internal("a cursor's text is not a header's value"))?;
        response.headers_mut().insert(CURSOR_HEADER, value);
    }
    Ok(response)
}

/// `from` (included) to `to` (excluded); without them everything.
pub fn range(params: &Params) -> Result<RangeInclusive<i64>, Problem> {
    let now = now();
    let at = |name: &str| params.filled(name).map(|text| time::parse(text, now).map_err(|e| e.at(name))).transpose();
    let (from, to) = (at("from")?.unwrap_or(i64::MIN), at("to")?);
    match to {
        Some(to) if to < from || to == i64::MIN => Err(Problem::bad("from lies behind to")),
        Some(to) => Ok(from..=to - 1),
        None => Ok(from..=i64::MAX),
    }
}

/// The cursor in `after`.
pub fn after(params: &Params) -> Result<Option<Cursor>, Problem> {
    Ok(params.filled("after").map(Cursor::from_text).transpose()?)
}

/// The number in `limit`.
pub fn limit(app: &App, params: &Params, default: usize) -> Result<usize, Problem> {
    let limit = params.number("limit", default)?;
    let max = app.config.search_records_max;
    if limit == 0 || limit > max {
        return Err(Problem::bad(format!("limit={limit}: a search gives 1 to {max} records; page with the cursor, or scan")));
    }
    Ok(limit)
}

async fn send(sender: Sender, result: &SearchResult, output: Output) {
    match pieces(&sender, result, output).await {
        // A client that is gone needs no answer; ending here drops the sender.
        Ok(Err(Gone)) => {}
        Ok(Ok(())) => {
            let _ = sender.end(None).await;
        }
        Err(e) => tracing::error!(error = %e, "a search's answer was broken off"),
    }
}

async fn pieces(sender: &Sender, result: &SearchResult, output: Output) -> StoreResult<Result<(), Gone>> {
    let mut out = Vec::new();
    if output == Output::Json {
        out.extend_from_slice(b"{\"records\":[");
    }
    for (i, record) in result.records.iter().enumerate() {
        if output == Output::Json && i > 0 {
            out.push(b',');
        }
        push(&mut out, record, output)?;
        if sender.offer(&mut out).await.is_err() {
            return Ok(Err(Gone));
        }
    }
    if output == Output::Json {
        out.extend_from_slice(b"],\"summary\":");
        push_summary(&mut out, result);
        out.extend_from_slice(b"}\n");
    }
    Ok(sender.send(&mut out).await)
}

fn push(out: &mut Vec<u8>, record: RecordRef<'_>, output: Output) -> StoreResult<()> {
    match output {
        Output::Ndjson => ndjson::push_record(out, record),
        Output::Json => ndjson::push_object(out, record),
        Output::Raw => {
            raw::push_record(out, record);
            Ok(())
        }
    }
}

fn push_summary(out: &mut Vec<u8>, result: &SearchResult) {
    let stats = &result.stats;
    push_fmt(out, format_args!("{{\"records\":{},\"truncated\":{},\"next\":", result.records.len(), result.next.is_some()));
    match &result.next {
        Some(next) => push_fmt(out, format_args!("\"{}\"", next.to_text())),
        None => out.extend_from_slice(b"null"),
    }
    push_fmt(
        out,
        format_args!(
            ",\"stats\":{{\"segments\":{},\"row_groups\":{},\"rows\":{},\"line_bytes\":{},\"bytes_read\":{},\"requests\":{}}}}}",
            stats.segments, stats.row_groups, stats.rows, stats.line_bytes, stats.bytes_read, stats.requests
        ),
    );
}
