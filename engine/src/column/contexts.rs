//! Which slots of different templates share a column: those that stand behind the same beginning, or behind the same name.
//!
//! `… user=4711 …` and `12:00:00 login user=4712` have two templates, but one column of users. The timestamps, hosts and levels that all
//! lines of a log begin with are one column each, however many templates follow. A wrong guess costs bytes, never correctness.

use crate::encoding::typed::Type;
use crate::shape::text::VARIABLE_DIGITS_MIN;
use crate::shape::{Part, SlotKind};

/// Bytes that say what a value looks like.
pub(super) const LOOK_BYTES: usize = 4;

/// The longest name of a line's value, with the blanks before it.
const LINE_NAME_BYTES_MAX: usize = 64;

/// Words that a line has one of, so that they do not make beginnings differ.
const LEVELS: [&[u8]; 16] = [
    b"trace",
    b"debug",
    b"info",
    b"notice",
    b"warn",
    b"warning",
    b"error",
    b"err",
    b"fatal",
    b"critical",
    b"crit",
    b"alert",
    b"emerg",
    b"severe",
    b"fine",
    b"panic",
];

/// For each slot of a template what names its column, beside what its values look like.
pub(super) fn of(parts: &[Part<SlotKind>]) -> Vec<Vec<u8>> {
    let mut beginning = vec![b'b'];
    let mut contexts: Vec<Vec<u8>> = Vec::new();
    let mut before: &[u8] = &[];
    for part in parts {
        match part {
            Part::Literal(bytes) => {
                put_normal(bytes, &mut beginning);
                before = bytes;
            }
            Part::Slot(_) | Part::Aligned(_) => {
                let context = name_before(before).unwrap_or_else(|| beginning.clone());
                let known = contexts.iter().filter(|c| c.starts_with(&context)).count();
                contexts.push([&context[..], &[0, known as u8]].concat());
                beginning.push(1);
                before = &[];
            }
        }
    }
    contexts
}

/// What a value looks like: values that look different do not share a column.
pub(super) fn look(value: &[u8]) -> [u8; LOOK_BYTES] {
    match Type::of(value) {
        None => [0; LOOK_BYTES],
        Some(Type::Int | Type::Padded(_)) => [1, 0, 0, 0],
        Some(Type::Decimal(_) | Type::ShortDecimal { .. }) => [2, 0, 0, 0],
        Some(Type::Time(layout) | Type::ShortTime(layout)) => [3, layout.family, layout.separator, layout.digits.min(VARIABLE_DIGITS_MIN)],
        Some(Type::Hex { width, upper }) => [4, width, u8::from(upper), 0],
        Some(Type::Uuid) => [5, 0, 0, 0],
        Some(Type::Ipv4) => [6, 0, 0, 0],
    }
}

/// The name in front of a value: a word and `=` or `:`, then perhaps blanks and opening marks.
fn name_before(literal: &[u8]) -> Option<Vec<u8>> {
    let end = literal.iter().rposition(|b| !matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'[' | b'(' | b'{' | b'\\'))? + 1;
    let (&sign, before) = literal[..end].split_last()?;
    if !matches!(sign, b'=' | b':') {
        return None;
    }
    // A line's name may be of several words.
    let line = memchr::memrchr(b'\n', before).map_or(before.len(), |at| at + 1);
    if line < before.len() && before[line..].len() <= LINE_NAME_BYTES_MAX {
        return Some([b"l", &literal[line..]].concat());
    }
    let start = before.iter().rposition(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))).map_or(0, |at| at + 1);
    before[start..].iter().any(u8::is_ascii_alphabetic).then(|| [b"n", &literal[start..]].concat())
}

/// Appends a literal with levels made one and runs of blanks made one.
fn put_normal(literal: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < literal.len() {
        let len = literal[at..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let word = &literal[at..at + len];
        if len == 0 {
            if literal[at] != b' ' || out.last() != Some(&b' ') {
                out.push(literal[at]);
            }
            at += 1;
            continue;
        }
        if LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level)) {
            out.push(2);
        } else {
            out.extend_from_slice(word);
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts(text: &str) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        for (index, literal) in text.split('_').enumerate() {
            if index > 0 {
                parts.push(Part::Slot(SlotKind::Token));
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.as_bytes().to_vec()));
            }
        }
        of(&parts)
    }

    #[test]
    fn beginnings_and_names_are_shared() {
        let (a, b) = (contexts("_ INFO  [_] one _ user=_"), contexts("_ ERROR [_] two _ for user=_ and user=_"));
        assert_eq!((&a[0], &a[1], &a[3]), (&b[0], &b[1], &b[3]));
        assert!(a[2] != b[2] && b[3] != b[4]);
    }
}
