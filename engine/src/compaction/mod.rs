//! Compaction: many small segments of a tenant become fewer, one day each, whose row groups are disjoint and ascending in time.
//!
//! What holds: the inputs of one merge are neighbours in `order` among the tenant's segments that they could be mixed up with, so the order of
//! records with equal timestamp and stream never changes; large segments are not rewritten for small late ones; readers keep what they see,
//! for a replaced object is deleted only after the grace period. What was uploaded and never published goes too, see `orphans.rs`.

mod merge;
mod orphans;
mod plan;

use crate::error::{Error, Result};
use crate::manifest::Delta;
use crate::record::Tenant;
use crate::store::{Shared, is_passing};
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::Semaphore;

/// What compaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Segments replaced, a tenant's part of a shared one counted as one.
    pub replaced: u64,
    /// Segments written.
    pub written: u64,
    /// Bytes of lines that were rewritten.
    pub line_bytes: u64,
    /// Bytes of the segments written.
    pub stored_bytes: u64,
    /// Objects deleted that were replaced longer ago than the grace period.
    pub deleted: u64,
    /// Objects deleted that were uploaded, but never published.
    pub orphans: u64,
}

/// What is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What pays.
    Paying,
    /// All that are not as few as they can be.
    Everything,
    /// As before, and then each day once more.
    Again,
}

/// Compacts every tenant.
pub(crate) async fn all(shared: &Arc<Shared>, extent: Extent) -> Result<Compacted> {
    let _one = shared.compacting.acquire().await.map_err(|_| Error::internal("the store is closed"))?;
    let mut done = Compacted::default();
    let state = shared.manifest.refresh().await?;
    let tenants: Vec<Tenant> = state.tenants().cloned().collect();
    let room = Semaphore::new(units(shared.options.compacted_group_bytes) as usize);
    let each = tenants.into_iter().map(|tenant| of_tenant(shared, tenant, extent, &room));
    let mut running = futures_util::stream::iter(each).buffer_unordered(MERGES_MAX);
    while let Some(one) = running.next().await {
        done.add(&one?);
    }
    drop(running);
    collect_garbage(shared, &mut done).await?;
    orphans::sweep(shared, extent != Extent::Paying, &mut done).await?;
    Ok(done)
}

/// Merges that run at once, each of another tenant. Small ones mostly wait for the object store; together they hold no more than a large one.
const MERGES_MAX: usize = 8;

/// What a merge of `bytes` of lines takes of the room that all merges share.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX).max(1)
}

async fn of_tenant(shared: &Arc<Shared>, tenant: Tenant, extent: Extent, room: &Semaphore) -> Result<Compacted> {
    let mut done = Compacted::default();
    let everything = extent != Extent::Paying;
    while let Some(task) = plan::next(&shared.manifest.state(), &tenant, everything) {
        match run_task(shared, &tenant, task, room, &mut done).await {
            Ok(()) => {}
            Err(error) if is_passing(&error) && !everything => {
                tracing::warn!(%error, %tenant, "compaction was given up; it is tried again");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    if extent == Extent::Again {
        for task in plan::days(&shared.manifest.state(), &tenant) {
            run_task(shared, &tenant, task, room, &mut done).await?;
        }
    }
    Ok(done)
}

async fn run_task(shared: &Arc<Shared>, tenant: &Tenant, task: plan::Task, room: &Semaphore, done: &mut Compacted) -> Result<()> {
    let bytes: u64 = task.inputs.iter().map(|p| p.part.line_bytes).sum();
    let held = usize::try_from(bytes).unwrap_or(usize::MAX).min(shared.options.compacted_group_bytes);
    let _room = room.acquire_many(units(held)).await.map_err(|_| Error::internal("compaction is closed"))?;
    merge::run(shared, tenant, task, done).await
}

impl Compacted {
    fn add(&mut self, other: &Compacted) {
        self.replaced += other.replaced;
        self.written += other.written;
        self.line_bytes += other.line_bytes;
        self.stored_bytes += other.stored_bytes;
        self.deleted += other.deleted;
        self.orphans += other.orphans;
    }
}

/// Deletes objects that no state has named for longer than the grace period.
async fn collect_garbage(shared: &Shared, done: &mut Compacted) -> Result<()> {
    let now = shared.environment.now_ns();
    let grace = i64::try_from(shared.options.grace.as_nanos()).unwrap_or(i64::MAX);
    let state = shared.manifest.state();
    let due = |since: i64| now.saturating_sub(since) >= grace;
    let keys: Vec<String> = state.garbage().filter(|(_, since)| due(*since)).map(|(key, _)| key.to_string()).collect();
    for chunk in keys.chunks(256) {
        for key in chunk {
            shared.objects.delete(key).await?;
        }
        let dropped = |state: &crate::manifest::State| {
            let left: Vec<String> = chunk.iter().filter(|k| state.garbage_since_ns(k).is_some()).cloned().collect();
            Ok(Delta { garbage_dropped: left, ..Delta::default() })
        };
        shared.manifest.commit(dropped).await?;
        shared.deleted_replaced.fetch_add(chunk.len() as u64, Relaxed);
        done.deleted += chunk.len() as u64;
    }
    Ok(())
}
