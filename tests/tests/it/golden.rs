//! Golden segments, read by the engine and by the reference decoder; both on random segments; both on damaged ones.

use haystore::column::encode::Effort;
use haystore::{ErrorKind, Tenant};
use haystore_format::decoder::{decode, dump::dump};
use haystore_tests::golden::{damage, engine_records, files, segment_of, stored_order};
use haystore_tests::random::Random;
use haystore_tests::rounds;

#[test]
fn the_engine_reads_golden_segments() {
    for (name, segment, expected) in files::pairs(&files::read("v1")) {
        let records = engine_records(&segment).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(dump(&records) == expected, "{name}: the engine gives other records");
    }
}

#[test]
fn the_engine_refuses_damaged_segments() {
    let mut unseen = Vec::new();
    for (name, segment, _) in files::pairs(&files::read("bad")) {
        match engine_records(&segment) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}"),
            Ok(_) => unseen.push(name),
        }
    }
    assert_eq!(unseen, damage::UNSEEN_BY_ENGINE);
}

/// Random records of two tenants.
fn random_segment(random: &mut Random) -> (Vec<u8>, Vec<(Tenant, Vec<haystore_tests::record::Rec>)>) {
    let kinds: Vec<_> = (0..1 + random.below(4)).map(|_| random.record()).collect();
    let tenants: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|tenant| {
            let mut records = random.records(600);
            // Half of the segments are of few kinds of lines, which are taken apart further.
            if random.once_in(2) {
                for record in &mut records {
                    let kind = random.pick(&kinds);
                    record.line = kind
                        .line
                        .iter()
                        .map(|&b| if b.is_ascii_digit() && random.once_in(3) { b'0' + random.below(10) as u8 } else { b })
                        .collect();
                }
            }
            (Tenant::new(tenant).unwrap(), records)
        })
        .collect();
    let effort =
        Effort { zstd: 1 + random.below(9) as i32, pco: random.below(9) as u8, same: random.once_in(2), archive: random.once_in(4) };
    (segment_of(&tenants, usize::MAX, effort), tenants)
}

#[test]
fn both_decoders_give_back_random_records() {
    for seed in rounds::seeds(40) {
        let (segment, tenants) = random_segment(&mut Random::new(seed));
        let wanted = stored_order(&tenants);
        let reference = decode(&segment).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(reference == wanted, "seed {seed}: the reference decoder gives other records");
        let engine = engine_records(&segment).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(engine == wanted, "seed {seed}: the engine gives other records");
    }
}

#[test]
fn damage_gives_an_error_or_the_right_records() {
    let golden: Vec<_> = files::pairs(&files::read("v1")).into_iter().filter(|(name, _, _)| name != "ranges").collect();
    for seed in rounds::seeds(200) {
        let mut random = Random::new(seed);
        let (name, segment, expected) = &golden[random.below(golden.len())];
        let mut damaged = segment.clone();
        match random.below(3) {
            0 => damaged.truncate(random.below(segment.len())),
            1 => {
                let at = random.below(segment.len());
                damaged[at] ^= 1 << random.below(8);
            }
            _ => {
                for _ in 0..2 + random.below(10) {
                    let at = random.below(segment.len());
                    damaged[at] = random.below(256) as u8;
                }
            }
        }
        if let Ok(records) = engine_records(&damaged) {
            assert!(dump(&records) == *expected, "seed {seed}: the engine gives wrong records of {name}");
        }
        if let Ok(records) = decode(&damaged) {
            assert!(dump(&records) == *expected, "seed {seed}: the reference decoder gives wrong records of {name}");
        }
    }
}

/// What no checksum guards against: whoever can write segments can write any. No panic, no endless loop, and where both decoders
/// find nothing wrong they give the same records.
#[test]
fn changes_behind_the_checksums_do_not_panic() {
    let skipped = ["ranges", "empty"];
    let golden: Vec<_> = files::pairs(&files::read("v1")).into_iter().filter(|(name, _, _)| !skipped.contains(&&**name)).collect();
    for seed in rounds::seeds(400) {
        let mut random = Random::new(seed);
        let (name, segment, _) = &golden[random.below(golden.len())];
        let changed = damage::change_behind_checksums(segment, &mut random);
        if let (Ok(reference), engine) = (decode(&changed), engine_records(&changed)) {
            let engine = engine.unwrap_or_else(|e| panic!("seed {seed}: {name} is bad to the engine alone: {e}"));
            assert!(reference == engine, "seed {seed}: {name} gives different records");
        }
    }
}
