//! Flush: sealed memtables become published segments.

use super::{Shared, publish};
use crate::error::{Error, Result};
use crate::manifest::{Delta, SegmentMeta, WriterChange};
use crate::record::{Batch, Tenant};
use crate::store::memtables::Sealed;
use crate::wal::Wal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Seals the active memtable and flushes all sealed ones, oldest first.
pub(crate) async fn all(shared: &Arc<Shared>) -> Result<()> {
    match shared.writer.get() {
        Some(writer) => sealed(shared, writer.id, writer.epoch, Some(&writer.wal)).await,
        None => Ok(()),
    }
}

/// As [`all`], for a writer that may still be recovering and so has no WAL to trim.
pub(crate) async fn sealed(shared: &Arc<Shared>, id: u128, epoch: u64, wal: Option<&Arc<Wal>>) -> Result<()> {
    let _one = shared.flushing.acquire().await.map_err(|_| Error::internal("the store is closed"))?;
    let mut next = shared.memtables.seal();
    while let Some(memtable) = next {
        let tenants = by_tenant(&memtable);
        let encoded = publish::encode_segment(&shared.pool, tenants, shared.options.group_bytes).await?;
        let mut added = Vec::new();
        let began_ns = shared.environment.now_ns();
        if let Some((bytes, footer)) = encoded {
            let segment_id = new_id(shared);
            let key = format!("segments/level0/{segment_id:032x}.haystore");
            let meta = publish::meta_of(segment_id, key, 0, bytes.len() as u64, &footer)?;
            shared.objects.put(&meta.key, bytes.into()).await?;
            added.push(meta);
        }
        commit(shared, id, epoch, memtable.end, added, began_ns).await?;
        if let Some(wal) = wal {
            let (wal, end) = (wal.clone(), memtable.end);
            let trimmed = tokio::task::spawn_blocking(move || wal.trim(end)).await;
            if let Ok(Err(error)) = trimmed {
                tracing::warn!(%error, "the WAL could not be trimmed; the next flush tries again");
            }
        }
        shared.memtables.drop_published(memtable.end);
        shared.room.notify_waiters();
        next = shared.memtables.oldest_sealed();
    }
    Ok(())
}

fn by_tenant(memtable: &Sealed) -> Vec<(Tenant, Vec<Arc<Batch>>)> {
    let mut tenants: BTreeMap<Tenant, Vec<Arc<Batch>>> = BTreeMap::new();
    for entry in memtable.entries.iter() {
        tenants.entry(entry.tenant.clone()).or_default().push(entry.batch.clone());
    }
    tenants.into_iter().collect()
}

async fn commit(shared: &Shared, id: u128, epoch: u64, end: u64, added: Vec<SegmentMeta>, began_ns: i64) -> Result<()> {
    shared
        .manifest
        .commit(|state| {
            // Published already, by a commit whose answer was lost.
            if state.writer(id).is_some_and(|w| w.epoch == epoch && w.wal_position >= end) {
                return Ok(Delta::default());
            }
            shared.check_upload(began_ns)?;
            let advance = WriterChange::Advance { id, epoch, wal_position: end };
            Ok(Delta { writers: vec![advance], added: added.clone(), ..Delta::default() })
        })
        .await
        .map(|_| ())
}

/// A new segment's id.
pub(crate) fn new_id(shared: &Shared) -> u128 {
    u128::from(shared.environment.random()) << 64 | u128::from(shared.environment.random())
}
