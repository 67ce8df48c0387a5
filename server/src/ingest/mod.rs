//! Ingest: bytes of files and request bodies in, [`haystore::Batch`]es out.
//!
//! | step | where | in -> out |
//! |---|---|---|
//! | unpack | [`decode`] | compressed bytes -> bytes |
//! | decide | [`mod@detect`] | first 64 KiB -> [`Plan`]: format, delimiter, columns, where the time is |
//! | cut, read | [`Parser`], [`RecordReader`], [`parse_body`] | bytes -> records in batches, a report, a place to resume at |
//! | read a push | [`loki`] | Loki's JSON and protobuf -> records, a count of the bad ones |
//! | find the time | [`timestamp`], `json`, `csv` | line -> i64 nanoseconds |
//!
//! What holds: the line of a record is the input's bytes, unchanged; records come in input order; joined with
//! newlines they are the input, up to its last newline (exceptions, each of them counted or stated: lines past
//! `line_bytes_max`; empty and bad lines of NDJSON request bodies; a header that is said to be repeated). The result depends on the bytes and the
//! options alone, never on how the bytes were cut when they arrived.
//! This module must not know HTTP, the store, or where its bytes come from.

mod civil;
mod csv;
pub mod decode;
pub mod detect;
mod json;
pub mod loki;
mod options;
mod parser;
mod reader;
pub mod request;
mod state;
pub mod timestamp;

pub use csv::whole_records as whole_csv_records;
pub use decode::{BodyError, Input, decode_body};
pub use detect::{Plan, csv_header, detect};
pub use options::{CsvHeader, InputFormat, OddLines, ReadOptions, Timestamps};
pub use parser::{BATCH_RECORDS_MAX, ERRORS_KEPT_MAX, Parser, RecordError, Report, Step};
pub use reader::{RecordReader, parse_body};
pub use state::{Counts, ReaderState};
pub use timestamp::TimeRules;
