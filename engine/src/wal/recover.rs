//! Recovery: what the files of a crashed or closed WAL hold.
//!
//! What holds: batches come in order and once; only torn tails that nobody was told of are cut; a file with damage is
//! left as it is.

use super::aside::SetAside;
use super::folder::{WalFile, WalFolder, retire};
use super::frames::{Found, Scanner};
use super::layout::{FILE_HEADER_BYTES, NO_FILE};
use super::{ClosedFile, codec};
use crate::disk::disk_error;
use crate::error::Result;
use crate::record::{Batch, Tenant};
use std::path::PathBuf;

/// Bytes of a WAL file that could not be read as batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where they begin.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// What is wrong.
    pub what: &'static str,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} bytes at byte {}: {}", self.file.display(), self.bytes, self.offset, self.what)
    }
}

/// What recovery found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files read.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Batches given back.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Unfinished writes at the ends of files, never acknowledged; cut.
    pub torn: Vec<Damage>,
    /// Damage to what may have been acknowledged. The files are kept, as `*.damaged` after trimming.
    pub damaged: Vec<Damage>,
    /// Files of other versions or writers, set aside now or earlier. Their records are not here.
    pub set_aside: Vec<SetAside>,
}

/// What the writer goes on from.
pub(super) struct State {
    pub closed: Vec<ClosedFile>,
    pub next_number: u64,
    pub next_sequence: u64,
    pub previous_number: u64,
    pub previous_bytes: u64,
}

struct Run<'a> {
    folder: &'a WalFolder,
    from: u64,
    deliver: &'a mut dyn FnMut(u64, Tenant, Batch) -> Result<()>,
    recovery: Recovery,
    next_sequence: u64,
    closed: Vec<ClosedFile>,
}

/// Reads all files, gives their batches from sequence number `from` on to `deliver`.
pub(super) fn run(folder: &WalFolder, from: u64, deliver: &mut dyn FnMut(u64, Tenant, Batch) -> Result<()>) -> Result<(Recovery, State)> {
    let files = &folder.files;
    let recovery = Recovery { damaged: folder.copies.clone(), set_aside: folder.set_aside.clone(), ..Recovery::default() };
    let mut run = Run { folder, from, deliver, recovery, next_sequence: 0, closed: Vec::new() };
    let mut previous = (NO_FILE, 0);
    for (i, file) in files.iter().enumerate() {
        let limit = limit_of(file, &files[i + 1..]);
        // Behind the newest file there may be one that was only just begun.
        let newest = files[i + 1..].iter().all(|later| later.good().is_none() && later.len <= FILE_HEADER_BYTES as u64);
        if let Some(bytes) = run.file(file, limit, newest)? {
            previous = (file.number, bytes);
        }
    }
    folder.disk.sync_dir(&folder.dir).map_err(|e| disk_error("sync folder", &folder.dir, &e))?;
    let first_sequences = files.iter().filter_map(WalFile::good).map(|header| header.first_sequence);
    let next_sequence = first_sequences.fold(run.next_sequence.max(from), u64::max);
    for damage in &run.recovery.damaged {
        tracing::warn!("WAL damage: {damage}");
    }
    let state = State {
        closed: run.closed,
        next_number: folder.next_number,
        next_sequence,
        previous_number: previous.0,
        previous_bytes: previous.1,
    };
    Ok((run.recovery, state))
}

/// How many bytes of `file` were acknowledged, if a later file tells.
fn limit_of(file: &WalFile, later: &[WalFile]) -> Option<u64> {
    let next = later.iter().find_map(WalFile::good)?;
    match next.previous_number {
        NO_FILE => Some(0),
        previous if previous == file.number => Some(next.previous_bytes),
        previous if previous < file.number => Some(0),
        _ => None,
    }
}

impl Run<'_> {
    /// Reads one file; the answer is how many of its bytes count, `None` when it is gone.
    fn file(&mut self, file: &WalFile, limit: Option<u64>, newest: bool) -> Result<Option<u64>> {
        let disk = &*self.folder.disk;
        if limit == Some(0) {
            return self.unacknowledged(file).map(|()| None);
        }
        let bytes = disk.read(&file.path).map_err(|e| disk_error("read", &file.path, &e))?;
        self.recovery.files += 1;
        self.recovery.bytes += bytes.len() as u64;
        let end = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(bytes.len()).min(bytes.len());
        let damages_before = self.recovery.damaged.len();
        let mut last_sequence = None;
        let mut tail = end;
        for found in Scanner::new(&bytes[..end], file.good().as_ref()) {
            match found {
                Found::Batch { sequence, offset, payload } => {
                    if self.batch(file, sequence, offset, &payload)? {
                        last_sequence = Some(sequence);
                    }
                }
                Found::Damage { offset, end } => self.damage(file, offset, end - offset, "no whole batch"),
                Found::Tail { offset } => tail = offset,
            }
        }
        let header_only = file.good().is_none() && tail == 0 && end <= FILE_HEADER_BYTES;
        let torn_tail = newest && (file.good().is_some() || tail > 0 || header_only);
        if tail < end && !torn_tail {
            self.damage(file, tail, end - tail, "no whole batch up to the end");
            tail = end;
        }
        if let Some(limit) = limit.filter(|&limit| limit > bytes.len() as u64) {
            self.damage(file, bytes.len(), limit as usize - bytes.len(), "acknowledged bytes are missing");
        }
        let damaged = self.recovery.damaged.len() > damages_before;
        self.cut(file, tail, bytes.len(), newest, damaged)?;
        if last_sequence.is_none() && !damaged {
            // The headers of later files keep the sequence.
            return retire(disk, &file.path, false).map(|()| None);
        }
        let kept = limit.unwrap_or(tail as u64);
        self.closed.push(ClosedFile { number: file.number, last_sequence, bytes: bytes.len() as u64, damaged });
        Ok(Some(kept))
    }

    /// A file that was begun, but in which nothing was ever acknowledged, holds a header at most.
    fn unacknowledged(&mut self, file: &WalFile) -> Result<()> {
        let damaged = file.len > FILE_HEADER_BYTES as u64;
        if damaged {
            self.damage(file, 0, file.len as usize, "a file that the files behind it don't know");
        }
        retire(&*self.folder.disk, &file.path, damaged)
    }

    /// Gives a batch back; false when it was none.
    fn batch(&mut self, file: &WalFile, sequence: u64, offset: usize, payload: &[u8]) -> Result<bool> {
        if sequence < self.next_sequence {
            self.damage(file, offset, payload.len(), "a sequence number that came before");
            return Ok(false);
        }
        if sequence >= self.from {
            match codec::decode(payload) {
                Ok((tenant, batch)) => {
                    self.recovery.batches += 1;
                    self.recovery.records += batch.len() as u64;
                    (self.deliver)(sequence, tenant, batch)?;
                }
                Err(_) => {
                    self.damage(file, offset, payload.len(), "a batch that can't be decoded");
                    return Ok(false);
                }
            }
        }
        self.next_sequence = sequence.saturating_add(1);
        Ok(true)
    }

    /// Removes what was never acknowledged from the end of a file, and makes the rest durable.
    fn cut(&mut self, file: &WalFile, keep: usize, len: usize, newest: bool, damaged: bool) -> Result<()> {
        if keep < len {
            let bytes = (len - keep) as u64;
            let what = "an unfinished write";
            self.recovery.torn.push(Damage { file: file.path.clone(), offset: keep as u64, bytes, what });
        }
        if newest || (keep < len && !damaged) {
            let keep = if damaged { len } else { keep };
            self.folder.disk.truncate(&file.path, keep as u64).map_err(|e| disk_error("cut", &file.path, &e))?;
        }
        Ok(())
    }

    fn damage(&mut self, file: &WalFile, offset: usize, bytes: usize, what: &'static str) {
        let (offset, bytes) = (offset as u64, bytes as u64);
        match self.recovery.damaged.last_mut() {
            Some(last) if last.file == file.path && last.offset + last.bytes == offset && last.what == what => last.bytes += bytes,
            _ => self.recovery.damaged.push(Damage { file: file.path.clone(), offset, bytes, what }),
        }
    }
}
