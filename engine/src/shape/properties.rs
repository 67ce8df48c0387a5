//! Text of several lines that name their values, `Name: value` or `Name = value`: the values vary, the rest is the template.
//!
//! Lines that name nothing belong to the value before them.

use super::{Key, SlotKind, Span};

/// Fewer named values make no template.
const NAMED_MIN: usize = 3;
/// The longest name.
const NAME_BYTES_MAX: usize = 48;

/// Takes `arena[span]` apart when it looks like named values: appends the template to `key`, which is empty, and the values to `slots`.
/// Returns whether it did; if not, both are as before.
pub fn scan(arena: &[u8], span: Span, key: &mut Key, slots: &mut Vec<Span>) -> bool {
    let text = span.of(arena);
    if memchr::memchr(b'\n', text).is_none() {
        return false;
    }
    let known = slots.len();
    let base = span.at as usize;
    // Where the literal behind the last value begins, and where the value begins that is still open.
    let (mut literal, mut open) = (0, None);
    let mut named = 0;
    let mut at = 0;
    let mut close = |key: &mut Key, literal: &mut usize, open: usize, end: usize| {
        let end = open + text[open..end].trim_ascii_end().len();
        key.put_literal(text, *literal, open);
        key.put_slot(slots, SlotKind::Quoted, base + open, end - open);
        *literal = end;
    };
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found);
        if let Some(value) = value_at(&text[at..end]) {
            if let Some(open) = open {
                close(key, &mut literal, open, at);
            }
            open = Some(at + value);
            named += 1;
        } else if at == 0 && text[..end].iter().any(u8::is_ascii_digit) {
            // The first line says what all of this is, unless it holds a value itself.
            open = Some(0);
        }
        at = end + 1;
    }
    if let Some(open) = open {
        close(key, &mut literal, open, text.len());
    }
    key.put_literal(text, literal, text.len());
    if named < NAMED_MIN {
        key.out.clear();
        slots.truncate(known);
        return false;
    }
    true
}

/// Where the value begins in a line that names one.
fn value_at(line: &[u8]) -> Option<usize> {
    let name = line.iter().position(|b| !matches!(b, b' ' | b'\t'))?;
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'-' | b'.' | b'(' | b')');
    let sign = name + line[name..].iter().take(NAME_BYTES_MAX + 1).take_while(|b| is_name(b)).count();
    let behind = line.get(sign + 1..)?;
    let is_sign = match line[sign] {
        b':' => behind.first().is_none_or(u8::is_ascii_whitespace),
        b'=' => line[..sign].ends_with(b" ") && behind.starts_with(b" "),
        _ => false,
    };
    let fits = line[name].is_ascii_alphabetic() && sign - name <= NAME_BYTES_MAX && is_sign;
    fits.then(|| sign + 1 + behind.iter().take_while(|b| matches!(b, b' ' | b'\t')).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::rebuild;
    use proptest::prelude::*;

    fn slots_of(text: &str) -> Option<Vec<&str>> {
        let (mut key, mut slots) = (Key::default(), Vec::new());
        key.begin(text.as_bytes());
        let span = Span { at: 0, len: text.len() as u32 };
        if !scan(text.as_bytes(), span, &mut key, &mut slots) {
            assert!(key.as_slice().is_empty() && slots.is_empty());
            return None;
        }
        assert_eq!(rebuild(key.as_slice(), &slots, text.as_bytes()), text.as_bytes());
        Some(slots.iter().map(|s| &text[s.at as usize..s.end()]).collect())
    }

    #[test]
    fn named_values_are_found() {
        let text = "Process created:\r\nRule: \r\nTime: 2019-12-05 01:52:44.920\r\nAccess:\t\tREAD\r\n\t\tWRITE\r\n\r\nHost Name = a b\r\n";
        assert_eq!(slots_of(text).unwrap(), ["", "", "2019-12-05 01:52:44.920", "READ\r\n\t\tWRITE", "a b"]);
        assert_eq!(slots_of("a: 1\nb: 2"), None);
        assert_eq!(slots_of("at foo.Bar(Bar.java:12)\nat x:y\nhttp://a\nc=d\n"), None);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(text in "([ab1 \t]{0,3}[:=]?[ \r\n\u{1}\u{3}]{0,2}){0,20}") {
            slots_of(&text);
        }
    }
}
