//! A store that fails on purpose, by a seed: for tests.
//!
//! A call can fail before anything is done, or after it was done (the answer is lost), or be late.

use super::{Created, ObjectMeta, Objects};
use crate::disk::Dice;
use crate::error::{Error, Result};
use async_trait::async_trait;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often calls fail.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    /// The same seed fails the same calls.
    pub seed: u64,
    /// Calls in a thousand that fail and do nothing.
    pub error_before_per_mille: u32,
    /// Calls in a thousand that do their work and fail.
    pub error_after_per_mille: u32,
    /// Calls in a thousand that are late.
    pub delay_per_mille: u32,
    /// The longest delay.
    pub delay_max: Duration,
}

/// Objects whose calls fail on purpose, as [`crate::ErrorKind::Busy`].
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn Objects>,
    plan: FaultPlan,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    calls: u64,
    fail_before: Option<u64>,
    fail_after: Option<u64>,
    fail_from: Option<u64>,
}

#[derive(Debug, Default)]
struct Fault {
    before: bool,
    after: bool,
    delay: Duration,
}

impl Faulty {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Objects>, plan: FaultPlan) -> Self {
        let state = State { dice: Dice::new(plan.seed), calls: 0, fail_before: None, fail_after: None, fail_from: None };
        Faulty { inner, plan, state: Mutex::new(state) }
    }

    /// The `n`th call from now on (1 is the next) fails and does nothing.
    pub fn fail_at(&self, n: u64) {
        let mut state = self.hold();
        state.fail_before = Some(state.calls + n);
    }

    /// The `n`th call from now on does its work and fails.
    pub fn lose_reply_at(&self, n: u64) {
        let mut state = self.hold();
        state.fail_after = Some(state.calls + n);
    }

    /// The `n`th call from now on and all later ones fail and do nothing, until [`Faulty::heal`].
    pub fn fail_from(&self, n: u64) {
        let mut state = self.hold();
        state.fail_from = Some(state.calls + n);
    }

    /// Ends the failures asked for by number; those of the plan go on.
    pub fn heal(&self) {
        let mut state = self.hold();
        (state.fail_before, state.fail_after, state.fail_from) = (None, None, None);
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.hold().calls
    }

    #[cfg(test)]
    pub(super) fn inner(&self) -> &Arc<dyn Objects> {
        &self.inner
    }

    fn hold(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_fault(&self) -> Fault {
        let mut state = self.hold();
        state.calls += 1;
        let now = Some(state.calls);
        let mut fault = Fault {
            before: state.dice.per_mille(self.plan.error_before_per_mille),
            after: state.dice.per_mille(self.plan.error_after_per_mille),
            delay: Duration::ZERO,
        };
        if state.dice.per_mille(self.plan.delay_per_mille) {
            fault.delay = Duration::from_nanos(state.dice.below(self.plan.delay_max.as_nanos() as u64 + 1));
        }
        fault.before |= state.fail_before == now || state.fail_from.is_some_and(|n| state.calls >= n);
        fault.after |= state.fail_after == now;
        fault
    }

    async fn call<T>(&self, what: &str, key: &str, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let fault = self.next_fault();
        if !fault.delay.is_zero() {
            tokio::time::sleep(fault.delay).await;
        }
        if fault.before {
            return Err(Error::busy(format!("{what} {key} in {}: injected failure", self.name())));
        }
        let result = work.await;
        if fault.after {
            return Err(Error::busy(format!("{what} {key} in {}: injected loss of the answer", self.name())));
        }
        result
    }
}

#[async_trait]
impl Objects for Faulty {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.call("put", key, self.inner.put(key, bytes)).await
    }
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        self.call("create", key, self.inner.create(key, bytes)).await
    }
    async fn get(&self, key: &str) -> Result<Bytes> {
        self.call("get", key, self.inner.get(key)).await
    }
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.call("get ranges of", key, self.inner.get_ranges(key, ranges)).await
    }
    async fn size(&self, key: &str) -> Result<u64> {
        self.call("size of", key, self.inner.size(key)).await
    }
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.call("list", prefix, self.inner.list(prefix)).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.call("delete", key, self.inner.delete(key)).await
    }
    fn name(&self) -> String {
        self.inner.name()
    }
}
