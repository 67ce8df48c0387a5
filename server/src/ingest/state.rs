//! Where a reader stands, as bytes, so that a job goes on after a restart as if it had never stopped.
//!
//! The bytes are JSON with a version; another version is refused. What was decided is kept with the place: the plan, the
//! rules for timestamps (with their 'now') and the last timestamp; so the records of a resumed reader are those of
//! one that never stopped, whatever the clock says by then.

use super::detect::Plan;
use super::options::Timestamps;
use super::timestamp::TimeRules;
use haystore::{Error, Result};
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;

/// A border between two records of an input, and all that is needed to read on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderState {
    version: u32,
    /// Bytes of unpacked input behind the last record.
    pub(super) position: u64,
    /// Line ends before `position`.
    pub(super) line: u64,
    /// `None` until the first bytes were seen.
    pub(super) plan: Option<Plan>,
    /// The timestamp of the last record, or what the first gets when it has none.
    pub(super) last_time: i64,
    pub(super) timestamps: Timestamps,
    pub(super) time_field: Option<String>,
    pub(super) rules: TimeRules,
    pub(super) counts: Counts,
}

/// Totals since the input's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Records given out.
    pub records: u64,
    /// Bytes of their lines.
    pub line_bytes: u64,
    /// Records without a timestamp of their own.
    pub untimed: u64,
    /// Lines of NDJSON that are no JSON and became text.
    pub odd: u64,
    /// Lines that became no record; each is an error.
    pub rejected: u64,
}

impl ReaderState {
    pub(super) fn new(timestamps: Timestamps, time_field: Option<String>, rules: TimeRules) -> Self {
        let last_time = rules.now;
        ReaderState {
            version: VERSION,
            position: 0,
            line: 0,
            plan: None,
            last_time,
            timestamps,
            time_field,
            rules,
            counts: Counts::default(),
        }
    }

    /// Where to go on reading: bytes of unpacked input behind the last record.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How the input is read; `None` before the first batch.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// The state as bytes.
    ///
    /// # Errors
    /// None that input can cause.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::internal(format!("reader state: {e}")))
    }

    /// The inverse of [`ReaderState::to_bytes`].
    ///
    /// # Errors
    /// [`haystore::ErrorKind::Invalid`] when `bytes` is no state, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let invalid = |e: serde_json::Error| Error::invalid(format!("reader state: {e}"));
        let Versioned { version } = serde_json::from_slice(bytes).map_err(invalid)?;
        if version != VERSION {
            return Err(Error::invalid(format!("reader state: version {version} is not {VERSION}")));
        }
        serde_json::from_slice(bytes).map_err(invalid)
    }
}
