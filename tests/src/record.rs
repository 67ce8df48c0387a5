//! A record by value, as the model keeps it.

use haystore::{Batch, Format, Labels, RecordRef};
use std::fmt;

/// A record with everything that must come back.
#[derive(Clone, PartialEq, Eq)]
pub struct Rec {
    /// Nanoseconds since the Unix epoch.
    pub timestamp: i64,
    /// The stream.
    pub labels: Labels,
    /// The line.
    pub line: Vec<u8>,
    /// Metadata in its stored form.
    pub metadata: Vec<u8>,
    /// The format.
    pub format: Format,
}

impl Rec {
    /// A record without metadata.
    pub fn plain(timestamp: i64, labels: &Labels, line: impl Into<Vec<u8>>) -> Rec {
        Rec { timestamp, labels: labels.clone(), line: line.into(), metadata: Vec::new(), format: Format::Text }
    }

    /// A copy of a record of the store.
    pub fn of(record: RecordRef<'_>) -> Rec {
        Rec {
            timestamp: record.timestamp,
            labels: record.labels.clone(),
            line: record.line.to_vec(),
            metadata: record.metadata.to_vec(),
            format: record.format.clone(),
        }
    }
}

/// Long lines are cut in messages.
impl fmt::Debug for Rec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, metadata) = (self.line.escape_ascii().to_string(), self.metadata.escape_ascii().to_string());
        let cut = |text: &str| text.chars().take(120).collect::<String>();
        write!(f, "{} {:?} {} [{}] {} {:?}", self.timestamp, self.labels, cut(&line), self.line.len(), cut(&metadata), self.format)
    }
}

/// The records as a batch, in their order.
pub fn batch_of(records: &[Rec]) -> Batch {
    let mut batch = Batch::new();
    for record in records {
        let (stream, format) = (batch.stream(&record.labels), batch.format(&record.format).unwrap());
        batch.push(record.timestamp, stream, format, &record.line, &record.metadata).unwrap();
    }
    batch
}

/// The records of a batch, in their order.
pub fn records_of(batch: &Batch) -> Vec<Rec> {
    batch.iter().map(Rec::of).collect()
}
