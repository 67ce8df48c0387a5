//! The store's upkeep: usage, verification, compaction.

use crate::cli::report::{Compacted, Usage, Verified};
use anyhow::{Result, bail};
use haystore::Store;
use indicatif::ProgressBar;

/// Where the store's bytes are.
///
/// # Errors
/// Those of the store.
pub async fn usage(_store: &Store) -> Result<Usage> {
    bail!("this build's store does not tell its usage")
}

/// Reads everything again.
///
/// # Errors
/// Those of the store; damage is no error but a part of the result.
pub async fn verify(_store: &Store, _bar: &ProgressBar) -> Result<Verified> {
    bail!("this build's store cannot verify itself")
}

/// Merges small segments.
///
/// # Errors
/// Those of the store.
pub async fn compact(_store: &Store) -> Result<Compacted> {
    bail!("this build's store cannot compact itself")
}
