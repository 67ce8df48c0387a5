//! Counts what is asked of a store: the proof of how many requests a query costs.

use super::{Created, ObjectMeta, Objects};
use crate::error::Result;
use async_trait::async_trait;
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Calls of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerbCounts {
    /// Calls, failed ones included.
    pub requests: u64,
    /// Bytes of bodies, to or from the store; 0 for failed calls.
    pub bytes: u64,
    /// Calls that failed.
    pub errors: u64,
}

/// Calls of every kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Objects::put`].
    pub put: VerbCounts,
    /// [`Objects::create`].
    pub create: VerbCounts,
    /// [`Objects::get`].
    pub get: VerbCounts,
    /// [`Objects::get_ranges`], one a call.
    pub get_ranges: VerbCounts,
    /// Ranges asked for in all of them.
    pub ranges: u64,
    /// [`Objects::size`].
    pub size: VerbCounts,
    /// [`Objects::list`]; bytes count the entries.
    pub list: VerbCounts,
    /// [`Objects::delete`].
    pub delete: VerbCounts,
}

/// Objects that count their calls.
#[derive(Debug)]
pub struct Counting {
    inner: Arc<dyn Objects>,
    counts: Mutex<Counts>,
    ranges: AtomicU64,
}

impl Counting {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Objects>) -> Self {
        Counting { inner, counts: Mutex::default(), ranges: AtomicU64::new(0) }
    }

    /// Calls so far.
    pub fn counts(&self) -> Counts {
        let mut counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.ranges = self.ranges.load(Relaxed);
        counts
    }

    fn count<T>(&self, result: Result<T>, bytes: impl FnOnce(&T) -> usize, verb: fn(&mut Counts) -> &mut VerbCounts) -> Result<T> {
        let bytes = result.as_ref().map_or(0, bytes) as u64;
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let verb = verb(&mut counts);
        verb.requests += 1;
        verb.bytes += bytes;
        verb.errors += u64::from(result.is_err());
        drop(counts);
        result
    }
}

#[async_trait]
impl Objects for Counting {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let len = bytes.len();
        self.count(self.inner.put(key, bytes).await, |()| len, |c| &mut c.put)
    }
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        let len = bytes.len();
        self.count(self.inner.create(key, bytes).await, |_| len, |c| &mut c.create)
    }
    async fn get(&self, key: &str) -> Result<Bytes> {
        self.count(self.inner.get(key).await, Bytes::len, |c| &mut c.get)
    }
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.ranges.fetch_add(ranges.len() as u64, Relaxed);
        self.count(self.inner.get_ranges(key, ranges).await, |all| all.iter().map(Bytes::len).sum(), |c| &mut c.get_ranges)
    }
    async fn size(&self, key: &str) -> Result<u64> {
        self.count(self.inner.size(key).await, |_| 0, |c| &mut c.size)
    }
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.count(self.inner.list(prefix).await, Vec::len, |c| &mut c.list)
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.count(self.inner.delete(key).await, |()| 0, |c| &mut c.delete)
    }
    fn name(&self) -> String {
        self.inner.name()
    }
}
