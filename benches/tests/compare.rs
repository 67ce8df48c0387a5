//! `haystore-compare` from end to end: all built-in stores on logs of two kinds, packed and not; every answer checked.

#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as the test itself may")]

use haystore_server::corpus::{Amount, Kind, generate};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

const STORES: [&str; 10] = [
    "plain",
    "gzip-6",
    "zstd-3",
    "zstd-19-long",
    "parquet-zstd",
    "tantivy",
    "sqlite-fts5",
    "sqlite-trigram",
    "haystore",
    "haystore-compacted",
];

fn logs(kind: Kind, bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    generate(kind, Amount::Bytes(bytes), 1, &mut out).unwrap();
    out
}

fn compare(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_haystore-compare")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The report of a run that ended well.
fn report(arguments: &[&str]) -> Value {
    let output = compare(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_store_gives_back_what_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let (elb, app, page) = (folder.path().join("elb.log"), folder.path().join("app.gz"), folder.path().join("page.html"));
    let (first, second) = (logs(Kind::Elb, 1_200_000), logs(Kind::App, 800_000));
    // The last line lacks its newline.
    fs::write(&elb, &first[..first.len() - 1]).unwrap();
    let mut packed = flate2::write::GzEncoder::new(File::create(&app).unwrap(), flate2::Compression::fast());
    packed.write_all(&second).unwrap();
    packed.finish().unwrap();
    let temp = folder.path().join("temp");
    fs::create_dir(&temp).unwrap();
    let report = report(&[
        "--json",
        "--html",
        text(&page),
        "--temp",
        text(&temp),
        "--needle",
        "HTTP/1.1\"",
        "--needle",
        "/1",
        text(&elb),
        text(&app),
    ]);

    let lines = [&first[..], &second].concat().iter().filter(|&&b| b == b'\n').count() as u64;
    assert_eq!(report["lines"], lines);
    assert_eq!(report["raw_bytes"], (first.len() + second.len()) as u64);
    let names: Vec<&str> = report["stores"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, STORES);
    for store in report["stores"].as_array().unwrap() {
        let full = &store["full_read"];
        assert_eq!((&full["lines"], &full["same_bytes"]), (&lines.into(), &true.into()), "{store}");
        assert_eq!(store["errors"], serde_json::json!([]));
        assert!(store["stored_bytes"].as_u64().unwrap() > 10_000 && store["ingest"]["cpu_s"].as_f64().unwrap() > 0.0, "{store}");
        if store["keeps"]["substring"] != "no" {
            assert_eq!(store["verdict"], "same", "{store}");
        }
        if store["keeps"]["order"] == "files" {
            assert_eq!(full["files_order"], true, "{store}");
        }
        for needle in store["needles"].as_array().unwrap().iter().filter(|n| n["sort"] == "absent") {
            assert_eq!((&needle["lines"], &needle["other_lines"]), (&0.into(), &0.into()), "{store}");
        }
    }
    let sorts: Vec<&str> = report["needles"].as_array().unwrap().iter().map(|n| n["sort"].as_str().unwrap()).collect();
    assert_eq!(sorts, ["token", "token", "token", "substring", "substring", "substring", "absent", "absent", "absent", "given", "given"]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("&quot;HTTP/1.1\\&quot;&quot;") && page.contains("haystore-compacted"));
    assert_eq!(fs::read_dir(temp).unwrap().count(), 0, "the temporary folder is gone");
}

#[test]
fn records_with_newlines_are_cut_into_lines_and_other_bytes_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, odd, kept) = (folder.path().join("a.csv"), folder.path().join("b.log"), folder.path().join("kept"));
    fs::write(&csv, "time,text\n".to_string() + &"2024-01-01T00:00:00Z,\"two\nlines abc123xyz\"\n".repeat(200)).unwrap();
    fs::write(&odd, b"not utf-8: \xff\xfe\r\n\n\0nul word12345\n").unwrap();
    let report = report(&["--json", "--only", "plain,parquet,haystore", "--keep", text(&kept), text(&csv), text(&odd)]);
    assert_eq!(report["lines"], 404);
    for store in report["stores"].as_array().unwrap() {
        assert_eq!((&store["verdict"], &store["full_read"]["same_bytes"]), (&"same".into(), &true.into()), "{store}");
    }
    assert!(kept.join("parquet-zstd/logs.parquet").is_file() && kept.join("haystore").is_dir());
    let again = compare(&["--keep", text(&kept), text(&csv)]);
    assert_eq!(again.status.code(), Some(2), "a folder that exists is not touched");
}

#[test]
fn words_that_mean_nothing_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log");
    fs::write(&log, "one line\n").unwrap();
    for (arguments, said) in [
        (&["--only", "nothing", text(&log)][..], "no store is left"),
        (&[text(folder.path())], "is a folder"),
        (&["-"], "must be files"),
        (&["--loki", "https://host", text(&log)], "plain http"),
    ] {
        let output = compare(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn a_server_that_is_not_there_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log");
    fs::write(&log, "one line\n").unwrap();
    let output = compare(&["--json", "--only", "plain,loki", "--loki", "http://127.0.0.1:9", text(&log)]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["stores"][0]["verdict"], &report["stores"][1]["verdict"]), (&"same".into(), &"failed".into()));
}
