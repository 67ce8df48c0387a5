//! From records to a published segment: encode in parallel, upload, say so in the manifest.

use super::pool::Pool;
use crate::column::encode::Effort;
use crate::error::{Error, Result};
use crate::manifest::{SegmentMeta, TenantPart};
use crate::record::{Batch, Tenant};
use crate::segment::{Cut, Footer, RowGroupMeta, SegmentWriter, encode_row_group};
use futures_util::{StreamExt, TryStreamExt};
use std::sync::Arc;

/// The effort at level 0.
pub(crate) const LEVEL0_EFFORT: Effort = Effort { zstd: 1, pco: 4, same: true, archive: false };

/// An encoded row group, and what the footer says of it.
pub(crate) type Encoded = (RowGroupMeta, Vec<u8>);

/// Encodes the groups of `cut`, several at once, their order kept.
pub(crate) async fn encode_groups(pool: &Pool, cut: Cut, effort: Effort) -> Result<Vec<Encoded>> {
    let tasks: Vec<_> = each_group(cut).map(|group| encode_group(pool, group, effort)).collect();
    futures_util::stream::iter(tasks).buffered(pool.threads()).try_collect().await
}

/// The groups of `cut`; the records are held until the last of them has its rows.
fn each_group(cut: Cut) -> impl Iterator<Item = (Arc<Cut>, usize)> {
    let count = cut.len();
    std::iter::repeat_n(Arc::new(cut), count).zip(0..count)
}

async fn encode_group(pool: &Pool, (cut, group): (Arc<Cut>, usize), effort: Effort) -> Result<Encoded> {
    let task = move || {
        let rows = cut.rows(group);
        drop(cut);
        let mut bytes = Vec::new();
        let meta = encode_row_group(&rows, effort, &mut bytes)?;
        Ok((meta, bytes))
    };
    pool.run(task).await
}

/// Encodes the records of several tenants as one segment, several row groups at once; `None` when there are none.
pub(crate) async fn encode_segment(
    pool: &Pool,
    tenants: Vec<(Tenant, Vec<Arc<Batch>>)>,
    group_bytes: usize,
) -> Result<Option<(Vec<u8>, Footer)>> {
    let cuts = futures_util::stream::iter(tenants).map(|(tenant, batches)| async move {
        let cut = pool.run(move || Ok(Cut::new(batches, group_bytes))).await?;
        Ok::<_, Error>((tenant, cut))
    });
    let groups = cuts.buffered(pool.threads()).map_ok(|(tenant, cut)| {
        let groups: Vec<_> = each_group(cut).map(|group| Ok((tenant.clone(), group))).collect();
        futures_util::stream::iter(groups)
    });
    let encoded = groups.try_flatten().map_ok(|(tenant, group)| async move {
        let (meta, bytes) = encode_group(pool, group, LEVEL0_EFFORT).await?;
        Ok::<_, Error>((tenant, meta, bytes))
    });
    let mut encoded = std::pin::pin!(encoded.try_buffered(pool.threads()));
    let mut writer = SegmentWriter::default();
    while let Some((tenant, meta, bytes)) = encoded.try_next().await? {
        writer.add_encoded(&tenant, meta, &bytes);
    }
    if writer.is_empty() { Ok(None) } else { writer.finish().map(Some) }
}

/// What the manifest says of a segment.
pub(crate) fn meta_of(id: u128, key: String, level: u8, bytes: u64, footer: &Footer) -> Result<SegmentMeta> {
    let mut parts: Vec<TenantPart> = Vec::new();
    for group in &footer.groups {
        let (least, most) = (*group.meta.times.start(), *group.meta.times.end());
        let index = match parts.iter().rposition(|p| p.tenant == group.tenant) {
            Some(index) => index,
            None => {
                parts.push(TenantPart {
                    tenant: group.tenant.clone(),
                    rows: 0,
                    line_bytes: 0,
                    row_groups: 0,
                    timestamp_min: least,
                    timestamp_max: most,
                });
                parts.len() - 1
            }
        };
        let part = &mut parts[index];
        part.rows += u64::from(group.meta.rows);
        part.line_bytes += group.meta.line_bytes;
        part.row_groups = part.row_groups.checked_add(1).ok_or_else(|| Error::limit("a segment has too many row groups"))?;
        part.timestamp_min = part.timestamp_min.min(least);
        part.timestamp_max = part.timestamp_max.max(most);
    }
    Ok(SegmentMeta { id, key, bytes, level, order_min: 0, order: 0, parts })
}
