//! `/ready`, `/metrics`, and what Loki's clients ask about the build.

use super::state::App;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The handler of `/ready`: the store was opened before the server listens, so a server that answers is ready.
pub async fn ready() -> &'static str {
    "ready\n"
}

/// The handler of `/metrics`.
pub async fn metrics(State(app): State<App>) -> Response {
    let mut text = app.metrics.to_text();
    super::metrics::store_text(&mut text, &app.store);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// The handler of `/loki/api/v1/status/buildinfo`. Clients choose features by `version`: it is that of the Loki API spoken here.
pub async fn build_info() -> Response {
    let body = format!(
        "{{\"version\":\"3.0.0\",\"revision\":\"haystore-{}\",\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\"}}",
        env!("CARGO_PKG_VERSION")
    );
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
