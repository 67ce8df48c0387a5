//! The record and its parts: what goes in and what comes out, independent of any file.
//!
//! A record is timestamp + labels + line + metadata (+ format). Records travel in [`Batch`]es: column
//! arrays over shared byte arenas, so that neither ingest nor scan allocates per record.
//! This module must not know about files, segments, queries or protocols.

mod batch;
mod format;
mod labels;
mod metadata;
mod tenant;

pub(crate) use batch::Parts;
pub use batch::{Batch, RecordRef};
pub use format::Format;
pub use labels::Labels;
pub use metadata::{Metadata, Value};
pub use tenant::Tenant;
