//! Decoded values of columns, in the forms in which columns give them.

use crate::encoding::out::Out;
use std::ops::Range;
use std::sync::Arc;

/// Byte strings, in one of the forms in which columns give them.
#[derive(Debug)]
pub enum Values {
    /// Every value is this one.
    Constant(Vec<u8>),
    /// Values back to back.
    Text {
        /// The bytes; there may be more behind the last value, of no meaning.
        data: Vec<u8>,
        /// End of each value.
        ends: Vec<u32>,
    },
    /// Entries of a dictionary.
    Entries {
        /// Entry numbers, each below the number of entries.
        ids: Vec<u32>,
        /// The entries, as [`Values::Text`].
        entries: Arc<Values>,
    },
}

impl Values {
    /// Appends values `ids` of a text.
    pub(super) fn gather(&self, ids: &[u32], out: &mut Out, to: &mut Vec<u32>) {
        let Values::Text { data, ends } = self else { return };
        to.reserve(ids.len());
        for &id in ids {
            let id = id as usize;
            let start = if id == 0 { 0 } else { ends[id - 1] as usize };
            out.put(data, start, ends[id] as usize - start);
            to.push(out.len() as u32);
        }
    }

    /// Value `index`.
    pub fn get(&self, index: usize) -> &[u8] {
        match self {
            Values::Constant(value) => value,
            Values::Text { data, ends } => {
                let start = if index == 0 { 0 } else { ends[index - 1] as usize };
                &data[start..ends[index] as usize]
            }
            Values::Entries { ids, entries } => entries.get(ids[index] as usize),
        }
    }
}

/// The values of one column in one row range.
#[derive(Debug, Clone)]
pub struct Slice {
    pub(super) values: Arc<Values>,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Slice {
    /// All of a text.
    pub(super) fn whole(data: Vec<u8>, ends: Vec<u32>) -> Slice {
        let len = ends.len();
        Slice { values: Arc::new(Values::Text { data, ends }), start: 0, len }
    }

    /// The buffers of a text that nobody else holds.
    pub(super) fn into_buffers(self) -> Option<(Vec<u8>, Vec<u32>)> {
        match Arc::try_unwrap(self.values) {
            Ok(Values::Text { data, ends }) => Some((data, ends)),
            _ => None,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Value `index`, counted from the range's first.
    pub fn get(&self, index: usize) -> &[u8] {
        self.values.get(self.start + index)
    }

    /// Bytes of all values together.
    pub fn bytes(&self) -> usize {
        match (&*self.values, self.as_text()) {
            (_, Some((data, _))) => data.len(),
            (Values::Constant(value), _) => value.len() * self.len,
            _ => (0..self.len).map(|i| self.get(i).len()).sum(),
        }
    }

    /// The bytes of all values back to back and their ends, when they lie so: the whole range and nothing else.
    pub fn as_text(&self) -> Option<(&[u8], &[u32])> {
        match &*self.values {
            Values::Text { data, ends } if self.start == 0 && ends.len() == self.len => {
                Some((&data[..ends.last().map_or(0, |&e| e as usize)], ends))
            }
            _ => None,
        }
    }
}

/// Numbers of one column in one row range.
#[derive(Debug, Clone)]
pub struct Numbers {
    pub(super) page: Arc<Vec<u64>>,
    pub(super) range: Range<usize>,
}

impl Numbers {
    /// The numbers as stored.
    pub fn raw(&self) -> &[u64] {
        &self.page[self.range.clone()]
    }

    /// Number `index` of a column of numbers.
    pub fn get(&self, index: usize) -> Option<i64> {
        self.raw().get(index).map(|&n| (n ^ 1 << 63) as i64)
    }
}
