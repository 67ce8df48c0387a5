//! Opening a store: objects, manifest, then the WAL's recovery.

use super::flush;
use super::memtables::Memtables;
use super::pool::Pool;
use super::view::Footers;
use super::{Options, QUERIES_MAX, Shared, Store, WriterState, background};
use crate::disk::{Disk, RealDisk, SimDisk};
use crate::error::{Error, Result};
use crate::manifest::{Environment, Manifest, SystemEnvironment};
use crate::objects::{Objects, open_objects};
use crate::wal::{OnDurable, Recovery, WalFolder, WalOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore};

/// Bytes of a WAL file: the newest stays when all is flushed, and recovery reads a file at a time.
const WAL_FILE_BYTES: u64 = 16 << 20;
/// Batches that recovery hands over at once.
const RECOVERY_QUEUE: usize = 4;

/// What a store stands on. [`Store::open`] makes it of a URL; tests and simulations make their own.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Where segments and manifest lie.
    pub objects: Arc<dyn Objects>,
    /// Where the WAL lies.
    pub disk: Arc<dyn Disk>,
    /// Clock and randomness.
    pub environment: Arc<dyn Environment>,
}

impl Store {
    /// Opens the store at `url` (a folder, `file://`, `memory://`, `s3://bucket/prefix`), recovers the WAL, starts background work.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Fenced`] when another process owns the WAL; io errors.
    pub async fn open(url: &str, mut options: Options) -> Result<Store> {
        let memory = url.starts_with("memory:");
        let disk: Arc<dyn Disk> = if memory { Arc::new(SimDisk::new()) } else { Arc::new(RealDisk) };
        if memory && options.wal.is_none() {
            options.wal = Some(PathBuf::from("/wal"));
        }
        let (address, on_disk) = (url.to_string(), disk.clone());
        let objects = tokio::task::spawn_blocking(move || open_objects(&address, on_disk)).await;
        let objects = objects.map_err(|e| Error::internal(format!("opening ended early: {e}")))??;
        Store::open_on(Ground { objects, disk, environment: Arc::new(SystemEnvironment) }, options).await
    }

    /// Opens a store on given ground.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_on(ground: Ground, options: Options) -> Result<Store> {
        let manifest_options =
            crate::manifest::Options { grace: options.grace.max(std::time::Duration::from_secs(60)), ..Default::default() };
        let manifest = Arc::new(Manifest::open_with(ground.objects.clone(), ground.environment.clone(), manifest_options).await?);
        let shared = Arc::new(Shared {
            footers: Arc::new(Footers::new(ground.objects.clone())),
            objects: ground.objects,
            manifest,
            environment: ground.environment,
            pool: Pool::new(options.encoders),
            memtables: Arc::new(Memtables::default()),
            writer: OnceLock::new(),
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            flushing: Semaphore::new(1),
            compacting: Semaphore::new(1),
            wake: Arc::new(Notify::new()),
            pressed: AtomicBool::new(false),
            room: Notify::new(),
            swept_ns: AtomicI64::new(i64::MIN),
            deleted_replaced: AtomicU64::new(0),
            deleted_orphans: AtomicU64::new(0),
            stop: tokio::sync::watch::channel(false).0,
            options,
        });
        if let Some(dir) = shared.options.wal.clone() {
            start_writer(&shared, ground.disk, &dir).await?;
            background::start(&shared);
        }
        Ok(Store { shared })
    }
}

/// Locks the WAL, fences whoever wrote under its name before, replays what is not published, and opens it for appending.
async fn start_writer(shared: &Arc<Shared>, disk: Arc<dyn Disk>, dir: &Path) -> Result<()> {
    let path = dir.to_path_buf();
    let folder =
        blocking(move || WalFolder::open(disk, &path, WalOptions { file_bytes_max: WAL_FILE_BYTES, ..WalOptions::default() })).await?;
    let id = folder.identity();
    let writer = shared.manifest.register_writer(id).await?;
    let (memtables, wake, flush_bytes) = (shared.memtables.clone(), shared.wake.clone(), shared.options.flush_bytes);
    let on_durable: OnDurable = {
        let memtables = memtables.clone();
        Arc::new(move |sequence, tenant, batch| {
            if memtables.insert(sequence, tenant, batch) >= flush_bytes {
                wake.notify_one();
            }
        })
    };
    let (sender, mut receiver) = tokio::sync::mpsc::channel(RECOVERY_QUEUE);
    let recovery = tokio::task::spawn_blocking(move || {
        let mut deliver = |sequence, tenant, batch| {
            sender.blocking_send((sequence, tenant, Arc::new(batch))).map_err(|_| Error::internal("recovery was given up"))
        };
        folder.recover(writer.wal_position, &mut deliver, Some(on_durable))
    });
    while let Some((sequence, tenant, batch)) = receiver.recv().await {
        if memtables.insert(sequence, &tenant, &batch) >= flush_bytes
            && let Err(error) = flush::sealed(shared, id, writer.epoch, None).await
        {
            // The WAL is locked until recovery has ended; the next opening may come at once.
            drop(receiver);
            let _ = recovery.await;
            return Err(error);
        }
    }
    let (wal, report) = recovery.await.map_err(|e| Error::internal(format!("recovery ended early: {e}")))??;
    tell(&report, dir);
    let state = WriterState { wal: Arc::new(wal), id, epoch: writer.epoch, recovery: report };
    shared.writer.set(state).map_err(|_| Error::internal("a store has one writer"))
}

fn tell(report: &Recovery, dir: &Path) {
    if report.batches > 0 {
        tracing::info!(records = report.records, batches = report.batches, "WAL {}: recovered", dir.display());
    }
    for damage in &report.torn {
        tracing::warn!("{}: cut at byte {}, {} bytes that were never acknowledged", damage.file.display(), damage.offset, damage.bytes);
    }
    for damage in &report.damaged {
        tracing::error!("{}: damaged at byte {}, {} bytes skipped: {}", damage.file.display(), damage.offset, damage.bytes, damage.what);
    }
    for aside in &report.set_aside {
        let help = "open the folder as a WAL, with a program that reads it, to get them back; then remove it";
        tracing::error!(
            "{}: {} files, {} bytes of records that are not in this store: {help}",
            aside.folder.display(),
            aside.files,
            aside.bytes
        );
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Error::internal(format!("work ended early: {e}")))?
}
