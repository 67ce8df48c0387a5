//! The store: append, search, scan, over one object store and one WAL.
//!
//! Order, always: segment durable, manifest published, WAL trimmed, memtable dropped. A query holds one read view until it ends.

mod api;
mod background;
pub(crate) mod flush;
mod inspect;
mod job;
mod memtables;
mod open;
mod pool;
pub(crate) mod publish;
mod read;
mod view;

#[cfg(test)]
mod cost_tests;

pub use api::*;
pub use inspect::{ColumnUsage, Purpose, SegmentUsage, Usage, Verified};
pub use job::Job;
pub use open::Ground;
pub use read::Scan;

pub use crate::compaction::Compacted;
use crate::compaction::Extent;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Environment, Manifest};
use crate::objects::Objects;
use crate::record::{Batch, Tenant};
use crate::wal::{Recovery, Wal};
use memtables::Memtables;
use pool::Pool;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use view::Footers;

/// Queries that run at once. Each holds a thread, a scan for as long as its client reads; the runtime has only so many.
pub const QUERIES_MAX: usize = 100;
/// The least that [`Options::orphan_age`] counts for.
pub const ORPHAN_AGE_MIN: Duration = Duration::from_secs(12 * 60 * 60);
/// What was uploaded longer ago is not published any more. Less than [`ORPHAN_AGE_MIN`] by more than a commit can take.
pub(crate) const UPLOAD_AGE_MAX: Duration = Duration::from_secs(6 * 60 * 60);

/// A log store. Cloning is cheap; clones are one store.
///
/// Needs a tokio runtime. Dropping the last clone without [`Store::close`] leaves unflushed records to the WAL.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

/// What all clones share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) options: Options,
    pub(crate) pool: Pool,
    memtables: Arc<Memtables>,
    writer: OnceLock<WriterState>,
    footers: Arc<Footers>,
    /// Places for running queries.
    queries: Arc<Semaphore>,
    /// One flush at a time.
    flushing: Semaphore,
    /// One compaction at a time.
    pub(crate) compacting: Semaphore,
    wake: Arc<Notify>,
    /// An append was refused for want of room: flush, however little there is.
    pressed: AtomicBool,
    /// Told when memtables were dropped.
    room: Notify,
    /// When orphans were looked for last, ns.
    pub(crate) swept_ns: AtomicI64,
    pub(crate) deleted_replaced: AtomicU64,
    pub(crate) deleted_orphans: AtomicU64,
    stop: tokio::sync::watch::Sender<bool>,
}

#[derive(Debug)]
struct WriterState {
    wal: Arc<Wal>,
    id: u128,
    epoch: u64,
    /// What was found when the WAL was opened.
    recovery: Recovery,
}

impl Store {
    /// Appends records; returns when they are durable and searchable.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] when the memtables or the WAL's queue are full, [`ErrorKind::Limit`] for a line longer than
    /// [`Options::line_bytes_max`], [`ErrorKind::Fenced`] when a newer process took over this WAL's writer: nothing was kept. Io errors: the records may or may not be found after a restart, all or none.
    pub async fn append(&self, tenant: &Tenant, batch: Batch) -> Result<()> {
        let shared = &self.shared;
        let writer = shared.writer.get().ok_or_else(|| Error::invalid("the store was opened without a WAL: it takes no appends"))?;
        shared.check_fence(writer)?;
        if batch.is_empty() {
            return Ok(());
        }
        let longest = (0..batch.len()).map(|row| batch.line(row).len()).max().unwrap_or(0);
        if longest > shared.options.line_bytes_max {
            return Err(Error::limit(format!("a line of {longest} bytes is longer than the limit of {}", shared.options.line_bytes_max)));
        }
        let held = shared.memtables.bytes() + writer.wal.queued_bytes();
        if held + batch.memory_bytes() > shared.options.memtable_bytes_max && held > 0 {
            shared.pressed.store(true, Ordering::Relaxed);
            shared.wake.notify_one();
            return Err(Error::busy(format!(
                "{held} bytes wait to be flushed, the limit is {}: try again soon",
                shared.options.memtable_bytes_max
            )));
        }
        let (wal, tenant) = (writer.wal.clone(), tenant.clone());
        // Encoding and compressing a batch is CPU work.
        let append = tokio::task::spawn_blocking(move || {
            let mut batch = batch;
            // It stays in memory until it is flushed, and counts by what it takes.
            batch.shrink();
            wal.append(&tenant, batch)
        });
        let append = append.await;
        append.map_err(|e| Error::internal(format!("an append ended early: {e}")))?.await?;
        Ok(())
    }

    /// Waits, at most `wait_max`, until the memtables have room for an append of `bytes`; whether they have. An append may still find that
    /// others were first.
    pub async fn wait_for_room(&self, bytes: usize, wait_max: Duration) -> bool {
        let shared = &self.shared;
        let has_room = || {
            let held = shared.memtables.bytes();
            held == 0 || held + bytes <= shared.options.memtable_bytes_max
        };
        let wait = async {
            loop {
                let room = shared.room.notified();
                if has_room() {
                    return;
                }
                shared.pressed.store(true, Ordering::Relaxed);
                shared.wake.notify_one();
                room.await;
            }
        };
        tokio::time::timeout(wait_max, wait).await.is_ok()
    }

    /// Writes the memtables out as segments and publishes them.
    ///
    /// # Errors
    /// Io errors; what could not be written stays in the WAL. [`ErrorKind::Fenced`] when a newer process took over this WAL's writer.
    pub async fn flush(&self) -> Result<()> {
        flush::all(&self.shared).await
    }

    /// Begins, or resumes, the batch job `key` of `tenant`.
    ///
    /// # Errors
    /// Io errors.
    pub async fn job(&self, tenant: &Tenant, key: &str) -> Result<Job> {
        Job::begin(&self.shared, tenant, key).await
    }

    /// Merges small segments into fewer, time-disjoint ones, and deletes objects that were replaced longer ago than the grace period, or
    /// uploaded longer ago than [`Options::orphan_age`] and never published.
    ///
    /// # Errors
    /// Io errors; what is published stays whole whenever it ends.
    pub async fn compact(&self) -> Result<Compacted> {
        crate::compaction::all(&self.shared, Extent::Everything).await
    }

    /// As [`Store::compact`], and then writes each day's segments once more, with the store's [`Options::gear`].
    ///
    /// # Errors
    /// Io errors; what is published stays whole whenever it ends.
    pub async fn compact_again(&self) -> Result<Compacted> {
        crate::compaction::all(&self.shared, Extent::Again).await
    }

    /// Reads what other processes have published.
    ///
    /// # Errors
    /// Io errors.
    pub async fn refresh(&self) -> Result<()> {
        self.shared.manifest.refresh().await.map(|_| ())
    }

    /// Flushes, stops background work, gives the WAL free once all clones are gone.
    ///
    /// # Errors
    /// Io errors; what could not be flushed stays in the WAL.
    pub async fn close(&self) -> Result<()> {
        let flushed = self.flush().await;
        self.shared.stop.send_replace(true);
        flushed
    }

    /// Objects that this process has deleted.
    pub fn deleted(&self) -> Deleted {
        let shared = &self.shared;
        Deleted { replaced: shared.deleted_replaced.load(Ordering::Relaxed), orphans: shared.deleted_orphans.load(Ordering::Relaxed) }
    }

    /// What was found in the WAL when the store was opened; `None` for a store without one.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.shared.writer.get().map(|writer| &writer.recovery)
    }

    /// Bytes that records in memory take, and bytes of the WAL's files.
    pub fn unflushed_bytes(&self) -> (usize, u64) {
        (self.shared.memtables.bytes(), self.shared.writer.get().map_or(0, |w| w.wal.stored_bytes()))
    }
}

impl Shared {
    /// How long ago an upload began that began at `began_ns`.
    pub(crate) fn upload_age(&self, began_ns: i64) -> Duration {
        Duration::from_nanos(self.environment.now_ns().saturating_sub(began_ns).max(0).unsigned_abs())
    }

    /// Fails when an upload began, at `began_ns`, so long ago that it may soon be taken for one that is never published.
    pub(crate) fn check_upload(&self, began_ns: i64) -> Result<()> {
        let age = self.upload_age(began_ns);
        if age < UPLOAD_AGE_MAX {
            return Ok(());
        }
        Err(Error::busy(format!("an upload is {age:?} old, too old to be published; it is written anew")))
    }

    /// Fails when the newest known state says that another process writes under this WAL's name.
    fn check_fence(&self, writer: &WriterState) -> Result<()> {
        let now = self.manifest.state().writer(writer.id).map_or(0, |w| w.epoch);
        if now == writer.epoch {
            return Ok(());
        }
        let (dir, ours) = (writer.wal.dir().display(), writer.epoch);
        Err(Error::new(ErrorKind::Fenced, format!("WAL {dir}: a newer process writes under its name (epoch {now}, here {ours})")))
    }
}

/// Whether the same call may succeed later.
pub(crate) fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Busy | ErrorKind::Io)
}
