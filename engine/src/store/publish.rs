//! From records to a published segment: encode in parallel, upload, say so in the manifest.

use super::pool::Pool;
use crate::column::encode::Effort;
use crate::error::{Error, Result};
use crate::manifest::{SegmentMeta, TenantPart};
use crate::record::{Batch, Tenant};
use crate::segment::{Cut, Footer, RowGroupMeta, SegmentWriter, encode_row_group};
use futures_util::{StreamExt, TryStreamExt};
use std::sync::Arc;

/// Lines of so many bytes make a row group at level 0.
pub(crate) const LEVEL0_GROUP_BYTES: usize = 16 << 20;
/// The effort at level 0.
pub(crate) const LEVEL0_EFFORT: Effort = Effort { zstd: 1, pco: 4, same: true };

/// Encodes `groups`, several at once, their order kept.
pub(crate) async fn encode_groups(pool: &Pool, cut: Cut, effort: Effort) -> Result<Vec<(RowGroupMeta, Vec<u8>)>> {
    let cut = Arc::new(cut);
    let encode = |group: usize| {
        let cut = cut.clone();
        pool.run(move || {
            let mut bytes = Vec::new();
            let meta = encode_row_group(&cut.rows(group), effort, &mut bytes)?;
            Ok((meta, bytes))
        })
    };
    futures_util::stream::iter((0..cut.len()).map(encode)).buffered(pool.threads()).try_collect().await
}

/// Encodes the records of several tenants as one segment; `None` when there are none.
pub(crate) async fn encode_segment(pool: &Pool, tenants: Vec<(Tenant, Vec<Arc<Batch>>)>) -> Result<Option<(Vec<u8>, Footer)>> {
    let mut writer = SegmentWriter::default();
    for (tenant, batches) in tenants {
        let cut = pool.run(move || Ok(Cut::new(batches, LEVEL0_GROUP_BYTES))).await?;
        for (meta, bytes) in encode_groups(pool, cut, LEVEL0_EFFORT).await? {
            writer.add_encoded(&tenant, meta, &bytes);
        }
    }
    if writer.is_empty() { Ok(None) } else { writer.finish().map(Some) }
}

/// What the manifest says of a segment.
pub(crate) fn meta_of(id: u128, key: String, level: u8, bytes: u64, footer: &Footer) -> Result<SegmentMeta> {
    let mut parts: Vec<TenantPart> = Vec::new();
    for group in &footer.groups {
        let (least, most) = (*group.meta.times.start(), *group.meta.times.end());
        let index = match parts.iter().position(|p| p.tenant == group.tenant) {
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
