//! Limits: past each, the one request or record fails with a clear answer, and the rest goes on.

use crate::support::{Folder, assert_same, code, said};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const LINES: &str = "/api/v1/ingest?format=lines&timestamps=none&label=s%3Dx";

#[test]
fn long_lines_are_kept_up_to_a_limit_that_can_be_set() {
    let folder = Folder::new();
    let long = [b"start ".as_slice(), &b"x".repeat(6_000_000), b" end"].concat();
    let text = [b"before\n".as_slice(), &long, b"\nafter\n"].concat();
    folder.write("a.log", &text);
    folder.ok(&["ingest", "--timestamps", "none", "a.log"]);
    assert_same(&folder.ok(&["scan"]), &text, "long line");
    assert_eq!(folder.ok(&["search", "x end"]).len(), long.len() + 1);
    let output = folder.run(&["ingest", "--tenant", "b", "--timestamps", "none", "--line-bytes-max", "5MB", "a.log"]);
    assert!(said(&output).contains("1 REJECTED") && said(&output).contains("rejected: line 2:"), "{}", said(&output));
    assert_same(&folder.ok(&["scan", "--tenant", "b"]), b"before\nafter\n", "neighbours");
    let server = folder.serve(&["--line-bytes-max", "5MB"]);
    let answer = server.client().post(LINES, &[("X-Scope-OrgID", "c")], &text);
    assert_eq!((answer.status, &answer.json()["accepted"], &answer.json()["rejected"]), (400, &2.into(), &1.into()));
    server.stop();
    assert_same(&folder.ok(&["scan", "--tenant", "c"]), b"before\nafter\n", "neighbours over HTTP");
}

#[test]
fn json_too_deep_or_too_large_is_refused_and_nothing_crashes() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    let client = server.client();
    let deep = format!("{}{}\n{{\"a\":1}}\n", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let answer = client.post("/api/v1/ingest?format=ndjson&timestamps=none", &[], deep.as_bytes());
    assert!(matches!(answer.status, 200 | 400), "{}", answer.text());
    assert_eq!(answer.json()["accepted"].as_u64().unwrap() + answer.json()["rejected"].as_u64().unwrap(), 2);
    let push = format!(r#"{{"streams":[{{"stream":{{}},"values":[["1","x",{}1{}]]}}]}}"#, r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    assert_eq!(client.post("/loki/api/v1/push", &super::JSON, push.as_bytes()).status, 400);
    // A document of 100 MB is refused before it has come.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"POST /api/v1/ingest HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000000\r\n\r\n{\"a\":").unwrap();
    let mut answer = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(client.scan().ends_with(b"{\"a\":1}\n"));
    server.stop();
}

#[test]
fn a_store_that_cannot_keep_up_pushes_back_and_recovers() {
    let folder = Folder::new();
    let options = ["--memtable-bytes-max", "60kB", "--flush-bytes", "1MB", "--flush-age", "1d"];
    let server = folder.serve(&options);
    let client = server.client();
    // Segments cannot be written: their folder is a file.
    let blocked = folder.store().join("segments");
    assert!(!blocked.exists());
    std::fs::write(&blocked, b"").unwrap();
    let (mut kept, mut refused) = (Vec::new(), false);
    let begin = Instant::now();
    let post = |kept: &mut Vec<String>| {
        assert!(begin.elapsed() < Duration::from_secs(120), "{} kept", kept.len());
        let line = format!("{} {}", kept.len(), "y".repeat(10_000));
        let answer = client.post(LINES, &[], line.as_bytes());
        match answer.status {
            200 => kept.push(line + "\n"),
            429 | 503 => {
                assert_eq!(answer.header("retry-after"), Some("1"));
                assert!(answer.json()["error"].is_string());
            }
            status => panic!("{status}: {}", answer.text()),
        }
        answer.status == 200
    };
    while !refused {
        refused = !post(&mut kept);
    }
    assert!((1..60).contains(&kept.len()), "{} kept", kept.len());
    std::fs::remove_file(&blocked).unwrap();
    while kept.len() < 40 {
        post(&mut kept);
    }
    server.kill();
    let server = folder.serve(&options);
    assert_same(&server.client().scan(), kept.concat().as_bytes(), "kept");
    server.stop();
}

#[test]
fn an_answer_cut_by_its_limit_says_so() {
    let folder = Folder::new();
    folder.write("a.log", &b"line\n".repeat(2500));
    folder.ok(&["ingest", "a.log"]);
    let page = folder.run(&["search", "line"]);
    assert_eq!(page.stdout.len(), 5 * 1000);
    let cursor = said(&page).split("--after ").nth(1).unwrap().trim().to_string();
    assert!(said(&page).contains("more may follow"), "{}", said(&page));
    assert_eq!(folder.ok(&["search", "line", "--limit", "2000", "--after", &cursor]).len(), 5 * 1500);
}

#[test]
fn several_that_pull_everything_at_once_all_get_it() {
    let folder = Folder::new();
    let text = b"a line of some length to be pulled\n".repeat(60_000);
    folder.write("a.log", &text);
    folder.ok(&["ingest", "--timestamps", "none", "a.log"]);
    let server = folder.serve(&["--query-bytes-max", "32MiB"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_same(&server.client().scan(), &text, "scan"));
        }
    });
    server.stop();
}

#[test]
fn a_client_that_vanishes_ends_its_scan() {
    let folder = Folder::new();
    folder.write("a.log", &b"a line of some length to be pulled\n".repeat(100_000));
    folder.ok(&["ingest", "a.log"]);
    let server = folder.serve(&[]);
    for _ in 0..10 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"GET /api/v1/scan HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut some = [0; 1000];
        assert!(stream.read(&mut some).unwrap() > 0);
    }
    let begin = Instant::now();
    while !server.client().get("/metrics").ok().text().lines().any(|l| l == "haystore_scans_running 0") {
        assert!(begin.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = folder.run(&["search", "line", "--limit", "1", "--server", server.address()]);
    assert_eq!(code(&output), 0);
}
