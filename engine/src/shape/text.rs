//! Text: tokens with a digit, timestamps and double-quoted runs vary; everything else is the template.

use super::{Key, SlotKind, Span, time};

/// How tokens are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// A token is a run of letters, digits, `.`, `-`, `_` and bytes from 128.
    Coarse,
    /// A token is a run of digits; for values that are one coarse token.
    Fine,
}

const OTHER: u8 = 0;
const WORD: u8 = 1;
const DIGIT: u8 = 2;
const QUOTE: u8 = 3;

const CLASSES: [u8; 256] = {
    let mut table = [OTHER; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        if b.is_ascii_digit() {
            table[i] = DIGIT;
        } else if b.is_ascii_alphabetic() || b >= 128 || matches!(b, b'.' | b'-' | b'_') {
            table[i] = WORD;
        } else if b == b'"' {
            table[i] = QUOTE;
        }
        i += 1;
    }
    table
};

fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Takes `arena[span]` apart: appends the template to `key` and the slots to `slots`.
pub fn scan(arena: &[u8], span: Span, grain: Grain, key: &mut Key, slots: &mut Vec<Span>) {
    match grain {
        Grain::Coarse => coarse(arena, span, key, slots),
        Grain::Fine => fine(arena, span, key, slots),
    }
}

fn fine(arena: &[u8], span: Span, key: &mut Key, slots: &mut Vec<Span>) {
    let (mut at, end) = (span.at as usize, span.at as usize + span.len as usize);
    while at < end {
        let digit = arena[at].is_ascii_digit();
        let len = arena[at..end].iter().take_while(|b| b.is_ascii_digit() == digit).count();
        if digit {
            key.put_slot(slots, SlotKind::Token, at, len);
        } else {
            key.put_literal(arena, at, at + len);
        }
        at += len;
    }
}

fn coarse(arena: &[u8], span: Span, key: &mut Key, slots: &mut Vec<Span>) {
    let (mut at, end) = (span.at as usize, span.at as usize + span.len as usize);
    let text = &arena[..end];
    let mut literal = at;
    while at < end {
        match class(text[at]) {
            OTHER => at += 1,
            QUOTE => {
                let inside = at + 1;
                match memchr::memchr(b'"', &text[inside..]) {
                    Some(len) if len > 0 => {
                        key.put_literal(arena, literal, inside);
                        key.put_slot(slots, SlotKind::Quoted, inside, len);
                        literal = inside + len;
                        at = literal + 1;
                    }
                    Some(_) => at += 2,
                    None => at += 1,
                }
            }
            _ => at = token(arena, end, at, &mut literal, key, slots),
        }
    }
    key.put_literal(arena, literal, end);
}

/// Handles the token at `at` of a line that ends at `line_end`; returns where to go on.
fn token(arena: &[u8], line_end: usize, at: usize, literal: &mut usize, key: &mut Key, slots: &mut Vec<Span>) -> usize {
    let text = &arena[..line_end];
    let first = text[at];
    if (first.is_ascii_digit() || first.is_ascii_uppercase())
        && let Some(layout) = time::find(text, at)
    {
        key.put_literal(arena, *literal, at);
        key.put_slot(slots, SlotKind::Time, at, layout.text_len());
        key.out.put_long(&[layout.family + b'0', layout.separator, layout.digits + b'0']);
        *literal = at + layout.text_len();
        return *literal;
    }
    let mut end = at;
    let mut digit = false;
    while end < text.len() {
        match class(text[end]) {
            DIGIT => digit = true,
            WORD => {}
            _ => break,
        }
        end += 1;
    }
    if digit {
        let value_end = trim(text, at, end);
        key.put_literal(arena, *literal, at);
        key.put_slot(slots, SlotKind::Token, at, value_end - at);
        *literal = value_end;
    }
    end
}

/// Leaves out punctuation at a token's end, and a unit behind a number.
fn trim(text: &[u8], at: usize, end: usize) -> usize {
    let mut value_end = end;
    while value_end > at + 1 && matches!(text[value_end - 1], b'.' | b'-' | b'_') {
        value_end -= 1;
    }
    let value = &text[at..value_end];
    let number = value.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let unit = &value[number..];
    if number > 0 && value[number - 1].is_ascii_digit() && (1..=3).contains(&unit.len()) && is_unit(unit) { at + number } else { value_end }
}

fn is_unit(unit: &[u8]) -> bool {
    matches!(
        unit,
        b"ns" | b"us" | b"ms" | b"s" | b"m" | b"h" | b"k" | b"K" | b"M" | b"G" | b"kB" | b"KB" | b"MB" | b"GB" | b"KiB" | b"MiB" | b"GiB"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{parts_of, rebuild};
    use proptest::prelude::*;

    fn shape(line: &[u8], grain: Grain) -> (Vec<u8>, Vec<Span>) {
        let (mut key, mut slots) = (Key::default(), Vec::new());
        key.begin(line);
        scan(line, Span { at: 0, len: line.len() as u32 }, grain, &mut key, &mut slots);
        assert_eq!(rebuild(key.as_slice(), &slots, line), line);
        (key.as_slice().to_vec(), slots)
    }

    fn slots_of(line: &str) -> Vec<&str> {
        shape(line.as_bytes(), Grain::Coarse).1.iter().map(|s| &line[s.at as usize..(s.at + s.len) as usize]).collect()
    }

    #[test]
    fn what_varies_is_found() {
        assert_eq!(
            slots_of(r#"2015-05-13T00:00:01.123456Z,elb,1.2.3.4:80,"GET https://a/ HTTP/1.1",-,x7.,12ms"#),
            ["2015-05-13T00:00:01.123456", "1.2.3.4", "80", "GET https://a/ HTTP/1.1", "x7", "12"]
        );
        assert_eq!(slots_of("Oct  1 00:00:00 db1 sshd[77]: \"\" \""), ["Oct  1 00:00:00", "db1", "77"]);
    }

    #[test]
    fn lines_of_one_template_have_one_key() {
        let key = |line: &str| shape(line.as_bytes(), Grain::Coarse).0;
        assert_eq!(key("a 1 b"), key("a 22 b"));
        assert!(key("a 1 b") != key("a 1 c"));
        assert!(key("10:00:00.1") != key("10:00:00.12"));
        assert!(key("a\u{1}\u{2}b") != key("a1b"));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(bytes in any::<Vec<u8>>(), text in "[a-z0-9 \":.\u{1}\u{2}\u{4}-]{0,60}") {
            for grain in [Grain::Coarse, Grain::Fine] {
                shape(&bytes, grain);
                let (key, _) = shape(text.as_bytes(), grain);
                parts_of(&key);
            }
        }
    }
}
