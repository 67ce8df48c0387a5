//! The disk: what the WAL and the local object store need of a file system, with durability spelled out.
//!
//! What holds: a write is durable after [`DiskFile::sync`]; a created, linked, renamed or removed name is durable
//! after [`Disk::sync_dir`] of its folder. Nothing else is, and [`SimDisk`] forgets the rest.
//! This module must not know what the bytes mean.

mod dice;
mod real;
mod sim;
mod sim_state;

pub use dice::Dice;
pub use real::RealDisk;
pub use sim::SimDisk;

use crate::error::{Error, ErrorKind};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

/// A file system, as far as this engine needs one.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file for appending; makes it when absent.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Makes a file for appending; fails with `AlreadyExists` when the name is taken.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The bytes of each range; `UnexpectedEof` when one goes past the end.
    fn read_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>>;
    /// The file's length in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;
    /// What lies in the folder, sorted by name; names that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>>;
    /// Makes the folder and those above it, durably.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// Gives the file another name, which may be taken.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives the file a second name; fails with `AlreadyExists` when that is taken.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Cuts the file to `len` bytes (no-op when shorter) and syncs it.
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()>;
    /// Makes the names in the folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes an exclusive lock, held until the answer is dropped or the process ends; `WouldBlock` when another holds it.
    fn lock(&self, path: &Path) -> io::Result<DiskLock>;

    /// The bytes from `offset` on, `len` of them.
    fn read_range(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let range = offset..offset.saturating_add(len as u64);
        Ok(self.read_ranges(path, std::slice::from_ref(&range))?.pop().unwrap_or_default())
    }

    /// Makes a file with these bytes and syncs it; its name is not yet durable.
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create_new(path)?;
        file.append(bytes)?;
        file.sync()
    }
}

/// An open file that only grows.
pub trait DiskFile: Send + Debug {
    /// Writes all of `bytes` behind the last byte. After an error any part of them may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything written so far durable. After an error nothing is known, and a later success says nothing
    /// about bytes written before the error.
    fn sync(&mut self) -> io::Result<()>;
    /// Bytes in the file, counting those written through this handle.
    fn len(&self) -> u64;
    /// Whether the file has no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Holds a lock while it lives.
pub type DiskLock = Box<dyn Debug + Send + Sync>;

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskEntry {
    /// The name, without its folder.
    pub name: String,
    /// Bytes of the file; 0 for folders.
    pub len: u64,
    /// When the file was last written.
    pub modified: SystemTime,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// The engine's error for a failed call `what` on `path`: a full disk is busy, a missing file is not found, and what no second try can mend is
/// denied.
pub fn disk_error(what: &str, path: &Path, cause: &io::Error) -> Error {
    let (kind, help) = match cause.kind() {
        io::ErrorKind::NotFound => (ErrorKind::NotFound, ""),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (ErrorKind::Busy, ""),
        io::ErrorKind::PermissionDenied => (ErrorKind::Denied, ": let the user that runs this program read and write there"),
        io::ErrorKind::ReadOnlyFilesystem => (ErrorKind::Denied, ": mount it for writing, or choose another folder"),
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => (ErrorKind::Denied, ": choose a path whose parents are folders"),
        io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => (ErrorKind::Denied, ": choose another path"),
        _ => (ErrorKind::Io, ""),
    };
    Error::new(kind, format!("{what} {}: {cause}{help}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_second_try_can_mend_is_denied_and_says_what_to_do() {
        let error = |kind: io::ErrorKind| disk_error("write", Path::new("/a/b"), &kind.into());
        assert_eq!(error(io::ErrorKind::PermissionDenied).kind(), ErrorKind::Denied);
        assert!(error(io::ErrorKind::PermissionDenied).message().starts_with("write /a/b: permission denied: let the user"));
        assert_eq!(error(io::ErrorKind::NotADirectory).kind(), ErrorKind::Denied);
        assert_eq!(error(io::ErrorKind::ReadOnlyFilesystem).kind(), ErrorKind::Denied);
        assert_eq!(error(io::ErrorKind::StorageFull).kind(), ErrorKind::Busy);
        assert_eq!(error(io::ErrorKind::TimedOut).kind(), ErrorKind::Io);
    }
}
