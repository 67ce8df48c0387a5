//! Files that don't belong to this WAL, or that this program can't read: set aside, never deleted.
//!
//! What holds: a folder set aside is a WAL of its own, with the identity of its files' writer, so that whoever opens it gives back what
//! lies in it, once. Therefore a file of another version takes all files of its writer with it, and that writer's identity is
//! not used here again: batches of larger sequence numbers would otherwise count as published in its name. Whatever ends this half-way,
//! the next opening goes on with it.

use super::folder::{FILE_SUFFIX, WalFile, file_path, read_identity, write_identity};
use super::layout::{FILE_HEADER_BYTES, Header};
use crate::disk::{Disk, disk_error};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// First part of the names of folders set aside; the writer's number follows.
const ASIDE_PREFIX: &str = "set-aside-";

/// A folder of WAL files that were set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The folder.
    pub folder: PathBuf,
    /// Files in it that hold more than a header.
    pub files: u64,
    /// Bytes of those files.
    pub bytes: u64,
}

/// The folder for files of `writer`.
fn folder_of(dir: &Path, writer: Option<u128>) -> PathBuf {
    dir.join(writer.map_or_else(|| format!("{ASIDE_PREFIX}unknown"), |writer| format!("{ASIDE_PREFIX}{writer:032x}")))
}

/// Sets all `files` aside, for `known`, where one is of another version; else those that are not of the writer `live`. Those that stay
/// are left in `files`.
pub(super) fn sort_out(disk: &dyn Disk, dir: &Path, known: Option<u128>, live: Option<u128>, files: &mut Vec<WalFile>) -> Result<()> {
    let other_version = |file: &WalFile| matches!(file.header, Header::OtherVersion(_));
    if files.iter().any(other_version) {
        let (unreadable, readable): (Vec<WalFile>, Vec<WalFile>) = std::mem::take(files).into_iter().partition(other_version);
        // While one of another version is left, the next opening goes on with all.
        set_aside(disk, dir, known, &readable)?;
        return set_aside(disk, dir, known, &unreadable);
    }
    let stays = |file: &WalFile| file.good().is_none_or(|header| Some(header.writer) == live);
    for file in files.iter().filter(|file| !stays(file)) {
        set_aside(disk, dir, file.good().map(|header| header.writer), std::slice::from_ref(file))?;
    }
    files.retain(stays);
    Ok(())
}

/// Moves `files` to the folder of `writer`, durably.
fn set_aside(disk: &dyn Disk, dir: &Path, writer: Option<u128>, files: &[WalFile]) -> Result<()> {
    let folder = folder_of(dir, writer);
    disk.create_dir_all(&folder).map_err(|e| disk_error("make folder", &folder, &e))?;
    if let Some(writer) = writer
        && read_identity(disk, &folder)? != Some(writer)
    {
        write_identity(disk, &folder, writer)?;
    }
    for file in files {
        let to = file_path(&folder, file.number);
        if disk.len(&to).is_ok() {
            let help = "move one of the two elsewhere";
            return Err(Error::invalid(format!("{}: can't be set aside, {} exists; {help}", file.path.display(), to.display())));
        }
        disk.rename(&file.path, &to).map_err(|e| disk_error("set aside", &file.path, &e))?;
        let why = match file.header {
            Header::OtherVersion(version) => format!("of version {version}, which this program does not know"),
            Header::Good(header) => format!("of writer {:032x}", header.writer),
            Header::Damaged => "beside files of another version".to_string(),
        };
        tracing::error!("{}: {} bytes {why}: set aside as {}", file.path.display(), file.len, to.display());
    }
    for changed in [&folder, dir] {
        disk.sync_dir(changed).map_err(|e| disk_error("sync folder", changed, &e))?;
    }
    Ok(())
}

/// Every folder set aside, now or earlier, in which there is something.
pub(super) fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<SetAside>> {
    let mut found = Vec::new();
    for entry in disk.list(dir).map_err(|e| disk_error("list", dir, &e))? {
        if !entry.is_dir || !entry.name.starts_with(ASIDE_PREFIX) {
            continue;
        }
        let folder = dir.join(&entry.name);
        let mut aside = SetAside { folder, files: 0, bytes: 0 };
        for file in disk.list(&aside.folder).map_err(|e| disk_error("list", &aside.folder, &e))? {
            if file.name.ends_with(FILE_SUFFIX) && file.len > FILE_HEADER_BYTES as u64 {
                aside.files += 1;
                aside.bytes += file.len;
            }
        }
        if aside.files > 0 {
            found.push(aside);
        }
    }
    Ok(found)
}

/// Whether batches of `writer` lie set aside here: then its identity is theirs.
pub(super) fn has(disk: &dyn Disk, dir: &Path, writer: u128) -> Result<bool> {
    let folder = folder_of(dir, Some(writer));
    Ok(list(disk, dir)?.iter().any(|aside| aside.folder == folder))
}
