//! Looking at what is at rest: bytes by segment, column and purpose; and re-reading everything.

use super::view::fetch_footer;
use super::{Shared, Store};
use crate::column::plan::{Kind, Plan};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::SegmentMeta;
use crate::segment::{Footer, GroupInfo, MAGIC, RowGroup};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What bytes at rest are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// What the records are rebuilt from.
    Data,
    /// What only skips: page sets.
    SearchAids,
    /// What says where the rest is and how it is encoded.
    Metadata,
}

/// Bytes of one kind of column in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnUsage {
    /// `line: dictionary`, `timestamp: numbers`, …
    pub name: String,
    /// What they are for.
    pub purpose: Purpose,
    /// Bytes at rest; where columns share a frame, by their part of its contents.
    pub stored_bytes: u64,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentUsage {
    /// The object's key.
    pub key: String,
    /// The tenant; empty when it spans several.
    pub tenant: String,
    /// 0: as flushed; more: compacted.
    pub level: u8,
    /// Records.
    pub records: u64,
    /// Bytes of their lines, without newlines.
    pub line_bytes: u64,
    /// Size of the object; the columns' bytes add up to it.
    pub stored_bytes: u64,
    /// Its parts.
    pub columns: Vec<ColumnUsage>,
}

/// A store's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Live segments.
    pub segments: Vec<SegmentUsage>,
    /// Bytes of manifests.
    pub manifest_bytes: u64,
    /// Bytes of replaced objects that still wait out their grace.
    pub replaced_bytes: u64,
    /// Bytes of the WAL, when the store has one.
    pub wal_bytes: u64,
}

/// What a check of everything found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Segments read.
    pub objects: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Records decoded.
    pub records: u64,
    /// What is wrong, each naming its object and offset.
    pub damage: Vec<String>,
}

impl Store {
    /// Bytes at rest. Reads every segment.
    ///
    /// # Errors
    /// Corrupt or missing objects, io errors.
    pub async fn usage(&self) -> Result<Usage> {
        let shared = &self.shared;
        let state = shared.manifest.state();
        let mut usage = Usage { wal_bytes: self.unflushed_bytes().1, ..Usage::default() };
        for segment in state.segments() {
            let bytes = shared.objects.get(&segment.key).await?;
            let (segment, footer) = (segment.clone(), fetch_footer(&*shared.objects, &segment.key, segment.bytes).await?);
            usage.segments.push(shared.pool.run(move || segment_usage(&segment, &footer, &bytes)).await?);
        }
        usage.manifest_bytes = shared.objects.list("manifest/").await?.iter().map(|o| o.size).sum();
        for (key, _) in state.garbage() {
            match shared.objects.size(key).await {
                Ok(size) => usage.replaced_bytes += size,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(usage)
    }

    /// Number and bytes of live segments, as the manifest says.
    pub fn usage_totals(&self) -> (u64, u64) {
        let state = self.shared.manifest.state();
        (state.segment_count() as u64, state.segments().map(|s| s.bytes).sum())
    }

    /// Re-reads every segment: checksums, decoding, counts. `progress` hears of the bytes read so far and of all.
    ///
    /// # Errors
    /// Io errors that say nothing about the data; damage is in the answer.
    pub async fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<Verified> {
        let shared = &self.shared;
        let state = shared.manifest.state();
        let total = state.segments().map(|s| s.bytes).sum();
        let mut verified = Verified::default();
        for segment in state.segments() {
            match check_segment(shared, segment).await {
                Ok(records) => verified.records += records,
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {
                    // A check takes long: what was compacted away meanwhile may be gone by right.
                    if shared.manifest.refresh().await?.segment(segment.id).is_none() {
                        continue;
                    }
                    verified.damage.push(e.to_string());
                }
                Err(e) => return Err(e),
            }
            verified.objects += 1;
            verified.bytes += segment.bytes;
            progress(verified.bytes, total);
        }
        Ok(verified)
    }
}

async fn check_segment(shared: &Shared, segment: &Arc<SegmentMeta>) -> Result<u64> {
    let bytes = shared.objects.get(&segment.key).await?;
    if bytes.len() as u64 != segment.bytes {
        return Err(Error::corrupt(&segment.key, bytes.len() as u64, format_args!("the manifest says it has {} bytes", segment.bytes)));
    }
    if bytes.get(..MAGIC.len()) != Some(MAGIC) {
        return Err(Error::corrupt(&segment.key, 0, "not a segment of this format version"));
    }
    let footer = fetch_footer(&*shared.objects, &segment.key, segment.bytes).await?;
    let segment = segment.clone();
    shared.pool.run(move || check_groups(&segment, &footer, &bytes)).await
}

fn check_groups(segment: &SegmentMeta, footer: &Footer, bytes: &bytes::Bytes) -> Result<u64> {
    let mut records = 0;
    for info in &footer.groups {
        let mut group = open(&segment.key, info, bytes)?;
        let (mut rows, mut line_bytes, mut timestamps) = (0, 0, Vec::new());
        group.streams()?;
        for range in 0..group.ranges() {
            let lines = group.lines(range)?;
            rows += lines.len() as u64;
            line_bytes += lines.bytes() as u64;
            group.metadata(range)?;
            group.formats(range)?;
            timestamps.clear();
            group.timestamps(range, &mut timestamps)?;
            if timestamps.iter().any(|t| !group.times(range).contains(t) || !info.meta.times.contains(t)) {
                return Err(Error::corrupt(&segment.key, info.offset, "a timestamp is outside its row range's bounds"));
            }
        }
        group.decoder().check_sets()?;
        if rows != u64::from(info.meta.rows) || line_bytes != info.meta.line_bytes {
            return Err(Error::corrupt(&segment.key, info.offset, "the footer counts other records than the row group has"));
        }
        records += rows;
    }
    for part in &segment.parts {
        let rows: u64 = footer.groups.iter().filter(|g| g.tenant == part.tenant).map(|g| u64::from(g.meta.rows)).sum();
        if rows != part.rows {
            return Err(Error::corrupt(
                &segment.key,
                0,
                format_args!("it has {rows} records of {}, the manifest says {}", part.tenant, part.rows),
            ));
        }
    }
    Ok(records)
}

fn open(key: &str, info: &GroupInfo, bytes: &bytes::Bytes) -> Result<RowGroup> {
    let range = info.range();
    if range.end > bytes.len() as u64 {
        return Err(Error::corrupt(key, info.offset, "the object ends early"));
    }
    RowGroup::open(&info.meta, info.source(key, bytes.slice(range.start as usize..range.end as usize)))
}

fn segment_usage(segment: &SegmentMeta, footer: &Footer, bytes: &bytes::Bytes) -> Result<SegmentUsage> {
    let mut sums: BTreeMap<(String, Purpose), f64> = BTreeMap::new();
    let mut groups = 0;
    for info in &footer.groups {
        let mut group = open(&segment.key, info, bytes)?;
        let roles = group.roles();
        let decoder = group.decoder();
        let plan = decoder.plan().clone();
        for (piece, bytes) in decoder.data_shares().into_iter().enumerate() {
            let (_, column, _) = plan.page_order()[piece];
            *sums.entry((format!("{}: {}", roles[column as usize], encoding_name(&plan, column)), Purpose::Data)).or_default() += bytes;
        }
        for (is_set, class, bytes) in decoder.dictionary_shares() {
            let (name, purpose) = if is_set { ("page sets", Purpose::SearchAids) } else { ("dictionary", Purpose::Data) };
            *sums.entry((format!("{name}: {class}"), purpose)).or_default() += bytes;
        }
        *sums.entry(("plan".to_string(), Purpose::Metadata)).or_default() += f64::from(info.meta.plan.stored);
        *sums.entry(("root".to_string(), Purpose::Metadata)).or_default() += f64::from(info.meta.root.stored);
        groups += info.meta.stored_bytes();
    }
    sums.insert(("footer".to_string(), Purpose::Metadata), (segment.bytes - groups) as f64);
    let columns = round(sums, segment.bytes);
    let tenant = if let [part] = &segment.parts[..] { part.tenant.as_str() } else { "" };
    Ok(SegmentUsage {
        key: segment.key.clone(),
        tenant: tenant.to_string(),
        level: segment.level,
        records: segment.parts.iter().map(|p| p.rows).sum(),
        line_bytes: segment.parts.iter().map(|p| p.line_bytes).sum(),
        stored_bytes: segment.bytes,
        columns,
    })
}

/// Whole bytes that add up to `total`.
fn round(sums: BTreeMap<(String, Purpose), f64>, total: u64) -> Vec<ColumnUsage> {
    let (mut exact, mut given) = (0.0, 0);
    let mut columns: Vec<ColumnUsage> = Vec::with_capacity(sums.len());
    for ((name, purpose), bytes) in sums {
        exact += bytes;
        let stored_bytes = (exact.round() as u64).saturating_sub(given);
        given += stored_bytes;
        columns.push(ColumnUsage { name, purpose, stored_bytes });
    }
    if let Some(last) = columns.last_mut() {
        last.stored_bytes = (last.stored_bytes + total).saturating_sub(given);
    }
    columns
}

fn encoding_name(plan: &Plan, column: u32) -> &'static str {
    match plan.columns[column as usize].kind {
        Kind::Text => "text",
        Kind::Number(t) => t.name(),
        Kind::Dictionary(_) => "dictionary ids",
        Kind::Mapped(_) => "function of another",
        Kind::Shapes(_) => "shape ids",
        Kind::Computed(_) => "computed from another",
        Kind::List(_) => "lists",
        Kind::Constant(_) | Kind::Same(_) | Kind::Escaped(..) => "nothing",
    }
}
