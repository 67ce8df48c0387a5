//! The bytes of deltas, checkpoints and the hint. `format-spec/chapters/manifest.md` is the same in prose.
//!
//! Every object is one frame: magic, format version, length, body, CRC-32 of all before it. The checksum is compared before
//! the body is looked at. This module is pure: bytes to values and back.

use super::delta::{Delta, JobChange, Record, WriterChange, check_key, check_shape};
use super::map::Map;
use super::state::{JobEntry, SegmentMeta, State, TenantPart, Writer};
use super::{CHECKPOINT_BYTES_MAX, DELTA_BYTES_MAX, JOB_STATE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::record::Tenant;
use crate::wire::{Reader, WireError, put_bytes, put_varint};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;
use std::sync::Arc;

pub(super) const MAGIC_DELTA: [u8; 8] = *b"HAYDELTA";
pub(super) const MAGIC_CHECKPOINT: [u8; 8] = *b"HAYCHECK";
pub(super) const MAGIC_HINT: [u8; 8] = *b"HAYMHINT";
pub(super) const FORMAT_VERSION: u16 = 1;
pub(super) const HEADER_BYTES: usize = 20;
pub(super) const TRAILER_BYTES: usize = 4;
const ZSTD_LEVEL: i32 = 3;
pub(super) const ZSTD_WINDOW_LOG_MAX: u32 = 23;
pub(super) const SEGMENT_BYTES_MIN: usize = 16 + 2 + 5 + PART_BYTES_MIN;
const PART_BYTES_MIN: usize = 2 + 3 + 9;

/// What is wrong with a body, and at which of its bytes.
struct Wrong {
    at: usize,
    what: String,
}

type Parsed<T> = Result<T, Wrong>;

impl From<WireError> for Wrong {
    fn from(e: WireError) -> Self {
        Wrong { at: e.offset, what: e.what.to_string() }
    }
}

/// `what` is wrong at the place last read.
fn wrong(reader: &Reader<'_>, what: impl Display) -> Wrong {
    Wrong { at: reader.at(), what: what.to_string() }
}

/// The bytes of a delta object.
pub(crate) fn encode_delta(record: &Record) -> Result<Vec<u8>> {
    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(&record.version.to_le_bytes());
    body.extend_from_slice(&record.commit_id.to_le_bytes());
    body.extend_from_slice(&record.parent_id.to_le_bytes());
    body.extend_from_slice(&record.time_ns.to_le_bytes());
    let delta = &record.delta;
    put_count(&mut body, delta.writers.len());
    delta.writers.iter().for_each(|change| put_writer_change(&mut body, change));
    put_count(&mut body, delta.jobs.len());
    delta.jobs.iter().for_each(|change| put_job_change(&mut body, change));
    put_count(&mut body, delta.removed.len());
    for (id, tenant) in &delta.removed {
        body.extend_from_slice(&id.to_le_bytes());
        put_bytes(&mut body, tenant.as_str().as_bytes());
    }
    put_count(&mut body, delta.added.len());
    delta.added.iter().for_each(|segment| put_segment(&mut body, segment));
    put_count(&mut body, delta.garbage_dropped.len());
    delta.garbage_dropped.iter().for_each(|key| put_bytes(&mut body, key.as_bytes()));
    let bytes = seal(MAGIC_DELTA, &body);
    if bytes.len() > DELTA_BYTES_MAX {
        return Err(Error::limit(format!("manifest: a commit of {} bytes, limit {DELTA_BYTES_MAX}", bytes.len())));
    }
    Ok(bytes)
}

/// The delta that makes `version`, from the bytes of `object`.
pub(crate) fn decode_delta(object: &str, bytes: &[u8], version: u64) -> Result<Record> {
    let body = open(object, bytes, MAGIC_DELTA, DELTA_BYTES_MAX)?;
    delta(&mut Reader::new(body), version).map_err(|e| Error::corrupt(object, (HEADER_BYTES + e.at) as u64, e.what))
}

fn delta(reader: &mut Reader<'_>, version: u64) -> Parsed<Record> {
    check_version(reader, version)?;
    let (commit_id, parent_id, time_ns) = (reader.u128()?, reader.u128()?, reader.i64()?);
    let delta = Delta {
        writers: list(reader, 17, writer_change)?,
        jobs: list(reader, 5, job_change)?,
        removed: list(reader, 18, |r| Ok((r.u128()?, tenant(r)?)))?,
        added: list(reader, SEGMENT_BYTES_MIN, |r| segment(r, version))?,
        garbage_dropped: list(reader, 2, |r| key(r, "garbage"))?,
    };
    reader.end()?;
    Ok(Record { version, commit_id, parent_id, time_ns, delta })
}

/// The bytes of a checkpoint object.
pub(crate) fn encode_checkpoint(state: &State) -> Result<Vec<u8>> {
    let mut raw = Vec::with_capacity(1024 + 160 * state.segments.len());
    raw.extend_from_slice(&state.version.to_le_bytes());
    raw.extend_from_slice(&state.commit_id.to_le_bytes());
    raw.extend_from_slice(&state.time_ns.to_le_bytes());
    put_count(&mut raw, state.writers.len());
    for (id, writer) in state.writers.iter() {
        raw.extend_from_slice(&id.to_le_bytes());
        put_varint(&mut raw, writer.epoch);
        put_varint(&mut raw, writer.wal_position);
    }
    put_count(&mut raw, state.jobs.len());
    for ((tenant, key), job) in state.jobs.iter() {
        put_bytes(&mut raw, tenant.as_str().as_bytes());
        put_bytes(&mut raw, key.as_bytes());
        put_varint(&mut raw, job.epoch);
        put_bytes(&mut raw, &job.state);
        raw.extend_from_slice(&job.updated_ns.to_le_bytes());
    }
    put_count(&mut raw, state.segments.len());
    state.segments.iter().for_each(|(_, segment)| put_segment(&mut raw, segment));
    put_count(&mut raw, state.garbage.len());
    for (key, since_ns) in state.garbage.iter() {
        put_bytes(&mut raw, key.as_bytes());
        raw.extend_from_slice(&since_ns.to_le_bytes());
    }
    if raw.len() > CHECKPOINT_BYTES_MAX {
        return Err(Error::limit(format!("manifest: a checkpoint of {} bytes, limit {CHECKPOINT_BYTES_MAX}", raw.len())));
    }
    let packed = zstd::bulk::compress(&raw, ZSTD_LEVEL).map_err(|e| Error::internal(format!("manifest: zstd: {e}")))?;
    let mut body = (raw.len() as u64).to_le_bytes().to_vec();
    body.extend_from_slice(&packed);
    Ok(seal(MAGIC_CHECKPOINT, &body))
}

/// The state at `version`, from the bytes of `object`.
pub(crate) fn decode_checkpoint(object: &str, bytes: &[u8], version: u64) -> Result<State> {
    let raw = unpack(object, open(object, bytes, MAGIC_CHECKPOINT, CHECKPOINT_BYTES_MAX)?)?;
    let in_body = |e: Wrong| Error::corrupt(object, e.at as u64, format_args!("{} (in the decompressed body)", e.what));
    checkpoint(&mut Reader::new(&raw), version).map_err(in_body)
}

fn checkpoint(reader: &mut Reader<'_>, version: u64) -> Parsed<State> {
    check_version(reader, version)?;
    let (commit_id, time_ns) = (reader.u128()?, reader.i64()?);
    let writers = list(reader, 18, |r| Ok((r.u128()?, Writer { epoch: r.varint()?, wal_position: r.varint()? })))?;
    let jobs = list(reader, 14, |r| {
        let place = (tenant(r)?, key(r, "job")?);
        let epoch = r.varint()?;
        Ok((place, JobEntry { epoch, state: job_state(r)?.into(), updated_ns: r.i64()? }))
    })?;
    let segments = list(reader, SEGMENT_BYTES_MIN, |r| segment(r, version))?;
    let segments: Vec<_> = segments.into_iter().map(|segment| (segment.id, Arc::new(segment))).collect();
    let garbage = list(reader, 10, |r| Ok((key(r, "garbage")?, r.i64()?)))?;
    reader.end()?;
    Ok(State {
        version,
        commit_id,
        time_ns,
        tenants: index(&segments),
        segments: ascending(reader, segments)?,
        writers: ascending(reader, writers)?,
        jobs: ascending(reader, jobs)?,
        garbage: ascending(reader, garbage)?,
    })
}

/// The bytes of the hint.
pub(crate) fn encode_hint(version: u64) -> Vec<u8> {
    seal(MAGIC_HINT, &version.to_le_bytes())
}

/// The version of the checkpoint that the hint names.
pub(crate) fn decode_hint(object: &str, bytes: &[u8]) -> Result<u64> {
    let body = open(object, bytes, MAGIC_HINT, HEADER_BYTES + 8 + TRAILER_BYTES)?;
    let mut reader = Reader::new(body);
    let version = reader.u64().and_then(|version| reader.end().map(|()| version));
    version.map_err(|e| Error::corrupt(object, (HEADER_BYTES + e.offset) as u64, e.what))
}

fn seal(magic: [u8; 8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len() + TRAILER_BYTES);
    out.extend_from_slice(&magic);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// The body of a frame, once its checksum has been compared.
fn open<'a>(object: &str, bytes: &'a [u8], magic: [u8; 8], bytes_max: usize) -> Result<&'a [u8]> {
    if bytes.len() > bytes_max {
        return Err(Error::corrupt(object, 0, format_args!("{} bytes, limit {bytes_max}", bytes.len())));
    }
    let Some((sealed, crc)) = bytes.split_last_chunk::<TRAILER_BYTES>().filter(|(sealed, _)| sealed.len() >= HEADER_BYTES) else {
        return Err(Error::corrupt(object, bytes.len() as u64, "too short"));
    };
    let (start, body) = sealed.split_at(HEADER_BYTES);
    if !start.starts_with(&magic) {
        return Err(Error::corrupt(object, 0, "not the magic bytes"));
    }
    if crc32fast::hash(sealed) != u32::from_le_bytes(*crc) {
        return Err(Error::corrupt(object, sealed.len() as u64, "the checksum does not fit"));
    }
    let mut header = Reader::new(&start[magic.len()..]);
    let short = |e: WireError| Error::corrupt(object, (magic.len() + e.offset) as u64, e.what);
    let (format, reserved, stated) = (header.u16().map_err(short)?, header.u16().map_err(short)?, header.u64().map_err(short)?);
    if format != FORMAT_VERSION {
        return Err(Error::corrupt(object, 8, format_args!("format version {format}; this program reads {FORMAT_VERSION}")));
    }
    if reserved != 0 {
        return Err(Error::corrupt(object, 10, "reserved bytes are not zero"));
    }
    if stated != body.len() as u64 {
        return Err(Error::corrupt(object, 12, format_args!("a body of {stated} bytes stated, {} there", body.len())));
    }
    Ok(body)
}

/// Decompresses a checkpoint's body. Memory grows with what comes out, never past the stated length or the limit.
fn unpack(object: &str, body: &[u8]) -> Result<Vec<u8>> {
    let wrong = |what: String| Error::corrupt(object, (HEADER_BYTES + 8) as u64, what);
    let (stated, packed) = body.split_first_chunk().ok_or_else(|| wrong("too short".to_string()))?;
    let stated = u64::from_le_bytes(*stated);
    if stated > CHECKPOINT_BYTES_MAX as u64 {
        return Err(Error::corrupt(object, HEADER_BYTES as u64, format_args!("{stated} bytes stated, limit {CHECKPOINT_BYTES_MAX}")));
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|e| wrong(format!("zstd: {e}")))?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|e| wrong(format!("zstd: {e}")))?;
    let mut raw = Vec::new();
    decoder.take(stated + 1).read_to_end(&mut raw).map_err(|e| wrong(format!("zstd: {e}")))?;
    if raw.len() as u64 != stated {
        return Err(wrong(format!("{stated} bytes stated, {} or more came out", raw.len())));
    }
    Ok(raw)
}

fn check_version(reader: &mut Reader<'_>, version: u64) -> Parsed<()> {
    let found = reader.u64()?;
    if found == version { Ok(()) } else { Err(wrong(reader, format_args!("version {found} under the key of version {version}"))) }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_varint(out, count as u64);
}

fn tenant(reader: &mut Reader<'_>) -> Parsed<Tenant> {
    let name = reader.text()?;
    Tenant::new(name).map_err(|e| wrong(reader, e))
}

fn list<T>(reader: &mut Reader<'_>, bytes_min: usize, mut item: impl FnMut(&mut Reader<'_>) -> Parsed<T>) -> Parsed<Vec<T>> {
    let count = reader.count_of(bytes_min)?;
    (0..count).map(|_| item(reader)).collect()
}

fn ascending<K: Ord + Clone, V: Clone>(reader: &Reader<'_>, entries: Vec<(K, V)>) -> Parsed<Map<K, V>> {
    if !entries.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(wrong(reader, "a table is not in ascending order"));
    }
    Ok(Map::from_ascending(entries))
}

/// A part in its tenant's index: (timestamp_min, segment), timestamp_max.
type IndexEntry = ((i64, u128), i64);

fn index(segments: &[(u128, Arc<SegmentMeta>)]) -> Map<Tenant, Map<(i64, u128), i64>> {
    let mut tenants: BTreeMap<&Tenant, Vec<IndexEntry>> = BTreeMap::new();
    for (id, segment) in segments {
        for part in &segment.parts {
            tenants.entry(&part.tenant).or_default().push(((part.timestamp_min, *id), part.timestamp_max));
        }
    }
    Map::from_ascending(tenants.into_iter().map(|(tenant, mut parts)| {
        parts.sort_unstable();
        (tenant.clone(), Map::from_ascending(parts))
    }))
}

fn key(reader: &mut Reader<'_>, what: &str) -> Parsed<String> {
    let key = reader.text()?.to_string();
    check_key(what, &key).map_err(|e| wrong(reader, e))?;
    Ok(key)
}

fn job_state<'a>(reader: &mut Reader<'a>) -> Parsed<&'a [u8]> {
    let state = reader.bytes()?;
    if state.len() > JOB_STATE_BYTES_MAX { Err(wrong(reader, "a job's state is too long")) } else { Ok(state) }
}

fn put_segment(out: &mut Vec<u8>, segment: &SegmentMeta) {
    out.extend_from_slice(&segment.id.to_le_bytes());
    put_bytes(out, segment.key.as_bytes());
    put_varint(out, segment.bytes);
    out.push(segment.level);
    put_varint(out, segment.order_min);
    put_varint(out, segment.order.saturating_sub(segment.order_min));
    put_count(out, segment.parts.len());
    for part in &segment.parts {
        put_bytes(out, part.tenant.as_str().as_bytes());
        put_varint(out, part.rows);
        put_varint(out, part.line_bytes);
        put_varint(out, u64::from(part.row_groups));
        out.extend_from_slice(&part.timestamp_min.to_le_bytes());
        put_varint(out, part.timestamp_max.abs_diff(part.timestamp_min));
    }
}

fn segment(reader: &mut Reader<'_>, version: u64) -> Parsed<SegmentMeta> {
    let (id, key, bytes, level) = (reader.u128()?, key(reader, "segment")?, reader.varint()?, reader.byte()?);
    let (order_min, more) = (reader.varint()?, reader.varint()?);
    let order = order_min.checked_add(more).ok_or_else(|| wrong(reader, "an order above 64 bits"))?;
    let parts = list(reader, PART_BYTES_MIN, part)?;
    let segment = SegmentMeta { id, key, bytes, level, order_min, order, parts };
    check_shape(&segment, version).map_err(|e| wrong(reader, e))?;
    Ok(segment)
}

fn part(reader: &mut Reader<'_>) -> Parsed<TenantPart> {
    let tenant = tenant(reader)?;
    let (rows, line_bytes, row_groups) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let row_groups = u32::try_from(row_groups).map_err(|_| wrong(reader, "more than 2^32 row groups"))?;
    let (timestamp_min, span) = (reader.i64()?, reader.varint()?);
    let timestamp_max = timestamp_min.checked_add_unsigned(span).ok_or_else(|| wrong(reader, "a time above 64 bits"))?;
    Ok(TenantPart { tenant, rows, line_bytes, row_groups, timestamp_min, timestamp_max })
}

fn put_writer_change(out: &mut Vec<u8>, change: &WriterChange) {
    let (kind, id, numbers): (u8, u128, &[u64]) = match change {
        WriterChange::Register { id } => (1, *id, &[]),
        WriterChange::Advance { id, epoch, wal_position } => (2, *id, &[*epoch, *wal_position]),
        WriterChange::Forget { id, epoch } => (3, *id, &[*epoch]),
    };
    out.push(kind);
    out.extend_from_slice(&id.to_le_bytes());
    numbers.iter().for_each(|number| put_varint(out, *number));
}

fn writer_change(reader: &mut Reader<'_>) -> Parsed<WriterChange> {
    let kind = reader.byte()?;
    let id = reader.u128()?;
    match kind {
        1 => Ok(WriterChange::Register { id }),
        2 => Ok(WriterChange::Advance { id, epoch: reader.varint()?, wal_position: reader.varint()? }),
        3 => Ok(WriterChange::Forget { id, epoch: reader.varint()? }),
        _ => Err(wrong(reader, format_args!("writer change {kind} is unknown"))),
    }
}

fn put_job_change(out: &mut Vec<u8>, change: &JobChange) {
    let (kind, tenant, key) = match change {
        JobChange::Begin { tenant, key } => (1, tenant, key),
        JobChange::Update { tenant, key, .. } => (2, tenant, key),
        JobChange::Finish { tenant, key, .. } => (3, tenant, key),
    };
    out.push(kind);
    put_bytes(out, tenant.as_str().as_bytes());
    put_bytes(out, key.as_bytes());
    match change {
        JobChange::Begin { .. } => {}
        JobChange::Update { epoch, state, .. } => {
            put_varint(out, *epoch);
            put_bytes(out, state);
        }
        JobChange::Finish { epoch, .. } => put_varint(out, *epoch),
    }
}

fn job_change(reader: &mut Reader<'_>) -> Parsed<JobChange> {
    let kind = reader.byte()?;
    let (tenant, key) = (tenant(reader)?, key(reader, "job")?);
    match kind {
        1 => Ok(JobChange::Begin { tenant, key }),
        2 => Ok(JobChange::Update { tenant, key, epoch: reader.varint()?, state: job_state(reader)?.to_vec() }),
        3 => Ok(JobChange::Finish { tenant, key, epoch: reader.varint()? }),
        _ => Err(wrong(reader, format_args!("job change {kind} is unknown"))),
    }
}
