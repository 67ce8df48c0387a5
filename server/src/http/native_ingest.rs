//! `POST /api/v1/ingest`: lines, NDJSON or CSV.

use super::body::{IngestBody, read_ingest};
use super::metrics::Protocol;
use super::native_parse;
use super::params::{Params, media_type};
use super::problem::{NativeProblem, Problem};
use super::state::{App, now, tenant};
use crate::answer::json::{push_fmt, push_string};
use crate::ingest::{CsvHeader, InputFormat, OddLines, ReadOptions, RecordError, Report, TimeRules, Timestamps};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haystore::{Labels, Tenant};

/// The handler.
pub async fn ingest(State(app): State<App>, request: Request<Body>) -> Result<Response, NativeProblem> {
    let (head, body) = request.into_parts();
    let tenant = tenant(&head.headers)?;
    let options = options(&app, &head.headers, &Params::from_form(head.uri.query().unwrap_or("").as_bytes()))?;
    let body = read_ingest(&app, &head.headers, body).await?;
    let body_bytes = body.bytes.len() as u64;
    // In a task of its own: a client that goes away does not leave half of an append behind.
    let work = async move {
        let outcome = store(&app, &tenant, body, options).await?;
        let (accepted, rejected) = (outcome.accepted, outcome.report.counts.rejected);
        app.metrics.ingested(Protocol::Native, accepted, rejected, outcome.line_bytes, body_bytes);
        outcome.answer()
    };
    Ok(tokio::spawn(work).await.map_err(Problem::from)??)
}

fn options(app: &App, headers: &HeaderMap, params: &Params) -> Result<ReadOptions, Problem> {
    let mut labels = Vec::new();
    for label in params.all("label") {
        match label.split_once('=') {
            Some((name, value)) if !name.is_empty() => labels.push((name, value)),
            _ => return Err(Problem::bad(format!("label={label:?}: a label is written name=value"))),
        }
    }
    let format = match params.filled("format") {
        Some(format) => format.to_ascii_lowercase(),
        None => match media_type(headers).as_str() {
            "application/x-ndjson" | "application/jsonl" | "application/x-jsonlines" => "ndjson",
            "text/csv" => "csv",
            "text/plain" => "lines",
            "" | "application/octet-stream" | "application/x-www-form-urlencoded" | "application/json" => "auto",
            other => {
                let message = format!("bodies of type {other:?} are not taken; say format=lines, ndjson, csv or auto");
                return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
            }
        }
        .to_string(),
    };
    let now = now();
    let timestamps = [Timestamps::Auto, Timestamps::All(now)][params.word("timestamps", &["auto", "none"])?];
    let delimiter = match params.filled("delimiter").map(str::as_bytes) {
        None => None,
        Some([delimiter]) => Some(*delimiter),
        Some(_) => return Err(Problem::bad("delimiter: it is one byte, as in delimiter=%09")),
    };
    let headers = [CsvHeader::Auto, CsvHeader::First, CsvHeader::None, CsvHeader::Repeated];
    Ok(ReadOptions {
        format: format.parse::<InputFormat>()?,
        labels: Labels::new(labels),
        time_field: params.filled("time_field").map(str::to_string),
        timestamps,
        delimiter,
        header: headers[params.word("header", &["auto", "first", "none", "repeated"])?],
        odd_lines: [OddLines::Reject, OddLines::Keep][params.word("odd_lines", &["reject", "keep"])?],
        line_bytes_max: app.config.line_bytes_max,
        ..ReadOptions::new(TimeRules::new(now))
    })
}

struct Outcome {
    accepted: u64,
    line_bytes: u64,
    report: Report,
    failed: Option<Problem>,
}

async fn store(app: &App, tenant: &Tenant, body: IngestBody, options: ReadOptions) -> Result<Outcome, Problem> {
    let (mut batches, parsing) = native_parse::start(app, body, options).await?;
    let mut outcome = Outcome { accepted: 0, line_bytes: 0, report: Report::default(), failed: None };
    while let Some(batch) = batches.recv().await {
        let (records, line_bytes) = (batch.len() as u64, batch.line_bytes() as u64);
        if let Err(e) = app.append(tenant, batch).await {
            outcome.failed = Some(e.into());
            break;
        }
        outcome.accepted += records;
        outcome.line_bytes += line_bytes;
    }
    drop(batches);
    match parsing.await? {
        Ok(report) => outcome.report = report,
        Err(problem) => outcome.failed = outcome.failed.or(Some(problem)),
    }
    Ok(outcome)
}

impl Outcome {
    fn answer(self) -> Result<Response, Problem> {
        let status = match &self.failed {
            Some(problem) if self.accepted == 0 => return Err(problem.clone()),
            Some(problem) => problem.status,
            None if self.report.counts.rejected > 0 => StatusCode::BAD_REQUEST,
            None => StatusCode::OK,
        };
        let mut out = Vec::new();
        push_fmt(&mut out, format_args!("{{\"accepted\":{},\"rejected\":{},\"errors\":[", self.accepted, self.report.counts.rejected));
        for (i, RecordError { line, message }) in self.report.errors.iter().enumerate() {
            push_fmt(&mut out, format_args!("{}{{\"record\":{line},\"message\":", if i > 0 { "," } else { "" }));
            push_string(&mut out, message);
            out.push(b'}');
        }
        out.push(b']');
        if let Some(problem) = self.failed {
            // The store refused a later part of the body.
            out.extend_from_slice(b",\"error\":");
            push_string(&mut out, &problem.message);
        }
        out.extend_from_slice(b"}\n");
        let mut response = (status, [(header::CONTENT_TYPE, "application/json")], out).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
        }
        Ok(response)
    }
}
