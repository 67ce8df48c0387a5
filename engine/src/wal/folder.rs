//! The WAL's folder: its lock, the writer's identity, the names of its files.
//!
//! What holds: while a [`WalFolder`] or the [`Wal`] made of it lives, no other process has the folder.

use super::layout::{FILE_HEADER_BYTES, FileHeader};
use super::{OnDurable, Recovery, Wal, WalOptions, recover, writer};
use crate::disk::{Disk, DiskLock, disk_error};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Batch, Tenant};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK_NAME: &str = "LOCK";
pub(super) const IDENTITY_NAME: &str = "identity";
const IDENTITY_TMP_NAME: &str = "identity.tmp";
const FILE_SUFFIX: &str = ".wal";
const DAMAGED_SUFFIX: &str = ".wal.damaged";

/// A WAL's folder, locked, before recovery.
#[derive(Debug)]
pub struct WalFolder {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: WalOptions,
    pub(super) identity: u128,
    pub(super) lock: DiskLock,
    /// Numbers of the files, ascending.
    pub(super) numbers: Vec<u64>,
    /// The smallest number that no file has had, as far as the names tell.
    pub(super) next_number: u64,
}

/// The file numbered `number`.
pub(super) fn file_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}{FILE_SUFFIX}"))
}

/// Removes a file, or keeps it aside when `damaged`. Fine when it is gone. Its name is not synced.
pub(super) fn retire(disk: &dyn Disk, path: &Path, damaged: bool) -> Result<()> {
    let result = if damaged { disk.rename(path, &path.with_extension("wal.damaged")) } else { disk.remove(path) };
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|e| disk_error(if damaged { "keep aside" } else { "remove" }, path, &e)),
    }
}

impl WalFolder {
    /// Makes the folder when absent, locks it, and finds or draws the writer's identity. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] when another process has the folder; else what the disk said.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, options: WalOptions) -> Result<Self> {
        disk.create_dir_all(dir).map_err(|e| disk_error("make folder", dir, &e))?;
        let lock = disk.lock(&dir.join(LOCK_NAME)).map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => {
                let help = "is another haystore running on it? Give each its own folder";
                Error::new(ErrorKind::Fenced, format!("WAL {}: another process has this folder; {help}", dir.display()))
            }
            _ => disk_error("lock", &dir.join(LOCK_NAME), &e),
        })?;
        let mut numbers = Vec::new();
        let mut next_number = 0;
        for entry in disk.list(dir).map_err(|e| disk_error("list", dir, &e))? {
            let live = entry.name.strip_suffix(FILE_SUFFIX);
            let Some(digits) = live.or_else(|| entry.name.strip_suffix(DAMAGED_SUFFIX)) else { continue };
            let Some(number) = parse_number(digits) else { continue };
            next_number = next_number.max(number.saturating_add(1));
            if live.is_some() {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        let identity = find_identity(&*disk, dir, &numbers)?;
        Ok(WalFolder { disk, dir: dir.to_path_buf(), options, identity, lock, numbers, next_number })
    }

    /// The writer's number: drawn once for this folder, the same at each opening.
    pub fn identity(&self) -> u128 {
        self.identity
    }

    /// Gives every batch with sequence number `from` or above to `deliver`, in order, and opens the WAL for appending.
    /// `from` is the manifest's position: batches below it are stored elsewhere. `on_durable` hears of later batches.
    /// Reads one file at a time. Blocks.
    ///
    /// # Errors
    /// What `deliver` returns ends the recovery; nothing is lost by that. [`ErrorKind::Invalid`] for files of another
    /// version or writer; else what the disk said. Damage is no error: it is in the [`Recovery`].
    pub fn recover(
        self,
        from: u64,
        deliver: &mut dyn FnMut(u64, Tenant, Batch) -> Result<()>,
        on_durable: Option<OnDurable>,
    ) -> Result<(Wal, Recovery)> {
        let (recovery, state) = recover::run(&self, from, deliver)?;
        Ok((writer::start(self, state, on_durable)?, recovery))
    }
}

fn parse_number(digits: &str) -> Option<u64> {
    let canonical = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    canonical.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// The length and the header of a file: `None` when it is damaged or cut.
pub(super) fn read_header(disk: &dyn Disk, path: &Path) -> Result<(u64, Option<FileHeader>)> {
    let len = disk.len(path).map_err(|e| disk_error("read", path, &e))?;
    if len < FILE_HEADER_BYTES as u64 {
        return Ok((len, None));
    }
    let bytes = disk.read_range(path, 0, FILE_HEADER_BYTES).map_err(|e| disk_error("read", path, &e))?;
    let header = FileHeader::parse(&bytes).map_err(|e| e.at(path.display()))?;
    Ok((len, header))
}

/// Reads the identity; if it is lost, takes it from the newest file; if there is none, draws one.
fn find_identity(disk: &dyn Disk, dir: &Path, numbers: &[u64]) -> Result<u128> {
    let path = dir.join(IDENTITY_NAME);
    match disk.read(&path) {
        Ok(bytes) => {
            let text = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n')).filter(|text| text.len() == 32);
            if let Some(identity) = text.and_then(|text| u128::from_str_radix(text, 16).ok()) {
                return Ok(identity);
            }
            tracing::warn!("{}: damaged; written anew", path.display());
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(disk_error("read", &path, &e)),
    }
    let mut known = None;
    for &number in numbers.iter().rev() {
        known = read_header(disk, &file_path(dir, number))?.1.map(|header| header.writer);
        if known.is_some() {
            break;
        }
    }
    let identity = match known {
        Some(identity) => identity,
        None => u128::from(random()?) << 64 | u128::from(random()?),
    };
    let tmp = dir.join(IDENTITY_TMP_NAME);
    retire(disk, &tmp, false)?;
    let written = disk.write_new(&tmp, format!("{identity:032x}\n").as_bytes());
    let written = written.and_then(|()| disk.rename(&tmp, &path)).and_then(|()| disk.sync_dir(dir));
    written.map_err(|e| disk_error("write", &path, &e))?;
    Ok(identity)
}

/// 64 random bits.
pub(super) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::io("random number", e))
}
