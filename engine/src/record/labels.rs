//! Labels: the small sorted key=value set that names a stream.

use super::metadata::write_string;
use super::{Metadata, Value};
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// A label set, sorted by name (bytewise), names unique. Cloning is cheap.
///
/// Two streams are the same when their label sets are equal. Order between streams is the order of
/// the sorted (name, value) sequences.
// One string: names and values in turn, each after its length in decimal and a colon. There can be a hundred thousand streams in
// memory; each is one allocation, compared and hashed in one go.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Labels(Arc<str>);

impl Default for Labels {
    fn default() -> Self {
        Labels(Arc::from(""))
    }
}

impl Labels {
    /// Sorts `pairs` by name; of pairs with one name the last stays.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut sorted: Vec<(K, V)> = pairs.into_iter().collect();
        sorted.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
        let mut text = String::new();
        for (index, (name, value)) in sorted.iter().enumerate() {
            let is_last = sorted.get(index + 1).is_none_or(|next| next.0.as_ref() != name.as_ref());
            if is_last {
                put_part(&mut text, name.as_ref());
                put_part(&mut text, value.as_ref());
            }
        }
        Labels(text.into())
    }

    /// The value of the label `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(k, _)| *k == name).map(|(_, v)| v)
    }

    /// Name and value of each label, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        let mut rest = &*self.0;
        std::iter::from_fn(move || Some((take_part(&mut rest)?, take_part(&mut rest)?)))
    }

    /// The labels as one canonical JSON object of strings, the form in which segments store them; empty for no labels.
    pub fn encode(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut out = String::with_capacity(self.0.len() + 8);
        for (name, value) in self.iter() {
            out.push(if out.is_empty() { '{' } else { ',' });
            write_string(&mut out, name);
            out.push(':');
            write_string(&mut out, value);
        }
        out.push('}');
        out.into_bytes()
    }

    /// The inverse of [`Labels::encode`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `bytes` are no labels.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if let Some(labels) = decode_plain(bytes) {
            return Ok(labels);
        }
        let pairs = Metadata::decode(bytes)?.0.into_iter().map(|(k, v)| match v {
            Value::Str(v) => Ok((k, v)),
            _ => Err(Error::invalid("a label's value is not a string")),
        });
        Ok(Labels::new(pairs.collect::<Result<Vec<_>>>()?))
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Roughly what the labels take in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.0.len() + 32
    }
}

fn put_part(text: &mut String, part: &str) {
    if part.len() < 100 {
        if part.len() >= 10 {
            text.push(char::from(b'0' + (part.len() / 10) as u8));
        }
        text.push(char::from(b'0' + (part.len() % 10) as u8));
        text.push(':');
    } else {
        let _ = write!(text, "{}:", part.len());
    }
    text.push_str(part);
}

fn take_part<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let digits = rest.bytes().position(|b| b == b':')?;
    let len = rest.as_bytes()[..digits].iter().fold(0, |len, b| len * 10 + usize::from(b - b'0'));
    let (part, after) = rest.get(digits + 1..)?.split_at_checked(len)?;
    *rest = after;
    Some(part)
}

/// Labels in their stored form, when no string needs an escape and names ascend; what is not so goes the long way.
fn decode_plain(bytes: &[u8]) -> Option<Labels> {
    let mut rest = std::str::from_utf8(bytes).ok()?.strip_prefix('{')?;
    let mut text = String::with_capacity(bytes.len());
    let mut last = None;
    loop {
        let name = plain_string(&mut rest)?;
        if last.is_some_and(|last| last >= name) {
            return None;
        }
        last = Some(name);
        rest = rest.strip_prefix(':')?;
        put_part(&mut text, name);
        put_part(&mut text, plain_string(&mut rest)?);
        match rest {
            "}" => return Some(Labels(text.into())),
            _ => rest = rest.strip_prefix(',')?,
        }
    }
}

fn plain_string<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let inside = rest.strip_prefix('"')?;
    let end = inside.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\')?;
    let (string, after) = inside.split_at(end);
    *rest = after.strip_prefix('"')?;
    Some(string)
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0 == other.0 { Ordering::Equal } else { self.iter().cmp(other.iter()) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn labels_behave_as_a_sorted_map(a in pairs(), b in pairs()) {
            let (map_a, map_b): (BTreeMap<_, _>, BTreeMap<_, _>) = (a.iter().cloned().collect(), b.iter().cloned().collect());
            let (labels_a, labels_b) = (Labels::new(a), Labels::new(b));
            prop_assert!(labels_a.iter().eq(map_a.iter().map(|(k, v)| (k.as_str(), v.as_str()))));
            prop_assert_eq!(labels_a.len(), map_a.len());
            for name in map_a.keys().chain(map_b.keys()) {
                prop_assert_eq!(labels_a.get(name), map_a.get(name).map(String::as_str));
            }
            prop_assert_eq!(labels_a.cmp(&labels_b), map_a.iter().cmp(map_b.iter()));
            prop_assert_eq!(labels_a == labels_b, map_a == map_b);
            prop_assert_eq!(Labels::decode(&labels_a.encode()).unwrap(), labels_a);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), text in "\\{?(\"[a-b\\\\\"]{0,2}\"[:,]?){0,5}\\}?") {
            let _ = Labels::decode(&bytes);
            if let Ok(labels) = Labels::decode(text.as_bytes()) {
                prop_assert_eq!(Labels::decode(&labels.encode()).unwrap(), labels);
            }
        }
    }

    fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
        prop::collection::vec(("[a-c:0-9]{0,3}", "[a-b\u{0}\"\\\\:é]{0,4}"), 0..4)
    }
}
