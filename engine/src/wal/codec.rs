//! A tenant's batch as bytes: the payload of WAL frames.
//!
//! What holds: decoding returns what was encoded; any other bytes are an error, and memory taken is bounded by their
//! length. The bytes are described in `format-spec/chapters/wal.md`.

use crate::error::{Error, Result};
use crate::record::{Batch, Format, Labels, Parts, Tenant};
use crate::wire::{Reader, WireResult, put_bytes, put_signed, put_varint};

/// The bytes of `batch` of `tenant`.
pub(super) fn encode(tenant: &Tenant, batch: &Batch) -> Vec<u8> {
    let arenas = batch.arenas();
    let mut out = Vec::with_capacity(1024 + batch.len() * 8 + arenas.lines.len() + arenas.metadata.len());
    put_bytes(&mut out, tenant.as_str().as_bytes());
    put_varint(&mut out, batch.streams().len() as u64);
    for labels in batch.streams() {
        put_varint(&mut out, labels.len() as u64);
        for (name, value) in labels.iter() {
            put_bytes(&mut out, name.as_bytes());
            put_bytes(&mut out, value.as_bytes());
        }
    }
    put_varint(&mut out, batch.formats().len() as u64);
    for format in batch.formats() {
        put_bytes(&mut out, &format.to_bytes());
    }
    put_varint(&mut out, batch.len() as u64);
    put_varint(&mut out, arenas.lines.len() as u64);
    put_varint(&mut out, arenas.metadata.len() as u64);
    let mut before = 0i64;
    for &timestamp in batch.timestamps() {
        put_signed(&mut out, timestamp.wrapping_sub(before));
        before = timestamp;
    }
    if batch.streams().len() > 1 {
        batch.row_streams().iter().for_each(|&i| put_varint(&mut out, u64::from(i)));
    }
    if batch.formats().len() > 1 {
        batch.row_formats().iter().for_each(|&i| put_varint(&mut out, u64::from(i)));
    }
    put_lengths(&mut out, arenas.line_ends);
    if !arenas.metadata.is_empty() {
        put_lengths(&mut out, arenas.metadata_ends);
    }
    out.extend_from_slice(arenas.lines);
    out.extend_from_slice(arenas.metadata);
    out
}

/// The inverse of [`encode`].
///
/// # Errors
/// [`crate::ErrorKind::Invalid`], with the offset, when `bytes` is no encoded batch.
pub(super) fn decode(bytes: &[u8]) -> Result<(Tenant, Batch)> {
    read(&mut Reader::new(bytes)).map_err(|e| Error::invalid(format!("encoded batch: {} at byte {}", e.what, e.offset)))
}

fn read(reader: &mut Reader<'_>) -> WireResult<(Tenant, Batch)> {
    let tenant = Tenant::new(reader.text()?).map_err(|_| reader.error("no tenant's name"))?;
    let streams = streams(reader)?;
    let formats = formats(reader)?;
    let rows = reader.count_of(2)?;
    let line_bytes = reader.count()?;
    let metadata_bytes = reader.count()?;
    let mut timestamps = Vec::with_capacity(rows);
    let mut before = 0i64;
    for _ in 0..rows {
        before = before.wrapping_add(reader.signed()?);
        timestamps.push(before);
    }
    let row_streams = indexes(reader, rows, streams.len(), |i| u32::try_from(i).ok())?;
    let row_formats = indexes(reader, rows, formats.len(), |i| u16::try_from(i).ok())?;
    let line_ends = ends(reader, rows)?;
    let metadata_ends = if metadata_bytes == 0 { vec![0; rows] } else { ends(reader, rows)? };
    let lines = reader.take(line_bytes)?.to_vec();
    let metadata = reader.take(metadata_bytes)?.to_vec();
    reader.end()?;
    let parts = Parts { streams, formats, timestamps, row_streams, row_formats, lines, line_ends, metadata, metadata_ends };
    let batch = Batch::from_parts(parts).map_err(|_| reader.error("parts that don't fit together before the end"))?;
    Ok((tenant, batch))
}

fn put_lengths(out: &mut Vec<u8>, ends: &[u32]) {
    let mut before = 0;
    for &end in ends {
        put_varint(out, u64::from(end - before));
        before = end;
    }
}

fn streams(reader: &mut Reader<'_>) -> WireResult<Vec<Labels>> {
    let mut streams = Vec::new();
    for _ in 0..reader.count()? {
        let mut labels = Vec::new();
        for _ in 0..reader.count_of(2)? {
            labels.push((reader.text()?, reader.text()?));
        }
        streams.push(Labels::new(labels));
    }
    Ok(streams)
}

fn formats(reader: &mut Reader<'_>) -> WireResult<Vec<Format>> {
    let mut formats = Vec::new();
    for _ in 0..reader.count()? {
        formats.push(Format::from_bytes(reader.bytes()?).map_err(|_| reader.error("an unknown format before the end"))?);
    }
    Ok(formats)
}

/// One index a row; not stored when there is at most one thing to point at.
fn indexes<T: Default + Clone>(
    reader: &mut Reader<'_>,
    rows: usize,
    things: usize,
    narrow: impl Fn(u64) -> Option<T>,
) -> WireResult<Vec<T>> {
    if things <= 1 {
        return Ok(vec![T::default(); rows]);
    }
    let mut out = Vec::with_capacity(rows);
    for _ in 0..rows {
        out.push(narrow(reader.varint()?).ok_or_else(|| reader.error("an index too large before the end"))?);
    }
    Ok(out)
}

fn ends(reader: &mut Reader<'_>, rows: usize) -> WireResult<Vec<u32>> {
    let mut out = Vec::with_capacity(rows);
    let mut end = 0u32;
    for _ in 0..rows {
        let len = u32::try_from(reader.varint()?).ok();
        end = len.and_then(|len| end.checked_add(len)).ok_or_else(|| reader.error("lengths too large before the end"))?;
        out.push(end);
    }
    Ok(out)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::{Metadata, Value};
    use proptest::prelude::*;

    pub type StoredRow = (i64, Labels, Format, Vec<u8>, Vec<u8>);

    pub fn rows(batch: &Batch) -> Vec<StoredRow> {
        batch.iter().map(|r| (r.timestamp, r.labels.clone(), r.format.clone(), r.line.to_vec(), r.metadata.to_vec())).collect()
    }

    type Row = (i64, u8, u8, Vec<u8>, bool);

    pub fn batch_of(records: &[Row]) -> Batch {
        let csv = Format::Csv { delimiter: b'\t', columns: vec!["a\0".into(), "é".into()] };
        let formats = [Format::Text, Format::Json, csv];
        let mut batch = Batch::new();
        for (timestamp, stream, format, line, metadata) in records {
            let labels = Labels::new((0..stream % 4).map(|i| (format!("l{i}"), format!("v{stream}"))));
            let metadata = Metadata(if *metadata { vec![("k".into(), Value::Int(*timestamp))] } else { vec![] });
            batch.push_record(*timestamp, &labels, line, &metadata, &formats[usize::from(format % 3)]).unwrap();
        }
        batch
    }

    pub fn any_batch() -> impl Strategy<Value = Batch> {
        let row = (any::<i64>(), any::<u8>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..40), any::<bool>());
        prop::collection::vec(row, 0..20).prop_map(|records| batch_of(&records))
    }

    proptest! {
        #[test]
        fn a_batch_survives_its_bytes(batch in any_batch()) {
            let tenant = Tenant::new("t1").unwrap();
            let bytes = encode(&tenant, &batch);
            let (tenant_back, back) = decode(&bytes).unwrap();
            prop_assert_eq!(tenant_back, tenant);
            prop_assert_eq!(rows(&back), rows(&batch));
            prop_assert_eq!(back.streams(), batch.streams());
            for len in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
                prop_assert!(decode(&bytes[..len]).is_err());
            }
        }

        #[test]
        fn changed_bytes_are_read_without_a_panic(batch in any_batch(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut bytes = encode(&Tenant::default(), &batch);
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = decode(&bytes);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            let _ = decode(&bytes);
        }
    }
}
