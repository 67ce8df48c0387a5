//! What goes into and comes out of the store's calls.

use crate::error::{Error, Result};
use crate::query::Query;
use crate::record::{Batch, Labels};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// How a store is opened. Every limit has a default that suits a machine with 1 GB to spare.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the WAL. `None`: the store is opened for reading and for batch jobs; [`crate::Store::append`] is refused.
    pub wal: Option<PathBuf>,
    /// Bytes of records in memory at which a memtable is flushed.
    pub flush_bytes: usize,
    /// Age of the oldest record in memory at which a memtable is flushed.
    pub flush_age: Duration,
    /// Bytes of records in memory at which appends are refused as busy.
    pub memtable_bytes_max: usize,
    /// Longest line, in bytes.
    pub line_bytes_max: usize,
    /// Bytes that one query may hold in memory.
    pub query_bytes_max: usize,
    /// Threads that encode and decode.
    pub threads: usize,
    /// Bytes of lines between two checkpoints of a batch job.
    pub checkpoint_bytes: usize,
    /// Row groups that are encoded at once, at most [`Options::threads`]: each takes about [`ENCODE_FACTOR`] times its lines.
    pub encoders: usize,
    /// Bytes of lines in a row group of a fresh segment.
    pub group_bytes: usize,
    /// Bytes of lines in a row group that compaction writes.
    pub compacted_group_bytes: usize,
    /// How hard compaction tries.
    pub gear: Gear,
    /// Bytes at which a segment that is being written, and held, is closed.
    pub segment_bytes_max: usize,
    /// How long a replaced object stays for readers that still use it.
    pub grace: Duration,
    /// How old, by the object store's clock, an object must be that was uploaded but never published, to be deleted. At least
    /// [`crate::store::ORPHAN_AGE_MIN`].
    pub orphan_age: Duration,
    /// How often compaction looks for work.
    pub compact_every: Duration,
    /// How often a writing store looks for what other processes have published.
    pub refresh_every: Duration,
}

/// Encoding a row group takes so many times the bytes of its lines.
pub const ENCODE_FACTOR: usize = 4;

impl Default for Options {
    fn default() -> Self {
        let options = Options {
            wal: None,
            flush_bytes: 0,
            flush_age: Duration::from_secs(30),
            memtable_bytes_max: 0,
            line_bytes_max: 16 << 20,
            query_bytes_max: 0,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            checkpoint_bytes: 256 << 20,
            encoders: 0,
            group_bytes: 0,
            compacted_group_bytes: 0,
            gear: Gear::default(),
            segment_bytes_max: 0,
            grace: Duration::from_secs(15 * 60),
            orphan_age: Duration::from_secs(24 * 60 * 60),
            compact_every: Duration::from_secs(60),
            refresh_every: Duration::from_secs(5),
        };
        options.within(Options::MEMORY)
    }
}

impl Options {
    /// The memory that the defaults are made for, in bytes.
    pub const MEMORY: usize = 512 << 20;

    /// For a process that does nothing but compact within about `memory` bytes: row groups as large as that allows.
    #[must_use]
    pub fn to_compact(self, memory: usize) -> Options {
        Options { compacted_group_bytes: (memory / (2 * ENCODE_FACTOR)).clamp(1 << 20, GROUP_BYTES_MAX), ..self.within(memory) }
    }

    /// Sets every limit of memory so that a process with this store takes about `memory` bytes, whatever it is given; `threads` counts.
    /// Of 16 parts memtables get 3, encoding 3, compaction 3, a query 2, requests being received 3; the rest is the process's own.
    #[must_use]
    pub fn within(self, memory: usize) -> Options {
        let part = memory / 16;
        let threads = self.threads.max(1);
        let group_bytes = (3 * part / ENCODE_FACTOR / threads).clamp(1 << 20, 16 << 20);
        Options {
            memtable_bytes_max: 3 * part,
            flush_bytes: 3 * part / 2,
            query_bytes_max: 2 * part,
            encoders: (3 * part / ENCODE_FACTOR / group_bytes).clamp(1, threads),
            group_bytes,
            compacted_group_bytes: (part / 2).clamp(1 << 20, GROUP_BYTES_MAX),
            segment_bytes_max: part.clamp(1 << 20, 64 << 20),
            ..self
        }
    }
}

/// The largest row group that compaction makes by itself.
const GROUP_BYTES_MAX: usize = 128 << 20;

/// How hard compaction tries to make segments small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gear {
    /// zstd's level, 1 to 19.
    pub level: i32,
    /// Whether each row group is also compressed in one piece, at the cost of much time, and kept so where that is shorter: its rows can then only be
    /// read together.
    pub archive: bool,
}

impl Default for Gear {
    fn default() -> Self {
        Gear { level: 9, archive: false }
    }
}

/// The order in which records come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Oldest first.
    #[default]
    Forward,
    /// Newest first: exactly the reverse.
    Backward,
}

/// A needle search.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// What to find.
    pub query: Query,
    /// First and last timestamp, both included.
    pub range: RangeInclusive<i64>,
    /// Most records returned.
    pub limit: usize,
    /// Which end to begin at.
    pub direction: Direction,
    /// Go on behind this record.
    pub after: Option<Cursor>,
}

/// A bulk scan, oldest first.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// What to return.
    pub query: Query,
    /// First and last timestamp, both included.
    pub range: RangeInclusive<i64>,
    /// Go on behind this record.
    pub after: Option<Cursor>,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The records, in the direction asked for.
    pub records: Batch,
    /// Set when `limit` cut the result and more may follow: the place to go on.
    pub next: Option<Cursor>,
    /// What the search cost.
    pub stats: QueryStats,
}

/// What a query cost.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct QueryStats {
    /// Segments live for the tenant.
    pub segments: u64,
    /// Row groups that could not be ruled out.
    pub row_groups: u64,
    /// Records rebuilt.
    pub rows: u64,
    /// Bytes of lines rebuilt.
    pub line_bytes: u64,
    /// Bytes read from the object store.
    pub bytes_read: u64,
    /// Requests to the object store.
    pub requests: u64,
}

/// What a batch job did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct JobReport {
    /// Records published by this process's part of the job.
    pub records: u64,
    /// Bytes of their lines.
    pub line_bytes: u64,
    /// Bytes of the segments written.
    pub stored_bytes: u64,
}

/// Objects that a process has deleted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// Those that were replaced longer ago than the grace period.
    pub replaced: u64,
    /// Those that were never published.
    pub orphans: u64,
}

/// A place in a tenant's records: behind the record with this timestamp, stream, and count of
/// records of the same timestamp and stream up to and with it. It outlives flush, compaction and restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Timestamp of the record.
    pub timestamp: i64,
    /// Its stream.
    pub labels: Labels,
    /// 1 for the first record of that timestamp and stream *matching the query* in the direction of travel.
    pub ordinal: u64,
}

impl Cursor {
    /// Whether a record at `other` comes strictly after this place.
    pub fn is_before(&self, other: &Cursor, direction: Direction) -> bool {
        let order = (self.timestamp, &self.labels).cmp(&(other.timestamp, &other.labels));
        match direction {
            Direction::Forward => order.is_lt() || order.is_eq() && self.ordinal < other.ordinal,
            Direction::Backward => order.is_gt() || order.is_eq() && self.ordinal < other.ordinal,
        }
    }

    /// Steps over the next record of an ordered sequence; `place` is the cursor behind the record before.
    pub fn step(place: &mut Option<Cursor>, timestamp: i64, labels: &Labels) {
        match place {
            Some(last) if last.timestamp == timestamp && last.labels == *labels => last.ordinal += 1,
            Some(last) => {
                last.timestamp = timestamp;
                last.ordinal = 1;
                if last.labels != *labels {
                    last.labels = labels.clone();
                }
            }
            none => *none = Some(Cursor { timestamp, labels: labels.clone(), ordinal: 1 }),
        }
    }

    /// The cursor as text for URLs: letters, digits, `-`, `_`.
    pub fn to_text(&self) -> String {
        let mut bytes = self.timestamp.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.ordinal.to_be_bytes());
        for (name, value) in self.labels.iter() {
            for part in [name, value] {
                bytes.extend_from_slice(&(part.len() as u32).to_be_bytes());
                bytes.extend_from_slice(part.as_bytes());
            }
        }
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_be_bytes());
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The inverse of [`Cursor::to_text`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `text` is no cursor.
    pub fn from_text(text: &str) -> Result<Cursor> {
        Self::parse(text).ok_or_else(|| Error::invalid("this is not a cursor of this store"))
    }

    fn parse(text: &str) -> Option<Cursor> {
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return None;
        }
        let bytes: Vec<u8> = digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok()).collect::<Option<_>>()?;
        let (bytes, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(bytes) != u32::from_be_bytes(*sum) {
            return None;
        }
        let (timestamp, rest) = bytes.split_first_chunk::<8>()?;
        let (ordinal, mut rest) = rest.split_first_chunk::<8>()?;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let (len, tail) = rest.split_first_chunk::<4>()?;
            let len = u32::from_be_bytes(*len) as usize;
            parts.push(std::str::from_utf8(tail.get(..len)?).ok()?);
            rest = &tail[len..];
        }
        let pairs = parts.chunks_exact(2).map(|p| (p[0], p[1]));
        Some(Cursor { timestamp: i64::from_be_bytes(*timestamp), labels: Labels::new(pairs), ordinal: u64::from_be_bytes(*ordinal) })
    }
}
