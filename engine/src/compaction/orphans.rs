//! Orphans: segments that were uploaded but never published, because their process died in between.
//!
//! What holds: nothing is deleted that the newest manifest names, live or replaced, and nothing younger than [`ORPHAN_AGE_MIN`]. Nobody
//! publishes what he uploaded longer than half of that ago ([`Shared::check_upload`]), so what is old and unnamed stays unnamed.

use super::Compacted;
use crate::error::Result;
use crate::manifest::{State, unix_ns};
use crate::objects::ObjectMeta;
use crate::store::{ORPHAN_AGE_MIN, Shared};
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often background work looks for orphans: a listing of all segments is not free.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);
/// Objects deleted between two looks at the manifest.
const DELETES_MAX: usize = 64;
const PREFIX: &str = "segments/";
const SUFFIX: &str = ".haystore";

/// Deletes orphans, unless it was done within [`SWEEP_EVERY`]. `now`: in any case.
pub(super) async fn sweep(shared: &Shared, now: bool, done: &mut Compacted) -> Result<()> {
    let now_ns = shared.environment.now_ns();
    let swept_ns = shared.swept_ns.load(Relaxed);
    if !now && now_ns.saturating_sub(swept_ns) < ns(SWEEP_EVERY) {
        return Ok(());
    }
    let age_ns = ns(shared.options.orphan_age.max(ORPHAN_AGE_MIN));
    let is_old = |object: &ObjectMeta| now_ns.saturating_sub(unix_ns(object.modified)) >= age_ns;
    let mut found = shared.objects.list(PREFIX).await?;
    found.retain(|object| object.key.ends_with(SUFFIX) && is_old(object));
    keep_unnamed(&shared.manifest.state(), &mut found);
    for chunk in found.chunks(DELETES_MAX) {
        let mut chunk = chunk.to_vec();
        // Not even a state that is a moment old is believed.
        keep_unnamed(&*shared.manifest.refresh().await?, &mut chunk);
        for object in chunk {
            shared.objects.delete(&object.key).await?;
            tracing::info!("{}: {} bytes that were never published, deleted", object.key, object.size);
            shared.deleted_orphans.fetch_add(1, Relaxed);
            done.orphans += 1;
        }
    }
    shared.swept_ns.store(now_ns, Relaxed);
    Ok(())
}

/// Takes out of `objects` what `state` names.
fn keep_unnamed(state: &State, objects: &mut Vec<ObjectMeta>) {
    if objects.is_empty() {
        return;
    }
    let live: HashSet<&str> = state.segments().map(|segment| segment.key.as_str()).collect();
    objects.retain(|object| !live.contains(object.key.as_str()) && state.garbage_since_ns(&object.key).is_none());
}

fn ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
