//! `POST /loki/api/v1/push`: JSON, or snappy and protobuf.

use super::body::read_ingest;
use super::decode::decode_snappy_block;
use super::metrics::Protocol;
use super::params::media_type;
use super::problem::{LokiProblem, Problem};
use super::state::{App, tenant};
use crate::ingest::loki::{parse_json, parse_protobuf};
use crate::ingest::request::{Parsed, RecordLimits};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use std::fmt::Write as _;

/// How many of the errors the answer's text tells.
const ERRORS_TOLD_MAX: usize = 10;

/// The handler: 204 when everything was kept.
pub async fn push(State(app): State<App>, request: Request<Body>) -> Result<Response, LokiProblem> {
    let (head, body) = request.into_parts();
    let tenant = tenant(&head.headers)?;
    let protocol = match media_type(&head.headers).as_str() {
        "application/json" => Protocol::LokiJson,
        "" | "application/x-protobuf" | "application/protobuf" | "application/octet-stream" => Protocol::LokiProtobuf,
        other => {
            let message = format!("pushes come as application/json or application/x-protobuf, not {other:?}");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into());
        }
    };
    let mut body = read_ingest(&app, &head.headers, body).await?;
    if matches!(protocol, Protocol::LokiProtobuf) && body.encoding == "snappy" {
        // The protobuf form is always one snappy block; some senders say so once more.
        body.encoding.clear();
    }
    let body_bytes = body.bytes.len() as u64;
    // In a task of its own: a client that goes away does not leave half of an append behind.
    let work = async move {
        let (parsed, _grant) = {
            let app = app.clone();
            let turn = app.parser_turn().await?;
            tokio::task::spawn_blocking(move || {
                let _turn = turn;
                parse(&app, protocol, body)
            })
            .await??
        };
        let Parsed { batch, rejected, errors } = parsed;
        let (accepted, line_bytes) = (batch.len() as u64, batch.line_bytes() as u64);
        app.append(&tenant, batch).await?;
        app.metrics.ingested(protocol, accepted, rejected, line_bytes, body_bytes);
        if rejected == 0 {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let mut text = format!("{rejected} of {} entries were rejected, {accepted} were kept", rejected + accepted);
        for error in errors.iter().take(ERRORS_TOLD_MAX) {
            let _ = write!(text, "; entry {}: {}", error.record, error.message);
        }
        Err(Problem::bad(text))
    };
    Ok(tokio::spawn(work).await.map_err(Problem::from)??)
}

fn parse(app: &App, protocol: Protocol, body: super::body::IngestBody) -> Result<(Parsed, super::body::Grant), Problem> {
    let config = &app.config;
    let limits = RecordLimits { line_bytes_max: config.line_bytes_max, request_records_max: config.request_records_max };
    if matches!(protocol, Protocol::LokiProtobuf) {
        let (block, mut grant) = body.unpack_block(app)?;
        let bytes = decode_snappy_block(&block, config.body_bytes_max)?;
        let parsed = parse_protobuf(&bytes, &limits)?;
        grant.cover(block.len() + bytes.len() + parsed.batch.memory_bytes())?;
        return Ok((parsed, grant));
    }
    let (bytes, mut grant) = body.unpack(app)?;
    let parsed = parse_json(&bytes, &limits)?;
    grant.cover(bytes.len() + parsed.batch.memory_bytes())?;
    Ok((parsed, grant))
}
