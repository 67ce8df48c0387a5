//! A search finds exactly what a plain substring search of the file finds: in memory, in small segments, compacted; through
//! the command line, the native API and Loki's.

use crate::support::{Client, Folder, Rng, Server, code, quoted, said};
use haystore_server::corpus::{Amount, Kind, generate};
use std::fmt::Write as _;

const PRESENT: usize = 200;
const ABSENT: usize = 50;
/// Needles that the command line looks for, too: each costs a process.
const BY_COMMAND: usize = 30;
/// Bodies in which a corpus arrives, hence segments at least.
const BODIES: usize = 8;
const OPTIONS: [&str; 4] = ["--compact-every", "1d", "--flush-age", "1d"];

struct Haystack {
    kind: Kind,
    text: Vec<u8>,
    needles: Vec<Vec<u8>>,
}

impl Haystack {
    fn new(kind: Kind, rng: &mut Rng) -> Self {
        let mut text = Vec::new();
        generate(kind, Amount::Bytes(160_000), 21, &mut text).unwrap();
        let mut needles = Vec::new();
        while needles.len() < PRESENT {
            needles.extend(if needles.len().is_multiple_of(2) { substring(&text, rng) } else { token(&text, rng) });
        }
        while needles.len() < PRESENT + ABSENT {
            needles.extend(absent(&text, rng));
        }
        Haystack { kind, text, needles }
    }

    /// The lines that hold `needle`, in order.
    fn grep(&self, needle: &[u8]) -> Vec<&[u8]> {
        let lines = self.text.split(|&b| b == b'\n').filter(|l| !l.is_empty());
        lines.filter(|line| memchr::memmem::find(line, needle).is_some()).collect()
    }

    fn bodies(&self) -> Vec<&[u8]> {
        let mut rest = &self.text[..];
        let mut bodies = Vec::new();
        while !rest.is_empty() {
            let least = (self.text.len() / BODIES).min(rest.len() - 1);
            let end = least + rest[least..].iter().position(|&b| b == b'\n').unwrap() + 1;
            let (body, tail) = rest.split_at(end);
            bodies.push(body);
            rest = tail;
        }
        bodies
    }
}

/// A piece of a line, wherever it begins and ends.
fn substring(text: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let start = rng.below(text.len());
    let piece = text.get(start..start + 3 + rng.below(38))?;
    (!piece.contains(&b'\n')).then(|| piece.to_vec())
}

/// A whole token, sometimes with its neighbour and what stands between them.
fn token(text: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let is_part = |b: &u8| b.is_ascii_alphanumeric();
    let at = rng.below(text.len());
    let start = at - text[..at].iter().rev().take_while(|b| is_part(b)).count();
    let mut end = start + text[start..].iter().take_while(|b| is_part(b)).count();
    if rng.below(3) == 0 {
        end += text[end..].iter().take_while(|b| !is_part(b)).count();
        end += text[end..].iter().take_while(|b| is_part(b)).count();
    }
    let piece = &text[start..end.min(start + 60)];
    (piece.len() >= 3 && !piece.contains(&b'\n')).then(|| piece.to_vec())
}

/// An id of the alphabet and length of one that is there.
fn absent(text: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let model = token(text, rng).filter(|t| t.len() >= 8 && t.iter().any(u8::is_ascii_digit))?;
    let alphabet: Vec<u8> = model.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    let random = |b: &u8, rng: &mut Rng| if b.is_ascii_alphanumeric() { *rng.pick(&alphabet) } else { *b };
    let id: Vec<u8> = model.iter().map(|b| random(b, rng)).collect();
    memchr::memmem::find(text, &id).is_none().then_some(id)
}

/// `needle` as a LogQL filter.
fn logql(needle: &[u8]) -> String {
    let mut out = String::from("{} |= \"");
    for &byte in needle {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => write!(out, "\\x{byte:02x}").unwrap(),
        }
    }
    out + "\""
}

fn joined(lines: &[&[u8]]) -> Vec<u8> {
    lines.iter().flat_map(|l| [l, b"\n".as_slice()].concat()).collect()
}

fn native(client: &Client, kind: Kind, query: &str, direction: &str) -> Vec<u8> {
    let path = format!("/api/v1/search?output=raw&limit=100000&direction={direction}&query={}", quoted(query));
    let answer = client.get_with(&path, &[("X-Scope-OrgID", kind.name())]).ok();
    assert_eq!(answer.header("x-haystore-next-cursor"), None, "{query}");
    answer.body
}

fn loki(client: &Client, kind: Kind, query: &str, direction: &str) -> Vec<u8> {
    let range = format!("start=0&end=9000000000000000000&limit=100000&direction={direction}");
    let path = format!("/loki/api/v1/query_range?{range}&query={}", quoted(query));
    let json = client.get_with(&path, &[("X-Scope-OrgID", kind.name())]).ok().json();
    let streams = json["data"]["result"].as_array().unwrap();
    assert!(streams.len() <= 1, "one stream was sent");
    let values = streams.iter().flat_map(|s| s["values"].as_array().unwrap());
    values.flat_map(|v| [v[1].as_str().unwrap().as_bytes(), b"\n"].concat()).collect()
}

/// Looks for every needle through HTTP, both APIs in turn in both directions.
fn finds_what_grep_finds(server: &Server, haystack: &Haystack, state: &str) {
    let client = server.client();
    for (index, needle) in haystack.needles.iter().enumerate() {
        let lines = haystack.grep(needle);
        let backward: Vec<&[u8]> = lines.iter().rev().copied().collect();
        assert_eq!(lines.is_empty(), index >= PRESENT);
        let query = logql(needle);
        let what = || format!("{} {state}: {query}", haystack.kind);
        let (first, second) = if index % 2 == 0 { ("forward", "backward") } else { ("backward", "forward") };
        for (direction, search) in [(first, native as fn(&Client, Kind, &str, &str) -> Vec<u8>), (second, loki)] {
            let found = search(&client, haystack.kind, &query, direction);
            let wanted = if direction == "forward" { joined(&lines) } else { joined(&backward) };
            assert!(found == wanted, "{} {direction}: {} lines, {} bytes came", what(), lines.len(), found.len());
        }
        // The same as a bare string, where it cannot be taken for a query.
        if let Ok(bare) = std::str::from_utf8(needle)
            && !bare.trim_start().starts_with('{')
            && index % 8 == 0
        {
            assert!(native(&client, haystack.kind, bare, "forward") == joined(&lines), "{} bare", what());
        }
    }
}

/// Looks for some needles by command.
fn the_command_finds_it(folder: &Folder, haystack: &Haystack, place: &[&str]) {
    for needle in haystack.needles.iter().step_by((PRESENT + ABSENT) / BY_COMMAND) {
        let (query, lines) = (logql(needle), haystack.grep(needle));
        let output = folder.run(&[&["search", &query, "--limit", "100000", "--tenant", haystack.kind.name()][..], place].concat());
        assert_eq!(code(&output), if lines.is_empty() { 3 } else { 0 }, "{query}: {}", said(&output));
        assert!(output.stdout == joined(&lines), "{} {place:?}: {query}", haystack.kind);
    }
}

fn of_kind(kind: Kind) {
    let haystack = Haystack::new(kind, &mut Rng::seeded("needles"));
    let folder = Folder::new();
    let server = folder.serve(&OPTIONS);
    for body in haystack.bodies() {
        let tenant = [("X-Scope-OrgID", kind.name())];
        server.client().post("/api/v1/ingest?format=auto&timestamps=none&label=kind%3Dx", &tenant, body).ok();
    }
    finds_what_grep_finds(&server, &haystack, "in memory");
    server.kill();
    // Recovery flushes batch by batch.
    let server = folder.serve(&[&OPTIONS[..], &["--flush-bytes", "1"]].concat());
    let usage = String::from_utf8(folder.ok(&["du", "--segments"])).unwrap();
    assert!(usage.matches("segments/level0").count() >= BODIES / 2, "{usage}");
    finds_what_grep_finds(&server, &haystack, "in small segments");
    the_command_finds_it(&folder, &haystack, &["--server", server.address()]);
    server.stop();
    folder.ok(&["compact"]);
    let server = folder.serve(&OPTIONS);
    finds_what_grep_finds(&server, &haystack, "compacted");
    the_command_finds_it(&folder, &haystack, &[]);
    server.stop();
}

#[test]
fn needles_in_elb() {
    of_kind(Kind::Elb);
}

#[test]
fn needles_in_app() {
    of_kind(Kind::App);
}

#[test]
fn needles_in_syslog() {
    of_kind(Kind::Syslog);
}
