//! The program `haystore` against a server of its own: ingest, search and scan through HTTP.

#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as the test itself may")]

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A server with a store in a folder of its own; ends with the test.
struct Server {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("haystore-end-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let child = Command::new(env!("CARGO_BIN_EXE_haystore"))
            .args(["serve", "--listen", &address])
            .arg("--store")
            .arg(folder.join("store"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(20), "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { child, address, folder }
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.join(name);
        fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_haystore"))
            .args(words)
            .args(["--server", &self.address])
            .current_dir(&self.folder)
            .output()
            .unwrap()
    }

    fn ok(&self, words: &[&str]) -> Vec<u8> {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_file_comes_back_byte_for_byte() {
    let server = Server::start("bytes");
    let mut lines = b"2024-03-01T00:00:01Z first\n\n\xff\xfe not UTF-8 \0\r\nlast without newline".to_vec();
    lines.splice(0..0, b"padding 0123456789\n".repeat(400_000));
    let path = server.file("a.log", &lines);
    server.ok(&["ingest", "--timestamps", "none", "--format", "lines", &path]);
    let mut wanted = lines;
    wanted.push(b'\n');
    // Several bodies have several moments of arrival, in the order of the file.
    assert!(server.ok(&["scan"]) == wanted, "the scan differs");
    let ndjson = server.ok(&["scan", "--output", "ndjson", r#"{} != "padding""#]);
    let text = String::from_utf8(ndjson).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("line_base64") && !text.contains("\"end\""), "{text}");
}

#[test]
fn needles_limits_cursors_and_exit_codes() {
    let server = Server::start("needles");
    let lines: String = (0..50).map(|i| format!("2024-03-01T00:00:{i:02}Z line-{i}-end\n")).collect();
    server.file("a.log", lines.as_bytes());
    server.ok(&["ingest", "--label", "app=shop", "*.log"]);
    assert_eq!(server.ok(&["search", "line-7-"]), b"2024-03-01T00:00:07Z line-7-end\n");
    assert_eq!(server.run(&["search", "line-77-"]).status.code(), Some(3));
    assert_eq!(server.run(&["search", "line-7-", "--tenant", "other"]).status.code(), Some(3));
    assert_eq!(server.run(&["search", "{app="]).status.code(), Some(1));
    let window = server.ok(&["scan", "--from", "2024-03-01T00:00:10Z", "--to", "2024-03-01T00:00:12Z"]);
    assert_eq!(window, b"2024-03-01T00:00:10Z line-10-end\n2024-03-01T00:00:11Z line-11-end\n");
    let mut after: Option<String> = None;
    let mut all = Vec::new();
    loop {
        let mut words = vec!["search", r#"{app="shop"}"#, "--limit", "20"];
        if let Some(cursor) = &after {
            words.extend(["--after", cursor]);
        }
        let page = server.run(&words);
        all.extend(page.stdout);
        after = String::from_utf8(page.stderr).unwrap().split("--after ").nth(1).map(|c| c.trim().to_string());
        if after.is_none() {
            break;
        }
    }
    assert_eq!(String::from_utf8(all).unwrap(), lines);
    let newest = server.ok(&["search", "end", "--direction", "backward", "--limit", "1"]);
    assert_eq!(newest, b"2024-03-01T00:00:49Z line-49-end\n");
}

#[test]
fn an_output_that_closes_ends_the_scan_quietly() {
    let server = Server::start("pipe");
    server.file("a.log", &b"a line that is long enough to fill the pipe soon\n".repeat(100_000));
    server.ok(&["ingest", "a.log"]);
    let mut scan = Command::new(env!("CARGO_BIN_EXE_haystore"))
        .args(["scan", "--server", &server.address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(scan.stdout.take());
    let output = scan.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
