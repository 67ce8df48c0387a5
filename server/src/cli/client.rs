//! A server's client: requests over HTTP, patience when the server is busy.
//!
//! Blocking; callers give it a thread.

use super::terminal::{Interrupt, say};
use super::units::of;
use anyhow::{Context, Result, anyhow, bail};
use haystore::Tenant;
use std::io::Read;
use std::time::{Duration, Instant};
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// How long a busy server (429, 503) is asked again.
const PATIENCE: Duration = Duration::from_secs(300);
/// The longest single pause, whatever the server asks for.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Most bytes of an answer that is not records.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// A server and a tenant.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    base: String,
    tenant: String,
}

/// What the server says of a body.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct IngestAnswer {
    /// Records kept.
    pub records: u64,
    /// Records refused.
    pub rejected: u64,
    /// The first few reasons.
    pub reasons: Vec<String>,
}

impl Client {
    /// A client of the server at `url`, like `http://host:7171`.
    ///
    /// # Errors
    /// What is wrong with the URL.
    pub fn new(url: &str, tenant: &Tenant) -> Result<Self> {
        if url.starts_with("https://") {
            bail!("{url}: this build speaks plain http; put a proxy in front for TLS");
        }
        let base = if url.contains("://") { url.to_string() } else { format!("http://{url}") };
        if !base.starts_with("http://") || base.len() == "http://".len() {
            bail!("{url} is no server's address; write it like http://127.0.0.1:7171");
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .user_agent(concat!("haystore/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(Client { agent, base: base.trim_end_matches('/').to_string(), tenant: tenant.as_str().to_string() })
    }

    /// Sends a body of logs; asks again while the server is busy.
    ///
    /// # Errors
    /// When the server refuses the body or cannot be reached.
    pub fn ingest(&self, query: &[(&str, String)], body: &[u8], interrupt: &Interrupt) -> Result<IngestAnswer> {
        let begin = Instant::now();
        let mut pause = Duration::from_millis(250);
        loop {
            let request = self.agent.post(format!("{}/api/v1/ingest", self.base)).header("X-Scope-OrgID", &self.tenant);
            let request = query.iter().fold(request, |r, (name, value)| r.query(*name, value.as_str()));
            let response = request.content_type("application/octet-stream").send(body).map_err(|e| self.unreachable(e))?;
            if !matches!(response.status().as_u16(), 429 | 503) {
                return ingest_answer(response);
            }
            let wait = retry_after(&response).unwrap_or(pause).min(PAUSE_MAX);
            let status = response.status();
            let said = text(response).unwrap_or_default();
            if let Some(answer) = read_ingest_answer(&said).filter(|a| a.records + a.rejected > 0) {
                let handled = of(answer.records + answer.rejected, "record");
                bail!("the server answered {status} after it had handled the first {handled} of a body; sent again they would be doubled");
            }
            if begin.elapsed() + wait > PATIENCE || interrupt.raised() {
                return Err(refusal(status, &said));
            }
            std::thread::sleep(wait);
            pause = (pause * 2).min(Duration::from_secs(15));
        }
    }

    /// Asks for records; returns the body as it streams in.
    ///
    /// # Errors
    /// When the server refuses the query or cannot be reached.
    pub fn records(&self, path: &str, query: &[(&str, String)]) -> Result<Response<Body>> {
        let request = self.agent.get(format!("{}{path}", self.base)).header("X-Scope-OrgID", &self.tenant);
        let request = query.iter().fold(request, |r, (name, value)| r.query(*name, value.as_str()));
        let response = request.call().map_err(|e| self.unreachable(e))?;
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(refusal(status, &text(response).unwrap_or_default())) }
    }

    fn unreachable(&self, error: ureq::Error) -> anyhow::Error {
        anyhow!("{}: {error}; is the server running, and the address right?", self.base)
    }
}

/// The pause the server asks for, when it asks in seconds.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn text(response: Response<Body>) -> Result<String> {
    let mut bytes = Vec::new();
    response.into_body().into_with_config().limit(u64::MAX).reader().take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The error that a refusing answer stands for.
fn refusal(status: StatusCode, said: &str) -> anyhow::Error {
    let hint = match status.as_u16() {
        404 => "; is this a haystore server?",
        429 | 503 => "; it is busy, try again later",
        _ => "",
    };
    let json: Option<serde_json::Value> = serde_json::from_str(said).ok();
    let said = json.as_ref().and_then(|v| v.get("error")?.as_str()).unwrap_or(said);
    let said: String = said.trim().chars().take(500).collect();
    anyhow!("the server answered {status}: {said}{hint}")
}

/// Reads `{"accepted":n,"rejected":n,"errors":[…]}`; other members are left alone.
fn ingest_answer(response: Response<Body>) -> Result<IngestAnswer> {
    let status = response.status();
    // 400 with counts: some records were refused, the others are kept.
    if !status.is_success() && status.as_u16() != 400 {
        return Err(refusal(status, &text(response).unwrap_or_default()));
    }
    let said = text(response).context("the server's answer broke off; whether it kept the records is unknown")?;
    match read_ingest_answer(&said) {
        Some(answer) => Ok(answer),
        None if status.is_success() => {
            say("warning", "the server took a body but did not say how many records");
            Ok(IngestAnswer::default())
        }
        None => Err(refusal(status, &said)),
    }
}

fn read_ingest_answer(said: &str) -> Option<IngestAnswer> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    let number = |name: &str| said.get(name).and_then(serde_json::Value::as_u64);
    let reasons = said.get("errors").and_then(|e| e.as_array()).into_iter().flatten().map(|error| {
        let field = |name: &str| error.get(name).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_string));
        match (field("record"), field("message")) {
            (Some(record), Some(message)) => format!("record {record}: {message}"),
            (_, Some(message)) => message,
            _ => error.as_str().map_or_else(|| error.to_string(), str::to_string),
        }
    });
    Some(IngestAnswer { records: number("accepted")?, rejected: number("rejected").unwrap_or(0), reasons: reasons.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let tenant = Tenant::default();
        assert_eq!(Client::new("http://a:1/", &tenant).unwrap().base, "http://a:1");
        assert_eq!(Client::new("127.0.0.1:7171", &tenant).unwrap().base, "http://127.0.0.1:7171");
        for wrong in ["https://a", "ftp://a", "http://"] {
            assert!(Client::new(wrong, &tenant).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_are_read() {
        let said = r#"{"accepted":3,"rejected":1,"errors":[{"record":2,"message":"too long"},"odd"],"more":null}"#;
        let wanted = IngestAnswer { records: 3, rejected: 1, reasons: vec!["record 2: too long".into(), "odd".into()] };
        assert_eq!(read_ingest_answer(said), Some(wanted));
        assert_eq!(read_ingest_answer("{}"), None);
        assert_eq!(read_ingest_answer("nothing"), None);
    }
}
