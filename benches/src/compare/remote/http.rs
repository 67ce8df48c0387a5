//! Requests to a server, with patience when it is busy.

use anyhow::{Context, Result, bail, ensure};
use haystore_server::answer::json::push_base64;
use serde_json::Value;
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};
use ureq::http::{Request, Response};
use ureq::{Agent, Body};

/// How long a busy server (429, 503) is asked again, and how often.
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(250);
/// Characters of a server's complaint that are told.
const COMPLAINT_CHARS: usize = 500;

/// A server at an address.
#[derive(Debug)]
pub struct Server {
    agent: Agent,
    base: String,
    authorization: Option<String>,
}

/// A request's path and what follows the question mark.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// From the server's address on, with its first slash.
    pub path: &'a str,
    /// Names and values, not encoded.
    pub query: &'a [(&'a str, &'a str)],
}

impl<'a> From<&'a str> for Place<'a> {
    fn from(path: &'a str) -> Self {
        Place { path, query: &[] }
    }
}

impl Server {
    /// The server at `url`, like `http://host:9200` or `http://user:password@host:9200`.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub fn new(url: &str) -> Result<Self> {
        ensure!(!url.starts_with("https://"), "{url}: this build speaks plain http; put a proxy in front for TLS");
        let rest = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        ensure!(!host.is_empty() && !host.contains("://"), "{url} is no server's address; write it like http://127.0.0.1:9200");
        let authorization = user.map(|user| {
            let mut text = b"Basic ".to_vec();
            push_base64(&mut text, user.as_bytes());
            String::from_utf8_lossy(&text).into_owned()
        });
        let agent = Agent::config_builder().http_status_as_error(false).timeout_connect(Some(Duration::from_secs(10))).build().into();
        Ok(Server { agent, base: format!("http://{host}"), authorization })
    }

    /// Sends a request until the server is not busy; its answer, when that is a good one.
    fn send(&self, method: &str, place: Place<'_>, content_type: &str, body: &[u8]) -> Result<Response<Body>> {
        let begin = Instant::now();
        let path = place.path;
        let url = with_query(format!("{}{path}", self.base), place.query);
        loop {
            let mut request = Request::builder().method(method).uri(&url).header("Content-Type", content_type);
            if let Some(authorization) = &self.authorization {
                request = request.header("Authorization", authorization);
            }
            let mut answer = match method {
                "GET" | "DELETE" => self.agent.run(request.body(())?),
                _ => self.agent.run(request.body(body)?),
            }
            .with_context(|| format!("{method} {path}: no answer"))?;
            match answer.status().as_u16() {
                200..=299 => return Ok(answer),
                429 | 503 if begin.elapsed() < PATIENCE => sleep(PAUSE),
                status => {
                    let said = answer.body_mut().read_to_string().unwrap_or_default();
                    bail!("{method} {path}: {status} {}", said.trim().chars().take(COMPLAINT_CHARS).collect::<String>());
                }
            }
        }
    }

    /// The text at `place`.
    ///
    /// # Errors
    /// No answer, or a bad one; so for all requests.
    pub fn get<'a>(&self, place: impl Into<Place<'a>>) -> Result<String> {
        text(self.send("GET", place.into(), "text/plain", &[])?)
    }

    /// The JSON at `place`.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub fn get_json<'a>(&self, place: impl Into<Place<'a>>) -> Result<Value> {
        serde_json::from_str(&self.get(place)?).context("the answer is no JSON")
    }

    /// Posts `body`; the text of the answer.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub fn post<'a>(&self, place: impl Into<Place<'a>>, content_type: &str, body: &[u8]) -> Result<String> {
        text(self.send("POST", place.into(), content_type, body)?)
    }

    /// Posts `body`; the answer as it comes.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub fn post_reader<'a>(&self, place: impl Into<Place<'a>>, body: &[u8]) -> Result<Box<dyn Read>> {
        let (_, body) = self.send("POST", place.into(), "text/plain", body)?.into_parts();
        Ok(Box::new(body.into_with_config().limit(u64::MAX).reader()))
    }

    /// Sends JSON; the JSON of the answer.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub fn json<'a>(&self, method: &str, place: impl Into<Place<'a>>, body: &Value) -> Result<Value> {
        let answer = text(self.send(method, place.into(), "application/json", body.to_string().as_bytes())?)?;
        serde_json::from_str(&answer).context("the answer is no JSON")
    }

    /// Deletes what is at `path`.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub fn delete(&self, path: &str) -> Result<()> {
        self.send("DELETE", path.into(), "text/plain", &[]).map(|_| ())
    }
}

fn text(answer: Response<Body>) -> Result<String> {
    Ok(answer.into_body().into_with_config().limit(u64::MAX).read_to_string()?)
}

/// `url` with the names and values of `query` behind it, encoded.
fn with_query(mut url: String, query: &[(&str, &str)]) -> String {
    for (i, (name, value)) in query.iter().enumerate() {
        url.push(if i == 0 { '?' } else { '&' });
        url.push_str(name);
        url.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
                other => url.push_str(&format!("%{other:02X}")),
            }
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::fake::Fake;

    #[test]
    fn addresses() {
        let server = Server::new("http://me:secret@host:1/").unwrap();
        assert_eq!((server.base.as_str(), server.authorization.as_deref()), ("http://host:1", Some("Basic bWU6c2VjcmV0")));
        assert_eq!(Server::new("host:1").unwrap().base, "http://host:1");
        for wrong in ["https://host", "http://", "ftp://host"] {
            assert!(Server::new(wrong).is_err(), "{wrong}");
        }
        assert_eq!(with_query("/a".into(), &[("q", "{a=\"b\"}"), ("n", "1")]), "/a?q=%7Ba%3D%22b%22%7D&n=1");
    }

    #[test]
    fn busy_servers_are_asked_again_and_complaints_are_told() {
        let mut calls = 0;
        let fake = Fake::new(move |_| {
            calls += 1;
            match calls {
                1 => (429, "slow down".into()),
                2 => (200, "fine".into()),
                _ => (400, "line too long".into()),
            }
        });
        let server = Server::new(&fake.url).unwrap();
        assert_eq!(server.post("/push", "text/plain", b"x").unwrap(), "fine");
        assert_eq!(server.get("/push").unwrap_err().to_string(), "GET /push: 400 line too long");
        assert_eq!(fake.requests().len(), 3);
    }
}
