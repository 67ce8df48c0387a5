//! `GET|POST /loki/api/v1/query_range` and `/query`: log queries.
//!
//! What holds: `start` is included, `end` is not; a client that pages by time (moving `start` or `end` to the last entry's
//! timestamp) sees everything as long as its limit is larger than the longest run of equal timestamps, and is warned when it is not.

use super::loki_params;
use super::loki_params::{start_end, time};
use super::native_search::limit;
use super::params::Params;
use super::problem::{LokiProblem, Problem};
use super::state::{App, now, tenant};
use super::stream::{Gone, Sender, channel};
use crate::answer::loki::Streams;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, header};
use axum::response::{IntoResponse, Response};
use haystore::query::logql;
use haystore::{Direction, QueryStats, Result as StoreResult, SearchRequest, SearchResult};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The entries returned when no `limit` is given.
const LIMIT_DEFAULT: usize = 100;
/// How far back a query looks that says nothing about it.
const SINCE_DEFAULT: i64 = 3600 * 1_000_000_000;
/// What a client asks whether a server lives, without knowing any stream.
const HEALTH_QUERY: &str = "vector(1)+vector(1)";

/// The handler of `query_range`.
pub async fn query_range(State(app): State<App>, request: Request<Body>) -> Result<Response, LokiProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let (start, end) = start_end(&params, now(), SINCE_DEFAULT)?;
    if end <= start {
        return Err(Problem::bad("end lies not behind start").into());
    }
    answer(app, &headers, &params, start..=end - 1).await
}

/// The handler of `query`: the entries up to `time`, as far back as `since`.
pub async fn query(State(app): State<App>, request: Request<Body>) -> Result<Response, LokiProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let now = now();
    if params.get("query").is_some_and(|q| q.chars().filter(|c| !c.is_whitespace()).eq(HEALTH_QUERY.chars())) {
        return Ok(health(now));
    }
    let range = if let Some(at) = params.filled("time") {
        let at = time(at, now)?;
        let since = params.filled("since").map_or(Some(SINCE_DEFAULT), loki_params::duration);
        let since = since.ok_or_else(|| Problem::bad("since is not a duration"))?;
        at.saturating_sub(since)..=at
    } else {
        let (start, end) = start_end(&params, now, SINCE_DEFAULT)?;
        start..=end
    };
    answer(app, &headers, &params, range).await
}

fn health(now: i64) -> Response {
    let body = format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":[{{\"metric\":{{}},\"value\":[{},\"2\"]}}],\"stats\":{{}}}}}}",
        now / 1_000_000_000
    );
    ([(header::CONTENT_TYPE, "application/json; charset=UTF-8")], body).into_response()
}

async fn answer(app: App, headers: &HeaderMap, params: &Params, range: RangeInclusive<i64>) -> Result<Response, LokiProblem> {
    let tenant = tenant(headers)?;
    let text = params.filled("query").ok_or_else(|| Problem::bad("the parameter query is missing"))?;
    let request = SearchRequest {
        query: logql::parse_strict(text)?,
        range,
        limit: limit(&app, params, LIMIT_DEFAULT)?,
        direction: [Direction::Backward, Direction::Forward][params.word("direction", &["backward", "forward"])?],
        after: None,
    };
    let categorize = headers
        .get_all("x-loki-response-encoding-flags")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .any(|v| v.split(',').any(|flag| flag.trim() == "categorize-labels"));
    let turn = app.search_turn().await?;
    let begun = Instant::now();
    let result = {
        let _running = app.metrics.search();
        app.store.search(&tenant, request).await?
    };
    app.metrics.search_found(result.records.len() as u64);
    let warnings = warnings(&result);
    let SearchResult { records, stats, .. } = result;
    let streams = Streams::new(records, categorize)?;
    let took = begun.elapsed();
    let (sender, body) = channel(app.config.answer_pieces_max, app.config.stall_max);
    tokio::spawn(async move {
        let _turn = turn;
        let _running = app.metrics.search();
        match pieces(&sender, &streams, &stats, took, &warnings).await {
            Ok(Err(Gone)) => {}
            Ok(Ok(())) => {
                let _ = sender.end(None).await;
            }
            Err(e) => tracing::error!(error = %e, "a query's answer was broken off"),
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/json; charset=UTF-8")], body).into_response())
}

/// A page that is one run of equal timestamps, cut: a client that pages by time cannot get behind it.
fn warnings(result: &SearchResult) -> Vec<String> {
    let timestamps = result.records.timestamps();
    match (&result.next, timestamps.first(), timestamps.last()) {
        (Some(_), Some(first), Some(last)) if first == last => vec![format!(
            "more than {} entries have the timestamp {first}: a client that pages by time misses the rest; ask with a larger limit",
            timestamps.len()
        )],
        _ => Vec::new(),
    }
}

async fn pieces(
    sender: &Sender,
    streams: &Streams,
    stats: &QueryStats,
    took: Duration,
    warnings: &[String],
) -> StoreResult<Result<(), Gone>> {
    let mut out = Vec::new();
    streams.push_head(&mut out);
    for entry in streams.entries() {
        streams.push_entry(&mut out, &entry)?;
        if sender.offer(&mut out).await.is_err() {
            return Ok(Err(Gone));
        }
    }
    streams.push_tail(&mut out, stats, took, warnings);
    Ok(sender.send(&mut out).await)
}
