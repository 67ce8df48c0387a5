//! Timestamps in text: found by looking, read byte by byte.
//!
//! Read are, with or without a fraction after `.` or `,` (digits past the ninth are ignored):
//!
//! | layout | example |
//! |---|---|
//! | RFC 3339 and kin | `2015-05-13T23:39:43.945958Z`, `2015-05-13 23:39:43,945 +0200`, `2015/05/13 23:39:43` |
//! | the same, looser | `2015/05/13 - 23:39:43`, `2015-05-13  3:39:43` |
//! | common log and kin | `10/Oct/2000:13:55:36 -0700`, `10-Oct-2000 13:55:36`, `Tue, 10 Oct 2000 13:55:36 GMT` |
//! | syslog, no year | `Oct 11 22:14:15`, `Oct  1 22:14:15`; with one: `Oct 11 2003 22:14:15` |
//! | ctime | `Sun Dec 04 04:47:44 2005`, `Sun Dec  4 04:47:44.123456 UTC 2005` |
//! | Linux audit | `audit(1684331782.591:3295)`: seconds and a fraction |
//! | epoch | seconds, ms, µs or ns by magnitude; the ranges are in `epoch.rs` |
//! | date only | `2015-05-13`, `2015/05/13`: midnight; only as the whole value of a field |
//!
//! **Zone**: `Z`, `UTC`, `GMT`, `±hh:mm`, `±hhmm` (both also after one space), `±hh`; other zone names are not
//! looked at. Without a zone, [`TimeRules::zone_seconds`] holds.
//! **Year**: where it is missing, [`TimeRules::year`] holds for every record; without that, the latest year
//! in which the date exists and the time is at most one day after [`TimeRules::now`].
//! **Leap second**: second 60 is the first second of the next minute. **24:00:00** is 00:00:00 of the next day.
//! **Overflow**: what does not fit an i64 of nanoseconds (before 1677-09-21, after 2262-04-11) is no timestamp.
//!
//! In a line of text the first timestamp counts, and only if it begins in the first [`SEARCH_BYTES`] bytes (or
//! fewer, see [`crate::ingest::Plan`]); an epoch must open the line. The result is a function of the line and the
//! rules. Every layout but the epoch holds a colon, so the search leaps from colon to colon.
//! Not read, because they are ambiguous: years of two digits, and dates of numbers alone that do not begin with the year.
//! This module must not know files or formats.

mod epoch;
mod parts;

pub use epoch::{epoch_leading, epoch_value};

use super::civil::{self, Date, Time};
use parts::{fraction, is_digit, month, number2, number4, weekday_before, zone};

/// A timestamp in text begins in the first so many bytes of a line, or is not looked for.
pub const SEARCH_BYTES: usize = 256;

/// More bytes than the longest part before the colon of a timestamp has.
const DATE_BYTES_MAX: usize = 32;

/// How gaps in a timestamp are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TimeRules {
    /// The reference for missing years, and the timestamp of records when the input has none at all; nanoseconds since the epoch.
    pub now: i64,
    /// Seconds ahead of UTC of the clocks that wrote timestamps without a zone.
    pub zone_seconds: i32,
    /// The year of timestamps without one.
    pub year: Option<i32>,
}

impl TimeRules {
    /// UTC, and years chosen from `now`.
    pub fn new(now: i64) -> Self {
        TimeRules { now, zone_seconds: 0, year: None }
    }
}

/// A timestamp and where it lies in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its first byte.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// Nanoseconds since the Unix epoch.
    pub nanos: i64,
}

/// The first timestamp of `line` that begins before byte `window`.
pub fn find(line: &[u8], window: usize, rules: &TimeRules) -> Option<Found> {
    if let Some(found) = epoch_leading(line) {
        return Some(found);
    }
    let haystack = &line[..line.len().min(window.saturating_add(DATE_BYTES_MAX))];
    let mut from = 2;
    while let Some(step) = haystack.get(from..).and_then(|rest| memchr::memchr(b':', rest)) {
        let colon = from + step;
        if let Some(found) = at_colon(line, colon, rules) {
            return (found.start < window).then_some(found);
        }
        from = colon + 1;
    }
    None
}

/// The timestamp that `field` begins with, behind blanks and `[`; what follows it is not looked at. An epoch must be all of the field.
pub fn value(field: &[u8], rules: &TimeRules) -> Option<i64> {
    value_found(field.trim_ascii(), rules).map(|found| found.nanos)
}

/// Whether `field` is a timestamp and, but for a zone's name, nothing else.
pub fn is_whole(field: &[u8], rules: &TimeRules) -> bool {
    let field = field.trim_ascii();
    value_found(field, rules).is_some_and(|found| {
        let rest = field[found.end..].trim_ascii_start();
        rest == b"]" || (rest.len() < 6 && rest.iter().all(u8::is_ascii_uppercase))
    })
}

fn value_found(field: &[u8], rules: &TimeRules) -> Option<Found> {
    let whole = |nanos| Found { start: 0, end: field.len(), nanos };
    if let Some(nanos) = epoch_value(field) {
        return Some(whole(nanos));
    }
    let bracket = usize::from(field.first() == Some(&b'['));
    let haystack = &field[..field.len().min(DATE_BYTES_MAX)];
    let mut from = 2;
    while let Some(step) = haystack.get(from..).and_then(|rest| memchr::memchr(b':', rest)) {
        let colon = from + step;
        if let Some(found) = at_colon(field, colon, rules) {
            return (found.start == bracket).then_some(found);
        }
        from = colon + 1;
    }
    Some(whole(civil::instant(year_month_day(field)?, Time::default(), rules.zone_seconds)?))
}

/// The timestamp whose first colon lies at `colon`.
fn at_colon(line: &[u8], colon: usize, rules: &TimeRules) -> Option<Found> {
    at_clock(line, colon, rules).or_else(|| audit(line, colon))
}

/// The one whose colon between hours and minutes it is.
fn at_clock(line: &[u8], colon: usize, rules: &TimeRules) -> Option<Found> {
    if line.get(colon + 3) != Some(&b':') {
        return None;
    }
    let clock = colon.checked_sub(2)?;
    let hour = hour(line, clock)?;
    let (minute, second) = (number2(line, colon + 1)?, number2(line, colon + 4)?);
    let before = clock.checked_sub(1)?;
    let (nanos, end) = fraction(line, colon + 6)?;
    let time = Time { hour, minute, second, nanos };
    if !time.is_valid() {
        return None;
    }
    match line[before] {
        b'T' | b't' => iso(line, before, time, end, rules),
        b' ' => iso(line, dash_before(line, before), time, end, rules)
            .or_else(|| day_month_year(line, before, time, end, rules))
            .or_else(|| month_day(line, before, time, end, rules)),
        b':' => day_month_year(line, before, time, end, rules),
        _ => None,
    }
}

/// Two digits, or a blank and one.
fn hour(line: &[u8], at: usize) -> Option<u32> {
    match line[at] {
        b' ' => Some(u32::from(line[at + 1].wrapping_sub(b'0'))).filter(|&hour| hour < 10),
        _ => number2(line, at),
    }
}

/// The end of a date that ends at `end`, or before ` -` there.
fn dash_before(line: &[u8], end: usize) -> usize {
    if line[..end].ends_with(b" -") { end - 2 } else { end }
}

/// `audit(seconds.fraction:serial)`, its colon at `colon`.
fn audit(line: &[u8], colon: usize) -> Option<Found> {
    const HEAD: &[u8] = b"audit(";
    let number = line[..colon].iter().rev().take(DATE_BYTES_MAX).take_while(|b| is_digit(**b) || **b == b'.').count();
    let start = colon - number;
    if number < 10 || !line[..start].ends_with(HEAD) {
        return None;
    }
    Some(Found { start: start - HEAD.len(), end: colon, nanos: epoch_value(&line[start..colon])? })
}

fn zoned(start: usize, date: Date, time: Time, line: &[u8], end: usize, rules: &TimeRules) -> Option<Found> {
    let (zone_seconds, end) = zone(line, end).unwrap_or((rules.zone_seconds, end));
    Some(Found { start, end, nanos: civil::instant(date, time, zone_seconds)? })
}

/// `YYYY-MM-DD` or `YYYY/MM/DD` that ends at `date_end`.
fn iso(line: &[u8], date_end: usize, time: Time, end: usize, rules: &TimeRules) -> Option<Found> {
    let start = date_end.checked_sub(10)?;
    if start > 0 && is_digit(line[start - 1]) {
        return None;
    }
    zoned(start, year_month_day(&line[start..date_end])?, time, line, end, rules)
}

fn year_month_day(text: &[u8]) -> Option<Date> {
    let separator = *text.get(4)?;
    if text.len() != 10 || text[7] != separator || !matches!(separator, b'-' | b'/') {
        return None;
    }
    Some(Date { year: number4(text, 0)?, month: number2(text, 5)?, day: number2(text, 8)? })
}

/// `DD/Mon/YYYY`, or with `-` or blanks, that ends at `date_end`.
fn day_month_year(line: &[u8], date_end: usize, time: Time, end: usize, rules: &TimeRules) -> Option<Found> {
    let year_at = date_end.checked_sub(4)?;
    let month_at = date_end.checked_sub(8)?;
    let separator = line[year_at - 1];
    let day_end = month_at.checked_sub(1)?;
    if !matches!(separator, b'/' | b'-' | b' ') || line[day_end] != separator {
        return None;
    }
    let month = month(&line[month_at..month_at + 3])?;
    let (start, day) = day_before(line, day_end)?;
    let start = weekday_before(line, start).unwrap_or(start);
    zoned(start, Date { year: number4(line, year_at)?, month, day }, time, line, end, rules)
}

/// The day of one or two digits that ends at `end`, and where it begins.
fn day_before(line: &[u8], end: usize) -> Option<(usize, u32)> {
    let last = end.checked_sub(1)?;
    let units = u32::from(line[last].wrapping_sub(b'0'));
    if units > 9 {
        return None;
    }
    match last.checked_sub(1).filter(|&first| is_digit(line[first])) {
        Some(first) if first > 0 && is_digit(line[first - 1]) => None,
        Some(first) => Some((first, u32::from(line[first] - b'0') * 10 + units)),
        None => Some((last, units)),
    }
}

/// `Mon DD`, `Mon  D` or `Mon DD YYYY` that ends at `date_end`; the year may also follow the time.
fn month_day(line: &[u8], date_end: usize, time: Time, end: usize, rules: &TimeRules) -> Option<Found> {
    let inner_year = date_end.checked_sub(4).filter(|&at| at > 0 && line[at - 1] == b' ').and_then(|at| number4(line, at));
    let day_end = if inner_year.is_some() { date_end - 5 } else { date_end };
    let (day_at, day) = day_before(line, day_end)?;
    let month_end = match line[..day_at] {
        [.., b' ', b' '] => day_at - 2,
        [.., b' '] => day_at - 1,
        _ => return None,
    };
    let start = month_end.checked_sub(3)?;
    let month = month(&line[start..month_end])?;
    if start > 0 && line[start - 1].is_ascii_alphanumeric() {
        return None;
    }
    if let Some(year) = inner_year {
        return zoned(start, Date { year, month, day }, time, line, end, rules);
    }
    if let Some(first) = weekday_before(line, start) {
        let (zone_seconds, zone_end) = zone(line, end).unwrap_or((rules.zone_seconds, end));
        if let Some((year, end)) = year_after(line, zone_end) {
            return Some(Found { start: first, end, nanos: civil::instant(Date { year, month, day }, time, zone_seconds)? });
        }
    }
    Some(Found { start, end, nanos: yearless(month, day, time, rules)? })
}

/// A year behind a blank, or behind a zone's name between blanks.
fn year_after(line: &[u8], at: usize) -> Option<(i32, usize)> {
    let rest = line.get(at..)?.strip_prefix(b" ")?;
    let letters = rest.iter().take(6).take_while(|b| b.is_ascii_uppercase()).count();
    let skipped = if (2..6).contains(&letters) && rest.get(letters) == Some(&b' ') { letters + 1 } else { 0 };
    let year = number4(rest, skipped)?;
    let end = skipped + 4;
    (!rest.get(end).is_some_and(u8::is_ascii_digit)).then_some((year, at + 1 + end))
}

fn yearless(month: u32, day: u32, time: Time, rules: &TimeRules) -> Option<i64> {
    let in_year = |year| civil::instant(Date { year, month, day }, time, rules.zone_seconds);
    if let Some(year) = rules.year {
        return in_year(year);
    }
    let latest = rules.now.saturating_add(civil::DAY_SECONDS * 1_000_000_000);
    let newest = civil::year_of(latest) + 1;
    // 29 February may be eight years back, and the zone may push the year's border.
    (newest - 10..=newest).rev().filter_map(in_year).find(|&nanos| nanos <= latest)
}

#[cfg(test)]
mod tests;
