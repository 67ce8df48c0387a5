//! The manifest: the one place that says what is live. It knows segments by name and key, never by content.
//!
//! It lies in the object store as a log of deltas, `manifest/<version>.delta`, each made by put-if-absent: whoever creates
//! version n + 1 has committed, everyone else builds anew on top of it. Every [`Options::checkpoint_every`] versions the whole
//! state is written to `manifest/<version>.checkpoint`; `manifest/hint` names the newest such, but nobody believes it unchecked.
//!
//! What holds:
//! - Versions are dense; a delta names the commit it follows; a delta object never changes.
//! - A commit reported as done is in history exactly once; an unknown outcome is reported as an error, and the next call finds out first.
//! - A state is judged by one pure function (`delta::apply`), by committer and reader alike.
//! - History is removed from the front only (checkpoints first, then deltas, ascending), and only what a checkpoint older than the grace
//!   period replaces. Who relies on 'version n + 1 is absent, so n is the newest' after longer than a quarter of that proves
//!   first that his own checkpoint, and its delta, are still there.
//!
//! This module must not know what is in a segment, who flushes or compacts, or which object store it is.

mod codec;
mod commit;
mod delta;
mod environment;
mod history;
mod map;
mod open;
mod state;

#[cfg(test)]
mod tests;

pub use commit::Manifest;
pub use delta::{Delta, JobChange, WriterChange};
pub(crate) use environment::unix_ns;
pub use environment::{Environment, SystemEnvironment};
pub use state::{JobEntry, LivePart, SegmentId, SegmentMeta, State, TenantPart, Writer};

use std::time::Duration;

/// The longest key of a segment, a job or garbage, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// The longest state of a job, in bytes.
pub const JOB_STATE_BYTES_MAX: usize = 1 << 20;
/// The largest delta object, in bytes.
pub const DELTA_BYTES_MAX: usize = 16 << 20;
/// The largest checkpoint, before and after compression, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 1 << 30;
/// A fresh segment's `order` is `version << ORDER_SHIFT | place in its delta`.
pub const ORDER_SHIFT: u32 = 16;

const PREFIX: &str = "manifest/";
const HINT: &str = "manifest/hint";

/// How a manifest is kept. All processes on one store must agree on `grace`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Versions from one checkpoint to the next.
    pub checkpoint_every: u64,
    /// How long history that a checkpoint replaces is kept.
    pub grace: Duration,
    /// How often a request whose outcome is unknown is tried, at most.
    pub attempts_max: u32,
    /// How often a commit is built anew because another came first, at most.
    pub conflicts_max: u32,
    /// The first wait before another attempt; doubles each time, with jitter.
    pub backoff: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            checkpoint_every: 64,
            grace: Duration::from_secs(3600),
            attempts_max: 7,
            conflicts_max: 200,
            backoff: Duration::from_millis(50),
        }
    }
}

fn delta_key(version: u64) -> String {
    format!("{PREFIX}{version:020}.delta")
}

fn checkpoint_key(version: u64) -> String {
    format!("{PREFIX}{version:020}.checkpoint")
}

/// The version that a key under [`PREFIX`] with `ending` names.
fn version_of(key: &str, ending: &str) -> Option<u64> {
    let digits = key.strip_prefix(PREFIX)?.strip_suffix(ending)?;
    if digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}
