//! Haystore's server: wire protocols, encoders and the command line, around the engine.

pub mod answer;
pub mod http;
pub mod ingest;

pub use http::{ServeConfig, serve};
