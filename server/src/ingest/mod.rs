//! Ingest: request bodies in, batches of records and the complaints about the rest out.
//!
//! One module a protocol. Nothing here does IO or knows HTTP.

pub mod loki;
pub mod request;
