//! The WAL's folder: its lock, the writer's identity, the names of its files.
//!
//! What holds: while a [`WalFolder`] or the [`Wal`] made of it lives, no other process has the folder. The files of an opened folder are of this
//! version and this writer, or their headers are damaged; what else lies there is set aside.

use super::aside::{self, SetAside};
use super::layout::{FILE_HEADER_BYTES, FileHeader, Header};
use super::recover::Damage;
use super::{OnDurable, Recovery, Wal, WalOptions, recover, writer};
use crate::disk::{Disk, DiskLock, disk_error};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Batch, Tenant};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK_NAME: &str = "LOCK";
const IDENTITY_NAME: &str = "identity";
const IDENTITY_TMP_NAME: &str = "identity.tmp";
pub(super) const FILE_SUFFIX: &str = ".wal";
const DAMAGED_SUFFIX: &str = ".wal.damaged";

/// A WAL's folder, locked, before recovery.
#[derive(Debug)]
pub struct WalFolder {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: WalOptions,
    pub(super) identity: u128,
    pub(super) lock: DiskLock,
    /// The files, by ascending number.
    pub(super) files: Vec<WalFile>,
    /// The smallest number that no file has had, as far as names and headers tell.
    pub(super) next_number: u64,
    /// Files that are copies of others; kept as `*.damaged`.
    pub(super) copies: Vec<Damage>,
    pub(super) set_aside: Vec<SetAside>,
}

/// A file of the WAL, and what its first bytes say.
#[derive(Debug)]
pub(super) struct WalFile {
    pub number: u64,
    pub path: PathBuf,
    pub len: u64,
    pub header: Header,
}

impl WalFile {
    /// The header, unless it is damaged.
    pub fn good(&self) -> Option<FileHeader> {
        if let Header::Good(header) = self.header { Some(header) } else { None }
    }
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
    /// Makes the folder when absent, locks it, sets aside what does not belong here, and finds or draws the writer's identity. Blocks.
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
        let (mut files, names_end) = find_files(&*disk, dir)?;
        let headers_end = files.iter().filter_map(|file| file.good()?.number.checked_add(1)).max();
        let known = known_identity(&*disk, dir, &files)?;
        let live = not_aside(&*disk, dir, known)?;
        aside::sort_out(&*disk, dir, known, live, &mut files)?;
        let copies = put_names_right(&*disk, dir, &mut files)?;
        let identity = match not_aside(&*disk, dir, live)? {
            Some(live) => live,
            None => new_identity(&*disk, dir)?,
        };
        let next_number = headers_end.unwrap_or(0).max(names_end);
        let set_aside = aside::list(&*disk, dir)?;
        Ok(WalFolder { disk, dir: dir.to_path_buf(), options, identity, lock, files, next_number, copies, set_aside })
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
    /// What `deliver` returns ends the recovery; nothing is lost by that. Else what the disk said. Damage is no error: it is in the
    /// [`Recovery`].
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

/// The files in `dir`, by ascending number, and the smallest number behind those of all names.
fn find_files(disk: &dyn Disk, dir: &Path) -> Result<(Vec<WalFile>, u64)> {
    let mut files = Vec::new();
    let mut end = 0;
    for entry in disk.list(dir).map_err(|e| disk_error("list", dir, &e))? {
        let live = entry.name.strip_suffix(FILE_SUFFIX);
        let Some(digits) = live.or_else(|| entry.name.strip_suffix(DAMAGED_SUFFIX)) else { continue };
        let Some(number) = parse_number(digits).filter(|_| !entry.is_dir) else { continue };
        end = end.max(number.saturating_add(1));
        if live.is_some() {
            let path = dir.join(&entry.name);
            let (len, header) = read_header(disk, &path)?;
            files.push(WalFile { number, path, len, header });
        }
    }
    files.sort_unstable_by_key(|file| file.number);
    Ok((files, end))
}

/// The length and the header of a file.
fn read_header(disk: &dyn Disk, path: &Path) -> Result<(u64, Header)> {
    let len = disk.len(path).map_err(|e| disk_error("read", path, &e))?;
    if len < FILE_HEADER_BYTES as u64 {
        return Ok((len, Header::Damaged));
    }
    let bytes = disk.read_range(path, 0, FILE_HEADER_BYTES).map_err(|e| disk_error("read", path, &e))?;
    Ok((len, Header::parse(&bytes)))
}

/// Gives files the names that their headers tell. Those whose names are taken are copies: they are kept aside, and taken out of `files`.
fn put_names_right(disk: &dyn Disk, dir: &Path, files: &mut Vec<WalFile>) -> Result<Vec<Damage>> {
    let mut copies = Vec::new();
    let (mut kept, wrong): (Vec<WalFile>, Vec<WalFile>) =
        std::mem::take(files).into_iter().partition(|file| file.good().is_none_or(|header| header.number == file.number));
    let changed = !wrong.is_empty();
    for file in wrong {
        let number = file.good().map_or(file.number, |header| header.number);
        let path = file_path(dir, number);
        if kept.iter().any(|other| other.number == number) {
            retire(disk, &file.path, true)?;
            copies.push(Damage { file: file.path, offset: 0, bytes: file.len, what: "a copy of another file" });
        } else {
            tracing::error!("{}: its header has another number; renamed to {}", file.path.display(), path.display());
            disk.rename(&file.path, &path).map_err(|e| disk_error("rename", &file.path, &e))?;
            kept.push(WalFile { number, path, ..file });
        }
    }
    if changed {
        disk.sync_dir(dir).map_err(|e| disk_error("sync folder", dir, &e))?;
    }
    kept.sort_unstable_by_key(|file| file.number);
    *files = kept;
    Ok(copies)
}

/// The identity in `dir`: `None` when there is none, or it is damaged.
pub(super) fn read_identity(disk: &dyn Disk, dir: &Path) -> Result<Option<u128>> {
    let path = dir.join(IDENTITY_NAME);
    match disk.read(&path) {
        Ok(bytes) => {
            let text = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_suffix('\n')).filter(|text| text.len() == 32);
            Ok(text.and_then(|text| u128::from_str_radix(text, 16).ok()))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(disk_error("read", &path, &e)),
    }
}

/// Writes the identity, durably.
pub(super) fn write_identity(disk: &dyn Disk, dir: &Path, identity: u128) -> Result<()> {
    let (path, tmp) = (dir.join(IDENTITY_NAME), dir.join(IDENTITY_TMP_NAME));
    retire(disk, &tmp, false)?;
    let written = disk.write_new(&tmp, format!("{identity:032x}\n").as_bytes());
    let written = written.and_then(|()| disk.rename(&tmp, &path)).and_then(|()| disk.sync_dir(dir));
    written.map_err(|e| disk_error("write", &path, &e))
}

/// The writer of these files: the one that the identity names. If it is lost, or no file is of that writer, the newest file's, which is
/// written down.
fn known_identity(disk: &dyn Disk, dir: &Path, files: &[WalFile]) -> Result<Option<u128>> {
    let named = read_identity(disk, dir)?;
    let mut writers = files.iter().rev().filter_map(|file| Some(file.good()?.writer)).peekable();
    let Some(&newest) = writers.peek() else { return Ok(named) };
    if let Some(named) = named
        && writers.any(|writer| writer == named)
    {
        return Ok(Some(named));
    }
    tracing::warn!("{}: lost or of another writer than the files; written anew", dir.join(IDENTITY_NAME).display());
    write_identity(disk, dir, newest)?;
    Ok(Some(newest))
}

/// `writer`, unless batches of it lie set aside.
fn not_aside(disk: &dyn Disk, dir: &Path, writer: Option<u128>) -> Result<Option<u128>> {
    match writer {
        Some(writer) if !aside::has(disk, dir, writer)? => Ok(Some(writer)),
        _ => Ok(None),
    }
}

/// Draws an identity and writes it down.
fn new_identity(disk: &dyn Disk, dir: &Path) -> Result<u128> {
    let identity = u128::from(random()?) << 64 | u128::from(random()?);
    write_identity(disk, dir, identity)?;
    Ok(identity)
}

/// 64 random bits.
pub(super) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::io("random number", e))
}
