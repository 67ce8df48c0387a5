//! Text: tokens with a digit, timestamps and double-quoted runs vary; everything else is the template.

use super::bytes::Classes;
use super::{Key, SlotKind, Span};

/// Fractions of so many digits or more are not told apart by their length.
pub const VARIABLE_DIGITS_MIN: u8 = 4;

/// How tokens are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Values that lines of the text name; text without such is cut as the next says.
    Named,
    /// A token is a run of letters, digits, `.`, `-`, `_` and bytes from 128.
    Coarse,
    /// A token is a run of digits; for values that are one coarse token.
    Fine,
}

/// Takes `arena[span]` apart: appends the template to `key`, which is empty, and the slots to `slots`. Returns whether it was done as `grain`
/// asks.
pub fn scan(arena: &[u8], span: Span, grain: Grain, key: &mut Key, slots: &mut Vec<Span>) -> bool {
    if grain == Grain::Named && super::properties::scan(arena, span, key, slots) {
        return true;
    }
    match grain {
        Grain::Named | Grain::Coarse => coarse(arena, span, key, slots),
        Grain::Fine => fine(arena, span, key, slots),
    }
    grain != Grain::Named
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
    let line = span.of(arena);
    let base = span.at as usize;
    let mut classes = std::mem::take(&mut key.classes);
    classes.fill(line);
    let (mut at, mut literal) = (0, 0);
    let mut put = |key: &mut Key, literal: &mut usize, kind: SlotKind, from: usize, to: usize| {
        key.put_literal(line, *literal, from);
        key.put_slot(slots, kind, base + from, to - from);
        *literal = to;
    };
    while let Some(found) = classes.next_digit_or_quote(at) {
        if line[found] == b'"' {
            let inside = found + 1;
            if let Some(end) = doubled_end(line, &classes, found) {
                put(key, &mut literal, SlotKind::Quoted, inside, end);
                at = end + 1;
                continue;
            }
            at = match classes.next_quote(inside) {
                Some(end) if end > inside => {
                    put(key, &mut literal, SlotKind::Quoted, inside, end);
                    end + 1
                }
                Some(_) => inside + 1,
                None => inside,
            };
            continue;
        }
        let start = classes.word_start(found, at);
        let time_at = if start == found { [Some(start), month_before(line, start, at)] } else { [None, None] };
        if let Some((from, layout)) = time_at.into_iter().flatten().find_map(|from| Some((from, key.times.find(line, from)?))) {
            put(key, &mut literal, SlotKind::Time, from, from + layout.text_len());
            // Writers that leave out zeros at the end of a fraction have one layout, not many.
            let digits = if layout.digits >= VARIABLE_DIGITS_MIN { VARIABLE_DIGITS_MIN } else { layout.digits };
            key.out.put_long(&[layout.family + b'0', layout.separator, digits + b'0']);
            at = literal;
            continue;
        }
        let end = classes.word_end(found);
        put(key, &mut literal, SlotKind::Token, start, trim(line, start, end));
        at = end;
    }
    key.classes = classes;
    key.put_literal(line, literal, line.len());
}

/// The end of a quoted field that begins at `quote` and holds quotes, each written twice, as CSV does it.
fn doubled_end(line: &[u8], classes: &Classes, quote: usize) -> Option<usize> {
    let is_border = |b: u8| matches!(b, b',' | b';' | b'\t' | b'\r');
    if quote > 0 && !is_border(line[quote - 1]) {
        return None;
    }
    let (mut at, mut doubled) = (quote + 1, false);
    loop {
        let found = classes.next_quote(at)?;
        if line.get(found + 1) != Some(&b'"') {
            return (doubled && line.get(found + 1).is_none_or(|&b| is_border(b))).then_some(found);
        }
        doubled = true;
        at = found + 2;
    }
}

/// Where a timestamp would begin whose day of the month, behind the month's name, begins at `day`.
fn month_before(line: &[u8], day: usize, least: usize) -> Option<usize> {
    let two_digits = line.get(day + 1).is_some_and(u8::is_ascii_digit);
    let from = day.checked_sub(if two_digits { 4 } else { 5 }).filter(|&from| from >= least)?;
    let begins = from == 0 || !(line[from - 1].is_ascii_alphanumeric() || matches!(line[from - 1], b'.' | b'-' | b'_' | 128..));
    (begins && line[from].is_ascii_uppercase()).then_some(from)
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
        assert_eq!(slots_of(r#""a ""b"" 1",2,"","c",x"""#), [r#"a ""b"" 1"#, "2", "c"]);
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
