//! Labels: the small sorted key=value set that names a stream.

use super::{Metadata, Value};
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A label set, sorted by name (bytewise), names unique. Cloning is cheap.
///
/// Two streams are the same when their label sets are equal. Order between streams is the order of
/// the sorted (name, value) sequences.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Arc<[(Box<str>, Box<str>)]>);

impl Labels {
    /// Sorts `pairs` by name; of pairs with one name the last stays.
    pub fn new<K: Into<Box<str>>, V: Into<Box<str>>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut sorted: Vec<(Box<str>, Box<str>)> = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let mut unique: Vec<(Box<str>, Box<str>)> = Vec::with_capacity(sorted.len());
        for pair in sorted {
            match unique.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => unique.push(pair),
            }
        }
        Labels(unique.into())
    }

    /// The value of the label `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.binary_search_by(|(k, _)| (**k).cmp(name)).ok().map(|i| &*self.0[i].1)
    }

    /// Name and value of each label, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + '_ {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }

    /// The labels as one canonical JSON object of strings, the form in which segments store them; empty for no labels.
    pub fn encode(&self) -> Vec<u8> {
        Metadata(self.iter().map(|(k, v)| (k.to_string(), Value::Str(v.to_string()))).collect()).encode()
    }

    /// The inverse of [`Labels::encode`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `bytes` are no labels.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let pairs = Metadata::decode(bytes)?.0.into_iter().map(|(k, v)| match v {
            Value::Str(v) => Ok((k, v)),
            _ => Err(Error::invalid("a label's value is not a string")),
        });
        Ok(Labels::new(pairs.collect::<Result<Vec<_>>>()?))
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As in a stream selector: `{a="b", c="d"}`, values quoted and escaped.
impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            write!(f, "{}{name}={value:?}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("}")
    }
}
