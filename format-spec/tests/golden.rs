//! The reference decoder on the golden files.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use haystore_format::decoder::{Seen, decode, decode_seen, dump::dump};
use std::collections::BTreeMap;
use std::path::Path;

const FILE_BYTES_MAX: usize = 64 << 10;

type Files = BTreeMap<String, Vec<u8>>;

fn read(folder: &str) -> Files {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

/// Name, bytes and expected text of each segment.
fn segments(files: &Files) -> Vec<(&str, &[u8], String)> {
    let expected = |stem: &str| match files.get(&format!("{stem}.expected")) {
        Some(text) => text.clone(),
        None => zstd::stream::decode_all(&files[&format!("{stem}.expected.zst")][..]).unwrap(),
    };
    let stems = files.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".segment")?, &bytes[..])));
    stems.map(|(stem, bytes)| (stem, bytes, String::from_utf8(expected(stem)).unwrap())).collect()
}

#[test]
fn the_index_names_every_file_and_no_other() {
    for folder in ["v1", "bad"] {
        let mut files = read(folder);
        let index = String::from_utf8(files.remove("INDEX").unwrap()).unwrap();
        let there: String = files.iter().map(|(name, bytes)| format!("{name} {} {:08x}\n", bytes.len(), crc32fast::hash(bytes))).collect();
        assert_eq!(index, there, "{folder}");
        assert!(files.values().all(|bytes| bytes.len() <= FILE_BYTES_MAX));
        let stems: Vec<_> = segments(&files).into_iter().map(|s| s.0.to_string()).collect();
        assert_eq!(files.len(), stems.len() * 2, "{folder}: a segment without expected output, or the reverse");
    }
}

#[test]
fn golden_segments_give_the_expected_records() {
    for (name, bytes, expected) in segments(&read("v1")) {
        let records = decode(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(dump(&records) == expected, "{name}: other records");
    }
}

#[test]
fn damaged_segments_give_the_expected_errors() {
    for (name, bytes, expected) in segments(&read("bad")) {
        match decode(bytes) {
            Ok(records) => panic!("{name}: {} records", records.len()),
            Err(error) => assert_eq!(format!("{error}\n"), expected, "{name}"),
        }
    }
}

/// Every tag of the format is in some golden file.
#[test]
fn golden_segments_show_every_tag() {
    let mut seen = Seen::new();
    for (_, bytes, _) in segments(&read("v1")) {
        decode_seen(bytes, &mut seen).unwrap();
    }
    let tags = [
        ("column", 10),
        ("type", 6),
        ("part", 3),
        ("escape", 2),
        ("time family", 6),
        ("class", 5),
        ("page sets", 2),
        ("integers", 6),
        ("timestamp", 2),
    ];
    let all: Seen = tags.into_iter().flat_map(|(name, count)| (0..count).map(move |tag| (name, tag))).collect();
    assert_eq!(seen, all);
}

/// A small generator of random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn flips_and_cuts_give_an_error_or_the_right_records() {
    let files = read("v1");
    let golden: Vec<_> = segments(&files).into_iter().filter(|s| s.1.len() < 6000 && s.0 != "ranges").collect();
    for seed in 1..=1000 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed));
        let (name, bytes, expected) = &golden[dice.below(golden.len())];
        let mut damaged = bytes.to_vec();
        if dice.below(4) == 0 {
            damaged.truncate(dice.below(bytes.len()));
        } else {
            for _ in 0..1 + dice.below(3) {
                let at = dice.below(bytes.len());
                damaged[at] ^= 1 << dice.below(8);
            }
        }
        if let Ok(records) = decode(&damaged) {
            assert!(dump(&records) == *expected, "seed {seed}: wrong records of {name}");
        }
    }
}
