//! Answers: records out of the store, to bytes.
//!
//! One module a form; each appends to a buffer that its caller empties, so that no answer is ever whole in memory
//! unless it is small. Pure: nothing here does IO, knows HTTP, or asks the store.

pub mod json;
pub mod loki;
pub mod ndjson;
pub mod raw;
