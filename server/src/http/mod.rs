//! HTTP: routes, limits, errors, tenants, metrics, shutdown.
//!
//! | path | module |
//! |---|---|
//! | `/api/v1/ingest` | `native_ingest` |
//! | `/api/v1/search`, `/api/v1/scan` | `native_search`, `native_scan` |
//! | `/loki/api/v1/push` | `loki_push` |
//! | `/loki/api/v1/query_range`, `/query` | `loki_query` |
//! | `/loki/api/v1/labels`, `/label/{name}/values`, `/series` | `loki_labels` |
//! | `/ready`, `/metrics`, `/loki/api/v1/status/buildinfo` | `health` |
//!
//! What holds: every buffer, queue and request has a limit named in [`ServeConfig`]; past it the one request fails.
//! Every store call carries the tenant of its request. Parsing and unpacking never run on the async threads.
//! This module must not know bytes at rest, nor how a query is executed.

mod body;
mod config;
mod decode;
mod health;
mod language;
mod listen;
mod loki_labels;
mod loki_params;
mod loki_push;
mod loki_query;
mod metrics;
mod native_ingest;
mod native_parse;
mod native_scan;
mod native_search;
mod params;
mod problem;
mod stall;
mod state;
mod stream;
#[cfg(test)]
mod tests;

pub use config::ServeConfig;
pub use listen::{serve, serve_until};
pub use native_scan::{COUNT_TRAILER, CRC_TRAILER};
pub use native_search::CURSOR_HEADER;
pub use state::TENANT_HEADER;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use state::App;
use std::time::Instant;

/// The routes over `app`.
fn router(app: App) -> Router {
    let mut routes = Router::new()
        .route("/api/v1/ingest", post(native_ingest::ingest))
        .route("/loki/api/v1/push", post(loki_push::push))
        .route("/ready", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/loki/api/v1/status/buildinfo", get(health::build_info));
    for (path, methods) in [
        ("/api/v1/search", get(native_search::search).post(native_search::search)),
        ("/api/v1/scan", get(native_scan::scan).post(native_scan::scan)),
        ("/loki/api/v1/query_range", get(loki_query::query_range).post(loki_query::query_range)),
        ("/loki/api/v1/query", get(loki_query::query).post(loki_query::query)),
        ("/loki/api/v1/labels", get(loki_labels::labels).post(loki_labels::labels)),
        ("/loki/api/v1/label", get(loki_labels::labels).post(loki_labels::labels)),
        ("/loki/api/v1/label/{name}/values", get(loki_labels::values).post(loki_labels::values)),
        ("/loki/api/v1/series", get(loki_labels::series).post(loki_labels::series)),
    ] {
        routes = routes.route(path, methods);
    }
    routes.fallback(problem::not_found).layer(from_fn_with_state(app.clone(), count)).with_state(app)
}

/// Counts requests by route and status.
async fn count(State(app): State<App>, request: Request<Body>, next: Next) -> Response {
    let route = route_name(request.uri().path());
    let begun = Instant::now();
    let _in_flight = app.metrics.in_flight();
    let response = next.run(request).await;
    app.metrics.request(route, response.status().as_u16(), begun.elapsed());
    response
}

/// The name of a path's route: one of a fixed set.
fn route_name(path: &str) -> &'static str {
    match path {
        "/api/v1/ingest" => "ingest",
        "/api/v1/search" => "search",
        "/api/v1/scan" => "scan",
        "/loki/api/v1/push" => "loki_push",
        "/loki/api/v1/query_range" => "loki_query_range",
        "/loki/api/v1/query" => "loki_query",
        "/loki/api/v1/labels" | "/loki/api/v1/label" => "loki_labels",
        "/loki/api/v1/series" => "loki_series",
        "/loki/api/v1/status/buildinfo" => "loki_buildinfo",
        "/ready" => "ready",
        "/metrics" => "metrics",
        _ if path.starts_with("/loki/api/v1/label/") => "loki_label_values",
        _ => "other",
    }
}
