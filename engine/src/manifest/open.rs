//! Reading history: from a checkpoint through the deltas to the newest version, and the proof that it is the newest.
//!
//! 'Version n + 1 is absent' means 'n is the newest' only as long as n + 1 cannot have been removed. History is removed from the
//! front, checkpoints before deltas, so while a checkpoint and the delta of the same version are both there, nothing after them is gone.
//! This module only reads.

use super::codec::{decode_checkpoint, decode_delta, decode_hint};
use super::delta::apply;
use super::state::State;
use super::{HINT, PREFIX, checkpoint_key, delta_key, version_of};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::Objects;
use futures_util::future::join_all;
use std::sync::Arc;

const OPEN_ATTEMPTS_MAX: u32 = 8;
const READ_AHEAD_MAX: u64 = 16;

/// A state and the checkpoint it grew from (0: none).
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) state: Arc<State>,
    pub(super) base: u64,
}

/// The newest state. The hint is tried once; after that listings decide.
pub(super) async fn load(objects: &dyn Objects) -> Result<Loaded> {
    if let Some(base) = read_hint(objects).await
        && let Some(loaded) = load_from(objects, base).await?
    {
        return Ok(loaded);
    }
    for _ in 0..OPEN_ATTEMPTS_MAX {
        let listed = Listed::read(objects).await?;
        let Some(loaded) = load_from(objects, listed.checkpoint).await? else { continue };
        if loaded.state.version < listed.delta {
            let missing = delta_key(loaded.state.version + 1);
            return Err(Error::corrupt(&missing, 0, format_args!("absent, though version {} exists", listed.delta)));
        }
        return Ok(loaded);
    }
    Err(Error::busy("manifest: its history was removed while it was read, again and again"))
}

/// The version that the hint names. Whatever is wrong with the hint, a listing replaces it.
pub(super) async fn read_hint(objects: &dyn Objects) -> Option<u64> {
    let bytes = objects.get(HINT).await.ok()?;
    decode_hint(HINT, &bytes).ok().filter(|version| *version > 0)
}

/// The newest state that grew from checkpoint `base`; `None` when it has been removed.
async fn load_from(objects: &dyn Objects, base: u64) -> Result<Option<Loaded>> {
    let mut state = if base == 0 {
        Arc::default()
    } else {
        let key = checkpoint_key(base);
        match objects.get(&key).await {
            Ok(bytes) => Arc::new(decode_checkpoint(&key, &bytes, base)?),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        }
    };
    let replayed = replay(objects, &mut state).await;
    // Asked after the replay, and before any of its errors are believed.
    if still_there(objects, base).await? { replayed.map(|()| Some(Loaded { state, base })) } else { Ok(None) }
}

/// Moves `state` on by all deltas after it, up to the first that is absent. After an error it stands where the error was met.
pub(super) async fn replay(objects: &dyn Objects, state: &mut Arc<State>) -> Result<()> {
    let mut ahead = 1;
    loop {
        let keys: Vec<String> = (1..=ahead).map(|step| delta_key(state.version + step)).collect();
        for (key, bytes) in keys.iter().zip(join_all(keys.iter().map(|key| objects.get(key))).await) {
            match bytes {
                Ok(bytes) => *state = Arc::new(replay_one(state, key, &bytes)?),
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        ahead = (ahead * 2).min(READ_AHEAD_MAX);
    }
}

/// `state` and the delta in the object `key`.
pub(super) fn replay_one(state: &State, key: &str, bytes: &[u8]) -> Result<State> {
    let record = decode_delta(key, bytes, state.version + 1)?;
    apply(state, &record).map_err(|e| Error::corrupt(key, super::codec::HEADER_BYTES as u64, e))
}

/// Whether checkpoint `base` and the delta of its version are there, hence every delta after it. For 0: whether there is no checkpoint at all.
pub(super) async fn still_there(objects: &dyn Objects, base: u64) -> Result<bool> {
    if base == 0 {
        return Ok(Listed::read(objects).await?.checkpoint == 0);
    }
    for key in [checkpoint_key(base), delta_key(base)] {
        match objects.size(&key).await {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// The newest checkpoint and the newest delta that a listing shows; 0 for none.
#[derive(Debug)]
struct Listed {
    checkpoint: u64,
    delta: u64,
}

impl Listed {
    async fn read(objects: &dyn Objects) -> Result<Listed> {
        let listed = objects.list(PREFIX).await?;
        let newest = |ending| listed.iter().filter_map(|object| version_of(&object.key, ending)).max().unwrap_or(0);
        Ok(Listed { checkpoint: newest(".checkpoint"), delta: newest(".delta") })
    }
}
