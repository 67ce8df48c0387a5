//! Tries again what a store was too busy for.
//!
//! What holds: only calls that failed as [`ErrorKind::Busy`] are repeated, a bounded number of times, with growing
//! pauses. A repeated create whose first answer was lost finds its own object: it answers [`Created::Exists`], and the
//! caller tells by the bytes.

use super::{Created, ObjectMeta, Objects};
use crate::disk::Dice;
use crate::error::{ErrorKind, Result};
use async_trait::async_trait;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often and how fast calls are repeated.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Tries of one call, the first included.
    pub tries_max: u32,
    /// Pause before the second try; it doubles each time.
    pub pause_min: Duration,
    /// Longest pause.
    pub pause_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy { tries_max: 5, pause_min: Duration::from_millis(100), pause_max: Duration::from_secs(5) }
    }
}

/// Objects whose busy answers are tried again.
#[derive(Debug)]
pub struct Retrying {
    inner: Arc<dyn Objects>,
    policy: RetryPolicy,
    /// Spreads the tries of many callers.
    dice: Mutex<Dice>,
}

impl Retrying {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Objects>, policy: RetryPolicy) -> Self {
        let seed = getrandom::u64().unwrap_or(0);
        Retrying { inner, policy, dice: Mutex::new(Dice::new(seed)) }
    }

    /// Between half and all of the pause after `tries`.
    fn pause(&self, tries: u32) -> Duration {
        let whole = self.policy.pause_min.saturating_mul(1 << (tries - 1).min(20)).min(self.policy.pause_max);
        let half = whole / 2;
        let chance = self.dice.lock().unwrap_or_else(PoisonError::into_inner).below(half.as_nanos() as u64 + 1);
        half + Duration::from_nanos(chance)
    }

    async fn repeat<T, F: Future<Output = Result<T>> + Send>(&self, call: impl Fn() -> F + Send + Sync) -> Result<T> {
        let mut tries = 0;
        loop {
            tries += 1;
            match call().await {
                Err(e) if e.kind() == ErrorKind::Busy && tries < self.policy.tries_max => {
                    let pause = self.pause(tries);
                    tracing::debug!(tries, ?pause, "{e}");
                    tokio::time::sleep(pause).await;
                }
                Err(e) if e.kind() == ErrorKind::Busy && tries > 1 => return Err(e.at(format!("{tries} tries"))),
                other => return other,
            }
        }
    }
}

#[async_trait]
impl Objects for Retrying {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.repeat(|| self.inner.put(key, bytes.clone())).await
    }
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        self.repeat(|| self.inner.create(key, bytes.clone())).await
    }
    async fn get(&self, key: &str) -> Result<Bytes> {
        self.repeat(|| self.inner.get(key)).await
    }
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.repeat(|| self.inner.get_ranges(key, ranges)).await
    }
    async fn size(&self, key: &str) -> Result<u64> {
        self.repeat(|| self.inner.size(key)).await
    }
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.repeat(|| self.inner.list(prefix)).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.repeat(|| self.inner.delete(key)).await
    }
    fn name(&self) -> String {
        self.inner.name()
    }
}
