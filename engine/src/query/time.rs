//! Times as text: what users write, and RFC 3339 out.
//!
//! A time is nanoseconds since the Unix epoch, UTC, in an `i64`: 1677-09-21T00:12:43.145224192Z to
//! 2262-04-11T23:47:16.854775807Z. The clock is the caller's: `now` is passed in.

use crate::error::{Error, Result};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;
/// Days from 0000-03-01, where the calendar's cycles are counted from, to 1970-01-01.
const EPOCH_DAY: i64 = 719_468;
/// Numbers below this are seconds, 1,000 times it milliseconds, and so on: ten digits at most.
const SECONDS_END: u64 = 10_000_000_000;

/// Units of a duration and their nanoseconds; longer names first where one begins another.
const UNITS: &[(&str, i64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("h", 3_600 * SECOND_NS),
    ("d", DAY_S * SECOND_NS),
    ("w", 7 * DAY_S * SECOND_NS),
];

/// Reads a time:
/// - RFC 3339 with `Z` or an offset; without one, UTC; at most nine digits of fraction; a date alone is its midnight, UTC.
///   A leap second (`:60`) is the second after it.
/// - a whole number since the epoch: up to 10 digits are seconds, 11 to 13 milliseconds, 14 to 16 microseconds, more nanoseconds.
/// - a number with a point (at most nine digits after it) or an exponent: seconds.
/// - `now`, `now-1h30m`, `now+5m`: see [`parse_duration`] for the units.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] when `text` is no time, or is one that nanoseconds in an `i64` can't hold.
pub fn parse(text: &str, now_ns: i64) -> Result<i64> {
    let time = text.trim();
    let read = if let Some(offset) = time.strip_prefix("now") {
        relative(offset.trim(), now_ns)
    } else if time.as_bytes().get(4) == Some(&b'-') && time.bytes().take(4).all(|b| b.is_ascii_digit()) {
        rfc3339(time)
    } else {
        number(time)
    };
    read.map_err(|fault| Error::invalid(format!("time {:?}: {}", text.chars().take(60).collect::<String>(), fault.message())))
}

/// Reads a duration in nanoseconds, never negative: whole numbers with units `ns us ms s m h d w`, one after the other, as `1h30m`.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] when `text` is no duration or overflows.
pub fn parse_duration(text: &str) -> Result<i64> {
    duration(text).map_err(|fault| Error::invalid(format!("duration {:?}: {}", text.chars().take(60).collect::<String>(), fault.message())))
}

/// Why a text is no time.
enum Fault {
    Syntax,
    Fraction,
    Duration,
    Range,
}

impl Fault {
    fn message(&self) -> &'static str {
        match self {
            Fault::Syntax => "expected RFC 3339, a number since the epoch, or now-1h",
            Fault::Fraction => "a second has at most nine digits of fraction",
            Fault::Duration => "expected whole numbers with units ns us ms s m h d w, as 1h30m",
            Fault::Range => "it does not fit nanoseconds in 64 bits (years 1677 to 2262)",
        }
    }
}

fn relative(offset: &str, now_ns: i64) -> Result<i64, Fault> {
    let moved = match offset.as_bytes().first() {
        None => Some(now_ns),
        Some(b'-') => now_ns.checked_sub(duration(offset[1..].trim_start())?),
        Some(b'+') => now_ns.checked_add(duration(offset[1..].trim_start())?),
        Some(_) => return Err(Fault::Syntax),
    };
    moved.ok_or(Fault::Range)
}

fn duration(mut text: &str) -> Result<i64, Fault> {
    let mut sum = 0i64;
    loop {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &text[digits..];
        let unit = UNITS.iter().find(|(name, _)| rest.starts_with(name)).filter(|_| digits > 0);
        let (name, unit_ns) = unit.ok_or(Fault::Duration)?;
        let count: i64 = text[..digits].parse().map_err(|_| Fault::Range)?;
        sum = count.checked_mul(*unit_ns).and_then(|ns| sum.checked_add(ns)).ok_or(Fault::Range)?;
        text = &rest[name.len()..];
        if text.is_empty() {
            return Ok(sum);
        }
    }
}

fn number(text: &str) -> Result<i64, Fault> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let negative = text.starts_with('-');
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || !digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b)) {
        return Err(Fault::Syntax);
    }
    if digits.contains(['e', 'E']) {
        let seconds: f64 = text.parse().map_err(|_| Fault::Syntax)?;
        let ns = (seconds * SECOND_NS as f64).round();
        return if ns.abs() < i64::MAX as f64 { Ok(ns as i64) } else { Err(Fault::Range) };
    }
    let sign = |size: i128| i64::try_from(if negative { -size } else { size }).map_err(|_| Fault::Range);
    if let Some((whole, fraction)) = digits.split_once('.') {
        let seconds = unsigned(whole)?;
        let (ns, rest) = fraction_ns(fraction)?;
        return if rest.is_empty() { sign(i128::from(seconds) * i128::from(SECOND_NS) + i128::from(ns)) } else { Err(Fault::Syntax) };
    }
    let size = unsigned(digits)?;
    let mut unit_ns = i128::from(SECOND_NS);
    let mut end = SECONDS_END;
    while size >= end && unit_ns > 1 {
        unit_ns /= 1_000;
        end *= 1_000;
    }
    sign(i128::from(size) * unit_ns)
}

fn unsigned(digits: &str) -> Result<u64, Fault> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Fault::Syntax);
    }
    digits.parse().map_err(|_| Fault::Range)
}

/// The digits that `text` begins with as a fraction of a second, and what follows them.
fn fraction_ns(text: &str) -> Result<(i64, &str), Fault> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    if len > 9 {
        return Err(Fault::Fraction);
    }
    let digits = text[..len].bytes().fold(0, |n, b| n * 10 + i64::from(b - b'0'));
    Ok((digits * 10_i64.pow(9 - len as u32), &text[len..]))
}

fn rfc3339(text: &str) -> Result<i64, Fault> {
    let (year, month, day) = (field(text, 0, 4)?, field(text, 5, 2)?, field(text, 8, 2)?);
    if text.as_bytes()[7] != b'-' || !(1..=12).contains(&month) || !(1..=month_days(year, month)).contains(&day) {
        return Err(Fault::Syntax);
    }
    let mut seconds = days_from_civil(year, month, day) * DAY_S;
    let mut ns = 0;
    if let Some(time) = text.get(10..).filter(|time| !time.is_empty()) {
        let (hour, minute, second) = (field(time, 1, 2)?, field(time, 4, 2)?, field(time, 7, 2)?);
        let bytes = time.as_bytes();
        if !b"Tt ".contains(&bytes[0]) || bytes[3] != b':' || bytes[6] != b':' || hour > 23 || minute > 59 || second > 60 {
            return Err(Fault::Syntax);
        }
        let mut rest = time.get(9..).ok_or(Fault::Syntax)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            if !fraction.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(Fault::Syntax);
            }
            (ns, rest) = fraction_ns(fraction)?;
        }
        seconds += hour * 3_600 + minute * 60 + second - offset_seconds(rest)?;
    } else if text.len() != 10 {
        return Err(Fault::Syntax);
    }
    i64::try_from(i128::from(seconds) * i128::from(SECOND_NS) + i128::from(ns)).map_err(|_| Fault::Range)
}

/// `Z`, `+02:00`, `-0330`; nothing is UTC.
fn offset_seconds(text: &str) -> Result<i64, Fault> {
    if matches!(text, "" | "Z" | "z") {
        return Ok(0);
    }
    let (hour, minute) = match text.len() {
        6 if text.as_bytes()[3] == b':' => (field(text, 1, 2)?, field(text, 4, 2)?),
        5 => (field(text, 1, 2)?, field(text, 3, 2)?),
        _ => return Err(Fault::Syntax),
    };
    let size = hour * 3_600 + minute * 60;
    match text.as_bytes()[0] {
        _ if hour > 23 || minute > 59 => Err(Fault::Syntax),
        b'+' => Ok(size),
        b'-' => Ok(-size),
        _ => Err(Fault::Syntax),
    }
}

fn field(text: &str, at: usize, len: usize) -> Result<i64, Fault> {
    let digits = text.as_bytes().get(at..at + len).ok_or(Fault::Syntax)?;
    digits.iter().try_fold(0, |n, b| if b.is_ascii_digit() { Ok(n * 10 + i64::from(b - b'0')) } else { Err(Fault::Syntax) })
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the years 0 to 9999. Years are counted from March, so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - EPOCH_DAY
}

/// Year, month and day of a day counted from 0000-03-01.
fn civil_from_days(day: u32) -> (u32, u32, u32) {
    const CYCLE_DAYS: u32 = 146_097;
    let in_cycle = day % CYCLE_DAYS;
    let year_of_cycle = (in_cycle - in_cycle / 1_460 + in_cycle / 36_524 - in_cycle / (CYCLE_DAYS - 1)) / 365;
    let in_year = in_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month = (5 * in_year + 2) / 153;
    let in_month = in_year - (153 * month + 2) / 5;
    let wraps = month >= 10;
    let year = day / CYCLE_DAYS * 400 + year_of_cycle + u32::from(wraps);
    (year, if wraps { month - 9 } else { month + 3 }, in_month + 1)
}

/// The length of what [`write_rfc3339`] writes.
pub const RFC3339_LEN: usize = 30;

/// `ns` as `2024-01-31T12:34:56.000000000Z`: always nine digits of fraction and `Z`.
pub fn to_rfc3339(ns: i64) -> String {
    rfc3339_bytes(ns).iter().map(|&b| char::from(b)).collect()
}

/// Appends what [`to_rfc3339`] gives.
#[inline]
pub fn write_rfc3339(out: &mut Vec<u8>, ns: i64) {
    out.extend_from_slice(&rfc3339_bytes(ns));
}

/// The second in which the earliest time lies, from 0000-03-01, and its part of that second.
const MIN_SECOND: u64 = (i64::MIN.div_euclid(SECOND_NS) + EPOCH_DAY * DAY_S) as u64;
const MIN_FRACTION_NS: u32 = i64::MIN.rem_euclid(SECOND_NS) as u32;

#[inline]
fn rfc3339_bytes(ns: i64) -> [u8; RFC3339_LEN] {
    // Counted from the earliest time, then from 0000-03-01, nothing is negative, and dividing is fast.
    let since = (ns as u64) ^ (1 << 63);
    let (mut fraction, mut seconds) = ((since % SECOND_NS as u64) as u32 + MIN_FRACTION_NS, since / SECOND_NS as u64 + MIN_SECOND);
    if fraction >= SECOND_NS as u32 {
        (fraction, seconds) = (fraction - SECOND_NS as u32, seconds + 1);
    }
    let (year, month, day) = civil_from_days((seconds / DAY_S as u64) as u32);
    let of_day = (seconds % DAY_S as u64) as u32;
    let mut out = *b"0000-00-00T00:00:00.000000000Z";
    put_two(&mut out, 0, year / 100);
    put_two(&mut out, 2, year % 100);
    put_two(&mut out, 5, month);
    put_two(&mut out, 8, day);
    put_two(&mut out, 11, of_day / 3_600);
    put_two(&mut out, 14, of_day / 60 % 60);
    put_two(&mut out, 17, of_day % 60);
    put_two(&mut out, 20, fraction / 10_000_000);
    put_two(&mut out, 22, fraction / 100_000 % 100);
    put_two(&mut out, 24, fraction / 1_000 % 100);
    put_two(&mut out, 26, fraction / 10 % 100);
    out[28] = b'0' + (fraction % 10) as u8;
    out
}

/// All pairs of digits, `00` to `99`; as long as a power of two, so that no bound needs a check.
static PAIRS: [[u8; 2]; 128] = {
    let mut pairs = [[0; 2]; 128];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

#[inline]
fn put_two(out: &mut [u8; RFC3339_LEN], at: usize, value: u32) {
    out[at..at + 2].copy_from_slice(&PAIRS[value as usize % PAIRS.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_700_000_000_000_000_000;

    #[test]
    fn times_are_read() {
        let cases: &[(&str, i64)] = &[
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01", 0),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("2023-11-14T22:13:20Z", NOW),
            ("2023-11-14t22:13:20z", NOW),
            ("2023-11-14 22:13:20", NOW),
            ("2023-11-14T23:43:20+01:30", NOW),
            ("2023-11-14T12:13:20.5-1000", NOW + 500_000_000),
            ("2000-02-29T00:00:00.000000001Z", 951_782_400_000_000_001),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000_000),
            ("1677-09-21T00:12:43.145224192Z", i64::MIN),
            ("2262-04-11T23:47:16.854775807Z", i64::MAX),
            ("0", 0),
            (" 1700000000 ", NOW),
            ("+1700000000", NOW),
            ("-1", -SECOND_NS),
            ("9223372036", 9_223_372_036_000_000_000),
            ("10000000000", 10_000_000_000_000_000),
            ("1700000000000", NOW),
            ("10000000000000", 10_000_000_000_000_000),
            ("1700000000000000", NOW),
            ("10000000000000000", 10_000_000_000_000_000),
            ("1700000000000000000", NOW),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("1700000000.123456789", NOW + 123_456_789),
            ("1700000000.5", NOW + 500_000_000),
            ("-0.5", -500_000_000),
            ("1700000000.", NOW),
            ("1.7e9", NOW),
            ("-1E-9", -1),
            ("now", NOW),
            ("now-1h", NOW - 3_600 * SECOND_NS),
            ("now+5m", NOW + 300 * SECOND_NS),
            ("now - 1h30m", NOW - 5_400 * SECOND_NS),
            ("now-1w1d1h1m1s1ms1us1ns", NOW - 694_861_001_001_001),
            ("now-2µs", NOW - 2_000),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text, NOW), Ok(*expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_says_why() {
        let [syntax, fraction, span, range] = [Fault::Syntax, Fault::Fraction, Fault::Duration, Fault::Range].map(|f| f.message());
        let cases: &[(&str, &str)] = &[
            ("", syntax),
            ("yesterday", syntax),
            ("nowhere", syntax),
            ("2023-02-29", syntax),
            ("2023-13-01", syntax),
            ("2023-11-14T", syntax),
            ("2023-11-14T22:13", syntax),
            ("2023-11-14T24:00:00Z", syntax),
            ("2023-11-14T22:13:20.Z", syntax),
            ("2023-11-14T22:13:20Zx", syntax),
            ("2023-11-14T22:13:20+1", syntax),
            ("2023-11-14T22:13:20+01x30", syntax),
            ("2023-11-14T22:13:20é", syntax),
            ("2023-1é", syntax),
            ("2023-11-14é", syntax),
            ("1e", syntax),
            ("1.2.3", syntax),
            (".5", syntax),
            ("--1", syntax),
            ("5-1", syntax),
            ("inf", syntax),
            ("2023-11-14T22:13:20.1234567890Z", fraction),
            ("1.1234567890", fraction),
            ("now-", span),
            ("now-1", span),
            ("now-h", span),
            ("now-1.5h", span),
            ("now-1y", span),
            ("2263-01-01", range),
            ("1677-09-21T00:12:43.145224191Z", range),
            ("9223372037", range),
            ("9999999999999", range),
            ("9223372036854775808", range),
            ("99999999999999999999999", range),
            ("1e300", range),
            ("now-99999999999999999999s", range),
            ("now+9999999999s", range),
            ("now+9000000000s", range),
        ];
        for (text, message) in cases {
            let error = parse(text, NOW).unwrap_err();
            assert_eq!(error.message(), format!("time {text:?}: {message}"));
        }
        assert_eq!(parse_duration("1h30m"), Ok(5_400 * SECOND_NS));
        assert!(parse_duration("").is_err());
    }

    #[test]
    fn every_day_that_fits_is_written_and_read() {
        let (mut year, mut month, mut day) = (1677, 9, 22);
        for days in i64::MIN / SECOND_NS / DAY_S..=i64::MAX / SECOND_NS / DAY_S {
            assert_eq!(civil_from_days((days + EPOCH_DAY) as u32), (year as u32, month as u32, day as u32), "day {days}");
            assert_eq!(days_from_civil(year, month, day), days);
            day += 1;
            if day > month_days(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (2262, 4, 12));
        assert_eq!(to_rfc3339(i64::MIN), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(to_rfc3339(i64::MAX), "2262-04-11T23:47:16.854775807Z");
        assert_eq!(to_rfc3339(0), "1970-01-01T00:00:00.000000000Z");
    }

    proptest! {
        #[test]
        fn a_time_survives_its_text(ns in any::<i64>()) {
            let mut text = Vec::new();
            write_rfc3339(&mut text, ns);
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(parse(&text, 0), Ok(ns), "{}", text);
            prop_assert_eq!(to_rfc3339(ns), text);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in prop_oneof![any::<String>(), "(now)?[-+]?[0-9]{0,20}[-:.TZ0-9hsmé+]{0,20}"]) {
            let _ = parse(&text, NOW);
            let _ = parse_duration(&text);
        }
    }
}
