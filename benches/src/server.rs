//! A real server, measured from outside, and its client.

use crate::child::Child;
use crate::input::{self, Sum};
use crate::process::Used;
use anyhow::{Context, Result, bail, ensure};
use haystore::{Batch, Tenant};
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take to be ready.
const START_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long a busy server is asked again.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(300);

/// A server and a connection to it.
pub struct Server {
    /// The process.
    pub child: Child,
    url: String,
    agent: ureq::Agent,
    /// Requests that it refused as too many.
    pub refused: u64,
}

impl Server {
    /// Starts one on the store in `store`, with more `arguments`.
    pub fn start(store: &Path, arguments: &[String]) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let mut all = vec!["serve".to_string(), "--store".into(), store.to_string_lossy().into_owned(), "--listen".into(), address.clone()];
        all.extend_from_slice(arguments);
        let child = Child::haystore(all, Stdio::null())?;
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let server = Server { child, url: format!("http://{address}"), agent, refused: 0 };
        let begin = Instant::now();
        while server.agent.get(format!("{}/ready", server.url)).call().is_err() {
            ensure!(begin.elapsed() < START_WAIT_MAX, "the server did not begin to serve");
            sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Stops it; what it used from its start on, the last flush counted.
    pub fn stop(mut self) -> Result<Used> {
        self.child.stop()?;
        self.child.end()
    }

    fn post(&mut self, path: &str, tenant: &Tenant, content_type: &str, body: &[u8]) -> Result<()> {
        let begin = Instant::now();
        loop {
            let request = self.agent.post(format!("{}{path}", self.url)).header("X-Scope-OrgID", tenant.as_str());
            let mut answer = request.header("Content-Type", content_type).send(body)?;
            let status = answer.status().as_u16();
            match status {
                200..=299 => return Ok(()),
                429 | 503 if begin.elapsed() < BUSY_WAIT_MAX => {
                    self.refused += 1;
                    sleep(Duration::from_millis(50));
                }
                _ => bail!("{path}: {status} {}", answer.body_mut().read_to_string().unwrap_or_default()),
            }
        }
    }

    /// Pushes `batch` through Loki's API, as JSON.
    pub fn push(&mut self, tenant: &Tenant, batch: &Batch, body: &mut Vec<u8>) -> Result<()> {
        input::push_body(batch, body);
        self.post("/loki/api/v1/push", tenant, "application/json", body)
    }

    /// Sends whole lines through the native API.
    pub fn ingest(&mut self, query: &str, body: &[u8]) -> Result<()> {
        self.post(&format!("/api/v1/ingest?{query}"), &Tenant::default(), "application/octet-stream", body)
    }

    /// Milliseconds that a search for `needle` takes, and how many records it finds.
    pub fn search(&self, tenant: &Tenant, needle: &str) -> Result<(f64, usize)> {
        let begin = Instant::now();
        let request = self.agent.get(format!("{}/api/v1/search", self.url)).query("query", needle).query("output", "raw");
        let mut answer = request.header("X-Scope-OrgID", tenant.as_str()).call()?;
        ensure!(answer.status().is_success(), "a search was answered with {}", answer.status());
        let text = answer.body_mut().read_to_vec()?;
        Ok((begin.elapsed().as_secs_f64() * 1e3, text.split(|&b| b == b'\n').count() - 1))
    }

    /// Scans everything of `tenant`, reading at most `bytes_per_second`.
    pub fn scan(&self, tenant: &Tenant, bytes_per_second: Option<f64>) -> Result<Sum> {
        let request = self.agent.get(format!("{}/api/v1/scan", self.url)).header("X-Scope-OrgID", tenant.as_str());
        let answer = request.call().context("the scan failed")?;
        ensure!(answer.status().is_success(), "a scan was answered with {}", answer.status());
        let (_, body) = answer.into_parts();
        Sum::of(Paced { inner: body.into_with_config().limit(u64::MAX).reader(), bytes_per_second, begin: Instant::now(), bytes: 0 })
    }
}

/// A reader that takes its time.
struct Paced<R> {
    inner: R,
    bytes_per_second: Option<f64>,
    begin: Instant,
    bytes: u64,
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if let Some(pace) = self.bytes_per_second {
            let due = Duration::from_secs_f64(self.bytes as f64 / pace);
            sleep(due.saturating_sub(self.begin.elapsed()));
        }
        let bytes = self.inner.read(out)?;
        self.bytes += bytes as u64;
        Ok(bytes)
    }
}
