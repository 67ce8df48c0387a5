//! Haystore's server: wire protocols, encoders and the command line, around the engine.

pub mod ingest;
