//! Objects: whole byte strings under keys, in a folder, in memory or in a cloud bucket.
//!
//! What holds: [`Objects::put`] and [`Objects::create`] are atomic and durable when they answer; an error leaves it open
//! whether the object is there (a lost answer to a successful call), so [`Objects::create`] may answer [`Created::Exists`]
//! for one's own bytes. Keys are parts joined by `/`, see [`check_key`]. This module must not know what objects mean.

mod counting;
mod faulty;
mod local;
mod memory;
mod open;
mod remote;
mod retrying;

pub use counting::{Counting, Counts, VerbCounts};
pub use faulty::{FaultPlan, Faulty};
pub use local::LocalObjects;
pub use memory::MemoryObjects;
pub use open::open_objects;
pub use remote::RemoteObjects;
pub use retrying::{RetryPolicy, Retrying};

use crate::error::{Error, Result};
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt::Debug;
use std::ops::Range;
use std::time::SystemTime;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 900;
/// The longest part of a key, in bytes.
pub const KEY_PART_BYTES_MAX: usize = 200;

/// A store of objects.
///
/// Errors name the object and the operation. Their kinds: `NotFound`, `Invalid` (a bad key), `Busy` (throttled, out of
/// space, no answer: try later), `Denied` (no permission, no such bucket: trying again is of no use), `Corrupt` (a range beyond the
/// object's end), `Io`.
#[async_trait]
pub trait Objects: Send + Sync + Debug {
    /// Stores `bytes` under `key`, in place of what was there.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()>;
    /// Stores `bytes` under `key` if nothing is there.
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created>;
    /// The whole object.
    async fn get(&self, key: &str) -> Result<Bytes>;
    /// The bytes of each range, in the order asked for.
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
    /// The object's length in bytes.
    async fn size(&self, key: &str) -> Result<u64>;
    /// Objects whose keys begin with `prefix`, sorted by key. The prefix may end inside a part.
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>>;
    /// Removes the object; fine when there is none.
    async fn delete(&self, key: &str) -> Result<()>;
    /// What messages call this store.
    fn name(&self) -> String;
}

/// What [`Objects::create`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The object was stored.
    Done,
    /// There was one already, maybe from an earlier try of the same caller.
    Exists,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// The key.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// When it was stored.
    pub modified: SystemTime,
}

/// Checks that `key` is fit for every kind of store: parts joined by `/`, each of 1 to 200 ASCII letters, digits or
/// `!-_.*'()=+,@`, none of them `.` or `..`, the first not beginning with `.`.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] when it is not.
pub fn check_key(key: &str) -> Result<()> {
    let fits = |part: &str| {
        !part.is_empty()
            && part.len() <= KEY_PART_BYTES_MAX
            && part != "."
            && part != ".."
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!-_.*'()=+,@".contains(&b))
    };
    if key.len() <= KEY_BYTES_MAX && !key.starts_with('.') && key.split('/').all(fits) {
        Ok(())
    } else {
        Err(Error::invalid(format!("object key {key:?}: a key is parts of ASCII letters, digits or !-_.*'()=+,@ joined by /")))
    }
}

/// Splits a listing's prefix at its last `/`: the folder's parts (maybe empty) and the rest. Checks the folder.
fn split_prefix(prefix: &str) -> Result<(&str, &str)> {
    match prefix.rsplit_once('/') {
        Some((folder, rest)) => check_key(folder).map(|()| (folder, rest)),
        None => Ok(("", prefix)),
    }
}

fn range_error(key: &str, range: &Range<u64>, size: u64) -> Error {
    Error::corrupt(key, size, format!("object ends here, bytes {}..{} were asked for", range.start, range.end))
}

/// The pieces of `bytes` at `ranges`, without a copy.
fn slice_ranges(key: &str, bytes: &Bytes, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let size = bytes.len() as u64;
    let piece = |range: &Range<u64>| {
        if range.start > range.end || range.end > size {
            return Err(range_error(key, range, size));
        }
        Ok(bytes.slice(range.start as usize..range.end as usize))
    };
    ranges.iter().map(piece).collect()
}

#[cfg(test)]
mod tests;
