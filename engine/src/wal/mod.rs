//! The write-ahead log: batches made durable on a local disk before anybody is told that they were taken.
//!
//! What holds:
//! - an append is acknowledged after its frames, its file's header and the file's name are synced;
//! - sequence numbers rise with every batch over the WAL's whole life; a failed append leaves a gap;
//! - after a failed write or sync nothing more is acknowledged in that file: it is cut back, the next file's header says
//!   how much of it counts, and what failed is not read once anything later was acknowledged;
//! - recovery gives every acknowledged batch once, in order; damage costs the frames it hits, and is reported;
//! - files of another version or writer are set aside, with all that it takes to read them elsewhere, and reported;
//! - one process writes to a folder.
//!
//! This module must not know about memtables, segments or the manifest. Bytes: `format-spec/chapters/wal.md`.

mod aside;
mod codec;
mod folder;
mod frames;
mod layout;
mod recover;
mod writer;

pub use aside::SetAside;
pub use folder::WalFolder;
pub use recover::{Damage, Recovery};

use crate::disk::{Disk, disk_error};
use crate::error::{Error, Result};
use crate::record::{Batch, Tenant};
use frames::Prepared;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use writer::Request;

/// Bounds of a WAL.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// Bytes at which a file is followed by a new one.
    pub file_bytes_max: u64,
    /// Bytes of frames that one sync gathers; a single larger batch still goes.
    pub commit_bytes_max: usize,
    /// Bytes of frames that wait; past it appends are refused as busy.
    pub queue_bytes_max: usize,
    /// Decoded bytes of a frame; a larger batch takes several. At most 16 MiB.
    pub frame_bytes_max: usize,
}

impl Default for WalOptions {
    fn default() -> Self {
        WalOptions { file_bytes_max: 64 << 20, commit_bytes_max: 8 << 20, queue_bytes_max: 64 << 20, frame_bytes_max: 1 << 20 }
    }
}

/// Called on the WAL's thread for each batch that became durable, in the order of sequence numbers, before its append
/// is answered. It must be quick, and must not wait for the WAL.
pub type OnDurable = Arc<dyn Fn(u64, &Tenant, &Arc<Batch>) + Send + Sync>;

/// What a WAL has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WalCounts {
    /// Batches acknowledged.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Frames in which they lie.
    pub frames: u64,
    /// Bytes of those frames.
    pub stored_bytes: u64,
    /// Syncs that acknowledged something.
    pub commits: u64,
    /// Appends that failed.
    pub failures: u64,
    /// Files begun.
    pub files: u64,
}

/// A file that is no longer written to.
#[derive(Debug, Clone)]
struct ClosedFile {
    number: u64,
    last_sequence: Option<u64>,
    bytes: u64,
    damaged: bool,
}

/// What the WAL's thread and its callers share.
#[derive(Debug, Default)]
struct Shared {
    closed: Mutex<Vec<ClosedFile>>,
    /// The newest file; it is never trimmed, since its header keeps the sequence.
    newest_number: AtomicU64,
    newest_bytes: AtomicU64,
    next_sequence: AtomicU64,
    queued_bytes: AtomicUsize,
    counts: Mutex<WalCounts>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A WAL, open for appending. Dropping it waits for what is queued.
#[derive(Debug)]
pub struct Wal {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    identity: u128,
    options: WalOptions,
    shared: Arc<Shared>,
    trimming: Mutex<()>,
    queue: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Wal {
    /// Queues `batch`; the answer resolves once it is durable, to its sequence number and the batch. Encodes and
    /// compresses on the caller's thread. The batch is written even when nobody waits for the answer.
    ///
    /// The answer is [`crate::ErrorKind::Busy`] when the queue or the disk is full, else what the disk said. A failed
    /// batch may come back at recovery if nothing was acknowledged after it.
    pub fn append(&self, tenant: &Tenant, batch: impl Into<Arc<Batch>>) -> Append {
        let batch = batch.into();
        match self.queue(tenant, batch) {
            Ok(answer) => Append(Ok(answer)),
            Err(e) => Append(Err(Some(e))),
        }
    }

    fn queue(&self, tenant: &Tenant, batch: Arc<Batch>) -> Result<oneshot::Receiver<Answer>> {
        let full = || Error::busy(format!("WAL {}: more than {} bytes wait", self.dir.display(), self.options.queue_bytes_max));
        if self.shared.queued_bytes.load(SeqCst) >= self.options.queue_bytes_max {
            return Err(full());
        }
        let prepared = Prepared::new(tenant, &batch, self.options.frame_bytes_max)?;
        let bytes = prepared.bytes.len();
        let before = self.shared.queued_bytes.fetch_add(bytes, SeqCst);
        if before > 0 && before.saturating_add(bytes) > self.options.queue_bytes_max {
            self.shared.queued_bytes.fetch_sub(bytes, SeqCst);
            return Err(full());
        }
        let (answer, receiver) = oneshot::channel();
        let request = Request { tenant: tenant.clone(), batch, prepared, answer };
        let sent = self.queue.as_ref().is_some_and(|queue| queue.send(request).is_ok());
        if sent { Ok(receiver) } else { Err(ended(&self.dir)) }
    }

    /// Removes files all of whose batches have sequence numbers below `sequence`, that is, are stored elsewhere. Files
    /// with damage are renamed to `*.damaged` instead. Blocks.
    ///
    /// # Errors
    /// When the disk fails; what was not removed is tried again next time.
    pub fn trim(&self, sequence: u64) -> Result<()> {
        let _one = hold(&self.trimming);
        let newest = self.shared.newest_number.load(SeqCst);
        let done = |file: &ClosedFile| file.number < newest && file.last_sequence.is_none_or(|last| last < sequence);
        let files: Vec<ClosedFile> = hold(&self.shared.closed).iter().filter(|file| done(file)).cloned().collect();
        if files.is_empty() {
            return Ok(());
        }
        for file in &files {
            folder::retire(&*self.disk, &folder::file_path(&self.dir, file.number), file.damaged)?;
        }
        self.disk.sync_dir(&self.dir).map_err(|e| disk_error("sync folder", &self.dir, &e))?;
        hold(&self.shared.closed).retain(|file| !files.iter().any(|gone| gone.number == file.number));
        Ok(())
    }

    /// The writer's number: drawn once for this folder, the same at each opening.
    pub fn identity(&self) -> u128 {
        self.identity
    }

    /// The sequence number of the next batch to be written.
    pub fn next_sequence(&self) -> u64 {
        self.shared.next_sequence.load(SeqCst)
    }

    /// Bytes of all files.
    pub fn stored_bytes(&self) -> u64 {
        let closed: u64 = hold(&self.shared.closed).iter().map(|file| file.bytes).sum();
        closed + self.shared.newest_bytes.load(SeqCst)
    }

    /// Bytes of frames that wait to be written.
    pub fn queued_bytes(&self) -> usize {
        self.shared.queued_bytes.load(SeqCst)
    }

    /// What was done since the WAL was opened.
    pub fn counts(&self) -> WalCounts {
        *hold(&self.shared.counts)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("WAL {}: its thread panicked", self.dir.display());
        }
    }
}

fn ended(dir: &Path) -> Error {
    Error::internal(format!("WAL {}: its thread has ended", dir.display()))
}

/// What an append resolves to: the batch's sequence number and the batch.
pub type Answer = Result<(u64, Arc<Batch>)>;

/// A queued append, to be awaited.
#[derive(Debug)]
#[must_use = "the batch is durable only once this has resolved"]
pub struct Append(Result<oneshot::Receiver<Answer>, Option<Error>>);

impl Append {
    /// Waits on this thread, which must not run async tasks.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn wait(self) -> Answer {
        match self.0 {
            Ok(answer) => answer.blocking_recv().unwrap_or_else(|_| Err(Error::internal("the WAL's thread has ended"))),
            Err(error) => Err(error.unwrap_or_else(|| Error::internal("append awaited twice"))),
        }
    }
}

impl Future for Append {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        match &mut self.0 {
            Ok(answer) => {
                let ended = |_| Err(Error::internal("the WAL's thread has ended"));
                Pin::new(answer).poll(context).map(|result| result.unwrap_or_else(ended))
            }
            Err(error) => Poll::Ready(Err(error.take().unwrap_or_else(|| Error::internal("append awaited twice")))),
        }
    }
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;
