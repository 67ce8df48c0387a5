//! Scan: row groups and memtables to matching records in order (timestamp, stream, arrival), or exactly the reverse.
//!
//! Runs in one blocking thread that merges; helpers fetch and decode the next row groups ahead of it. A row group is opened when the
//! merge reaches its first record and dropped behind its last, so a scan of time-disjoint groups holds about one of them.
//! This module must not know where bytes lie or how they are written.

mod merge;
mod opening;
mod prune;
#[cfg(test)]
mod prune_tests;
mod run;
mod slices;

pub(crate) use merge::{Merge, Wanted};

use crate::error::Result;
use crate::segment::{GroupInfo, RowGroup};
use std::sync::Arc;

/// A row group that a query may have to read.
#[derive(Debug, Clone)]
pub(crate) struct GroupRef {
    /// Key of the segment.
    pub key: Arc<str>,
    /// Rank of the segment among those of its tenant, place in the segment: decides between records of one timestamp and stream.
    pub order: (u64, u32),
    /// From the segment's footer.
    pub info: GroupInfo,
}

/// Gives row groups; blocks.
pub(crate) trait GroupSource: Send + Sync + 'static {
    /// Reads and opens a row group.
    fn open(&self, group: &GroupRef) -> Result<RowGroup>;
}
