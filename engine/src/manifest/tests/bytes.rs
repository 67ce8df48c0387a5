//! Damage: every flipped bit, every cut, and bytes that were forged with a right checksum.

use super::super::codec::*;
use super::super::delta::{Record, apply};
use super::*;
use crate::error::{ErrorKind, Result};
use proptest::prelude::*;

fn sample() -> (State, Record) {
    let (a, b) = (tenant("a"), tenant("b"));
    let first = Delta {
        writers: vec![WriterChange::Register { id: 5 }, WriterChange::Register { id: 6 }],
        jobs: vec![
            JobChange::Begin { tenant: a.clone(), key: "files".into() },
            JobChange::Update { tenant: a.clone(), key: "files".into(), epoch: 1, state: b"line 7".to_vec() },
        ],
        ..adding(vec![fresh(1, vec![part("a", -3, 9), part("b", 1, 2)]), fresh(2, vec![part("a", i64::MIN, i64::MAX)])])
    };
    let record = Record::new(&State::default(), first, 0x11, 1_000).unwrap();
    let state = apply(&State::default(), &record).unwrap();
    let second = Delta {
        writers: vec![WriterChange::Advance { id: 5, epoch: 1, wal_position: 300 }, WriterChange::Forget { id: 6, epoch: 1 }],
        jobs: vec![JobChange::Finish { tenant: a.clone(), key: "files".into(), epoch: 1 }],
        removed: vec![(1, b), (2, a)],
        ..adding(vec![fresh(3, vec![part("c", 0, 0)])])
    };
    let record = Record::new(&state, second, 0x22, 2_000).unwrap();
    apply(&state, &record).unwrap();
    (state, record)
}

fn names_the_object<T: std::fmt::Debug>(decoded: Result<T>) {
    let error = decoded.expect_err("damage went unseen");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().starts_with("obj: damaged at byte "), "{error}");
}

fn damage<T: std::fmt::Debug>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T>) {
    decode(bytes).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        names_the_object(decode(&flipped));
    }
    for cut in 0..bytes.len() {
        names_the_object(decode(&bytes[..cut]));
    }
    names_the_object(decode(&[bytes, b"\0"].concat()));
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error_that_names_the_object() {
    let (state, record) = sample();
    damage(&encode_delta(&record).unwrap(), |bytes| decode_delta("obj", bytes, 2));
    damage(&encode_checkpoint(&state).unwrap(), |bytes| decode_checkpoint("obj", bytes, 1));
    damage(&encode_hint(64), |bytes| decode_hint("obj", bytes));
}

#[test]
fn bytes_under_the_key_of_another_version_are_an_error() {
    let (state, record) = sample();
    names_the_object(decode_delta("obj", &encode_delta(&record).unwrap(), 3));
    names_the_object(decode_checkpoint("obj", &encode_checkpoint(&state).unwrap(), 2));
}

/// `bytes` with `change` made to the body, and a checksum that fits again.
fn forge(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = bytes[HEADER_BYTES..bytes.len() - TRAILER_BYTES].to_vec();
    change(&mut body);
    let mut out = bytes[..12].to_vec();
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&body);
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

#[test]
fn a_lying_length_is_refused_before_memory_is_taken() {
    let (state, record) = sample();
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for at in 48..53 {
        names_the_object(decode_delta("obj", &forge(&encode_delta(&record).unwrap(), |b| drop(b.splice(at..=at, huge))), 2));
    }
    let checkpoint = encode_checkpoint(&state).unwrap();
    for stated in [0, 1, CHECKPOINT_BYTES_MAX as u64, u64::MAX] {
        names_the_object(decode_checkpoint("obj", &forge(&checkpoint, |b| b[..8].copy_from_slice(&stated.to_le_bytes())), 1));
    }
    // A bomb: 16 MiB of zeros said to be 100 bytes.
    let bomb = zstd::bulk::compress(&vec![0; 16 << 20], 3).unwrap();
    let body = [&100u64.to_le_bytes()[..], &bomb].concat();
    names_the_object(decode_checkpoint("obj", &forge(&checkpoint, |b| *b = body), 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn forged_bodies_never_panic_and_what_decodes_has_one_encoding(at in any::<prop::sample::Index>(), with in prop::collection::vec(any::<u8>(), 0..12), skip in 0usize..12) {
        let (state, record) = sample();
        let forged = forge(&encode_delta(&record).unwrap(), |b| {
            let at = at.index(b.len());
            let end = (at + skip).min(b.len());
            b.splice(at..end, with.iter().copied());
        });
        match decode_delta("obj", &forged, 2) {
            Ok(decoded) => {
                prop_assert_eq!(encode_delta(&decoded).unwrap(), forged);
                let _ = apply(&state, &decoded);
            }
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::Corrupt),
        }
        let packed = encode_checkpoint(&state).unwrap();
        let mut raw = zstd::bulk::decompress(&packed[HEADER_BYTES + 8..packed.len() - TRAILER_BYTES], 1 << 20).unwrap();
        let at = at.index(raw.len());
        let end = (at + skip).min(raw.len());
        raw.splice(at..end, with);
        let body = [&(raw.len() as u64).to_le_bytes()[..], &zstd::bulk::compress(&raw, 3).unwrap()].concat();
        match decode_checkpoint("obj", &forge(&packed, |b| *b = body), 1) {
            Ok(_) => {}
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::Corrupt),
        }
    }
}

/// The worked example of the format's chapter, read as a stranger would.
#[test]
fn the_chapter_tells_the_truth() {
    let chapter = include_str!("../../../../format-spec/chapters/manifest.md");
    let (_, record) = sample();
    let example: String = chapter.split("```hex\n").nth(1).unwrap().split("```").next().unwrap().split_whitespace().collect();
    let actual: String = encode_delta(&record).unwrap().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(example, actual, "the worked example");
    let magic = |m: &[u8; 8]| String::from_utf8(m.to_vec()).unwrap();
    let facts = [
        format!("| magic of a delta | `{}` |", magic(&MAGIC_DELTA)),
        format!("| magic of a checkpoint | `{}` |", magic(&MAGIC_CHECKPOINT)),
        format!("| magic of the hint | `{}` |", magic(&MAGIC_HINT)),
        format!("| format version | {FORMAT_VERSION} |"),
        format!("| largest delta object | {DELTA_BYTES_MAX} bytes |"),
        format!("| largest checkpoint, packed or not | {CHECKPOINT_BYTES_MAX} bytes |"),
        format!("| longest key of a segment, job or garbage | {KEY_BYTES_MAX} bytes |"),
        format!("| longest state of a job | {JOB_STATE_BYTES_MAX} bytes |"),
        format!("| zstd window | at most 2^{ZSTD_WINDOW_LOG_MAX} bytes |"),
        format!("| bits of an order below the version | {ORDER_SHIFT} |"),
        format!("| versions from checkpoint to checkpoint | {} |", Options::default().checkpoint_every),
        format!("| grace period | {} s |", Options::default().grace.as_secs()),
        format!("| segments that ask for an order in one delta | {} |", 1u64 << ORDER_SHIFT),
    ];
    for fact in facts {
        assert!(chapter.contains(&fact), "the chapter must say: {fact}");
    }
}
