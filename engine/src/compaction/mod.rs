//! Compaction: many small segments of a tenant become fewer, one day each, whose row groups are disjoint and ascending in time.
//!
//! What holds: the inputs of one merge are neighbours in `order` among the tenant's segments that they could be mixed up with, so the order of
//! records with equal timestamp and stream never changes; large segments are not rewritten for small late ones; readers keep what they see,
//! for a replaced object is deleted only after the grace period.

mod merge;
mod plan;

use crate::error::{Error, Result};
use crate::manifest::Delta;
use crate::record::Tenant;
use crate::store::{Shared, is_passing};
use std::sync::Arc;

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
}

/// Compacts every tenant. `everything`: also where it would not pay yet.
pub(crate) async fn all(shared: &Arc<Shared>, everything: bool) -> Result<Compacted> {
    let _one = shared.compacting.acquire().await.map_err(|_| Error::internal("the store is closed"))?;
    let mut done = Compacted::default();
    let state = shared.manifest.refresh().await?;
    let tenants: Vec<Tenant> = state.tenants().cloned().collect();
    for tenant in tenants {
        while let Some(task) = plan::next(&shared.manifest.state(), &tenant, everything) {
            match merge::run(shared, &tenant, task, &mut done).await {
                Ok(()) => {}
                Err(error) if is_passing(&error) && !everything => {
                    tracing::warn!(%error, %tenant, "compaction was given up; it is tried again");
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    collect_garbage(shared, &mut done).await?;
    Ok(done)
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
        done.deleted += chunk.len() as u64;
    }
    Ok(())
}
