//! Haystore: a log store. Records in, needles and everything out.

pub mod disk;
pub mod error;
pub mod objects;
pub mod query;
pub mod record;
pub mod store;
pub mod wal;

pub use error::{Error, ErrorKind, Result};
pub use record::{Batch, Format, Labels, Metadata, RecordRef, Tenant, Value};
pub use store::{Cursor, Direction, Job, JobReport, Options, QueryStats, Scan, ScanRequest, SearchRequest, SearchResult, Store};
