//! A small HTTP server for tests: remembers requests, answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Like `POST /path?query`, not decoded.
    pub line: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The request line, percent signs decoded.
    pub fn decoded(&self) -> String {
        let mut out = Vec::new();
        let bytes = self.line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let code = (bytes[at] == b'%').then(|| u8::from_str_radix(&self.line[at + 1..at + 3], 16).unwrap());
            out.push(code.unwrap_or(bytes[at]));
            at += if code.is_some() { 3 } else { 1 };
        }
        String::from_utf8(out).unwrap()
    }
}

/// The server; its thread ends with the process.
pub struct Fake {
    /// Its address.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// A server that answers each request with what `answer` gives: a status and a body.
    pub fn new(mut answer: impl FnMut(&Asked) -> (u16, Vec<u8>) + Send + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read(&mut stream) else { continue };
                let (status, body) = answer(&request);
                log.lock().unwrap().push(request);
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        Fake { url, asked }
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let mut bytes = 0;
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            bytes = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; bytes];
    input.read_exact(&mut body).ok()?;
    Some(Asked { line: line.trim_end().trim_end_matches(" HTTP/1.1").to_string(), body })
}

/// A task whose logs are a file with `lines`, in a folder that goes away with what is returned.
pub fn task(lines: &str) -> (tempfile::TempDir, crate::peer::Task) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.log");
    std::fs::write(&path, lines).unwrap();
    let mut logs = crate::logs::Logs::open(&[path.to_string_lossy().into_owned()]).unwrap();
    let survey = crate::survey::survey(&mut logs, &[]).unwrap();
    let times = survey.has_times.then_some(survey.times);
    let task = crate::peer::Task { logs, times, folder: folder.path().to_path_buf(), run: "7".into() };
    (folder, task)
}

/// Two lines with times, nanoseconds 1,700,000,000,000,000,000 and one second later; the second is not plain.
pub const LINES: &str = "2023-11-14T22:13:20Z first abc123def\n2023-11-14T22:13:21Z a \"quoted\\ é\n";

/// The lines that `peer` finds for `text`, and all of its lines.
pub fn both(peer: &mut dyn crate::peer::Peer, text: &str, sort: crate::peer::Sort) -> (Vec<String>, Vec<String>) {
    let needle = crate::peer::Needle { text: text.into(), sort, lines: 1 };
    let (mut found, mut all) = (Vec::new(), Vec::new());
    let push = |to: &mut Vec<String>, line: &[u8]| to.push(String::from_utf8_lossy(line).into_owned());
    let mut take = |line: &[u8]| {
        push(&mut found, line);
        Ok(())
    };
    peer.find(&needle, &mut take).unwrap();
    let mut take = |line: &[u8]| {
        push(&mut all, line);
        Ok(())
    };
    peer.read_all(&mut take).unwrap();
    (found, all)
}
