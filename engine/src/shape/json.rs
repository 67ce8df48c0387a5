//! JSON by its raw text: all bytes between leaf values are the template, so key order, spaces, duplicate keys and the text of numbers survive.

use super::{Key, SlotKind, Span};

/// How deep objects and arrays may nest; deeper lines are taken as text.
pub const DEPTH_MAX: usize = 64;
/// The first byte of every JSON key: no text key begins so, since a literal byte 1 is doubled and 9 is no slot kind.
const JSON_KEY: [u8; 2] = [super::MARK, 9];

/// Takes `arena[span]` apart when it looks like a JSON object: appends the template to `key`, which is empty, and the leaf values to `slots`.
/// Returns whether it did; if not, both are as before.
pub fn scan(arena: &[u8], span: Span, key: &mut Key, slots: &mut Vec<Span>) -> bool {
    let text = span.of(arena);
    if text.first() != Some(&b'{') || text.trim_ascii_end().last() != Some(&b'}') {
        return false;
    }
    let slots_len = slots.len();
    key.out.put_long(&JSON_KEY);
    let scanned = scan_object(text, span.at as usize, key, slots);
    if scanned.is_none() {
        key.out.clear();
        slots.truncate(slots_len);
    }
    scanned.is_some()
}

/// The template of a JSON key, without its mark.
pub fn template(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(&JSON_KEY)
}

fn scan_object(text: &[u8], base: usize, key: &mut Key, slots: &mut Vec<Span>) -> Option<()> {
    let mut depth = 0;
    let (mut at, mut literal) = (0, 0);
    while at < text.len() {
        let start = at;
        let kind = match text[at] {
            b'"' => {
                let end = string_end(text, at + 1)?;
                at = end + 1;
                if is_key(text, at) {
                    continue;
                }
                key.put_literal(text, literal, start + 1);
                key.put_slot(slots, SlotKind::JsonString, base + start + 1, end - start - 1);
                literal = end;
                continue;
            }
            b'[' => {
                let end = array_end(text, at)?;
                key.put_literal(text, literal, start + 1);
                key.put_slot(slots, SlotKind::JsonArray, base + start + 1, end - start - 1);
                literal = end;
                at = end + 1;
                continue;
            }
            b'{' => {
                depth += 1;
                at += 1;
                if depth > DEPTH_MAX {
                    return None;
                }
                continue;
            }
            b'}' => {
                depth -= 1;
                at += 1;
                if depth == 0 && !text[at..].trim_ascii_end().is_empty() {
                    return None;
                }
                continue;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                at += text[at..].iter().take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count();
                SlotKind::JsonNumber
            }
            b'a'..=b'z' => {
                at += text[at..].iter().take_while(|b| b.is_ascii_lowercase()).count();
                SlotKind::JsonWord
            }
            _ => return None,
        };
        if literal == start {
            // Two values that touch are no JSON.
            return None;
        }
        key.put_literal(text, literal, start);
        key.put_slot(slots, kind, base + start, at - start);
        literal = at;
    }
    if depth > 0 {
        return None;
    }
    key.put_literal(text, literal, text.len());
    Some(())
}

/// The place of the quote that ends the string whose first character is at `at`.
fn string_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// The place of the bracket that ends the array which begins at `at`.
fn array_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut open = [0u8; DEPTH_MAX];
    let mut depth = 0;
    loop {
        match *text.get(at)? {
            b'"' => at = string_end(text, at + 1)?,
            byte @ (b'[' | b'{') => {
                *open.get_mut(depth)? = byte;
                depth += 1;
            }
            byte @ (b']' | b'}') => {
                depth -= 1;
                if open[depth] + 2 != byte {
                    return None;
                }
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Cuts what stands between an array's brackets at its own commas: appends the elements to `elements`. Blanks behind a comma belong to the
/// separator: `blanks` of them are asked for. Returns whether the text could be cut; if not, `elements` is as before.
pub fn cut_array(arena: &[u8], span: Span, blanks: usize, elements: &mut Vec<Span>) -> bool {
    let known = elements.len();
    let cut = cut_elements(arena, span, blanks, elements).is_some();
    if !cut {
        elements.truncate(known);
    }
    cut
}

fn cut_elements(arena: &[u8], span: Span, blanks: usize, elements: &mut Vec<Span>) -> Option<()> {
    let text = span.of(arena);
    let mut put = |from: usize, to: usize| elements.push(Span { at: span.at + from as u32, len: (to - from) as u32 });
    let (mut at, mut start) = (0, 0);
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at + 1)? + 1,
            b'[' | b'{' => at = array_end(text, at)? + 1,
            b']' | b'}' => return None,
            b',' => {
                put(start, at);
                at += 1;
                start = at + blanks;
                if text[at..].iter().take_while(|b| **b == b' ').count() < blanks {
                    return None;
                }
            }
            _ => at += 1,
        }
    }
    // No element at all is the empty text; so is one empty element, which no array has.
    if !text.is_empty() {
        put(start, text.len());
    }
    Some(())
}

/// Blanks behind the first comma of an array's own.
pub fn blanks(inner: &[u8]) -> Option<usize> {
    let mut elements = Vec::new();
    cut_elements(inner, Span { at: 0, len: inner.len() as u32 }, 0, &mut elements)?;
    let second = elements.get(1)?.of(inner);
    Some(second.iter().take_while(|b| **b == b' ').count())
}

fn is_key(text: &[u8], at: usize) -> bool {
    text[at..].iter().find(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n')) == Some(&b':')
}

/// The path of each slot of a JSON line that [`scan`] took apart: keys in their raw text joined by `.`, `[]` behind that of an array.
pub fn paths(line: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut path: Vec<u8> = Vec::new();
    let mut opened: Vec<usize> = Vec::new();
    let mut key_at = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'"' => {
                let Some(end) = string_end(line, at + 1) else { return found };
                if is_key(line, end + 1) {
                    path.truncate(key_at);
                    if !path.is_empty() {
                        path.push(b'.');
                    }
                    path.extend_from_slice(&line[at + 1..end]);
                } else {
                    found.push(path.clone());
                }
                at = end + 1;
            }
            b'[' => {
                found.push([&path[..], b"[]"].concat());
                let Some(end) = array_end(line, at) else { return found };
                at = end + 1;
            }
            b'{' => {
                opened.push(key_at);
                key_at = path.len();
                at += 1;
            }
            b'}' => {
                path.truncate(key_at);
                key_at = opened.pop().unwrap_or(0);
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            _ => {
                found.push(path.clone());
                at += line[at..].iter().take_while(|b| !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')).count().max(1);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::rebuild;
    use proptest::prelude::*;

    fn shape(line: &[u8]) -> Option<(Vec<u8>, Vec<Span>)> {
        let (mut key, mut slots) = (Key::default(), Vec::new());
        key.begin(line);
        if !scan(line, Span { at: 0, len: line.len() as u32 }, &mut key, &mut slots) {
            assert!(key.as_slice().is_empty() && slots.is_empty());
            return None;
        }
        let key = key.as_slice().to_vec();
        assert_eq!(rebuild(template(&key).unwrap(), &slots, line), line);
        Some((key, slots))
    }

    #[test]
    fn leaves_are_found_with_their_paths() {
        let line = br#"{"a":1, "b":{"c":"x\"y","d":[true,{"e":null},-1.5e3]},"b":"", "f":{},"g":[]}"#;
        let (_, slots) = shape(line).unwrap();
        let values: Vec<_> = slots.iter().map(|s| String::from_utf8_lossy(s.of(line)).into_owned()).collect();
        assert_eq!(values, ["1", r#"x\"y"#, r#"true,{"e":null},-1.5e3"#, "", ""]);
        let paths: Vec<_> = paths(line).into_iter().map(|p| String::from_utf8(p).unwrap()).collect();
        assert_eq!(paths, ["a", "b.c", "b.d[]", "b", "g[]"]);
    }

    #[test]
    fn arrays_are_cut() {
        let cut = |text: &'static str| {
            let mut elements = Vec::new();
            let blanks = blanks(text.as_bytes()).unwrap_or(0);
            let cut = cut_array(text.as_bytes(), Span { at: 0, len: text.len() as u32 }, blanks, &mut elements);
            cut.then(|| elements.iter().map(|e| &text[e.at as usize..e.end()]).collect::<Vec<_>>())
        };
        assert_eq!(cut(r#"1,"a,]",[2,3],{"b":[4,5]}"#).unwrap(), ["1", r#""a,]""#, "[2,3]", r#"{"b":[4,5]}"#]);
        assert_eq!(cut("1, 2,  3").unwrap(), ["1", "2", " 3"]);
        assert_eq!(cut("").unwrap(), [""; 0]);
        assert_eq!(cut("1,").unwrap(), ["1", ""]);
        assert_eq!((cut("1, 2,3"), cut("]"), cut("[")), (None, None, None));
    }

    #[test]
    fn what_is_no_object_is_left() {
        for line in ["", "{", "[1]", r#"{"a":1"#, r#"{"a":"}"#, r#"{"a":1]}"#, r#"{"a":?}"#, "{}}", "{} {}", "{03ba-1}"] {
            assert!(shape(line.as_bytes()).is_none(), "{line}");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert!(shape(deep.as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(text in "\\{[\\[\\]{}\":,0-9a-c\\\\ \u{1}\u{5}]{0,40}\\}", bytes in any::<Vec<u8>>()) {
            if let Some((_, slots)) = shape(text.as_bytes()) {
                prop_assert!(paths(text.as_bytes()).len() >= slots.len().min(1));
            }
            shape(&bytes);
            paths(&bytes);
        }
    }
}
