//! A batch: many records of one tenant as column arrays over shared byte arenas.

use super::{Format, Labels, Metadata};
use crate::error::{Error, Result};
use hashbrown::HashMap;

/// Records of one tenant, in arrival order when they go in, in output order when they come out.
///
/// Lines and encoded metadata lie back to back in one arena each; a record is an index. A batch holds
/// less than 4 GiB of lines and less than 4 GiB of metadata.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    streams: Vec<Labels>,
    stream_index: HashMap<Labels, u32, foldhash::fast::FixedState>,
    formats: Vec<Format>,
    timestamps: Vec<i64>,
    row_streams: Vec<u32>,
    row_formats: Vec<u16>,
    lines: Vec<u8>,
    line_ends: Vec<u32>,
    metadata: Vec<u8>,
    metadata_ends: Vec<u32>,
}

/// One record of a [`Batch`], borrowed.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    /// Nanoseconds since the Unix epoch, UTC.
    pub timestamp: i64,
    /// The stream's labels.
    pub labels: &'a Labels,
    /// How fields are read from the line.
    pub format: &'a Format,
    /// The line's bytes, exactly as sent.
    pub line: &'a [u8],
    /// Metadata in its stored form ([`Metadata::encode`]); empty when there is none.
    pub metadata: &'a [u8],
}

/// The arenas of a [`Batch`], borrowed.
pub(crate) struct Arenas<'a> {
    pub lines: &'a [u8],
    pub line_ends: &'a [u32],
    pub metadata: &'a [u8],
    pub metadata_ends: &'a [u32],
}

/// Everything a [`Batch`] is made of; the fields mean what they mean there.
pub(crate) struct Parts {
    pub streams: Vec<Labels>,
    pub formats: Vec<Format>,
    pub timestamps: Vec<i64>,
    pub row_streams: Vec<u32>,
    pub row_formats: Vec<u16>,
    pub lines: Vec<u8>,
    pub line_ends: Vec<u32>,
    pub metadata: Vec<u8>,
    pub metadata_ends: Vec<u32>,
}

impl Batch {
    /// The most bytes of lines, or of metadata, in one batch.
    pub const BYTES_MAX: usize = u32::MAX as usize;

    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether the batch has no record.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// Bytes of all lines together.
    pub fn line_bytes(&self) -> usize {
        self.lines.len()
    }

    /// Roughly what the batch takes in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.lines.capacity()
            + self.metadata.capacity()
            + self.timestamps.capacity() * 8
            + (self.row_streams.capacity() + self.line_ends.capacity() + self.metadata_ends.capacity()) * 4
            + self.row_formats.capacity() * 2
            + self.streams.iter().map(|s| 64 + s.memory_bytes()).sum::<usize>()
    }

    /// The index of the stream `labels` in this batch; added when new.
    pub fn stream(&mut self, labels: &Labels) -> u32 {
        if let Some(&index) = self.stream_index.get(labels) {
            return index;
        }
        let index = self.streams.len() as u32;
        self.streams.push(labels.clone());
        self.stream_index.insert(labels.clone(), index);
        index
    }

    /// The index of `format` in this batch; added when new.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] past 65,535 formats.
    pub fn format(&mut self, format: &Format) -> Result<u16> {
        if let Some(index) = self.formats.iter().position(|f| f == format) {
            return Ok(index as u16);
        }
        let index = u16::try_from(self.formats.len()).map_err(|_| Error::limit("a batch has at most 65,535 formats"))?;
        self.formats.push(format.clone());
        Ok(index)
    }

    /// Appends a record. `stream` and `format` come from [`Batch::stream`] and [`Batch::format`];
    /// `metadata` is in its stored form, empty for none.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] when the batch would pass [`Batch::BYTES_MAX`].
    pub fn push(&mut self, timestamp: i64, stream: u32, format: u16, line: &[u8], metadata: &[u8]) -> Result<()> {
        debug_assert!((stream as usize) < self.streams.len() && (format as usize) < self.formats.len());
        if self.lines.len() + line.len() > Self::BYTES_MAX || self.metadata.len() + metadata.len() > Self::BYTES_MAX {
            return Err(Error::limit("a batch holds at most 4 GiB"));
        }
        self.timestamps.push(timestamp);
        self.row_streams.push(stream);
        self.row_formats.push(format);
        self.lines.extend_from_slice(line);
        self.line_ends.push(self.lines.len() as u32);
        self.metadata.extend_from_slice(metadata);
        self.metadata_ends.push(self.metadata.len() as u32);
        Ok(())
    }

    /// Appends records of one stream and format without metadata: their `timestamps`, and their lines back to back with the end of each.
    ///
    /// # Errors
    /// As [`Batch::push`].
    pub(crate) fn push_rows(&mut self, timestamps: &[i64], stream: u32, format: u16, (lines, ends): (&[u8], &[u32])) -> Result<()> {
        debug_assert!(timestamps.len() == ends.len() && ends.last().map_or(0, |&e| e as usize) == lines.len());
        let at = self.lines.len();
        if at + lines.len() > Self::BYTES_MAX {
            return Err(Error::limit("a batch holds at most 4 GiB"));
        }
        let rows = self.len() + timestamps.len();
        self.timestamps.extend_from_slice(timestamps);
        self.row_streams.resize(rows, stream);
        self.row_formats.resize(rows, format);
        self.lines.extend_from_slice(lines);
        self.line_ends.extend(ends.iter().map(|end| at as u32 + end));
        self.metadata_ends.resize(rows, self.metadata.len() as u32);
        Ok(())
    }

    /// Makes room for more records.
    pub(crate) fn reserve(&mut self, rows: usize, line_bytes: usize) {
        self.timestamps.reserve(rows);
        self.row_streams.reserve(rows);
        self.row_formats.reserve(rows);
        self.line_ends.reserve(rows);
        self.metadata_ends.reserve(rows);
        self.lines.reserve(line_bytes);
    }

    /// Gives back memory beyond what the records need.
    pub fn shrink(&mut self) {
        self.timestamps.shrink_to_fit();
        self.row_streams.shrink_to_fit();
        self.row_formats.shrink_to_fit();
        self.lines.shrink_to_fit();
        self.line_ends.shrink_to_fit();
        self.metadata.shrink_to_fit();
        self.metadata_ends.shrink_to_fit();
    }

    /// Appends a record with everything given by value; convenient, not fast.
    ///
    /// # Errors
    /// As [`Batch::push`] and [`Batch::format`].
    pub fn push_record(&mut self, timestamp: i64, labels: &Labels, line: &[u8], metadata: &Metadata, format: &Format) -> Result<()> {
        let stream = self.stream(labels);
        let format = self.format(format)?;
        self.push(timestamp, stream, format, line, &metadata.encode())
    }

    /// Appends a copy of `record`, of another batch.
    ///
    /// # Errors
    /// As [`Batch::push`] and [`Batch::format`].
    pub fn push_ref(&mut self, record: RecordRef<'_>) -> Result<()> {
        let stream = self.stream(record.labels);
        let format = self.format(record.format)?;
        self.push(record.timestamp, stream, format, record.line, record.metadata)
    }

    /// Record `row`; panics when there is none.
    pub fn get(&self, row: usize) -> RecordRef<'_> {
        RecordRef {
            timestamp: self.timestamps[row],
            labels: &self.streams[self.row_streams[row] as usize],
            format: &self.formats[self.row_formats[row] as usize],
            line: self.line(row),
            metadata: self.metadata(row),
        }
    }

    /// All records in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The line of record `row`.
    pub fn line(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.line_ends[row - 1] as usize };
        &self.lines[start..self.line_ends[row] as usize]
    }

    /// All lines back to back, and the end of each.
    pub fn lines(&self) -> (&[u8], &[u32]) {
        (&self.lines, &self.line_ends)
    }

    /// The stored metadata of record `row`; empty when there is none.
    pub fn metadata(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.metadata_ends[row - 1] as usize };
        &self.metadata[start..self.metadata_ends[row] as usize]
    }

    /// Timestamps, one a record.
    pub fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    /// Distinct streams, in order of first use. Not every one needs to have records.
    pub fn streams(&self) -> &[Labels] {
        &self.streams
    }

    /// Index into [`Batch::streams`], one a record.
    pub fn row_streams(&self) -> &[u32] {
        &self.row_streams
    }

    /// Distinct formats, in order of first use.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Index into [`Batch::formats`], one a record.
    pub fn row_formats(&self) -> &[u16] {
        &self.row_formats
    }

    /// The arenas and where each record ends in them.
    pub(crate) fn arenas(&self) -> Arenas<'_> {
        Arenas { lines: &self.lines, line_ends: &self.line_ends, metadata: &self.metadata, metadata_ends: &self.metadata_ends }
    }

    /// A batch of these parts.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when they don't fit together.
    pub(crate) fn from_parts(parts: Parts) -> Result<Self> {
        let Parts { streams, formats, timestamps, row_streams, row_formats, lines, line_ends, metadata, metadata_ends } = parts;
        let rows = timestamps.len();
        let same_rows = [row_streams.len(), row_formats.len(), line_ends.len(), metadata_ends.len()].iter().all(|&n| n == rows);
        let known = row_streams.iter().all(|&i| (i as usize) < streams.len()) && row_formats.iter().all(|&i| (i as usize) < formats.len());
        let fits = |ends: &[u32], len: usize| ends.is_sorted() && ends.last().map_or(0, |&end| end as usize) == len;
        if !(same_rows && known && fits(&line_ends, lines.len()) && fits(&metadata_ends, metadata.len())) {
            return Err(Error::invalid("the parts of a batch don't fit together"));
        }
        let stream_index: HashMap<_, _, _> = streams.iter().cloned().zip(0..).collect();
        if stream_index.len() != streams.len() {
            return Err(Error::invalid("a stream occurs twice in a batch"));
        }
        Ok(Batch { streams, stream_index, formats, timestamps, row_streams, row_formats, lines, line_ends, metadata, metadata_ends })
    }

    /// Forgets all records, streams and formats, keeps the memory.
    pub fn clear(&mut self) {
        self.streams.clear();
        self.stream_index.clear();
        self.formats.clear();
        self.timestamps.clear();
        self.row_streams.clear();
        self.row_formats.clear();
        self.lines.clear();
        self.line_ends.clear();
        self.metadata.clear();
        self.metadata_ends.clear();
    }
}
