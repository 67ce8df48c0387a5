//! The bytes of Haystore: chapters (in `chapters/`), constants, a slow reference decoder, golden files (in `golden/`).
//!
//! This crate must not know the engine: the engine takes its constants from here, and tests let both decoders read the same bytes.

pub mod constants;
pub mod decoder;
