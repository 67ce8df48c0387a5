//! Haystore: a log store. Records in, needles and everything out.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;

pub mod error;
pub mod query;
pub mod record;
pub mod store;

pub use error::{Error, ErrorKind, Result};
pub use record::{Batch, Format, Labels, Metadata, RecordRef, Tenant, Value};
pub use store::{Cursor, Direction, Job, JobReport, Options, QueryStats, Scan, ScanRequest, SearchRequest, SearchResult, Store};
