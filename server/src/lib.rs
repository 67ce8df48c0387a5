//! Haystore's server: HTTP and wire protocols around one [`haystore::Store`].

pub mod answer;
pub mod http;
pub mod ingest;

pub use http::{ServeConfig, serve};
