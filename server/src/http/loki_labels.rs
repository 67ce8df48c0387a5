//! `labels`, `label/{name}/values` and `series` of Loki's API.

use super::language;
use super::loki_params::start_end;
use super::params::Params;
use super::problem::LokiProblem;
use super::state::{App, now, tenant};
use crate::answer::loki::{list_answer, series_answer};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request, header};
use axum::response::{IntoResponse, Response};
use haystore::Labels;
use std::collections::BTreeSet;

/// How far back these look when the request does not say.
const SINCE_DEFAULT: i64 = 6 * 3600 * 1_000_000_000;

/// The handler of `labels`: the names.
pub async fn labels(State(app): State<App>, request: Request<Body>) -> Result<Response, LokiProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let series = find(&app, &headers, &params, "query").await?;
    let names: BTreeSet<&str> = series.iter().flat_map(|s| s.iter().map(|(name, _)| name)).collect();
    Ok(json(list_answer(names.into_iter())))
}

/// The handler of `label/{name}/values`: the values of one label.
pub async fn values(State(app): State<App>, Path(name): Path<String>, request: Request<Body>) -> Result<Response, LokiProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let series = find(&app, &headers, &params, "query").await?;
    let values: BTreeSet<&str> = series.iter().filter_map(|s| s.get(&name)).collect();
    Ok(json(list_answer(values.into_iter())))
}

/// The handler of `series`: the label sets that any `match[]` selects.
pub async fn series(State(app): State<App>, request: Request<Body>) -> Result<Response, LokiProblem> {
    let (headers, params) = Params::read(&app, request).await?;
    let series = find(&app, &headers, &params, "match[]").await?;
    Ok(json(series_answer(&series)))
}

async fn find(app: &App, headers: &HeaderMap, params: &Params, selectors: &str) -> Result<Vec<Labels>, LokiProblem> {
    let tenant = tenant(headers)?;
    let (start, end) = start_end(params, now(), SINCE_DEFAULT)?;
    let mut matchers = Vec::new();
    // `match` without brackets is what some older clients send.
    let texts = params.all(selectors).chain(params.all("match").filter(|_| selectors == "match[]"));
    for text in texts.filter(|t| !t.trim().is_empty()) {
        matchers.push(language::selector(text)?);
    }
    let _turn = app.search_turn().await?;
    let _running = app.metrics.search();
    Ok(app.store.series(&tenant, &matchers, start..=end).await?)
}

fn json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json; charset=UTF-8")], body).into_response()
}
