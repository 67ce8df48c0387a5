//! The program `haystore`, run as users run it: words, exit codes, what goes to which stream.

#![expect(clippy::unwrap_used, reason = "a test's helpers may panic as the test itself may")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn haystore(words: &[&str]) -> Output {
    let store = std::env::temp_dir().join(format!("haystore-cli-{}", std::process::id()));
    Command::new(env!("CARGO_BIN_EXE_haystore")).args(words).env("HAYSTORE_STORE", store).stdin(Stdio::null()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_goes_to_standard_output_and_wrong_usage_is_2() {
    for words in [&["--help"][..], &["ingest", "--help"], &["search", "-h"], &["scan", "--help"], &["demo", "--help"], &["serve", "--help"]]
    {
        let output = haystore(words);
        assert_eq!(code(&output), 0, "{words:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: haystore"), "{words:?}");
    }
    for words in [&[][..], &["serch"], &["search"], &["ingest"], &["search", "x", "--limit", "many"], &["scan", "--output", "xml"]] {
        let output = haystore(words);
        assert_eq!((code(&output), output.stdout.len()), (2, 0), "{words:?}");
    }
}

#[test]
fn errors_go_to_standard_error_and_are_1() {
    for (words, said) in [
        (&["ingest", "no/such/file"][..], "no/such/file"),
        (&["ingest", "no-such-*.log"], "no file matches"),
        (&["ingest", "--server", "https://x", "-"], "plain http"),
        (&["scan", "--server", "127.0.0.1:1"], "is the server running"),
        (&["search", "x", "--tenant", "a b"], "tenant"),
        (&["search", "x", "--store", "no/such/store"], "there is no store at no/such/store"),
        (&["verify", "--store", "no/such/store"], "there is no store"),
        (&["search", "x", "--after", "00"], "--after"),
        (&["search", "x", "--from", "never"], "--from"),
    ] {
        let output = haystore(words);
        assert_eq!(code(&output), 1, "{words:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && stderr(&output).contains(said), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("error: "), "no colour without a terminal: {}", stderr(&output));
    }
}

#[test]
fn nothing_found_is_3() {
    let (folder, file) = (std::env::temp_dir(), format!("haystore-cli-{}.log", std::process::id()));
    std::fs::write(folder.join(&file), "a line").unwrap();
    assert_eq!(code(&haystore(&["ingest", &folder.join(&file).to_string_lossy()])), 0);
    let output = haystore(&["search", "nothing like this"]);
    assert_eq!((code(&output), output.stdout.len(), output.stderr.len()), (3, 0, 0));
}

#[test]
fn standard_input_is_ingested() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_haystore"))
        .args(["ingest", "--store", "memory://", "--timestamps", "none", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\n\nthree").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0);
    assert!(stderr(&output).starts_with("1 file, 3 records, 11 B raw"), "{}", stderr(&output));
}
