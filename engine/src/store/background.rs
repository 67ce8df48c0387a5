//! Background work of a writing store: flush by size and age, compaction, deletion of what was replaced, a look at what others published.

use super::{Shared, flush};
use crate::compaction::Extent;
use crate::error::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often ages are looked at.
const TICK: Duration = Duration::from_millis(500);
/// The longest wait after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Starts the loops; they end with the store.
pub(crate) fn start(shared: &Arc<Shared>) {
    tokio::spawn(flush_loop(Arc::downgrade(shared)));
    tokio::spawn(compact_loop(Arc::downgrade(shared)));
    tokio::spawn(refresh_loop(Arc::downgrade(shared)));
}

async fn refresh_loop(weak: Weak<Shared>) {
    loop {
        let Some(shared) = weak.upgrade() else { return };
        let (pause, mut stop) = (shared.options.refresh_every, shared.stop.subscribe());
        drop(shared);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => return,
        }
        let Some(shared) = weak.upgrade() else { return };
        if let Err(error) = shared.manifest.refresh().await {
            tracing::warn!(%error, "what other processes published could not be read; it is tried again");
        }
    }
}

async fn flush_loop(weak: Weak<Shared>) {
    let mut backoff = TICK;
    loop {
        let Some(shared) = weak.upgrade() else { return };
        let (wake, mut stop) = (shared.wake.clone(), shared.stop.subscribe());
        drop(shared);
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(TICK) => {}
            _ = stop.changed() => return,
        }
        let Some(shared) = weak.upgrade() else { return };
        let (bytes, since) = shared.memtables.active();
        let old = since.is_some_and(|s| s.elapsed() >= shared.options.flush_age);
        let pressed = shared.pressed.swap(false, Ordering::Relaxed);
        if bytes < shared.options.flush_bytes && !old && !pressed && shared.memtables.oldest_sealed().is_none() {
            continue;
        }
        match flush::all(&shared).await {
            Ok(()) => backoff = TICK,
            Err(error) if error.kind() == ErrorKind::Fenced => {
                tracing::error!(%error, "this process no longer writes; the newer one has its records from the WAL");
                return;
            }
            Err(error) => {
                tracing::error!(%error, "flush failed; records stay in the WAL, trying again in {backoff:?}");
                drop(shared);
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF_MAX);
            }
        }
    }
}

async fn compact_loop(weak: Weak<Shared>) {
    loop {
        let Some(shared) = weak.upgrade() else { return };
        let (pause, mut stop) = (shared.options.compact_every, shared.stop.subscribe());
        drop(shared);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => return,
        }
        let Some(shared) = weak.upgrade() else { return };
        if let Err(error) = crate::compaction::all(&shared, Extent::Paying).await {
            tracing::error!(%error, "compaction failed; it is tried again");
        }
        if let Err(error) = shared.manifest.prune().await {
            tracing::warn!(%error, "old manifest versions could not be removed; it is tried again");
        }
    }
}
