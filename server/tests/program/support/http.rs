//! An HTTP client.

use std::io::{self, Read};
use std::time::Duration;

/// A client of one server; its connections are kept.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    base: String,
}

/// An answer that came completely.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The answer, which must be a 200.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self
    }
}

impl Client {
    pub fn new(address: &str) -> Self {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(120))).build();
        Client { agent: agent.into(), base: format!("http://{address}") }
    }

    /// POST; Err when no whole answer came.
    pub fn try_post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        let request = headers.iter().fold(self.agent.post(format!("{}{path}", self.base)), |r, (n, v)| r.header(*n, *v));
        answer(request.send(body))
    }

    #[track_caller]
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_post(path, headers, body).unwrap()
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    #[track_caller]
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = headers.iter().fold(self.agent.get(format!("{}{path}", self.base)), |r, (n, v)| r.header(*n, *v));
        answer(request.call()).unwrap()
    }

    /// Everything, raw.
    #[track_caller]
    pub fn scan(&self) -> Vec<u8> {
        self.get("/api/v1/scan").ok().body
    }
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> io::Result<Answer> {
    let response = response.map_err(ureq::Error::into_io)?;
    let status = response.status().as_u16();
    let text = |v: &ureq::http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    let headers = response.headers().iter().map(|(n, v)| (n.as_str().to_string(), text(v))).collect();
    let mut body = Vec::new();
    response.into_body().into_with_config().limit(u64::MAX).reader().read_to_end(&mut body)?;
    Ok(Answer { status, body, headers })
}

/// `bytes` as a URL's query value.
pub fn quoted(bytes: impl AsRef<[u8]>) -> String {
    form_urlencoded::byte_serialize(bytes.as_ref()).collect()
}
