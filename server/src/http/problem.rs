//! Errors as answers: a status, a sentence, and the two forms in which clients read them.

use crate::ingest::BodyError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haystore::{Error, ErrorKind};

/// Why a request failed.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The answer's status.
    pub status: StatusCode,
    /// One sentence.
    pub message: String,
}

/// Seconds that a refused client is asked to wait.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

impl Problem {
    /// A problem with `status`.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Problem { status, message: message.into() }
    }
    /// 400.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }
    /// 429, try again.
    pub fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, message)
    }

    fn answer(&self, content_type: &'static str, body: String) -> Response {
        let mut response = (self.status, [(header::CONTENT_TYPE, content_type)], body).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS || self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        if self.status.is_server_error() {
            tracing::warn!(status = self.status.as_u16(), message = self.message, "request failed");
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::Limit => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Busy | ErrorKind::Fenced => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Corrupt | ErrorKind::Denied | ErrorKind::Io | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.message())
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let status = match error {
            BodyError::UnknownEncoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Damaged { .. } => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<tokio::task::JoinError> for Problem {
    fn from(error: tokio::task::JoinError) -> Self {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("a task of this request ended early: {error}"))
    }
}

/// The native form: `{"error":"<sentence>"}`.
pub struct NativeProblem(pub Problem);

impl<P: Into<Problem>> From<P> for NativeProblem {
    fn from(problem: P) -> Self {
        NativeProblem(problem.into())
    }
}

impl IntoResponse for NativeProblem {
    fn into_response(self) -> Response {
        let mut body = b"{\"error\":".to_vec();
        crate::answer::json::push_string(&mut body, &self.0.message);
        body.extend_from_slice(b"}\n");
        self.0.answer("application/json", String::from_utf8_lossy(&body).into_owned())
    }
}

/// Loki's form: the sentence as plain text.
pub struct LokiProblem(pub Problem);

impl<P: Into<Problem>> From<P> for LokiProblem {
    fn from(problem: P) -> Self {
        LokiProblem(problem.into())
    }
}

impl IntoResponse for LokiProblem {
    fn into_response(self) -> Response {
        self.0.answer("text/plain; charset=utf-8", format!("{}\n", self.0.message))
    }
}

/// The answer to a path that does not exist: JSON, as both kinds of clients expect.
pub async fn not_found() -> Response {
    let body = "{\"code\":404,\"status\":\"error\",\"message\":\"not found\",\"error\":\"not found\"}\n";
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
