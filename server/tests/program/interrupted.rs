//! An ingest that is killed, again and again, and repeated until it ends: the file is there exactly once.

use crate::support::{Folder, Rng, assert_same, code, program, said, signal, sorted};
use haystore_server::corpus::{Amount, Kind, generate};
use std::process::Stdio;
use std::time::Duration;

/// How a command is ended, and how often it may be before it is left alone.
const INTERRUPTS_MAX: usize = 12;

fn corpus(kind: Kind, bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    generate(kind, Amount::Bytes(bytes), 9, &mut out).unwrap();
    out
}

/// Runs `words` until they end by themselves; before, they get `signals` at random moments. Returns how often they went on from a checkpoint.
fn interrupted(folder: &Folder, words: &[&str], signals: &[&str], rng: &mut Rng, complete: &dyn Fn() -> bool) -> usize {
    let mut resumed = 0;
    for _ in 0..INTERRUPTS_MAX {
        let mut command = program(words);
        let child = command.current_dir(folder.path()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(30 + rng.below(400) as u64));
        let name = *rng.pick(signals);
        signal(name, child.id());
        let output = child.wait_with_output().unwrap();
        resumed += said(&output).matches("resumed:").count();
        match (name, output.status.code()) {
            (_, Some(0)) => return resumed,
            ("INT", code) => {
                assert!(matches!(code, Some(130) | None), "{}", said(&output));
            }
            _ => assert_eq!(code(&output), -1, "{}", said(&output)),
        }
        // Between a job's last commit and the end of its process lies a moment too.
        if complete() {
            return resumed;
        }
    }
    let output = folder.run(words);
    assert_eq!(code(&output), 0, "{}", said(&output));
    resumed + said(&output).matches("resumed:").count()
}

fn comes_back_once(kind: Kind, packed: bool, signals: &[&str]) {
    let mut rng = Rng::seeded("interrupted");
    let text = corpus(kind, 3_000_000);
    let folder = Folder::new();
    let file = if packed { "a.log.zst" } else { "a.log" };
    folder.write(file, &if packed { zstd::encode_all(&text[..], 1).unwrap() } else { text.clone() });
    // Some checkpoints a second, whatever the machine.
    let words = ["ingest", "--timestamps", "none", "--checkpoint-bytes", "150kB", file];
    let complete = || folder.ok(&["scan"]).len() == text.len();
    let resumed = interrupted(&folder, &words, signals, &mut rng, &complete);
    println!("{kind}: went on {resumed} times");
    assert_same(&folder.ok(&["scan"]), &text, kind.name());
    let words = ["ingest", "--tenant", "timed", "--checkpoint-bytes", "150kB", file];
    let scan = || folder.ok(&["scan", "--tenant", "timed"]);
    interrupted(&folder, &words, signals, &mut rng, &|| scan().len() == text.len());
    assert!(sorted(&scan()) == sorted(&text), "{kind} with timestamps");
    folder.ok(&["compact"]);
    assert_same(&folder.ok(&["scan"]), &text, &format!("{kind}, compacted"));
    folder.ok(&["verify"]);
}

#[test]
fn a_killed_ingest_goes_on_without_gap_or_double() {
    comes_back_once(Kind::Syslog, false, &["KILL"]);
}

#[test]
fn a_killed_ingest_of_a_packed_file_goes_on() {
    comes_back_once(Kind::Elb, true, &["KILL"]);
}

#[test]
fn an_ingest_stopped_by_its_user_goes_on() {
    comes_back_once(Kind::App, false, &["INT", "INT", "KILL"]);
}

#[test]
fn a_file_that_grew_goes_on_and_another_in_its_place_begins_anew() {
    let folder = Folder::new();
    let text = corpus(Kind::Syslog, 2_000_000);
    let words = ["ingest", "--timestamps", "none", "--checkpoint-bytes", "150kB", "a.log"];
    // Killed once some of it is published.
    let begin = |bytes: &[u8]| {
        folder.write("a.log", bytes);
        let mut child = program(&words).current_dir(folder.path()).stderr(Stdio::null()).spawn().unwrap();
        let published = || program(&["scan"]).current_dir(folder.path()).output().unwrap().stdout.len();
        let before = published();
        while published() == before {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        child.wait().unwrap();
        published()
    };
    let mut half = text.clone();
    let grown = half.split_off(text.iter().rposition(|&b| b == b'\n').unwrap() / 2);
    if begin(&half) < half.len() {
        folder.write("a.log", &text);
        let output = folder.run(&words);
        assert!(code(&output) == 0 && said(&output).contains("resumed:"), "{}", said(&output));
        assert_same(&folder.ok(&["scan"]), &text, "grown");
        assert!(!grown.is_empty());
    }
    let folder_bytes = folder.ok(&["scan"]).len();
    let part = begin(&text) - folder_bytes;
    if part < text.len() {
        folder.write("a.log", b"a short one\n");
        let output = folder.run(&words);
        assert!(code(&output) == 0 && said(&output).contains("begins anew"), "{}", said(&output));
        assert_eq!(folder.ok(&["scan"]).len(), folder_bytes + part + b"a short one\n".len());
    }
}
