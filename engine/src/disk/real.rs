//! The operating system's file system.
//!
//! What holds: folders are synced wherever the trait promises durability. On systems where a folder cannot be opened
//! (Windows), syncing one does nothing.

use super::{Disk, DiskEntry, DiskFile, DiskLock};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: File,
    len: u64,
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn len(&self) -> u64 {
        self.len
    }
}

impl Disk for RealDisk {
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let len = file.metadata()?.len();
        Ok(Box::new(RealFile { file, len }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile { file: OpenOptions::new().append(true).create_new(true).open(path)?, len: 0 }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn read_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut out = Vec::with_capacity(ranges.len());
        for range in ranges {
            if range.start > range.end || range.end > len {
                let what = format!("bytes {}..{} of a file of {len}", range.start, range.end);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
            let mut bytes = vec![0; usize::try_from(range.end - range.start).map_err(io::Error::other)?];
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(&mut bytes)?;
            out.push(bytes);
        }
        Ok(out)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let metadata = std::fs::metadata(path)?;
        if metadata.is_file() { Ok(metadata.len()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        let mut out = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_dir = metadata.is_dir();
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            out.push(DiskEntry { name, len: if is_dir { 0 } else { metadata.len() }, modified, is_dir });
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let dir = std::path::absolute(dir)?;
        let mut missing: Vec<PathBuf> = Vec::new();
        let mut at = dir.as_path();
        while !at.is_dir() {
            missing.push(at.to_path_buf());
            match at.parent() {
                Some(parent) => at = parent,
                None => break,
            }
        }
        // A process that died between making this folder and syncing its parent left a name that isn't durable yet.
        if let Some(parent) = at.parent() {
            match self.sync_dir(parent) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
                other => other?,
            }
        }
        for dir in missing.iter().rev() {
            match std::fs::create_dir(dir) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
                other => other?,
            }
            if let Some(parent) = dir.parent() {
                self.sync_dir(parent)?;
            }
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        if file.metadata()?.len() > len {
            file.set_len(len)?;
        }
        file.sync_all()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if cfg!(windows) {
            return Ok(());
        }
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<DiskLock> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_folder_does_what_the_trait_says() {
        let temp = tempfile::tempdir().unwrap();
        super::super::sim::tests::check_disk(&RealDisk, temp.path());
    }
}
