//! Haystore: a log store. Records in, needles and everything out.

pub mod error;
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

pub mod store;

pub use error::{Error, ErrorKind, Result};
pub use record::{Batch, Format, Labels, Metadata, RecordRef, Tenant, Value};
pub use store::{Cursor, Direction, Job, JobReport, Options, QueryStats, Scan, ScanRequest, SearchRequest, SearchResult, Store};
