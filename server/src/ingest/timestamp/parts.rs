//! The parts of a timestamp: digits, months, weekdays, fractions, zones.
//!
//! Leaves: each takes bytes and a place and gives a value, or `None`; none reads past the end.

/// Whether `byte` is `0` to `9`.
pub fn is_digit(byte: u8) -> bool {
    byte.wrapping_sub(b'0') < 10
}

/// Two digits at `at`.
pub fn number2(text: &[u8], at: usize) -> Option<u32> {
    let &[tens, units] = text.get(at..at + 2)? else { return None };
    let (tens, units) = (tens.wrapping_sub(b'0'), units.wrapping_sub(b'0'));
    (tens < 10 && units < 10).then(|| u32::from(tens * 10 + units))
}

/// Four digits at `at`.
pub fn number4(text: &[u8], at: usize) -> Option<i32> {
    let value = number2(text, at)? * 100 + number2(text, at + 2)?;
    i32::try_from(value).ok()
}

/// The month, 1 to 12, of its three-letter English name, capitalised as names are, or all in capitals.
pub fn month(name: &[u8]) -> Option<u32> {
    let &[a, b, c] = name else { return None };
    if !a.is_ascii_uppercase() {
        return None;
    }
    let month = match [a, b | 0x20, c | 0x20] {
        [b'J', b'a', b'n'] => 1,
        [b'F', b'e', b'b'] => 2,
        [b'M', b'a', b'r'] => 3,
        [b'A', b'p', b'r'] => 4,
        [b'M', b'a', b'y'] => 5,
        [b'J', b'u', b'n'] => 6,
        [b'J', b'u', b'l'] => 7,
        [b'A', b'u', b'g'] => 8,
        [b'S', b'e', b'p'] => 9,
        [b'O', b'c', b't'] => 10,
        [b'N', b'o', b'v'] => 11,
        [b'D', b'e', b'c'] => 12,
        _ => return None,
    };
    Some(month)
}

/// Where the weekday (`Sun ` or `Sun, `) that ends at `end` begins.
pub fn weekday_before(text: &[u8], end: usize) -> Option<usize> {
    let text = text.get(..end)?.strip_suffix(b" ")?;
    let text = text.strip_suffix(b",").unwrap_or(text);
    let start = text.len().checked_sub(3)?;
    let is_weekday = matches!(&text[start..], b"Mon" | b"Tue" | b"Wed" | b"Thu" | b"Fri" | b"Sat" | b"Sun");
    is_weekday.then_some(start)
}

/// The fraction at `at`, as nanoseconds, and where it ends; zero when there is none. `None` when a digit is there: then what
/// came before was no seconds.
pub fn fraction(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = match text.get(at) {
        Some(b'.' | b',') => &text[at + 1..],
        Some(&byte) if is_digit(byte) => return None,
        _ => return Some((0, at)),
    };
    let mut nanos = 0;
    let mut unit = 100_000_000;
    let mut len = 0;
    for digit in digits.iter().map(|b| b.wrapping_sub(b'0')).take_while(|&d| d < 10) {
        nanos += u32::from(digit) * unit;
        unit /= 10;
        len += 1;
    }
    Some((nanos, if len == 0 { at } else { at + 1 + len }))
}

/// The zone at `at`, as seconds ahead of UTC, and where it ends.
pub fn zone(text: &[u8], at: usize) -> Option<(i32, usize)> {
    let rest = text.get(at..)?;
    match rest.first()? {
        b'Z' | b'z' => ends_word(text, at + 1).then_some((0, at + 1)),
        b'+' | b'-' => offset(text, at, true),
        b' ' => match rest.get(1)? {
            b'+' | b'-' => offset(text, at + 1, false),
            b'U' | b'G' => utc(text, at + 1),
            _ => None,
        },
        b'U' | b'G' => utc(text, at),
        _ => None,
    }
}

fn utc(text: &[u8], at: usize) -> Option<(i32, usize)> {
    let named = matches!(text.get(at..at + 3)?, b"UTC" | b"GMT");
    (named && ends_word(text, at + 3)).then_some((0, at + 3))
}

/// `±hh:mm`, `±hhmm`, and `±hh` when it stands close to the time.
fn offset(text: &[u8], at: usize, close: bool) -> Option<(i32, usize)> {
    let sign = if text[at] == b'-' { -1 } else { 1 };
    let hours = number2(text, at + 1)?;
    let (minutes, end) = match text.get(at + 3) {
        Some(b':') => (number2(text, at + 4)?, at + 6),
        Some(&byte) if is_digit(byte) => (number2(text, at + 3)?, at + 5),
        _ if close => (0, at + 3),
        _ => return None,
    };
    let fits = hours < 24 && minutes < 60 && ends_word(text, end);
    fits.then(|| (sign * (hours * 3600 + minutes * 60) as i32, end))
}

fn ends_word(text: &[u8], at: usize) -> bool {
    !text.get(at).is_some_and(u8::is_ascii_alphanumeric)
}
