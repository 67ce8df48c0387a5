//! Epoch numbers: the unit follows from the magnitude.
//!
//! | value | unit | reaches |
//! |---|---|---|
//! | below 10^8 | no timestamp | |
//! | 10^8 to 10^11 | seconds, a fraction may follow | 1973 to 2262 |
//! | 10^11 to 10^14 | milliseconds, a fraction may follow | 1973 to 2262 |
//! | 10^14 to 10^17 | microseconds, a fraction may follow | 1973 to 2262 |
//! | from 10^17 | nanoseconds, a fraction is cut off | 1973 to 2262 |
//!
//! Fields may be negative (1677 to 1966, by the magnitude). At the head of a line of text, where numbers are often
//! something else, the number of digits must be 10, 13, 16 or 19 and the time before 2100.

use super::Found;
use super::parts::is_digit;

const DIGITS_MAX: usize = 19;
const YEAR_2100: i64 = 4_102_444_800_000_000_000;

/// The epoch number that is all of `value`, in nanoseconds.
pub fn epoch_value(value: &[u8]) -> Option<i64> {
    let (negative, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    let (nanos, end) = number(digits)?;
    if end != digits.len() {
        return None;
    }
    Some(if negative { -nanos } else { nanos })
}

/// The epoch number that opens `line`, if need be behind one `[`, `(` or `"`.
pub fn epoch_leading(line: &[u8]) -> Option<Found> {
    let start = usize::from(matches!(line.first()?, b'[' | b'(' | b'"'));
    let rest = &line[start..];
    if !matches!(rest.get(9), Some(&byte) if is_digit(byte)) || !is_digit(rest[0]) || rest[0] == b'0' {
        return None;
    }
    let digits = rest.iter().take(DIGITS_MAX + 1).take_while(|&&b| is_digit(b)).count();
    if !matches!(digits, 10 | 13 | 16 | 19) {
        return None;
    }
    let (nanos, end) = number(rest)?;
    let ends = !rest.get(end).is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'_'));
    (ends && nanos < YEAR_2100).then_some(Found { start, end: start + end, nanos })
}

/// Nanoseconds of the unit that a number of this magnitude counts.
fn scale(number: i64) -> Option<i64> {
    const UNITS: [(i64, Option<i64>); 4] = [
        (100_000_000, None),
        (100_000_000_000, Some(1_000_000_000)),
        (100_000_000_000_000, Some(1_000_000)),
        (100_000_000_000_000_000, Some(1_000)),
    ];
    UNITS.iter().find(|(below, _)| number < *below).map_or(Some(1), |(_, scale)| *scale)
}

/// The number at the head of `text`, as nanoseconds, and where it ends.
fn number(text: &[u8]) -> Option<(i64, usize)> {
    let digits = text.iter().take(DIGITS_MAX + 1).take_while(|&&b| is_digit(b)).count();
    if digits == 0 || digits > DIGITS_MAX {
        return None;
    }
    let whole = text[..digits].iter().try_fold(0i64, |n, b| n.checked_mul(10)?.checked_add(i64::from(b - b'0')))?;
    let scale = scale(whole)?;
    let mut nanos = whole.checked_mul(scale)?;
    let mut end = digits;
    if let Some((b'.' | b',', rest)) = text[digits..].split_first() {
        let mut unit = scale / 10;
        let mut len = 0;
        for digit in rest.iter().map(|b| b.wrapping_sub(b'0')).take_while(|&d| d < 10) {
            nanos = nanos.checked_add(i64::from(digit) * unit)?;
            unit /= 10;
            len += 1;
        }
        if len > 0 {
            end = digits + 1 + len;
        }
    }
    Some((nanos, end))
}
