//! What goes in comes out; what is damaged is named.

use super::codec::tests::{StoredRow, any_batch, batch_of, rows};
use super::folder::file_path;
use super::*;
use crate::disk::{RealDisk, SimDisk};
use crate::error::ErrorKind;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(super) type Rows = Vec<StoredRow>;

/// An opened WAL and what it gave back.
pub(super) struct Opened {
    pub wal: Wal,
    pub recovery: Recovery,
    pub batches: Vec<(u64, Rows)>,
}

pub(super) fn dir() -> PathBuf {
    PathBuf::from("/wal")
}

pub(super) fn tenant() -> Tenant {
    Tenant::new("t").unwrap()
}

pub(super) fn small_options() -> WalOptions {
    WalOptions { file_bytes_max: 700, frame_bytes_max: 64, ..WalOptions::default() }
}

pub(super) fn open(disk: &SimDisk, from: u64, options: WalOptions) -> Result<Opened> {
    open_at(disk, &dir(), from, options)
}

pub(super) fn open_at(disk: &SimDisk, dir: &Path, from: u64, options: WalOptions) -> Result<Opened> {
    let mut batches = Vec::new();
    let folder = WalFolder::open(Arc::new(disk.clone()), dir, options)?;
    let mut deliver = |sequence, whose: Tenant, batch: Batch| {
        assert_eq!(whose, tenant());
        batches.push((sequence, rows(&batch)));
        Ok(())
    };
    let (wal, recovery) = folder.recover(from, &mut deliver, None)?;
    Ok(Opened { wal, recovery, batches })
}

/// A batch of `lines` lines that differ from those of every other `id`.
pub(super) fn batch(id: u64, lines: usize) -> Batch {
    let line = |i: usize| (id as i64, (i % 3) as u8, 0, format!("line {i} of batch {id}: {}", "x".repeat(i % 7)).into_bytes(), i % 2 == 1);
    batch_of(&(0..lines).map(line).collect::<Vec<_>>())
}

/// A closed WAL of one file with batches 0 to `n`, and the byte where each begins, the end last.
fn one_file(disk: &SimDisk, n: u64) -> (PathBuf, Vec<usize>) {
    let opened = open(disk, 0, WalOptions { frame_bytes_max: 40, ..WalOptions::default() }).unwrap();
    let mut ends = Vec::new();
    let path = file_path(&dir(), opened.wal.shared.newest_number.load(SeqCst));
    for id in 0..n {
        ends.push(disk.read(&path).unwrap().len());
        assert_eq!(opened.wal.append(&tenant(), batch(id, 2)).wait().unwrap().0, id);
    }
    ends.push(disk.read(&path).unwrap().len());
    (path, ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn batches_come_back(batches in prop::collection::vec(any_batch(), 0..12)) {
        let disk = SimDisk::new();
        let opened = open(&disk, 0, small_options()).unwrap();
        let mut expected = Vec::new();
        for (id, batch) in (0u64..).zip(&batches) {
            let (sequence, back) = opened.wal.append(&tenant(), batch.clone()).wait().unwrap();
            prop_assert_eq!(sequence, id);
            prop_assert_eq!(rows(&back), rows(batch));
            expected.push((id, rows(batch)));
        }
        drop(opened);
        for from in [0, batches.len() as u64 / 2, batches.len() as u64 + 5] {
            let opened = open(&disk, from, small_options()).unwrap();
            let wanted: Vec<_> = expected.iter().filter(|(sequence, _)| *sequence >= from).cloned().collect();
            prop_assert_eq!(&opened.batches, &wanted);
            prop_assert_eq!(opened.recovery.batches, wanted.len() as u64);
            prop_assert!(opened.recovery.torn.is_empty() && opened.recovery.damaged.is_empty());
            prop_assert_eq!(opened.wal.next_sequence(), from.max(batches.len() as u64));
        }
    }
}

#[test]
fn a_tail_torn_at_any_byte_is_cut() {
    let whole = SimDisk::new();
    let (path, begins) = one_file(&whole, 4);
    let bytes = whole.read(&path).unwrap();
    for len in 0..bytes.len() {
        let disk = SimDisk::new();
        drop(open(&disk, 0, WalOptions::default()).unwrap());
        disk.damage(&path, |now| *now = bytes[..len].to_vec()).unwrap();
        let identity = whole.read(&dir().join("identity")).unwrap();
        disk.damage(&dir().join("identity"), |now| *now = identity).unwrap();
        let opened = open(&disk, 0, WalOptions::default()).unwrap();
        let left = begins.iter().skip(1).filter(|&&end| end <= len).count() as u64;
        assert_eq!(opened.batches, (0..left).map(|id| (id, rows(&batch(id, 2)))).collect::<Vec<_>>(), "cut at {len}");
        assert!(opened.recovery.damaged.is_empty(), "cut at {len}: {:?}", opened.recovery);
        let torn = begins.contains(&len) || len == 0;
        assert_eq!(opened.recovery.torn.is_empty(), torn, "cut at {len}: {:?}", opened.recovery);
        assert_eq!(opened.wal.append(&tenant(), batch(9, 1)).wait().unwrap().0, left);
        drop(opened);
        let again = open(&disk, 0, WalOptions::default()).unwrap();
        assert_eq!((again.batches.len() as u64, again.recovery.torn.len()), (left + 1, 0));
    }
}

#[test]
fn a_flipped_bit_costs_its_batch_only_and_is_named() {
    let whole = SimDisk::new();
    let (path, begins) = one_file(&whole, 4);
    let len = whole.read(&path).unwrap().len();
    for at in 0..len {
        let disk = SimDisk::new();
        one_file(&disk, 4);
        disk.damage(&path, |bytes| bytes[at] ^= 1 << (at % 8)).unwrap();
        let hit = begins.iter().rposition(|&begin| begin <= at).map(|i| i as u64);
        let wanted: Vec<_> = (0..4).filter(|&id| Some(id) != hit).map(|id| (id, rows(&batch(id, 2)))).collect();
        for round in 0..2 {
            let opened = open(&disk, 0, WalOptions::default()).unwrap();
            assert_eq!(opened.batches, wanted, "flip at {at}, round {round}");
            let named = if hit == Some(3) { &opened.recovery.torn } else { &opened.recovery.damaged };
            if hit != Some(3) || round == 0 {
                assert_eq!(named.len(), 1, "flip at {at}: {:?}", opened.recovery);
                assert_eq!(named[0].file, path);
                let range = named[0].offset as usize..(named[0].offset + named[0].bytes) as usize;
                assert!(range.contains(&at), "flip at {at}: {:?}", named[0]);
            }
            if round == 1 && hit != Some(3) {
                opened.wal.append(&tenant(), batch(9, 1)).wait().unwrap();
                opened.wal.trim(4).unwrap();
                let names: Vec<String> = disk.list(&dir()).unwrap().into_iter().map(|entry| entry.name).collect();
                assert!(names.iter().any(|name| name.ends_with(".wal.damaged")), "flip at {at}: {names:?}");
            }
        }
    }
}

#[test]
fn a_line_that_looks_like_a_frame_is_not_taken_for_one() {
    let disk = SimDisk::new();
    let (path, begins) = one_file(&disk, 1);
    let frame = disk.read(&path).unwrap()[begins[0]..].to_vec();
    let disk = SimDisk::new();
    let opened = open(&disk, 0, WalOptions::default()).unwrap();
    opened.wal.append(&tenant(), batch_of(&[(0, 0, 0, frame, false)])).wait().unwrap();
    opened.wal.append(&tenant(), batch(7, 1)).wait().unwrap();
    drop(opened);
    disk.damage(&path, |bytes| bytes[90] ^= 1).unwrap();
    let opened = open(&disk, 0, WalOptions::default()).unwrap();
    assert_eq!(opened.batches, [(1, rows(&batch(7, 1)))]);
}

#[test]
fn a_second_opener_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let open = || WalFolder::open(Arc::new(RealDisk), temp.path(), WalOptions::default());
    let first = open().unwrap();
    let error = open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    assert!(error.message().contains(&temp.path().display().to_string()), "{error}");
    let identity = first.identity();
    let (wal, _) = first.recover(0, &mut |_, _, _| Ok(()), None).unwrap();
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Fenced);
    wal.append(&tenant(), batch(0, 3)).wait().unwrap();
    drop(wal);
    let mut seen = 0;
    let again = open().unwrap();
    assert_eq!(again.identity(), identity);
    let mut deliver = |_, _, batch: Batch| {
        seen += batch.len();
        Ok(())
    };
    let (wal, _) = again.recover(0, &mut deliver, None).unwrap();
    assert_eq!((seen, wal.next_sequence(), wal.identity()), (3, 1, identity));
}

#[test]
fn trimming_removes_whole_files_and_keeps_the_sequence() {
    let disk = SimDisk::new();
    let opened = open(&disk, 0, small_options()).unwrap();
    for id in 0..20 {
        opened.wal.append(&tenant(), batch(id, 8)).wait().unwrap();
    }
    let files = || disk.list(&dir()).unwrap().into_iter().filter(|entry| entry.name.ends_with(".wal")).count();
    let all = files();
    assert!(all > 5);
    let bytes = opened.wal.stored_bytes();
    opened.wal.trim(10).unwrap();
    assert!(files() < all && opened.wal.stored_bytes() < bytes);
    let crashed = disk.crash();
    drop(opened);
    let opened = open(&crashed, 10, small_options()).unwrap();
    assert_eq!(opened.batches, (10..20).map(|id| (id, rows(&batch(id, 8)))).collect::<Vec<_>>());
    opened.wal.trim(20).unwrap();
    assert_eq!(crashed.list(&dir()).unwrap().iter().filter(|entry| entry.name.ends_with(".wal")).count(), 1);
    drop(opened);
    let opened = open(&crashed.crash(), 0, small_options()).unwrap();
    assert_eq!((opened.batches.len(), opened.wal.next_sequence()), (0, 20));
}

#[test]
fn one_sync_answers_all_that_wait_and_tells_of_them_in_order() {
    let disk = SimDisk::new();
    let folder = WalFolder::open(Arc::new(disk.clone()), &dir(), WalOptions::default()).unwrap();
    let (go, gate) = mpsc::channel::<()>();
    let (heard, told) = mpsc::channel();
    let gate = Mutex::new(gate);
    let on_durable: OnDurable = Arc::new(move |sequence, _, batch| {
        if sequence == 0 {
            hold(&gate).recv().unwrap();
        }
        heard.send((sequence, batch.timestamps()[0])).unwrap();
    });
    let (wal, _) = folder.recover(0, &mut |_, _, _| Ok(()), Some(on_durable)).unwrap();
    let first = wal.append(&tenant(), batch(0, 1));
    while wal.counts().commits == 0 {
        std::thread::yield_now();
    }
    let waiting: Vec<Append> = (1..50).map(|id| wal.append(&tenant(), batch(id, 1))).collect();
    go.send(()).unwrap();
    first.wait().unwrap();
    for (id, append) in (1..).zip(waiting) {
        assert_eq!(append.wait().unwrap().0, id);
    }
    let counts = wal.counts();
    assert_eq!((counts.commits, counts.batches, counts.records, wal.queued_bytes()), (2, 50, 50, 0));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), (0..50).map(|id| (id, id as i64)).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_is_busy() {
    let disk = SimDisk::new();
    let options = WalOptions { queue_bytes_max: 1000, ..WalOptions::default() };
    let folder = WalFolder::open(Arc::new(disk.clone()), &dir(), options).unwrap();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let on_durable: OnDurable = Arc::new(move |_, _, _| hold(&gate).recv().unwrap());
    let (wal, _) = folder.recover(0, &mut |_, _, _| Ok(()), Some(on_durable)).unwrap();
    let first = wal.append(&tenant(), batch(0, 200));
    while wal.counts().commits == 0 {
        std::thread::yield_now();
    }
    let mut waiting = vec![first];
    let error = loop {
        let mut append = wal.append(&tenant(), batch(1, 1));
        if let Err(error) = &mut append.0 {
            break error.take().unwrap();
        }
        waiting.push(append);
    };
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(waiting.len() > 2);
    waiting.iter().for_each(|_| go.send(()).unwrap());
    waiting.into_iter().for_each(|append| drop(append.wait().unwrap()));
}

#[test]
fn a_lost_or_wrong_identity_is_found_again() {
    let disk = SimDisk::new();
    one_file(&disk, 3);
    let identity = open(&disk, 0, WalOptions::default()).unwrap().wal.identity();
    for wrong in ["?".to_string(), format!("{:032x}\n", 5)] {
        disk.damage(&dir().join("identity"), |bytes| *bytes = wrong.into_bytes()).unwrap();
        let opened = open(&disk, 0, WalOptions::default()).unwrap();
        assert_eq!((opened.wal.identity(), opened.batches.len()), (identity, 3));
    }
}

/// Whole batches with these ids, numbered by them.
fn whole(ids: std::ops::Range<u64>) -> Vec<(u64, Rows)> {
    ids.map(|id| (id, rows(&batch(id, 2)))).collect()
}

fn copy(from: &SimDisk, path: &Path, to: &SimDisk, name: &str) {
    to.write_new(&dir().join(name), &from.read(path).unwrap()).unwrap();
    to.sync_dir(&dir()).unwrap();
}

#[test]
fn a_file_of_another_writer_is_set_aside_as_a_wal_of_its_own() {
    let (disk, other) = (SimDisk::new(), SimDisk::new());
    one_file(&disk, 3);
    let (foreign, _) = one_file(&other, 4);
    copy(&other, &foreign, &disk, "00000000000000aa.wal");
    let identity = open(&disk, 0, WalOptions::default()).unwrap().wal.identity();
    let disk = disk.crash();
    let opened = open(&disk, 0, WalOptions::default()).unwrap();
    assert_eq!((&opened.batches, opened.wal.identity()), (&whole(0..3), identity));
    let bytes = other.read(&foreign).unwrap().len() as u64;
    let [aside] = &opened.recovery.set_aside[..] else { panic!("{:?}", opened.recovery) };
    assert_eq!((aside.files, aside.bytes), (1, bytes));
    let theirs = open_at(&disk, &aside.folder, 0, WalOptions::default()).unwrap();
    assert_eq!(theirs.batches, whole(0..4));
    assert!(theirs.wal.identity() != identity && aside.folder.ends_with(format!("set-aside-{:032x}", theirs.wal.identity())));
}

/// Makes the header of a file say `version`, as a program of that version would.
pub(super) fn set_version(disk: &SimDisk, path: &Path, version: u8) {
    let change = |bytes: &mut Vec<u8>| {
        bytes[8] = version;
        let sum = crc32fast::hash(&bytes[..76]);
        bytes[76..80].copy_from_slice(&sum.to_le_bytes());
    };
    disk.damage(path, change).unwrap();
}

#[test]
fn a_wal_of_another_version_is_set_aside_whole_and_read_when_its_program_comes() {
    let disk = SimDisk::new();
    one_file(&disk, 3);
    // The program of the other version goes on where this one stopped.
    let opened = open(&disk, 1, WalOptions::default()).unwrap();
    let identity = opened.wal.identity();
    let path = file_path(&dir(), opened.wal.shared.newest_number.load(SeqCst));
    assert_eq!(opened.wal.append(&tenant(), batch(3, 2)).wait().unwrap().0, 3);
    drop(opened);
    set_version(&disk, &path, 9);
    // This one takes over again. Its own batches have numbers of their own.
    for round in 0..2 {
        let opened = open(&disk, 0, WalOptions::default()).unwrap();
        assert!(opened.wal.identity() != identity);
        assert_eq!(opened.batches, whole(0..round));
        assert_eq!(opened.wal.append(&tenant(), batch(round, 2)).wait().unwrap().0, round);
        let [aside] = &opened.recovery.set_aside[..] else { panic!("{:?}", opened.recovery) };
        assert_eq!(aside.files, 2);
    }
    let aside = dir().join(format!("set-aside-{identity:032x}"));
    set_version(&disk, &aside.join(path.file_name().unwrap()), 1);
    let theirs = open_at(&disk, &aside, 1, WalOptions::default()).unwrap();
    assert_eq!((theirs.batches, theirs.wal.identity()), (whole(1..4), identity));
    theirs.wal.trim(4).unwrap();
    drop(theirs.wal);
    assert_eq!(open(&disk, 0, WalOptions::default()).unwrap().recovery.set_aside, [], "nothing is left in it");
}

#[test]
fn a_renamed_file_gets_its_name_back_and_a_copy_is_kept_aside() {
    let disk = SimDisk::new();
    let (path, _) = one_file(&disk, 3);
    disk.rename(&path, &dir().join("00000000000000aa.wal")).unwrap();
    assert_eq!(open(&disk, 0, WalOptions::default()).unwrap().batches, whole(0..3));
    copy(&disk, &path, &disk, "00000000000000bb.wal");
    let opened = open(&disk, 0, WalOptions::default()).unwrap();
    assert_eq!(opened.batches, whole(0..3));
    assert_eq!(opened.recovery.damaged[0].what, "a copy of another file");
    assert!(disk.len(&dir().join("00000000000000bb.wal.damaged")).is_ok());
}

#[test]
fn a_large_batch_takes_many_frames() {
    let disk = SimDisk::new();
    let large = batch(1, 100_000);
    let opened = open(&disk, 0, WalOptions { commit_bytes_max: 1000, frame_bytes_max: 10_000, ..WalOptions::default() }).unwrap();
    opened.wal.append(&tenant(), large.clone()).wait().unwrap();
    assert!(opened.wal.counts().frames > 50);
    drop(opened);
    let opened = open(&disk.crash(), 0, WalOptions::default()).unwrap();
    assert!(opened.batches == [(0, rows(&large))]);
}

#[test]
fn nothing_is_acknowledged_in_a_file_whose_sync_failed() {
    for what in 1..=2 {
        let disk = SimDisk::new();
        let opened = open(&disk, 0, WalOptions::default()).unwrap();
        opened.wal.append(&tenant(), batch(0, 1)).wait().unwrap();
        disk.fail_at(what);
        opened.wal.append(&tenant(), batch(1, 1)).wait().unwrap_err();
        let sequence = opened.wal.append(&tenant(), batch(2, 1)).wait().unwrap().0;
        assert!(sequence > 1, "a failed append's number is not used again");
        assert_eq!((opened.wal.counts().files, opened.wal.counts().failures), (2, 1));
        drop(opened);
        let opened = open(&disk.crash(), 0, WalOptions::default()).unwrap();
        let ids: BTreeMap<u64, Rows> = opened.batches.into_iter().collect();
        assert_eq!(ids, BTreeMap::from([(0, rows(&batch(0, 1))), (sequence, rows(&batch(2, 1)))]));
        assert!(opened.recovery.damaged.is_empty(), "{:?}", opened.recovery);
    }
}
