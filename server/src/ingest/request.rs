//! What a request body held: the records that are kept, and the complaints about the others.
//!
//! What holds: every record of a body is either in the batch or counted as rejected.

use haystore::{Batch, Error, Result};

/// Limits of one request, whatever its protocol.
#[derive(Debug, Clone, Copy)]
pub struct RecordLimits {
    /// Longest line, in bytes; a longer one is rejected, the rest is kept.
    pub line_bytes_max: usize,
    /// Most records of one request; past it the request fails.
    pub request_records_max: usize,
}

/// What a body held.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The good records, in the order of the body.
    pub batch: Batch,
    /// How many records were rejected.
    pub rejected: u64,
    /// Why, for the first [`Parsed::ERRORS_MAX`] of them.
    pub errors: Vec<RecordError>,
}

/// Why one record was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// The record's number in its body, from 1, rejected ones counted too.
    pub record: u64,
    /// What is wrong with it.
    pub message: String,
}

impl Parsed {
    /// How many rejected records are described; the rest is only counted.
    pub const ERRORS_MAX: usize = 100;

    /// Counts the next record as rejected.
    pub fn reject(&mut self, message: impl Into<String>) {
        if self.errors.len() < Self::ERRORS_MAX {
            let record = self.batch.len() as u64 + self.rejected + 1;
            self.errors.push(RecordError { record, message: message.into() });
        }
        self.rejected += 1;
    }

    /// Keeps the next record, or rejects it when its line is too long.
    ///
    /// # Errors
    /// [`haystore::ErrorKind::Limit`] past the limit of records or of the batch.
    pub fn keep(&mut self, limits: &RecordLimits, timestamp: i64, stream: u32, format: u16, line: &[u8], metadata: &[u8]) -> Result<()> {
        if line.len() > limits.line_bytes_max {
            self.reject(format!("the line has {} bytes; at most {} are taken", line.len(), limits.line_bytes_max));
            return Ok(());
        }
        if self.batch.len() >= limits.request_records_max {
            return Err(Error::limit(format!("a request takes at most {} records", limits.request_records_max)));
        }
        self.batch.push(timestamp, stream, format, line, metadata)
    }
}
