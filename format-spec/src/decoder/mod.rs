//! The reference decoder: a whole segment in, its records out. Slow, simple, and its own: it shares no code with the engine,
//! so that two readings of the chapters meet in the tests.
//!
//! It decodes every byte, checks every rule that the chapters call an error, keeps nothing, and never panics on any input.
//! It must not know how segments are written or searched.

mod area;
mod column;
mod cursor;
mod dictionary;
pub mod dump;
mod file;
mod integers;
mod labels;
mod plan;
mod print;
mod records;

use std::collections::BTreeSet;
use std::fmt;

/// One record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// The tenant.
    pub tenant: String,
    /// Labels, strictly ascending by name.
    pub labels: Vec<(String, String)>,
    /// Nanoseconds since the Unix epoch, UTC.
    pub timestamp: i64,
    /// The line.
    pub line: Vec<u8>,
    /// The stored form of the metadata, empty for none.
    pub metadata: Vec<u8>,
    /// The stored form of the format.
    pub format: Vec<u8>,
}

/// Why a segment could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Byte offset in the segment: of the fault, or of the stored piece (trailer, footer, plan, root, frame) that holds it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged at byte {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for DecodeError {}

type Result<T> = std::result::Result<T, DecodeError>;

fn fail<T>(offset: u64, what: impl Into<String>) -> Result<T> {
    Err(DecodeError { offset, what: what.into() })
}

/// Tags met while decoding, as (what the tag chooses, tag); tests use it to prove that the golden files show every one.
pub type Seen = BTreeSet<(&'static str, u64)>;

/// The records of a segment in stored order.
///
/// # Errors
/// The first rule of the chapters that `segment` breaks.
pub fn decode(segment: &[u8]) -> std::result::Result<Vec<Record>, DecodeError> {
    decode_seen(segment, &mut Seen::new())
}

/// As [`decode`]; adds the tags met to `seen`.
///
/// # Errors
/// As [`decode`].
pub fn decode_seen(segment: &[u8], seen: &mut Seen) -> std::result::Result<Vec<Record>, DecodeError> {
    let mut out = Vec::new();
    for group in file::read_footer(segment)? {
        records::read_group(segment, &group, seen, &mut out)?;
    }
    Ok(out)
}
