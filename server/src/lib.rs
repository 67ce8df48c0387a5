//! Haystore's server: HTTP and wire protocols, the command line, the demo. The binary `haystore` is a thin shell around this library.

pub mod answer;
mod arenas;
pub mod cli;
pub mod corpus;
pub mod http;
pub mod ingest;

pub use http::{ServeConfig, serve};
