//! Damage on disk: named, confined, never fatal for the rest.

use crate::support::{Folder, assert_same, code, said};
use std::fs;
use std::path::{Path, PathBuf};

const LINES: &str = "/api/v1/ingest?format=lines&timestamps=none&label=s%3Dx";
const OPTIONS: [&str; 4] = ["--flush-age", "1d", "--compact-every", "1d"];

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), ending));
        } else if entry.file_name().to_string_lossy().ends_with(ending) {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// A store whose WAL holds three bodies, each its own batch; the server was killed.
fn with_wal() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let server = folder.serve(&OPTIONS);
    for body in ["first", "second", "third"] {
        server.client().post(LINES, &[], format!("{body} {}", "z".repeat(500)).as_bytes()).ok();
    }
    server.kill();
    let wal = files(&folder.store().join("wal"), ".wal").pop().unwrap();
    (folder, wal)
}

fn first_words(scan: &[u8]) -> Vec<String> {
    String::from_utf8(scan.to_vec()).unwrap().lines().map(|l| l.split(' ').next().unwrap().to_string()).collect()
}

#[test]
fn a_torn_tail_of_the_wal_is_cut_and_the_start_succeeds() {
    let (folder, wal) = with_wal();
    let bytes = fs::read(&wal).unwrap();
    // What a crash leaves of a write that was never acknowledged.
    let torn = [&bytes[..], &bytes[bytes.len() / 2..bytes.len() - 10]].concat();
    fs::write(&wal, &torn).unwrap();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()), ["first", "second", "third"]);
    server.client().post(LINES, &[], b"fourth").ok();
    server.kill();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()), ["first", "second", "third", "fourth"]);
    server.stop();
}

#[test]
fn a_flipped_bit_in_the_wal_costs_its_batch_and_is_named_and_the_file_kept_aside() {
    let (folder, wal) = with_wal();
    let mut bytes = fs::read(&wal).unwrap();
    let at = memchr::memmem::find(&bytes, b"second").unwrap();
    bytes[at] ^= 1;
    fs::write(&wal, &bytes).unwrap();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()), ["first", "third"]);
    assert_eq!(metric(&server, "haystore_wal_damages"), 1);
    assert!(metric(&server, "haystore_wal_damaged_bytes") > 0);
    let log = server.stop();
    let name = wal.file_name().unwrap().to_string_lossy();
    assert!(log.contains("ERROR") && log.contains(&*name) && log.contains("damaged at byte"), "{log}");
    assert_eq!(first_words(&folder.ok(&["scan"])), ["first", "third"]);
    assert_eq!(files(&folder.store().join("wal"), ".wal.damaged").len(), 1);
}

#[test]
fn a_damaged_header_of_the_wal_costs_nothing_and_is_named() {
    let (folder, wal) = with_wal();
    let mut bytes = fs::read(&wal).unwrap();
    bytes[20] ^= 1;
    fs::write(&wal, &bytes).unwrap();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()), ["first", "second", "third"]);
    assert_eq!(metric(&server, "haystore_wal_damages"), 1);
    assert!(server.stop().contains("damaged at byte 0"));
}

#[test]
fn a_file_that_is_no_wal_is_named_and_kept_aside_and_the_start_succeeds() {
    let (folder, wal) = with_wal();
    fs::write(wal.with_file_name("00000000000000aa.wal"), b"bytes that mean nothing here ".repeat(20)).unwrap();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()), ["first", "second", "third"]);
    let log = server.stop();
    assert!(log.contains("ERROR") && log.contains("00000000000000aa.wal"), "{log}");
    assert_eq!(files(&folder.store().join("wal"), "00000000000000aa.wal.damaged").len(), 1);
}

/// Says `version` in a WAL file's header: behind the magic; the header's last four bytes are its checksum.
fn set_version(wal: &Path, version: u8) {
    let mut bytes = fs::read(wal).unwrap();
    bytes[8] = version;
    let sum = crc32fast::hash(&bytes[..76]);
    bytes[76..80].copy_from_slice(&sum.to_le_bytes());
    fs::write(wal, &bytes).unwrap();
}

fn metric(server: &crate::support::Server, name: &str) -> u64 {
    let text = server.client().get("/metrics").text().to_string();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

#[test]
fn a_wal_of_a_later_version_is_set_aside_and_the_start_succeeds_and_its_program_gets_it_back() {
    let (folder, wal) = with_wal();
    set_version(&wal, 9);
    let name = wal.file_name().unwrap().to_string_lossy().into_owned();
    let bytes = fs::metadata(&wal).unwrap().len();
    let server = folder.serve(&OPTIONS);
    assert_eq!(server.client().scan(), b"");
    assert_eq!((metric(&server, "haystore_wal_set_aside_files"), metric(&server, "haystore_wal_set_aside_bytes")), (1, bytes));
    server.client().post(LINES, &[], b"fourth").ok();
    let log = server.stop();
    assert!(log.contains("ERROR") && log.contains(&name) && log.contains("version 9") && log.contains("set-aside-"), "{log}");
    let aside = files(&folder.store().join("wal"), &name).pop().unwrap();
    assert!(aside != wal && fs::metadata(&aside).unwrap().len() == bytes);
    // The program that knows version 9.
    set_version(&aside, 1);
    let wal = aside.parent().unwrap().to_string_lossy().into_owned();
    let server = folder.serve(&[&OPTIONS[..], &["--wal", &wal]].concat());
    let mut found = first_words(&server.client().scan());
    found.sort();
    assert_eq!(found, ["first", "fourth", "second", "third"]);
    server.stop();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()).len(), 4);
    assert_eq!(metric(&server, "haystore_wal_set_aside_files"), 0);
    server.stop();
}

#[test]
fn a_wal_file_of_another_store_is_set_aside_and_the_start_succeeds() {
    let ((folder, wal), (_other, foreign)) = (with_wal(), with_wal());
    fs::copy(&foreign, wal.with_file_name("00000000000000aa.wal")).unwrap();
    let server = folder.serve(&OPTIONS);
    assert_eq!(first_words(&server.client().scan()), ["first", "second", "third"]);
    assert_eq!(metric(&server, "haystore_wal_set_aside_files"), 1);
    assert!(server.stop().contains("00000000000000aa.wal"));
}

#[test]
fn a_damaged_or_missing_segment_is_named_and_the_others_answer() {
    let folder = Folder::new();
    for day in ["2024-03-01", "2024-03-02"] {
        folder.write("a.log", format!("{day}T00:00:01Z of {day}\n").repeat(100).as_bytes());
        folder.ok(&["ingest", "a.log"]);
    }
    let segments = files(&folder.store().join("segments"), ".haystore");
    assert_eq!(segments.len(), 2);
    // Which one is of the first day: the one without which it cannot be read.
    let (first, whole) = (&segments[0], fs::read(&segments[0]).unwrap());
    let key = first.file_name().unwrap().to_string_lossy().into_owned();
    for damage in ["flipped", "missing", "cut"] {
        match damage {
            "flipped" => {
                fs::write(first, whole.iter().enumerate().map(|(i, b)| b ^ u8::from(i == whole.len() / 3)).collect::<Vec<_>>()).unwrap()
            }
            "cut" => fs::write(first, &whole[..whole.len() / 2]).unwrap(),
            _ => fs::remove_file(first).unwrap(),
        }
        let scan = folder.run(&["scan"]);
        assert_eq!(code(&scan), 1, "{damage}");
        assert!(said(&scan).contains(&key), "{damage}: {}", said(&scan));
        let verify = folder.run(&["verify"]);
        assert!(code(&verify) == 1 && said(&verify).contains(&key), "{damage}: {}", said(&verify));
        let server = folder.serve(&OPTIONS);
        let client = server.client();
        let answer = client.get("/api/v1/search");
        assert!(answer.status == 500 && answer.text().contains(&key), "{damage}: {}", answer.text());
        let days = [("2024-03-01", "2024-03-02"), ("2024-03-02", "2024-03-03")];
        let answers = days.map(|(from, to)| client.get(&format!("/api/v1/search?from={from}&to={to}")).status);
        let mut sorted = answers;
        sorted.sort_unstable();
        assert_eq!(sorted, [200, 500], "{damage}: the other day answers");
        let tenant = [("X-Scope-OrgID", damage)];
        client.post(LINES, &tenant, b"new").ok();
        assert_same(&client.get_with("/api/v1/scan", &tenant).ok().body, b"new\n", damage);
        server.stop();
    }
    fs::write(first, &whole).unwrap();
    assert_eq!(folder.ok(&["scan"]).len(), 200 * "2024-03-01T00:00:01Z of 2024-03-01\n".len());
}
