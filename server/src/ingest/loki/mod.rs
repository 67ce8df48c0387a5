//! Loki's push protocol: JSON and protobuf bodies, already decompressed, to records.
//!
//! What holds: a malformed body is an error and leaves nothing; a well-formed body with bad entries gives its
//! good entries and counts the others. Lines are bytes: invalid UTF-8 stays. Memory is bounded by the body's
//! size and [`RecordLimits`]: bodies are walked, never turned into a tree.
//! Nothing here does IO or knows HTTP.

mod json;
mod labels;
mod metadata;
mod protobuf;

pub use json::parse_json;
pub use labels::parse_labels;
pub use protobuf::parse_protobuf;

use super::request::{Parsed, RecordLimits};
use haystore::{Error, Format, Labels, Metadata, Result, Value};

/// Most pairs of structured metadata, nested values counted, that one entry may have.
pub const METADATA_VALUES_MAX: usize = 4096;
/// Most labels of one stream.
pub const LABELS_MAX: usize = 256;

/// Where entries go.
struct Sink {
    parsed: Parsed,
    limits: RecordLimits,
    format: u16,
    /// Set when the whole request fails for a reason that is not its syntax.
    fatal: Option<Error>,
}

impl Sink {
    fn new(limits: &RecordLimits) -> Result<Self> {
        let mut parsed = Parsed::default();
        let format = parsed.batch.format(&Format::Text)?;
        Ok(Sink { parsed, limits: *limits, format, fatal: None })
    }

    /// Takes one entry; `Err` when the request as a whole must fail.
    fn entry(&mut self, stream: u32, timestamp: Result<i64, String>, line: &[u8], metadata: &[u8]) -> Result<()> {
        match timestamp {
            Ok(timestamp) => self.parsed.keep(&self.limits, timestamp, stream, self.format, line, metadata),
            Err(message) => {
                self.parsed.reject(message);
                Ok(())
            }
        }
    }
}

/// A stream whose labels may not be known yet, or may be bad.
enum Stream {
    Good { labels: Labels, index: Option<u32> },
    Bad(String),
}

impl Stream {
    fn new(labels: Result<Labels, String>) -> Self {
        match labels {
            Ok(labels) if labels.len() <= LABELS_MAX => Stream::Good { labels, index: None },
            Ok(labels) => Stream::Bad(format!("the stream has {} labels; at most {LABELS_MAX} are taken", labels.len())),
            Err(message) => Stream::Bad(message),
        }
    }

    /// The stream's index in the batch; it enters the batch with its first entry.
    fn index(&mut self, sink: &mut Sink) -> Result<u32, String> {
        match self {
            Stream::Good { labels, index } => Ok(*index.get_or_insert_with(|| sink.parsed.batch.stream(labels))),
            Stream::Bad(message) => Err(message.clone()),
        }
    }
}

/// The stored form of `pairs`; an error when there are more than [`METADATA_VALUES_MAX`].
fn encode_metadata(pairs: Vec<(String, Value)>) -> Vec<u8> {
    Metadata(pairs).encode()
}

#[cfg(test)]
mod tests;
