//! The stores built in: each a library, or a compressor, run in this process.

mod haystore;
mod packed;
mod packing;
mod parquet;
mod sqlite;
mod tantivy;

use crate::peer::{Peer, Task};
use anyhow::{Context, Result};
use packed::Packed;
use packing::Packing;
use std::fs;
use std::path::Path;

/// The names of the stores built in.
pub const NAMES: [&str; 10] =
    ["plain", "gzip-6", "zstd-3", SLOWEST, "parquet-zstd", "tantivy", "sqlite-fts5", "sqlite-trigram", "haystore", "haystore-compacted"];
/// The one that `--quick` leaves out.
pub const SLOWEST: &str = "zstd-19-long";

/// All of them.
pub fn built_in(task: &Task) -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Packed::new(task, Packing::None)),
        Box::new(Packed::new(task, Packing::Gzip)),
        Box::new(Packed::new(task, Packing::Zstd3)),
        Box::new(Packed::new(task, Packing::Zstd19Long)),
        Box::new(parquet::Parquet::new(task)),
        Box::new(tantivy::Tantivy::new(task)),
        Box::new(sqlite::Sqlite::new(task, sqlite::Tokenizer::Words)),
        Box::new(sqlite::Sqlite::new(task, sqlite::Tokenizer::Trigrams)),
        Box::new(haystore::Haystore::new(task, false)),
        Box::new(haystore::Haystore::new(task, true)),
    ]
}

/// Bytes of all files below `folder`, which may be a file.
///
/// # Errors
/// Those of the folder. A file that goes away meanwhile counts nothing.
pub fn tree_bytes(folder: &Path) -> Result<u64> {
    let about = fs::symlink_metadata(folder).with_context(|| format!("cannot measure {}", folder.display()))?;
    if !about.is_dir() {
        return Ok(if about.is_file() { about.len() } else { 0 });
    }
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        match tree_bytes(&path) {
            Err(_) if !path.exists() => {}
            other => bytes += other?,
        }
    }
    Ok(bytes)
}
