//! Memtables: durable records that no segment holds yet. What is visible follows from WAL positions alone.
//!
//! Batches come in the order of their sequence numbers. A sealed memtable is about to be flushed; it is dropped after the manifest says
//! that its positions are published. A reader that meets both sees each record once: it leaves out what the manifest's state says is published.

use crate::record::{Batch, Tenant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A durable batch.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub sequence: u64,
    pub tenant: Tenant,
    pub batch: Arc<Batch>,
}

/// A memtable that takes no more batches.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub entries: Arc<Vec<Entry>>,
    /// The sequence number behind its last batch.
    pub end: u64,
    pub bytes: usize,
}

#[derive(Debug, Default)]
struct Inner {
    active: Vec<Entry>,
    active_bytes: usize,
    since: Option<Instant>,
    sealed: Vec<Sealed>,
}

/// All memtables of a store.
#[derive(Debug, Default)]
pub(crate) struct Memtables {
    inner: Mutex<Inner>,
}

impl Memtables {
    fn hold(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a durable batch; returns the bytes that the active memtable now holds.
    pub fn insert(&self, sequence: u64, tenant: &Tenant, batch: &Arc<Batch>) -> usize {
        let mut inner = self.hold();
        inner.active_bytes += batch.memory_bytes();
        inner.since.get_or_insert_with(Instant::now);
        inner.active.push(Entry { sequence, tenant: tenant.clone(), batch: batch.clone() });
        inner.active_bytes
    }

    /// Bytes of all memtables.
    pub fn bytes(&self) -> usize {
        let inner = self.hold();
        inner.active_bytes + inner.sealed.iter().map(|s| s.bytes).sum::<usize>()
    }

    /// Bytes of the active memtable, and when its first batch came.
    pub fn active(&self) -> (usize, Option<Instant>) {
        let inner = self.hold();
        (inner.active_bytes, inner.since)
    }

    /// Seals the active memtable, if it holds anything; returns the oldest sealed one.
    pub fn seal(&self) -> Option<Sealed> {
        let mut inner = self.hold();
        if let Some(last) = inner.active.last() {
            let end = last.sequence + 1;
            let (entries, bytes) = (std::mem::take(&mut inner.active), std::mem::take(&mut inner.active_bytes));
            inner.since = None;
            inner.sealed.push(Sealed { entries: Arc::new(entries), end, bytes });
        }
        inner.sealed.first().cloned()
    }

    /// The oldest sealed memtable.
    pub fn oldest_sealed(&self) -> Option<Sealed> {
        self.hold().sealed.first().cloned()
    }

    /// Drops memtables that end at or before `position`: they are published.
    pub fn drop_published(&self, position: u64) {
        self.hold().sealed.retain(|s| s.end > position);
    }

    /// A tenant's batches with their sequence numbers, in arrival order.
    pub fn of(&self, tenant: &Tenant) -> Vec<(u64, Arc<Batch>)> {
        let inner = self.hold();
        let sealed = inner.sealed.iter().flat_map(|s| s.entries.iter());
        sealed.chain(&inner.active).filter(|e| e.tenant == *tenant).map(|e| (e.sequence, e.batch.clone())).collect()
    }
}
