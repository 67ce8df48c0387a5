//! Golden segments: what is in them, how they are made and damaged, and the engine's reading of a segment in the form of the reference decoder.

pub mod damage;
pub mod files;
pub mod sets;

use crate::record::{Rec, batch_of};
use haystore::column::encode::Effort;
use haystore::segment::{Cut, RowGroup, SegmentWriter, encode_row_group, read_footer};
use haystore::{Result, Tenant};
use haystore_format::decoder::Record;
use std::sync::Arc;

/// The effort of golden files.
pub const EFFORT: Effort = Effort { zstd: 9, pco: 8, same: true, archive: false };

/// A segment of these records, in row groups of lines of at most `group_bytes`.
pub fn segment_of(tenants: &[(Tenant, Vec<Rec>)], group_bytes: usize, effort: Effort) -> Vec<u8> {
    let mut writer = SegmentWriter::default();
    for (tenant, records) in tenants {
        let cut = Cut::new(vec![Arc::new(batch_of(records))], group_bytes);
        for group in 0..cut.len() {
            let mut bytes = Vec::new();
            let meta = encode_row_group(&cut.rows(group), effort, &mut bytes).unwrap();
            writer.add_encoded(tenant, meta, &bytes);
        }
    }
    writer.finish().unwrap().0
}

/// The records of a segment as the engine reads them, in stored order.
///
/// # Errors
/// The engine's.
pub fn engine_records(segment: &[u8]) -> Result<Vec<Record>> {
    let footer = match read_footer("golden", segment.len() as u64, segment)? {
        Ok(footer) => footer,
        Err(more) => panic!("the engine wants {more} bytes of {}", segment.len()),
    };
    let bytes = bytes::Bytes::copy_from_slice(segment);
    let mut out = Vec::new();
    for info in &footer.groups {
        let range = info.range();
        let source = info.source("golden", bytes.slice(range.start as usize..range.end as usize));
        engine_group(info.tenant.as_str(), RowGroup::open(&info.meta, source)?, &mut out)?;
    }
    Ok(out)
}

fn engine_group(tenant: &str, mut group: RowGroup, out: &mut Vec<Record>) -> Result<()> {
    let (streams, ends) = group.streams()?;
    let mut stream = 0;
    let mut row = 0;
    for range in 0..group.ranges() {
        let mut timestamps = Vec::new();
        group.timestamps(range, &mut timestamps)?;
        let (formats, row_formats) = group.formats(range)?;
        let (lines, metadata) = (group.lines(range)?, group.metadata(range)?);
        for (index, timestamp) in timestamps.into_iter().enumerate() {
            while ends[stream] <= row {
                stream += 1;
            }
            out.push(Record {
                tenant: tenant.to_string(),
                labels: streams[stream].iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
                timestamp,
                line: lines.get(index).to_vec(),
                metadata: metadata.get(index).to_vec(),
                format: formats[usize::from(row_formats[index])].to_bytes(),
            });
            row += 1;
        }
    }
    group.decoder().check_sets()
}

/// The same records as they were given, in the order in which a segment of one row group a tenant stores them.
pub fn stored_order(tenants: &[(Tenant, Vec<Rec>)]) -> Vec<Record> {
    let mut out = Vec::new();
    for (tenant, records) in tenants {
        let mut records = records.clone();
        records.sort_by(|a, b| (&a.labels, a.timestamp).cmp(&(&b.labels, b.timestamp)));
        out.extend(records.into_iter().map(|r| Record {
            tenant: tenant.as_str().to_string(),
            labels: r.labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            timestamp: r.timestamp,
            line: r.line,
            metadata: r.metadata,
            format: r.format.to_bytes(),
        }));
    }
    out
}
