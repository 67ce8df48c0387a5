//! Keeping history short: checkpoints, the hint, and the removal of what they replace.
//!
//! A checkpoint is never needed for correctness, so no failure here fails a commit; the next committer past the mark tries again.

use super::codec::{decode_checkpoint, encode_checkpoint, encode_hint};
use super::commit::Manifest;
use super::environment::unix_ns;
use super::open::read_hint;
use super::state::State;
use super::{HINT, PREFIX, checkpoint_key, version_of};
use crate::error::Result;
use bytes::Bytes;

impl Manifest {
    /// Writes a checkpoint of `state` when one is due and nobody else has written it. `base` is the newest this process knows of;
    /// at `newest_ns` the state was not older than the newest.
    pub(super) async fn checkpoint_if_due(&self, state: &State, base: u64, newest_ns: i64) {
        let every = self.options.checkpoint_every.max(1);
        let since = state.version().saturating_sub(base);
        // The committer of a round version writes; the others only step in half an interval later.
        if since < every || (!state.version().is_multiple_of(every) && since < every + every / 2) {
            return;
        }
        let Ok(_one_at_a_time) = self.checkpointing.try_lock() else { return };
        let hinted = read_hint(self.objects.as_ref()).await.filter(|hinted| *hinted <= state.version()).unwrap_or(0);
        if state.version() - hinted < every {
            self.raise_base(hinted).await;
        } else if let Err(e) = self.write_checkpoint(state, newest_ns).await {
            tracing::warn!(version = state.version(), error = %e, "manifest checkpoint failed; a later commit tries again");
        }
    }

    /// Writes a checkpoint of the newest known state now, and the hint that names it.
    ///
    /// # Errors
    /// Io errors. Nothing is lost: a checkpoint only makes opening faster.
    pub async fn checkpoint(&self) -> Result<()> {
        let _one_at_a_time = self.checkpointing.lock().await;
        let newest_ns = self.environment.now_ns();
        let state = self.refresh().await?;
        if state.version() == 0 { Ok(()) } else { self.write_checkpoint(&state, newest_ns).await }
    }

    async fn write_checkpoint(&self, state: &State, newest_ns: i64) -> Result<()> {
        let bytes = Bytes::from(encode_checkpoint(state)?);
        self.objects.create(&checkpoint_key(state.version()), bytes).await?;
        // One that took too long may come after its own replacement: then the hint must not go back to it.
        if self.is_recent(newest_ns) {
            self.raise_base(state.version()).await;
            self.objects.put(HINT, Bytes::from(encode_hint(state.version()))).await?;
        }
        Ok(())
    }

    async fn raise_base(&self, version: u64) {
        let mut tail = self.tail.lock().await;
        tail.base = tail.base.max(version);
    }

    /// Removes the history that a checkpoint older than the grace period replaces, and returns how many objects went. The two newest
    /// checkpoints always stay, with all deltas since the older. The checkpoint that replaces it is read back whole before anything goes.
    ///
    /// # Errors
    /// Damage of that checkpoint; io errors. What is left is removed next time.
    pub async fn prune(&self) -> Result<usize> {
        let listed = self.objects.list(PREFIX).await?;
        let mut checkpoints: Vec<(u64, i64)> =
            listed.iter().filter_map(|object| Some((version_of(&object.key, ".checkpoint")?, unix_ns(object.modified)))).collect();
        checkpoints.sort_unstable();
        checkpoints.pop();
        let now_ns = self.environment.now_ns();
        let grace_ns = i64::try_from(self.options.grace.as_nanos()).unwrap_or(i64::MAX);
        let is_old = |(_, modified_ns): &&(u64, i64)| now_ns.saturating_sub(*modified_ns) > grace_ns;
        let Some(&(keep, _)) = checkpoints.iter().rev().find(is_old) else { return Ok(0) };
        let older = |ending: &str| {
            let mut keys: Vec<_> = listed.iter().filter(|o| version_of(&o.key, ending).is_some_and(|version| version < keep)).collect();
            keys.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            keys
        };
        // Checkpoints first, then deltas from the oldest on: a reader relies on this order.
        let gone: Vec<_> = older(".checkpoint").into_iter().chain(older(".delta")).collect();
        if !gone.is_empty() {
            let key = checkpoint_key(keep);
            decode_checkpoint(&key, &self.objects.get(&key).await?, keep)?;
        }
        for object in &gone {
            self.objects.delete(&object.key).await?;
        }
        Ok(gone.len())
    }
}
