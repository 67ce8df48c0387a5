//! A store with 100,000 segments: bytes and time of what grows with it.

use super::super::codec::{decode_checkpoint, encode_checkpoint, encode_delta};
use super::super::delta::{Record, apply};
use super::store::World;
use super::*;
use std::time::Instant;

const SEGMENTS: u64 = 100_000;
const BYTES_PER_SEGMENT_MAX: usize = 110;

#[test]
fn a_hundred_thousand_segments() {
    let world = World::new(5);
    let mut state = State::default();
    let started = Instant::now();
    for commit in 0..SEGMENTS / 500 {
        let segments = (0..500).map(|i| {
            let at = 1_700_000_000_000_000_000 + i64::try_from(commit * 500 + i).unwrap() * 1_000_000_000;
            let id = u128::from(world.roll()) << 64 | u128::from(world.roll());
            let mut part = part(
                if i % 10 == 0 { "a-tenant" } else { "another-tenant" },
                at,
                at + i64::try_from(world.roll() % 100_000_000_000).unwrap(),
            );
            (part.rows, part.line_bytes) = (world.roll() % 100_000, world.roll() % 16_000_000);
            SegmentMeta { bytes: world.roll() % 2_000_000, ..fresh(id, vec![part]) }
        });
        let record = Record::new(&state, adding(segments.collect()), u128::from(commit), 0).unwrap();
        state = apply(&state, &record).unwrap();
    }
    println!("{SEGMENTS} segments in commits of 500: {:?}", started.elapsed());

    let started = Instant::now();
    let bytes = encode_checkpoint(&state).unwrap();
    println!(
        "checkpoint: {} bytes, {:.1} a segment, written in {:?}",
        bytes.len(),
        bytes.len() as f64 / SEGMENTS as f64,
        started.elapsed()
    );
    assert!(bytes.len() / usize::try_from(SEGMENTS).unwrap() <= BYTES_PER_SEGMENT_MAX);
    let started = Instant::now();
    let again = decode_checkpoint("c", &bytes, state.version()).unwrap();
    println!("checkpoint read in {:?}", started.elapsed());
    assert!(again == state);

    let started = Instant::now();
    for i in 0..100u128 {
        let record = Record::new(&state, adding(vec![fresh(i, vec![part("another-tenant", 5, 6)])]), i, 0).unwrap();
        state = apply(&state, &record).unwrap();
        let bytes = encode_delta(&record).unwrap().len();
        assert!(bytes <= 200, "a delta of one segment has {bytes} bytes");
    }
    println!("one more segment: {:?} a commit", started.elapsed() / 100);

    let started = Instant::now();
    let found = state.parts(&tenant("another-tenant"), &(1_700_050_000_000_000_000..=1_700_050_010_000_000_000));
    println!("look-up of {} parts: {:?}", found.len(), started.elapsed());
    assert!(found.len() > 5 && found.len() < 500);
}
