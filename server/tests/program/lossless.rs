//! What goes in through the command line comes out of it, byte for byte: made-up logs of every kind, and odd files.

use crate::support::{Folder, Rng, assert_same, code, ended, said, sorted};
use haystore_server::corpus::{Amount, Kind, generate};
use std::collections::{HashMap, VecDeque};
use std::io::Write;

fn corpus(kind: Kind, bytes: u64, seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    generate(kind, Amount::Bytes(bytes), seed, &mut out).unwrap();
    out
}

/// Scans in every state: as ingested, merged, from a server, from a server that was started again.
fn comes_back_everywhere(folder: &Folder, wanted: &[u8], what: &str) {
    assert_same(&folder.ok(&["scan"]), wanted, &format!("{what}, as ingested"));
    folder.ok(&["compact"]);
    assert_same(&folder.ok(&["scan"]), wanted, &format!("{what}, compacted"));
    for _ in 0..2 {
        let server = folder.serve(&[]);
        assert_same(&folder.ok(&["scan", "--server", server.address()]), wanted, &format!("{what}, served"));
        server.stop();
    }
    folder.ok(&["verify"]);
}

fn kind_comes_back(kind: Kind) {
    let folder = Folder::new();
    let text = corpus(kind, 1_500_000, 5);
    folder.write("a.log", &text);
    folder.ok(&["ingest", "--timestamps", "none", "--checkpoint-bytes", "400kB", "a.log"]);
    comes_back_everywhere(&folder, &text, kind.name());
}

#[test]
fn elb_comes_back_byte_for_byte() {
    kind_comes_back(Kind::Elb);
}

#[test]
fn app_comes_back_byte_for_byte() {
    kind_comes_back(Kind::App);
}

#[test]
fn syslog_comes_back_byte_for_byte() {
    kind_comes_back(Kind::Syslog);
}

#[test]
fn every_kind_comes_back_through_a_server() {
    let folder = Folder::new();
    let server = folder.serve(&["--flush-bytes", "300kB", "--flush-age", "1h"]);
    for kind in Kind::ALL {
        let text = corpus(kind, 1_000_000, 6);
        let file = folder.write("b.log", &text);
        let tenant = ["--tenant", kind.name()];
        folder.ok(&[&["ingest", "--timestamps", "none", "--server", server.address(), file][..], &tenant].concat());
        assert_same(&folder.ok(&[&["scan", "--server", server.address()][..], &tenant].concat()), &text, kind.name());
    }
    server.kill();
    let server = folder.serve(&[]);
    for kind in Kind::ALL {
        let scan = folder.ok(&["scan", "--server", server.address(), "--tenant", kind.name()]);
        assert_same(&scan, &corpus(kind, 1_000_000, 6), &format!("{kind}, killed and started again"));
    }
    server.stop();
    for kind in Kind::ALL {
        assert_same(&folder.ok(&["scan", "--tenant", kind.name()]), &corpus(kind, 1_000_000, 6), &format!("{kind}, stopped"));
    }
}

/// The lines and timestamps of an NDJSON scan: in order of time, and where that is equal, in the order of `file`.
fn is_in_stable_order(ndjson: &[u8], file: &[u8]) -> Vec<(String, String)> {
    let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, line) in std::str::from_utf8(file).unwrap().lines().enumerate() {
        places.entry(line).or_default().push_back(place);
    }
    let mut found = Vec::new();
    let mut last = (String::new(), 0);
    for record in std::str::from_utf8(ndjson).unwrap().lines() {
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        let (time, line) = (record["timestamp"].as_str().unwrap().to_string(), record["line"].as_str().unwrap());
        let place = places.get_mut(line).and_then(VecDeque::pop_front).unwrap_or_else(|| panic!("too often: {line}"));
        assert!((&time, place) > (&last.0, last.1) || found.is_empty(), "{time}: line {place} comes behind {last:?}");
        last = (time.clone(), place);
        found.push((time, line.to_string()));
    }
    found
}

#[test]
fn with_timestamps_all_lines_come_in_stable_order_of_time() {
    for kind in Kind::ALL {
        let folder = Folder::new();
        let text = corpus(kind, 600_000, 7);
        folder.write("a.log", &text);
        folder.ok(&["ingest", "--checkpoint-bytes", "200kB", "a.log"]);
        for state in ["as ingested", "compacted"] {
            assert!(sorted(&folder.ok(&["scan"])) == sorted(&text), "{kind} {state}");
            let found = is_in_stable_order(&folder.ok(&["scan", "--output", "ndjson"]), &text);
            if kind == Kind::Elb {
                // The time that the line begins with.
                assert!(found.iter().all(|(time, line)| time[..26] == line[..26]), "{kind}");
            }
            folder.ok(&["compact"]);
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn utf16(text: &str, bom: bool) -> Vec<u8> {
    let units = bom.then_some(0xfeff).into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// Odd files: name, bytes at rest, bytes as a scan gives them (before the last newline's rule).
fn odd_files() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let mut rng = Rng::new(11);
    let random: Vec<u8> = (0..200_000).map(|_| rng.bits() as u8).collect();
    let long = |tail: &str| [vec![b'x'; 300_000], format!(" end {tail}\n").into_bytes(), b"short\n".to_vec()].concat().repeat(3);
    let stack = b"2024-03-01T00:00:01Z ERROR boom\n\tat a.b(C.java:1)\n\tat d\n\n2024-03-01T00:00:02Z next\n".to_vec();
    let csv = b"time,user,text\r\n2024-03-01T00:00:01Z,a,\"two\nlines, \"\"quoted\"\"\"\r\n2024-03-01T00:00:02Z,b,\"\"\n\
        2024-03-01T00:00:03Z,c,\"never closed\n2024-03-01T00:00:04Z,d,x"
        .to_vec();
    let ndjson =
        b"{\"a\":1}\n\n{\"a\":1,\"a\":2, \"u\":\"\\u0000\\ud800\\/\"}\nno json\n  \n{\"a\":1e400,\"b\":-0,\"c\":00012}\n[1,2]\n{\"a\":"
            .to_vec();
    let plain: Vec<(&str, Vec<u8>)> = vec![
        ("crlf.log", b"one\r\ntwo\r\n\r\nmixed\nlone\rcr\r\n".to_vec()),
        ("bom.log", b"\xef\xbb\xbf2024-03-01T00:00:01Z first\nsecond\n".to_vec()),
        ("bom.ndjson", b"\xef\xbb\xbf{\"a\":1}\n{\"a\":2}\n".to_vec()),
        ("utf16-le.log", utf16("Zeile eins äöü €\r\n\r\nZeile zwei 𝄞\n", true)),
        ("utf16-bare.log", utf16("no mark\nat all\u{a00}\n", false)),
        ("nul.log", b"\0\0\nwith \0 inside\n\0".to_vec()),
        ("latin1.log", b"caf\xe9\n\xff\xfe\xfd\n\x80\n\xc3\n\xed\xa0\x80\n".to_vec()),
        ("random.bin", random),
        ("no-newline.log", b"the only line".to_vec()),
        ("empty-lines.log", b"\n\n\na\n\n\n".to_vec()),
        ("one-newline.log", b"\n".to_vec()),
        ("one-byte.log", b"x".to_vec()),
        ("empty.log", vec![]),
        ("long.log", long("é\u{1F600}")),
        ("long-last.log", vec![b'y'; 400_000]),
        ("stack.log", stack),
        ("quoted.csv", csv),
        ("odd.ndjson", ndjson),
        ("twice.log", b"2024-03-01T00:00:01Z same\n".repeat(5)),
        ("name with \"quotes\" \\ and äöü.log", b"named\n".to_vec()),
        ("spaces.log", b" \n\t\n  x  \n\x0b\x0c\n".to_vec()),
    ];
    let mut files: Vec<_> = plain.into_iter().map(|(name, bytes)| (name, bytes.clone(), bytes)).collect();
    files.push(("members.log.gz", [gzip(b"one\ntw"), gzip(b""), gzip(b"o\nthree")].concat(), b"one\ntwo\nthree".to_vec()));
    files.push(("frames.log.zst", [zstd(b"one\ntw"), zstd(b"o\n\xff\n")].concat(), b"one\ntwo\n\xff\n".to_vec()));
    files.push(("no-ending-in-its-name", gzip(b"packed\n"), b"packed\n".to_vec()));
    files.push(("not-packed.log.gz", b"plain in spite of its name\n".to_vec(), b"plain in spite of its name\n".to_vec()));
    files.push(("empty.gz", gzip(b""), vec![]));
    files
}

fn of_file(name: &str) -> String {
    format!("{{filename={}}}", serde_json::to_string(name).unwrap())
}

#[test]
fn odd_files_come_back_byte_for_byte() {
    let folder = Folder::new();
    let files = odd_files();
    for (name, bytes, _) in &files {
        folder.write(name, bytes);
    }
    let output = folder.run(&["ingest", "--timestamps", "none", "*"]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(!said(&output).contains("REJECTED"), "{}", said(&output));
    folder.ok(&["ingest", "--timestamps", "none", "--format", "lines", "--tenant", "lines", "*"]);
    let server = folder.serve(&[]);
    folder.ok(&["ingest", "--timestamps", "none", "--server", server.address(), "--tenant", "http", "*.*", "no-ending*"]);
    for (name, _, unpacked) in &files {
        let (query, wanted) = (of_file(name), ended(unpacked));
        assert_same(&folder.ok(&["scan", &query]), &wanted, name);
        assert_same(&folder.ok(&["scan", &query, "--tenant", "lines"]), &wanted, &format!("{name} as lines"));
        let served = folder.ok(&["scan", &query, "--tenant", "http", "--server", server.address()]);
        assert_same(&served, &wanted, &format!("{name} through a server"));
    }
    server.stop();
    for tenant in ["fake", "lines", "http"] {
        folder.ok(&["compact"]);
        for (name, _, unpacked) in &files {
            let scan = folder.ok(&["scan", &of_file(name), "--tenant", tenant]);
            assert_same(&scan, &ended(unpacked), &format!("{name} of {tenant}, compacted"));
        }
    }
}

#[test]
fn odd_files_lose_no_line_with_timestamps_and_through_standard_input() {
    for (name, bytes, unpacked) in odd_files() {
        let folder = Folder::new();
        let output = folder.feed(&["ingest", "-"], &bytes);
        assert_eq!(code(&output), 0, "{name}: {}", said(&output));
        assert!(sorted(&folder.ok(&["scan"])) == sorted(&ended(&unpacked)), "{name} with timestamps");
        let output = folder.feed(&["ingest", "--timestamps", "none", "--tenant", "none", "-"], &bytes);
        assert_eq!(code(&output), 0, "{name}: {}", said(&output));
        assert_same(&folder.ok(&["scan", "--tenant", "none"]), &ended(&unpacked), name);
    }
}

/// The format of every record in the folder's store.
fn formats(folder: &Folder) -> Vec<haystore::Format> {
    let read = async {
        let store = haystore::Store::open(&folder.store().to_string_lossy(), haystore::Options::default()).await.unwrap();
        let request = haystore::SearchRequest {
            query: haystore::query::Query::default(),
            range: i64::MIN..=i64::MAX,
            limit: 1_000_000,
            direction: haystore::Direction::Forward,
            after: None,
        };
        let records = store.search(&haystore::Tenant::default(), request).await.unwrap().records;
        records.iter().map(|record| record.format.clone()).collect()
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(read)
}

#[test]
fn every_record_of_a_large_csv_file_knows_its_columns_through_a_server() {
    let header = "id;when it was;text";
    let row = |i: usize| format!("{i};2024-03-01T00:00:{:02}Z;\"a, b, {i}\nc\"\n", i % 60);
    let text = format!("{header}\r\n{}", (0..200_000).map(row).collect::<String>());
    let folder = Folder::new();
    folder.write("a.csv", text.as_bytes());
    let server = folder.serve(&[]);
    folder.ok(&["ingest", "--server", server.address(), "--format", "csv", "--time-field", "when it was", "a.csv"]);
    assert!(sorted(&folder.ok(&["scan", "--server", server.address()])) == sorted(text.as_bytes()), "what went in came out");
    let metrics = server.client().get("/metrics").text();
    let bodies =
        metrics.lines().find_map(|line| line.strip_prefix("haystore_http_requests_total{route=\"ingest\",code=\"200\"} ")).unwrap();
    assert!(bodies.parse::<u32>().unwrap() >= 3, "{bodies} bodies");
    server.stop();
    let columns = ["id", "when it was", "text"].map(String::from).to_vec();
    let formats = formats(&folder);
    assert_eq!(formats.len(), 200_001);
    assert!(formats.iter().all(|format| *format == haystore::Format::Csv { delimiter: b';', columns: columns.clone() }));
}

#[test]
fn records_with_newlines_stay_whole_through_a_server() {
    let folder = Folder::new();
    let server = folder.serve(&[]);
    // More than one body; wherever it is cut, a quote is open nearby.
    let record = "2024-03-01T00:00:01Z,\"a\n\nb \"\"c\"\"\nd\",e";
    let text = format!("{record}\n").repeat(100_000);
    folder.write("a.csv", text.as_bytes());
    folder.ok(&["ingest", "--server", server.address(), "--timestamps", "none", "a.csv"]);
    assert_same(&folder.ok(&["scan", "--server", server.address()]), text.as_bytes(), "the scan");
    let records = folder.ok(&["scan", "--server", server.address(), "--output", "ndjson"]);
    let wanted = serde_json::to_string(record).unwrap();
    let whole = std::str::from_utf8(&records).unwrap().lines().filter(|r| r.contains(&wanted)).count();
    assert_eq!(whole, 100_000);
}
