//! Needles in generated logs: what the store finds is what looking at every line finds, whatever state the records are in.

use haystore::query::Query;
use haystore::{Labels, Store, Tenant};
use haystore_server::corpus::{Amount, Corpus, Kind};
use haystore_tests::check::{assert_same, search_all};
use haystore_tests::model::holds;
use haystore_tests::random::{Random, START_NS};
use haystore_tests::record::{Rec, batch_of, records_of};
use haystore_tests::rounds::{factor, run};
use haystore_tests::world::{World, quiet_options};
use std::io::Read;

const PRESENT: usize = 200;
const ABSENT: usize = 50;
const CORPUS_BYTES: u64 = 100 << 10;

fn corpus(kind: Kind, seed: u64) -> Vec<Rec> {
    let (mut text, labels) = (Vec::new(), Labels::new([("kind", kind.name())]));
    Corpus::new(kind, Amount::Bytes(CORPUS_BYTES), seed).read_to_end(&mut text).unwrap();
    let lines = text.strip_suffix(b"\n").unwrap_or(&text).split(|&b| b == b'\n');
    lines.enumerate().map(|(i, line)| Rec::plain(START_NS + i as i64 * 1000, &labels, line)).collect()
}

/// Parts of lines of any length at any place, and whole tokens.
fn present(lines: &[Rec], random: &mut Random) -> Vec<u8> {
    let line = random.pick(lines).line;
    if random.once_in(2) {
        let tokens: Vec<&[u8]> = line.split(|b| !b.is_ascii_alphanumeric()).filter(|t| t.len() > 1).collect();
        return random.pick(&tokens).to_vec();
    }
    let from = random.below(line.len());
    let len = 1 + random.below(40);
    line[from..(from + len).min(line.len())].to_vec()
}

/// A token of the data with its characters replaced by others of the same kind, so that it looks like an id and is none.
fn absent(lines: &[Rec], random: &mut Random) -> Vec<u8> {
    loop {
        let mut needle = present(lines, random);
        for byte in &mut needle {
            *byte = match *byte {
                b'0'..=b'9' => b'0' + random.below(10) as u8,
                b'a'..=b'f' => b'a' + random.below(6) as u8,
                b'g'..=b'z' => b'a' + random.below(26) as u8,
                b'A'..=b'Z' => b'A' + random.below(26) as u8,
                other => other,
            };
        }
        if !lines.iter().any(|l| holds(&l.line, &needle)) {
            return needle;
        }
    }
}

async fn check(store: &Store, lines: &[Rec], needles: &[(Vec<u8>, Vec<Rec>)], state: &str) {
    for (needle, expected) in needles {
        let found = store.search(&Tenant::default(), search_all(Query::needle(needle.clone()))).await.unwrap();
        let what = format!("{state}, {} lines, needle {:?}", lines.len(), needle.escape_ascii().to_string());
        assert_same(&what, &records_of(&found.records), expected);
    }
}

fn needles_are_found(kind: Kind) {
    run(async {
        for seed in 1..=factor() {
            let (lines, mut random) = (corpus(kind, seed), Random::new(seed));
            let mut needles: Vec<Vec<u8>> = (0..PRESENT).map(|_| present(&lines, &mut random)).collect();
            needles.extend((0..ABSENT).map(|_| absent(&lines, &mut random)));
            let expect = |needle: Vec<u8>| {
                let expected = lines.iter().filter(|l| holds(&l.line, &needle)).cloned().collect();
                (needle, expected)
            };
            let needles: Vec<(Vec<u8>, Vec<Rec>)> = needles.into_iter().map(expect).collect();
            let world = World::in_memory(seed, quiet_options());
            let store = world.open().await;
            for (part, lines) in lines.chunks(lines.len() / 3 + 1).enumerate() {
                store.append(&Tenant::default(), batch_of(lines)).await.unwrap();
                if part == 0 {
                    store.flush().await.unwrap();
                }
            }
            check(&store, &lines, &needles, "partly in memory").await;
            store.flush().await.unwrap();
            check(&store, &lines, &needles, "flushed").await;
            store.compact().await.unwrap();
            check(&store, &lines, &needles, "compacted").await;
        }
    });
}

#[test]
fn needles_in_elb_logs_are_found() {
    needles_are_found(Kind::Elb);
}

#[test]
fn needles_in_app_logs_are_found() {
    needles_are_found(Kind::App);
}

#[test]
fn needles_in_syslog_are_found() {
    needles_are_found(Kind::Syslog);
}
