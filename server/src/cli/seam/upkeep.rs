//! The store's upkeep, as the reports want it.

use crate::cli::report::{ColumnUsage, Compacted, Purpose, SegmentUsage, Usage, Verified};
use anyhow::Result;
use haystore::Store;
use indicatif::ProgressBar;

/// Where the store's bytes are.
///
/// # Errors
/// Those of the store.
pub async fn usage(store: &Store) -> Result<Usage> {
    let usage = store.usage().await?;
    let column = |c: haystore::ColumnUsage| ColumnUsage { name: c.name, purpose: purpose(c.purpose), stored_bytes: c.stored_bytes };
    let segment = |s: haystore::SegmentUsage| SegmentUsage {
        key: s.key,
        tenant: s.tenant,
        level: u32::from(s.level),
        records: s.records,
        raw_bytes: s.line_bytes + s.records,
        stored_bytes: s.stored_bytes,
        columns: s.columns.into_iter().map(column).collect(),
    };
    Ok(Usage {
        segments: usage.segments.into_iter().map(segment).collect(),
        manifest_bytes: usage.manifest_bytes,
        replaced_bytes: usage.replaced_bytes,
        wal_bytes: usage.wal_bytes,
    })
}

fn purpose(purpose: haystore::Purpose) -> Purpose {
    match purpose {
        haystore::Purpose::Data => Purpose::Data,
        haystore::Purpose::SearchAids => Purpose::SearchAids,
        haystore::Purpose::Metadata => Purpose::Metadata,
    }
}

/// Reads everything again.
///
/// # Errors
/// Those of the store; damage is no error but a part of the result.
pub async fn verify(store: &Store, bar: &ProgressBar) -> Result<Verified> {
    let verified = store
        .verify(|done, all| {
            bar.set_length(all);
            bar.set_position(done);
        })
        .await?;
    Ok(Verified { objects: verified.objects, bytes: verified.bytes, records: verified.records, damage: verified.damage })
}

/// Merges small segments.
///
/// # Errors
/// Those of the store.
pub async fn compact(store: &Store) -> Result<Compacted> {
    let before = store.usage_totals();
    let done = store.compact().await?;
    let after = store.usage_totals();
    Ok(Compacted {
        segments_before: before.0,
        segments_after: after.0,
        bytes_before: before.1,
        bytes_after: after.1,
        deleted: done.deleted,
    })
}
