//! Columns: byte strings, row range by row range, as a tree of encodings, and back.
//!
//! A column's values lie in *row ranges*: the row group cuts its rows into ranges, and every column knows how many values it has
//! in each. A *page* is one or more whole ranges with at least [`plan::PAGE_VALUES_MIN`] values, so a range number means the same
//! rows in every column, and any range can be rebuilt alone. Columns with equal counts share a *domain*.
//! This module must not know about files, streams, time or queries.

mod assemble;
mod contexts;
pub mod decode;
mod dictionary;
pub mod encode;
mod frames;
mod lists;
mod mapping;
pub mod plan;
mod references;
mod shapes;
mod times;
pub mod values;
