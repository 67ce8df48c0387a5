//! A small HTTP client that shows how an answer ended.

use super::bounded;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the body ended as its framing says it must.
    pub complete: bool,
    pub trailers: Vec<(String, String)>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.body)))
    }
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// An open connection.
pub struct Connection(pub TcpStream);

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        Connection(bounded(TcpStream::connect(address)).await.unwrap())
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        // A server that answers early may close before all is sent.
        let _ = bounded(self.0.write_all(bytes)).await;
    }

    /// Reads up to `count` bytes.
    pub async fn read_some(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let len = bounded(self.0.read_exact(&mut bytes)).await.unwrap();
        bytes.truncate(len);
        bytes
    }

    /// Reads to the end of the connection, as one answer.
    pub async fn answer(mut self) -> Answer {
        let mut bytes = Vec::new();
        let _ = bounded(self.0.read_to_end(&mut bytes)).await;
        parse(&bytes)
    }
}

pub async fn request(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTE: trailers\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("transfer-encoding")) {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    let mut connection = Connection::open(address).await;
    connection.send(&[head.as_bytes(), b"\r\n", body].concat()).await;
    connection.answer().await
}

fn fields(text: &str) -> Vec<(String, String)> {
    let lines = text.split("\r\n").filter_map(|line| line.split_once(": "));
    lines.map(|(n, v)| (n.to_ascii_lowercase(), v.to_string())).collect()
}

fn parse(bytes: &[u8]) -> Answer {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let rest = &bytes[end + 4..];
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer { status, headers: fields(&head), body: vec![], complete: false, trailers: vec![] };
    if answer.header("transfer-encoding") == Some("chunked") {
        chunks(rest, &mut answer);
    } else {
        answer.body = rest.to_vec();
        answer.complete = answer.header("content-length").is_none_or(|l| l == rest.len().to_string());
    }
    answer
}

fn chunks(mut rest: &[u8], answer: &mut Answer) {
    while let Some(line) = memchr::memmem::find(rest, b"\r\n") {
        let len = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        rest = &rest[line + 2..];
        if len == 0 {
            answer.complete = rest.ends_with(b"\r\n");
            answer.trailers = fields(std::str::from_utf8(rest).unwrap());
            return;
        }
        answer.body.extend_from_slice(&rest[..len.min(rest.len())]);
        rest = rest.get(len + 2..).unwrap_or_default();
    }
}
