//! Encodings: sequences of values to pieces of bytes and back. Pure: slices in, bytes or values out.
//!
//! A *piece* is the encoded form of one page of one column (or of one page of a dictionary). It is *hard* when
//! general compression cannot shrink it, *soft* when it can. Pieces carry no count: the reader knows it from the directory.
//! This module must not know about files, row groups or queries.

pub mod dictionary;
pub mod integers;
pub mod out;
pub mod print;
pub mod text;
pub mod typed;

/// One encoded page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether compression is pointless.
    pub hard: bool,
}
