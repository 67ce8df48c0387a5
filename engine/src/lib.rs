//! Haystore: a log store. Records in, needles and everything out.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;

pub mod error;
mod packing;
pub mod wire;

pub mod record;

pub mod disk;
pub mod objects;
pub mod wal;

pub mod column;
pub mod encoding;
pub mod segment;
pub mod shape;

pub mod manifest;

pub mod query;

pub mod arrow;
mod compaction;
pub mod store;

pub use error::{Error, ErrorKind, Result};
pub use record::{Batch, Format, Labels, Metadata, RecordRef, Tenant, Value};
pub use store::{ColumnUsage, Compacted, Ground, Purpose, SegmentUsage, Usage, Verified};
pub use store::{
    Cursor, Deleted, Direction, Gear, Job, JobReport, Options, QueryStats, Scan, ScanRequest, SearchRequest, SearchResult, Store,
};
