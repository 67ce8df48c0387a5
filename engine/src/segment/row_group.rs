//! A row group: rows of one tenant in the order (stream, timestamp, arrival), as columns.
//!
//! In the object: dictionary frames, data frames, plan, root. The *root* says how many rows there are, their ranges with least and
//! greatest timestamp, and the fences of the dictionaries; the *plan* how columns are encoded and where their pages are.

use super::time::{self, TimePlan};
use crate::column::decode::{Decoder, Slice, Source};
use crate::column::encode::{DENSE_LEVEL, Effort, Encoder};
use crate::column::plan::{Kind, Plan};
use crate::error::{Error, Result};
use crate::packing;
use crate::record::{Format, Labels};
use crate::shape::Span;
use crate::wire::{Reader, WireError, WireResult, put_bytes, put_signed, put_varint};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// A row range is closed when it has so many rows (readers take any number; the crate's own tests want many ranges of few rows) …
const RANGE_ROWS_MAX: usize = if cfg!(test) { 50 } else { haystore_format::constants::RANGE_ROWS_MAX };
/// … or lines of so many bytes.
const RANGE_BYTES_MAX: usize = haystore_format::constants::RANGE_BYTES_MAX;

/// Columns this many times smaller than the lines are not compared with plain compression.
const COLUMNS_RATIO_MIN: u64 = 16;

/// Rows of one tenant in the order (stream, timestamp, arrival), for [`encode`].
#[derive(Debug, Default)]
pub struct Rows {
    /// Bytes of the lines.
    pub lines: Vec<u8>,
    /// Each row's line.
    pub line_spans: Vec<Span>,
    /// Bytes of stored metadata.
    pub metadata: Vec<u8>,
    /// Each row's metadata.
    pub metadata_spans: Vec<Span>,
    /// Each row's timestamp.
    pub timestamps: Vec<i64>,
    /// Distinct formats.
    pub formats: Vec<Format>,
    /// Each row's format.
    pub row_formats: Vec<u16>,
    /// Streams in order, and how many rows each has, at least one.
    pub streams: Vec<(Labels, u32)>,
}

/// What the footer says of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroupMeta {
    /// Rows.
    pub rows: u32,
    /// Bytes of their lines.
    pub line_bytes: u64,
    /// Least and greatest timestamp.
    pub times: RangeInclusive<i64>,
    /// Streams.
    pub streams: u32,
    /// The least of the streams' labels.
    pub labels_min: Labels,
    /// Bytes of all frames.
    pub frames_len: u64,
    /// Stored length, decompressed length and CRC-32 of the plan, a zstd frame.
    pub plan: Section,
    /// The same of the root.
    pub root: Section,
}

/// A checked zstd frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Stored bytes.
    pub stored: u32,
    /// Bytes after decompression.
    pub raw: u32,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
}

impl RowGroupMeta {
    /// Bytes of the row group in its object.
    pub fn stored_bytes(&self) -> u64 {
        self.frames_len.saturating_add(u64::from(self.plan.stored)).saturating_add(u64::from(self.root.stored))
    }
}

/// The columns every row group has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Roots {
    lines: u32,
    metadata: u32,
    formats: u32,
    labels: u32,
    stream_rows: u32,
    streams: u32,
    time: TimePlan,
}

/// Encodes `rows` behind `out`, decodes what was written and compares. Where columns fail or do not pay, the lines are stored as they are.
///
/// # Errors
/// When zstd fails, or nothing that was tried gives the rows back: a bug.
pub fn encode(rows: &Rows, effort: Effort, out: &mut Vec<u8>) -> Result<RowGroupMeta> {
    if rows.timestamps.is_empty() {
        return Err(Error::internal("a row group without rows"));
    }
    let ends = range_ends(rows);
    let start = out.len();
    let mut failed = None;
    for (columns, same) in [(true, true), (true, false), (false, false)] {
        let effort = Effort { same, ..effort };
        let meta = write(rows, &ends, effort, columns, out)?;
        match verify(rows, &meta, out.split_off(start)) {
            Ok(bytes) => return smaller(rows, &ends, effort, columns, (meta, bytes), out),
            Err(error) => {
                tracing::error!(%error, columns, same, "a row group did not decode to its rows; trying a simpler form");
                failed = Some(error);
            }
        }
    }
    Err(failed.unwrap_or_else(|| Error::internal("a row group did not decode to its rows")))
}

/// Puts `encoded` behind `out`, or the lines as they are where that is shorter. The latter is only tried where it may win.
fn smaller(
    rows: &Rows,
    ends: &[u32],
    effort: Effort,
    columns: bool,
    encoded: (RowGroupMeta, Vec<u8>),
    out: &mut Vec<u8>,
) -> Result<RowGroupMeta> {
    let (meta, bytes) = encoded;
    let start = out.len();
    let close = || -> Result<bool> {
        Ok((bytes.len() as u64) * COLUMNS_RATIO_MIN > rows.lines.len() as u64 && may_lose(rows, ends, effort, bytes.len())?)
    };
    if effort.archive || (columns && close()?) {
        let all = [rows.timestamps.len() as u32];
        let whole = write(rows, if effort.archive { &all } else { ends }, effort, false, out)?;
        let whole_bytes = out.split_off(start);
        if whole_bytes.len() < bytes.len() {
            let whole_bytes = verify(rows, &whole, whole_bytes)?;
            out.extend_from_slice(&whole_bytes);
            return Ok(whole);
        }
    }
    out.extend_from_slice(&bytes);
    Ok(meta)
}

/// Whether plain compression of a sample says that `len` bytes are not better than lines as they are.
fn may_lose(rows: &Rows, ends: &[u32], effort: Effort, len: usize) -> Result<bool> {
    let middle = ends.len() / 2;
    let first = if middle == 0 { 0 } else { ends[middle - 1] as usize };
    let spans = &rows.line_spans[first..ends[middle] as usize];
    let sample: Vec<u8> = spans.iter().flat_map(|s| s.of(&rows.lines)).copied().collect();
    let compressed = packing::compress(&sample, effort.zstd)?.len();
    Ok(compressed as u128 * rows.lines.len() as u128 <= len as u128 * sample.len().max(1) as u128 * 11 / 10)
}

fn range_ends(rows: &Rows) -> Vec<u32> {
    let mut ends = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    for (row, span) in rows.line_spans.iter().enumerate() {
        if count > 0 && (count >= RANGE_ROWS_MAX || bytes + span.len as usize > RANGE_BYTES_MAX) {
            ends.push(row as u32);
            (count, bytes) = (0, 0);
        }
        count += 1;
        bytes += span.len as usize;
    }
    ends.push(rows.line_spans.len() as u32);
    ends
}

/// Byte strings as an arena and spans.
fn arena_of<'a>(values: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<Span>) {
    let mut arena = Vec::new();
    let spans = values
        .map(|v| {
            let at = arena.len() as u32;
            arena.extend_from_slice(v);
            Span { at, len: v.len() as u32 }
        })
        .collect();
    (arena, spans)
}

fn write(rows: &Rows, ends: &[u32], effort: Effort, columns: bool, out: &mut Vec<u8>) -> Result<RowGroupMeta> {
    let start = out.len();
    let mut encoder = Encoder::new(ends.len(), effort);
    let domain = encoder.domain(ends.to_vec());
    let column = |encoder: &mut Encoder, arena: &[u8], spans: &[Span], domain| {
        if columns { encoder.lines(arena, spans, domain) } else { encoder.verbatim(arena, spans, domain) }
    };
    let lines = column(&mut encoder, &rows.lines, &rows.line_spans, domain)?;
    let time = time::encode(&mut encoder, lines, ends, &rows.timestamps)?;
    encoder.numbers.clear();
    let metadata = column(&mut encoder, &rows.metadata, &rows.metadata_spans, domain)?;
    let (formats_arena, formats) = arena_of(rows.formats.iter().map(Format::to_bytes).collect::<Vec<_>>().iter().map(Vec::as_slice));
    let row_formats: Vec<Span> = rows.row_formats.iter().map(|&f| formats[f as usize]).collect();
    let formats = encoder.lines(&formats_arena, &row_formats, domain)?;
    let stream_domain = encoder.domain(vec![rows.streams.len() as u32; ends.len()]);
    let labels: Vec<Vec<u8>> = rows.streams.iter().map(|(l, _)| l.encode()).collect();
    let (labels_arena, label_spans) = arena_of(labels.iter().map(Vec::as_slice));
    let labels = column(&mut encoder, &labels_arena, &label_spans, stream_domain)?;
    let counts: Vec<i64> = rows.streams.iter().map(|(_, rows)| i64::from(*rows)).collect();
    let stream_rows = encoder.number_column(&counts, stream_domain)?;
    let (plan, fences) = encoder.finish(out)?;
    let frames_len = (out.len() - start) as u64;
    let roots = Roots { lines, metadata, formats, labels, stream_rows, streams: rows.streams.len() as u32, time };
    let mut bytes = Vec::new();
    plan.encode(&mut bytes);
    roots.encode(&mut bytes);
    let plan = section(&bytes, plan_level(effort, bytes.len()), out)?;
    let root = encode_root(rows, ends, &fences);
    let root = section(&root, plan_level(effort, root.len()), out)?;
    Ok(RowGroupMeta {
        rows: rows.timestamps.len() as u32,
        line_bytes: rows.line_spans.iter().map(|s| u64::from(s.len)).sum(),
        times: bounds(&rows.timestamps),
        streams: rows.streams.len() as u32,
        labels_min: rows.streams.first().map(|s| s.0.clone()).unwrap_or_default(),
        frames_len,
        plan,
        root,
    })
}

fn bounds(timestamps: &[i64]) -> RangeInclusive<i64> {
    let least = timestamps.iter().copied().min().unwrap_or(0);
    least..=timestamps.iter().copied().max().unwrap_or(0)
}

/// Plans are read with every search, and short: they are worth more work than pages.
fn plan_level(effort: Effort, len: usize) -> i32 {
    const SHORT_PLAN_BYTES: usize = 4096;
    const LONG_PLAN_BYTES: usize = 1_000_000;
    let best = match (effort.zstd, len) {
        (_, ..SHORT_PLAN_BYTES) => 12,
        (..DENSE_LEVEL, _) => 3,
        (_, ..LONG_PLAN_BYTES) => 19,
        _ => 12,
    };
    effort.zstd.max(best)
}

fn section(bytes: &[u8], level: i32, out: &mut Vec<u8>) -> Result<Section> {
    let stored = packing::compress(bytes, level)?;
    let length = |n: usize| u32::try_from(n).map_err(|_| Error::limit("a row group's plan passes 4 GiB"));
    out.extend_from_slice(&stored);
    Ok(Section { stored: length(stored.len())?, raw: length(bytes.len())?, crc: crc32fast::hash(&stored) })
}

fn encode_root(rows: &Rows, ends: &[u32], fences: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, ends.len() as u64);
    let mut start = 0;
    for &end in ends {
        let times = bounds(&rows.timestamps[start..end as usize]);
        put_varint(&mut out, u64::from(end) - start as u64);
        put_signed(&mut out, *times.start());
        put_varint(&mut out, times.end().wrapping_sub(*times.start()) as u64);
        start = end as usize;
    }
    put_varint(&mut out, fences.len() as u64);
    for pages in fences {
        put_varint(&mut out, pages.len() as u64);
        pages.iter().for_each(|f| put_bytes(&mut out, f));
    }
    out
}

impl Roots {
    fn encode(&self, out: &mut Vec<u8>) {
        for column in [self.lines, self.metadata, self.formats, self.labels, self.stream_rows, self.streams] {
            put_varint(out, u64::from(column));
        }
        self.time.encode(out);
    }

    fn decode(reader: &mut Reader<'_>, plan: &Plan) -> WireResult<Roots> {
        let most = plan.columns.len().checked_sub(1).ok_or(reader.error("no columns"))?;
        let mut column = || reader.bounded(most).map(|c| c as u32);
        let (lines, metadata, formats, labels, stream_rows) = (column()?, column()?, column()?, column()?, column()?);
        let streams = reader.bounded(u32::MAX as usize)? as u32;
        Ok(Roots { lines, metadata, formats, labels, stream_rows, streams, time: TimePlan::decode(reader, plan, lines)? })
    }
}

/// A row group opened for reading: its bytes are in memory, its columns are decoded as they are asked for.
#[derive(Debug)]
pub struct RowGroup {
    decoder: Decoder,
    roots: Roots,
    ends: Vec<u32>,
    times: Vec<RangeInclusive<i64>>,
    fences: Vec<Vec<Vec<u8>>>,
}

impl RowGroup {
    /// Opens the row group whose bytes are `source`; `meta` is from the footer.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn open(meta: &RowGroupMeta, source: Source) -> Result<RowGroup> {
        if source.bytes.len() as u64 != meta.stored_bytes() {
            return Err(source.corrupt("row group of another length"));
        }
        let plan_at = meta.frames_len as usize;
        let root_at = plan_at + meta.plan.stored as usize;
        let plan_bytes = open_section(&source, plan_at, meta.plan)?;
        let root_bytes = open_section(&source, root_at, meta.root)?;
        let damaged = |e: WireError| source.corrupt(format_args!("{} (at byte {} of plan or root)", e.what, e.offset));
        let mut reader = Reader::new(&plan_bytes);
        let plan = Plan::decode(&mut reader).map_err(damaged)?;
        let roots = Roots::decode(&mut reader, &plan).map_err(damaged)?;
        reader.end().map_err(damaged)?;
        let (ends, times, fences) = decode_root(&root_bytes).map_err(damaged)?;
        let row_domain = |c: u32| &plan.domains[plan.columns[c as usize].domain as usize].ends;
        let fits = [roots.lines, roots.metadata, roots.formats].into_iter().all(|c| *row_domain(c) == ends);
        if !fits || ends.last() != Some(&meta.rows) || ends.len() != plan.ranges as usize {
            return Err(source.corrupt("root and plan do not go together"));
        }
        Ok(RowGroup { decoder: Decoder::new(Arc::new(plan), source)?, roots, ends, times, fences })
    }

    /// Number of row ranges.
    pub fn ranges(&self) -> usize {
        self.ends.len()
    }

    /// Rows of a range.
    pub fn rows(&self, range: usize) -> Range<usize> {
        let start = if range == 0 { 0 } else { self.ends[range - 1] };
        start as usize..self.ends[range] as usize
    }

    /// Least and greatest timestamp of a range.
    pub fn times(&self, range: usize) -> &RangeInclusive<i64> {
        &self.times[range]
    }

    /// The streams in order, and the end of each one's rows.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn streams(&mut self) -> Result<(Vec<Labels>, Vec<u32>)> {
        let labels = self.decoder.values(self.roots.labels, 0)?;
        let counts = self.decoder.numbers(self.roots.stream_rows, 0)?;
        let source = self.decoder.source();
        let (mut streams, mut ends) = (Vec::with_capacity(labels.len()), Vec::with_capacity(labels.len()));
        let mut end = 0u64;
        for index in 0..labels.len() {
            streams.push(Labels::decode(labels.get(index)).map_err(|e| source.corrupt(e))?);
            end += counts.get(index).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| source.corrupt("a stream without rows"))?;
            ends.push(u32::try_from(end).map_err(|_| source.corrupt("streams have too many rows"))?);
        }
        if ends.last() != self.ends.last() || streams.len() != self.roots.streams as usize {
            return Err(source.corrupt("streams and rows do not go together"));
        }
        Ok((streams, ends))
    }

    /// The lines of a range.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn lines(&mut self, range: usize) -> Result<Slice> {
        self.decoder.values(self.roots.lines, range)
    }

    /// The stored metadata of the rows of a range.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn metadata(&mut self, range: usize) -> Result<Slice> {
        self.decoder.values(self.roots.metadata, range)
    }

    /// Appends the timestamps of a range's rows to `out`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn timestamps(&mut self, range: usize, out: &mut Vec<i64>) -> Result<()> {
        let rows = self.rows(range).len();
        time::decode(&mut self.decoder, &self.roots.time, self.roots.lines, rows, range, out)
    }

    /// The formats of the rows of a range: distinct ones, and each row's.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn formats(&mut self, range: usize) -> Result<(Vec<Format>, Vec<u16>)> {
        let values = self.decoder.values(self.roots.formats, range)?;
        let mut formats: Vec<(&[u8], Format)> = Vec::new();
        let mut rows = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            let bytes = values.get(row);
            let known = rows.last().map(|&l: &u16| l as usize).filter(|&l| formats[l].0 == bytes);
            let index = match known.or_else(|| formats.iter().position(|f| f.0 == bytes)) {
                Some(index) => index,
                None => {
                    formats.push((bytes, Format::from_bytes(bytes).map_err(|e| self.decoder.source().corrupt(e))?));
                    formats.len() - 1
                }
            };
            rows.push(index as u16);
        }
        Ok((formats.into_iter().map(|f| f.1).collect(), rows))
    }

    /// Access to the columns, for search and for reports.
    pub fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// For each column what it belongs to.
    pub fn roles(&self) -> Vec<&'static str> {
        let plan = self.decoder.plan();
        let mut roles = vec!["line"; plan.columns.len()];
        let roots = [(self.roots.metadata, "metadata"), (self.roots.formats, "format"), (self.roots.labels, "labels")];
        for (root, name) in roots {
            let mut open = vec![root];
            while let Some(column) = open.pop() {
                roles[column as usize] = name;
                open.extend(plan.columns[column as usize].kind.children());
            }
        }
        roles[self.roots.stream_rows as usize] = "labels";
        roles[self.roots.time.explicit as usize] = "timestamp";
        roles
    }

    /// The line column.
    pub fn line_column(&self) -> u32 {
        self.roots.lines
    }

    /// For each dictionary the fences of its pages.
    pub fn fences(&self) -> &[Vec<Vec<u8>>] {
        &self.fences
    }

    /// Whether the lines are stored as they are.
    pub fn is_verbatim(&self) -> bool {
        matches!(self.decoder.plan().columns[self.roots.lines as usize].kind, Kind::Text)
    }
}

fn open_section(source: &Source, at: usize, section: Section) -> Result<Vec<u8>> {
    let fail = |what| Error::corrupt(&source.name, source.offset + at as u64, what);
    let stored = source.bytes.get(at..at + section.stored as usize).ok_or_else(|| fail("bytes end early"))?;
    if crc32fast::hash(stored) != section.crc {
        return Err(fail("checksum does not match"));
    }
    packing::decompress(stored, section.raw as usize).ok_or_else(|| fail("not a zstd frame of its length"))
}

type Root = (Vec<u32>, Vec<RangeInclusive<i64>>, Vec<Vec<Vec<u8>>>);

fn decode_root(bytes: &[u8]) -> WireResult<Root> {
    let mut reader = Reader::new(bytes);
    let (mut ends, mut times, mut fences) = (Vec::new(), Vec::new(), Vec::new());
    let mut end = 0u64;
    for _ in 0..reader.count()? {
        end += reader.bounded(u32::MAX as usize)? as u64;
        ends.push(u32::try_from(end).map_err(|_| reader.error("too many rows"))?);
        let least = reader.signed()?;
        times.push(least..=least.wrapping_add(reader.varint()? as i64));
    }
    for _ in 0..reader.count()? {
        let mut pages = Vec::new();
        for _ in 0..reader.count()? {
            pages.push(reader.bytes()?.to_vec());
        }
        fences.push(pages);
    }
    reader.end()?;
    Ok((ends, times, fences))
}

/// The stretch of an arena that spans cover, when they lie back to back.
fn stretch_of(spans: &[Span]) -> Option<(usize, usize)> {
    let (first, last) = (spans.first()?, spans.last()?);
    spans.is_sorted_by(|a, b| a.end() == b.at as usize).then_some((first.at as usize, last.end()))
}

/// Decodes everything in `bytes` and compares it with `rows`; gives `bytes` back.
fn verify(rows: &Rows, meta: &RowGroupMeta, bytes: Vec<u8>) -> Result<Vec<u8>> {
    let bytes = bytes::Bytes::from(bytes);
    let source = Source { bytes: bytes.clone(), name: "row group".into(), offset: 0 };
    let mut group = RowGroup::open(meta, source)?;
    let differ = |what: &str| Error::internal(format!("decoded {what} differ from what was encoded"));
    let (streams, ends) = group.streams()?;
    let mut end = 0;
    let same = streams.iter().zip(&ends).zip(&rows.streams).all(|((labels, &e), (wanted, count))| {
        end += count;
        labels == wanted && e == end
    });
    if !same || streams.len() != rows.streams.len() {
        return Err(differ("streams"));
    }
    let mut timestamps = Vec::new();
    for range in 0..group.ranges() {
        let here = group.rows(range);
        timestamps.clear();
        group.timestamps(range, &mut timestamps)?;
        if timestamps[..] != rows.timestamps[here.clone()] {
            return Err(differ("timestamps"));
        }
        let (formats, row_formats) = group.formats(range)?;
        let wanted = rows.row_formats[here.clone()].iter().map(|&f| &rows.formats[f as usize]);
        if !row_formats.iter().map(|&f| &formats[f as usize]).eq(wanted) {
            return Err(differ("formats"));
        }
        let (lines, metadata) = (group.lines(range)?, group.metadata(range)?);
        let same = |slice: &Slice, arena: &[u8], spans: &[Span]| {
            slice.len() == spans.len()
                && match (slice.as_text(), stretch_of(spans)) {
                    (Some((text, ends)), Some((from, to))) => {
                        text == &arena[from..to] && ends.iter().zip(spans).all(|(&end, span)| end as usize + from == span.end())
                    }
                    _ if slice.bytes() == 0 => spans.iter().all(|s| s.len == 0),
                    _ => (0..slice.len()).all(|i| slice.get(i) == spans[i].of(arena)),
                }
        };
        if !same(&lines, &rows.lines, &rows.line_spans[here.clone()]) {
            return Err(differ("lines"));
        }
        if !same(&metadata, &rows.metadata, &rows.metadata_spans[here]) {
            return Err(differ("metadata"));
        }
    }
    group.decoder.check_sets()?;
    drop(group);
    bytes.try_into_mut().map(|b| b.to_vec()).or_else(|b| Ok(b.to_vec()))
}
