//! A sorted map whose clone is free and whose change copies a little: snapshots of a large state that differ by one commit share nearly everything.
//!
//! Entries lie in sorted chunks of at most [`CHUNK_ENTRIES_MAX`]; a change copies the list of chunks and the one chunk it touches.
//! No chunk is empty. This module must not know what is stored.

use std::fmt;
use std::sync::Arc;

const CHUNK_ENTRIES_MAX: usize = 128;
const CHUNK_ENTRIES_LOADED: usize = 96;
const CHUNK_ENTRIES_MERGED: usize = 64;

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// A persistent sorted map.
pub(crate) struct Map<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

impl<K: Ord + Clone, V: Clone> Map<K, V> {
    /// A map of `entries`, whose keys ascend strictly.
    pub(crate) fn from_ascending(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut chunks = Vec::new();
        let mut len = 0;
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let chunk: Vec<(K, V)> = entries.by_ref().take(CHUNK_ENTRIES_LOADED).collect();
            len += chunk.len();
            chunks.push(Arc::new(chunk));
        }
        Map { chunks: Arc::new(chunks), len }
    }

    /// How many entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value under `key`.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        let at = chunk.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        chunk.get(at).map(|(_, v)| v)
    }

    /// Stores `value` under `key`; returns what was there.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.chunk_of(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(slot) = chunks.get_mut(at) else {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let chunk = Arc::make_mut(slot);
        match chunk.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(found) => Some(std::mem::replace(&mut chunk[found].1, value)),
            Err(place) => {
                chunk.insert(place, (key, value));
                self.len += 1;
                if chunk.len() > CHUNK_ENTRIES_MAX {
                    let upper = chunk.split_off(chunk.len() / 2);
                    chunks.insert(at + 1, Arc::new(upper));
                }
                None
            }
        }
    }

    /// Removes `key`; returns what was there.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.chunk_of(key);
        let place = self.chunks.get(at)?.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let (_, value) = Arc::make_mut(chunks.get_mut(at)?).remove(place);
        self.len -= 1;
        if chunks[at].is_empty() {
            chunks.remove(at);
        } else if at + 1 < chunks.len() && chunks[at].len() + chunks[at + 1].len() <= CHUNK_ENTRIES_MERGED {
            let upper = chunks.remove(at + 1);
            Arc::make_mut(&mut chunks[at]).extend_from_slice(&upper);
        }
        Some(value)
    }

    /// All entries, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(|(k, v)| (k, v)))
    }

    /// The chunk that holds `key`, or would take it.
    fn chunk_of(&self, key: &K) -> usize {
        self.chunks.partition_point(|chunk| chunk.first().is_some_and(|(k, _)| k <= key)).saturating_sub(1)
    }
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Map { chunks: Arc::clone(&self.chunks), len: self.len }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map { chunks: Arc::default(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K, V> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn does_what_a_btree_map_does(operations in prop::collection::vec((0u16..600, any::<bool>(), any::<u8>()), 0..3000)) {
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            let mut snapshots = Vec::new();
            for (i, (key, insert, value)) in operations.into_iter().enumerate() {
                if insert {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
                if i % 500 == 0 {
                    snapshots.push((map.clone(), model.clone()));
                }
            }
            snapshots.push((map, model));
            for (map, model) in snapshots {
                prop_assert_eq!(map.len(), model.len());
                prop_assert!(map.chunks.iter().all(|c| !c.is_empty() && c.len() <= CHUNK_ENTRIES_MAX));
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert!(Map::from_ascending(model) == map);
            }
        }
    }
}
