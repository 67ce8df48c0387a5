//! Time and chance, as the manifest sees them; injected, so that a simulation can own them.

use async_trait::async_trait;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock, the dice and the bed.
#[async_trait]
pub trait Environment: Send + Sync + Debug {
    /// Nanoseconds since the Unix epoch, UTC. Clocks of all processes on one store must agree within a quarter of the grace period.
    fn now_ns(&self) -> i64;
    /// 64 random bits; different processes must draw differently, for commit ids are made of them.
    fn random(&self) -> u64;
    /// Returns after `time`.
    async fn sleep(&self, time: Duration);
}

/// The real machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEnvironment;

#[async_trait]
impl Environment for SystemEnvironment {
    fn now_ns(&self) -> i64 {
        unix_ns(SystemTime::now())
    }

    fn random(&self) -> u64 {
        // Each RandomState has keys that the operating system's randomness made.
        RandomState::new().hash_one((std::process::id(), SystemTime::now()))
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// `time` in nanoseconds since the Unix epoch, held to what an i64 can say.
pub(crate) fn unix_ns(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}
