//! The ledger of acknowledged batches: what must be there, what may be there, and whether the store agrees.
//!
//! A batch's lines carry its number, so that the records found say which batches they are of. What is wrong is an error,
//! not a panic: a canary asserts that a lying disk is noticed.

use crate::record::Rec;
use haystore::{Batch, Labels};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Not acknowledged (yet): all of its records, or none.
    Open,
    /// Acknowledged: all of its records.
    Kept,
}

/// Number → (records, fate).
type Batches = BTreeMap<u64, (usize, Fate)>;

/// All batches of a test.
#[derive(Debug, Default)]
pub struct Ledger {
    next: AtomicU64,
    batches: Mutex<Batches>,
}

impl Ledger {
    fn hold(&self) -> std::sync::MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new batch of `rows` records, with its number.
    pub fn batch(&self, rows: usize) -> (u64, Batch) {
        self.padded_batch(rows, |row| "padding ".repeat(row % 5))
    }

    /// A new batch so large that the WAL takes it in several frames.
    pub fn large_batch(&self) -> (u64, Batch) {
        let mut dice = haystore::disk::Dice::new(self.next.load(SeqCst));
        self.padded_batch(3, |_| (0..500).map(|_| format!("{:016x}", dice.roll())).collect::<String>().repeat(60))
    }

    fn padded_batch(&self, rows: usize, mut padding: impl FnMut(usize) -> String) -> (u64, Batch) {
        let number = self.next.fetch_add(1, SeqCst);
        self.hold().insert(number, (rows, Fate::Open));
        let mut batch = Batch::new();
        let streams = ["a", "b"].map(|app| batch.stream(&Labels::new([("app", app)])));
        let format = batch.format(&haystore::Format::Text).unwrap();
        for row in 0..rows {
            let line = format!("batch={number} row={row} of={rows} {}", padding(row));
            let timestamp = crate::random::START_NS + (number as i64 % 50) * 1000;
            batch.push(timestamp, streams[row % 2], format, line.as_bytes(), b"").unwrap();
        }
        (number, batch)
    }

    /// The batch `number` was acknowledged.
    pub fn keep(&self, number: u64) {
        if let Some(entry) = self.hold().get_mut(&number) {
            entry.1 = Fate::Kept;
        }
    }

    /// Records of acknowledged batches.
    pub fn kept_records(&self) -> usize {
        self.hold().values().filter(|(_, fate)| *fate == Fate::Kept).map(|(rows, _)| rows).sum()
    }

    /// Records of all batches.
    pub fn tried_records(&self) -> usize {
        self.hold().values().map(|(rows, _)| rows).sum()
    }

    /// Compares with what the store gave after a restart; what is found is kept from now on, what is not found must never come back.
    ///
    /// # Errors
    /// Says what is lost, doubled, torn or foreign.
    pub fn check(&self, found: &[Rec]) -> Result<(), String> {
        self.check_growing(found)?;
        self.hold().retain(|_, (_, fate)| *fate == Fate::Kept);
        Ok(())
    }

    /// As [`Ledger::check`], while batches may still come.
    ///
    /// # Errors
    /// As [`Ledger::check`].
    pub fn check_growing(&self, found: &[Rec]) -> Result<(), String> {
        compare(&mut self.hold(), found)
    }

    /// The batches acknowledged so far.
    pub fn kept(&self) -> BTreeSet<u64> {
        self.hold().iter().filter(|(_, (_, fate))| *fate == Fate::Kept).map(|(number, _)| *number).collect()
    }

    /// As [`Ledger::check`], while writers are at work; `kept_before` was asked for before the records were.
    ///
    /// # Errors
    /// As [`Ledger::check`].
    pub fn check_under_load(&self, kept_before: &BTreeSet<u64>, found: &[Rec]) -> Result<(), String> {
        let mut batches = self.hold().clone();
        batches.iter_mut().filter(|(number, _)| !kept_before.contains(number)).for_each(|(_, (_, fate))| *fate = Fate::Open);
        compare(&mut batches, found)
    }
}

fn compare(batches: &mut Batches, found: &[Rec]) -> Result<(), String> {
    let mut rows_of: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for record in found {
        let line = String::from_utf8_lossy(&record.line).into_owned();
        let number = |name: &str| {
            let part = line.split(' ').find_map(|p| p.strip_prefix(name));
            part.and_then(|p| p.parse::<u64>().ok()).ok_or_else(|| format!("a foreign line: {line}"))
        };
        rows_of.entry(number("batch=")?).or_default().push(number("row=")? as usize);
    }
    for (number, (rows, fate)) in batches.iter_mut() {
        match rows_of.remove(number) {
            None if *fate == Fate::Kept => return Err(format!("batch {number} was acknowledged and is lost")),
            None => {}
            Some(mut found) => {
                found.sort_unstable();
                if found != (0..*rows).collect::<Vec<_>>() {
                    return Err(format!("batch {number} of {rows} records ({fate:?}) came back as rows {found:?}"));
                }
                *fate = Fate::Kept;
            }
        }
    }
    match rows_of.first_key_value() {
        Some((number, _)) => Err(format!("batch {number} came back from nowhere")),
        None => Ok(()),
    }
}
