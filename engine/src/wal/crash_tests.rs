//! Crashes and failing calls anywhere: every acknowledged batch comes back once, whole and in order.

use super::codec::tests::rows;
use super::tests::{Opened, Rows, batch, dir, open, open_at, set_version, small_options, tenant};
use super::*;
use crate::disk::{Dice, SimDisk};
use std::collections::{BTreeMap, HashSet};

/// What a client knows: batches by id, and the sequence numbers of those that were acknowledged.
#[derive(Default)]
struct Client {
    acknowledged: BTreeMap<u64, u64>,
    /// Batches that a recovery gave back, by sequence number.
    seen: BTreeMap<u64, Rows>,
    /// Batches below this number are stored elsewhere.
    position: u64,
}

impl Client {
    /// Compares what a recovery gave with what was acknowledged.
    fn check(&mut self, opened: &Opened, context: &str) {
        let back: BTreeMap<u64, Rows> = opened.batches.iter().cloned().collect();
        assert!(opened.batches.is_sorted_by(|a, b| a.0 < b.0), "{context}: not in order");
        let mut ids = HashSet::new();
        for rows in back.values() {
            assert!(ids.insert(rows[0].0), "{context}: batch {} twice", rows[0].0);
        }
        for (&sequence, &id) in self.acknowledged.range(self.position..) {
            assert_eq!(back.get(&sequence), Some(&rows(&batch(id, 3))), "{context}: acknowledged batch {id} is lost");
        }
        for (sequence, given) in self.seen.range(self.position..) {
            assert_eq!(back.get(sequence), Some(given), "{context}: batch {sequence} was given before");
        }
        for given in back.values() {
            assert_eq!(given, &rows(&batch(given[0].0 as u64, 3)), "{context}: a batch was changed");
        }
        for (&sequence, &id) in &self.acknowledged {
            assert!(opened.wal.next_sequence() > sequence, "{context}: number {sequence} of batch {id} will be used again");
        }
        // A batch that was given back is durable from then on.
        self.seen.extend(back);
    }
}

/// Appends `ids` and notes what is acknowledged.
fn append_all(wal: &Wal, ids: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    ids.filter_map(|id| wal.append(&tenant(), batch(id, 3)).wait().ok().map(|(sequence, _)| (sequence, id))).collect()
}

#[test]
fn any_failing_call_keeps_what_was_acknowledged() {
    for seed in 0..6 {
        for n in 1.. {
            let disk = if seed == 0 { SimDisk::new() } else { SimDisk::seeded(seed * 1000 + n) };
            let context = format!("seed {seed}, call {n} fails");
            let mut client = Client::default();
            disk.fail_at(n);
            let before = disk.calls();
            for round in 0..3 {
                let Ok(opened) = open(&disk, client.position, small_options()) else { continue };
                client.check(&opened, &context);
                client.acknowledged.extend(append_all(&opened.wal, round * 100..round * 100 + 6));
                client.position = client.acknowledged.keys().rev().nth(3).copied().unwrap_or(0).max(client.position);
                let _ = opened.wal.trim(client.position);
            }
            let done = disk.calls() - before < n;
            let opened = open(&disk.crash(), client.position, small_options()).unwrap();
            client.check(&opened, &context);
            if seed == 0 {
                assert!(opened.recovery.damaged.is_empty(), "{context}: {:?}", opened.recovery);
            }
            if done {
                assert!(n > 50 && client.acknowledged.len() == 18);
                break;
            }
        }
    }
}

/// Many rounds of concurrent appends that a crash ends anywhere. `position` moves on as if batches were flushed.
fn crash_rounds(seed: u64, lying: bool) {
    let mut dice = Dice::new(seed);
    let mut disk = if seed.is_multiple_of(4) { SimDisk::new() } else { SimDisk::seeded(seed) };
    if lying {
        disk.ignore_syncs();
    }
    let mut client = Client::default();
    let mut next_id = 0;
    for round in 0..5 {
        let context = format!("seed {seed}, round {round}");
        disk.fail_from(1 + dice.below(60));
        if dice.coin() {
            disk.heal();
            disk.fail_at(1 + dice.below(60));
        }
        if let Ok(opened) = open(&disk, client.position, small_options()) {
            client.check(&opened, &context);
            let answers: Vec<_> = std::thread::scope(|scope| {
                let wal = &opened.wal;
                let threads: Vec<_> =
                    (0..3u64).map(|t| scope.spawn(move || append_all(wal, (0..5).map(|i| next_id + t * 5 + i)))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            client.acknowledged.extend(answers);
            next_id += 15;
            let flushed = client.acknowledged.keys().rev().nth(4).copied().unwrap_or(0).max(client.position);
            if dice.coin() {
                client.position = flushed;
                let _ = opened.wal.trim(flushed);
            }
            disk = disk.crash();
            drop(opened);
        } else {
            disk = disk.crash();
        }
        let opened = open(&disk, client.position, small_options()).unwrap();
        client.check(&opened, &context);
        let healthy = append_all(&opened.wal, next_id..next_id + 2);
        assert_eq!(healthy.len(), 2, "{context}: a healthy disk takes appends");
        client.acknowledged.extend(healthy);
        next_id += 2;
    }
}

#[test]
fn crashes_lose_nothing_acknowledged_and_repeat_nothing() {
    for seed in 0..200 {
        crash_rounds(seed, false);
    }
}

/// A WAL of several files, the last of which was made by a program of another version; the batches in it.
fn wal_of_another_version(seed: u64) -> (SimDisk, Vec<(u64, Rows)>) {
    let disk = SimDisk::seeded(seed);
    let opened = open(&disk, 0, small_options()).unwrap();
    assert_eq!(append_all(&opened.wal, 0..9).len(), 9);
    drop(opened);
    let mut names: Vec<String> = disk.list(&dir()).unwrap().into_iter().map(|e| e.name).filter(|n| n.ends_with(".wal")).collect();
    assert!(names.len() > 2);
    set_version(&disk, &dir().join(names.pop().unwrap()), 2);
    (disk, (0..9).map(|id| (id, rows(&batch(id, 3)))).collect())
}

#[test]
fn setting_aside_may_end_anywhere_and_loses_and_repeats_nothing() {
    for seed in 0..4 {
        for n in 1.. {
            let context = format!("seed {seed}, call {n} fails");
            let (disk, all) = wal_of_another_version(seed * 1000 + n);
            disk.fail_from(n);
            let done = open(&disk, 0, small_options()).is_ok_and(|opened| opened.batches.is_empty());
            let disk = disk.crash();
            let opened = open(&disk, 0, small_options()).unwrap();
            assert_eq!(opened.batches, [], "{context}");
            let own = append_all(&opened.wal, 50..52);
            let [aside] = &opened.recovery.set_aside[..] else { panic!("{context}: {:?}", opened.recovery) };
            for entry in disk.list(&aside.folder).unwrap().iter().filter(|entry| entry.name.ends_with(".wal")) {
                set_version(&disk, &aside.folder.join(&entry.name), 1);
            }
            let theirs = open_at(&disk, &aside.folder, 0, small_options()).unwrap();
            assert_eq!(theirs.batches, all, "{context}");
            assert!(theirs.wal.identity() != opened.wal.identity(), "{context}");
            drop((opened, theirs));
            let again = open(&disk, 0, small_options()).unwrap();
            assert_eq!(again.batches.iter().map(|b| b.0).collect::<Vec<_>>(), own.iter().map(|o| o.0).collect::<Vec<_>>(), "{context}");
            if done {
                assert!(n > 20);
                break;
            }
        }
    }
}

#[test]
fn canary_a_disk_that_lies_about_syncs_is_found_out() {
    let caught = std::panic::catch_unwind(|| crash_rounds(0, true)).unwrap_err();
    let message = caught.downcast_ref::<String>().unwrap();
    assert!(message.contains("is lost"), "{message}");
}
