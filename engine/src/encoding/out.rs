//! Appending many short runs of bytes fast: a copy of fixed length is a few instructions, one of any length is a call.

/// Bytes copied at once.
pub const STEP: usize = 32;

/// A growing buffer of bytes.
#[derive(Debug, Default)]
pub struct Out {
    /// Longer than what was written, so that fixed copies have room.
    buffer: Vec<u8>,
    len: usize,
}

impl Out {
    /// An empty buffer with room for `bytes`.
    pub fn with_room(bytes: usize) -> Self {
        Out { buffer: vec![0; bytes + STEP], len: 0 }
    }

    /// Bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What was written.
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends `arena[at..at + len]`; panics when that is out of bounds.
    #[inline]
    pub fn put(&mut self, arena: &[u8], at: usize, len: usize) {
        if len <= STEP
            && let Some(from) = arena.get(at..).and_then(|a| a.first_chunk::<STEP>())
            && let Some(to) = self.buffer.get_mut(self.len..).and_then(|b| b.first_chunk_mut::<STEP>())
        {
            *to = *from;
            self.len += len;
        } else {
            self.put_long(&arena[at..at + len]);
        }
    }

    /// The next [`STEP`] bytes, to be written to; [`Out::advance`] says how many of them count.
    #[inline]
    pub fn tail(&mut self) -> &mut [u8; STEP] {
        if self.buffer.len() < self.len + STEP {
            self.grow(self.len + STEP);
        }
        let (_, tail) = self.buffer.split_at_mut(self.len);
        tail.first_chunk_mut().unwrap_or_else(|| unreachable!("there is room"))
    }

    /// Counts the first `len` bytes of [`Out::tail`], at most [`STEP`], as written.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        debug_assert!(len <= STEP && self.len + len <= self.buffer.len());
        self.len += len;
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.buffer.resize((end + STEP).max(self.buffer.len() * 2), 0);
    }

    /// A buffer in `memory`, whose contents do not matter.
    pub fn reuse(memory: Vec<u8>) -> Self {
        Out { buffer: memory, len: 0 }
    }

    /// Appends `bytes`.
    pub fn put_long(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end > self.buffer.len() {
            self.grow(end);
        }
        self.buffer[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    /// The bytes written, and whatever lies behind them.
    pub fn into_memory(self) -> Vec<u8> {
        self.buffer
    }

    /// The bytes written, as a vector.
    pub fn into_vec(mut self) -> Vec<u8> {
        self.buffer.truncate(self.len);
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn everything_is_there_in_order(arena in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..80), 0..50), room in 0usize..100) {
            let (mut out, mut wanted) = (Out::with_room(room), Vec::new());
            for (index, len) in cuts {
                let at = if arena.is_empty() { 0 } else { index.index(arena.len()) };
                let len = len.min(arena.len() - at);
                out.put(&arena, at, len);
                wanted.extend_from_slice(&arena[at..at + len]);
                prop_assert_eq!(out.as_slice(), &wanted[..]);
            }
            prop_assert_eq!(out.into_vec(), wanted);
        }
    }
}
