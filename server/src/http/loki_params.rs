//! Times, durations and ranges as Loki's API writes them.

use super::params::Params;
use super::problem::Problem;
use haystore::query::time as points;

/// A point in time: integer nanoseconds, integer seconds (up to ten digits), fractional seconds, or RFC 3339.
///
/// # Errors
/// When it is none of these, or does not fit 64 bits of nanoseconds.
pub fn time(text: &str, now: i64) -> Result<i64, Problem> {
    let bad = || Problem::bad(format!("{text:?} is not a time: give nanoseconds, seconds or RFC 3339"));
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        let number: i64 = text.parse().map_err(|_| bad())?;
        return if unsigned.len() <= 10 { number.checked_mul(1_000_000_000).ok_or_else(bad) } else { Ok(number) };
    }
    if let Some((seconds, fraction)) = text.split_once('.')
        && !fraction.is_empty()
        && fraction.bytes().all(|b| b.is_ascii_digit())
        && let Ok(seconds_number) = seconds.parse::<i64>()
    {
        // By digits, not by floating point: no nanosecond is lost.
        let nanos: i64 = format!("{fraction:0<9.9}").parse().map_err(|_| bad())?;
        let nanos = if seconds.starts_with('-') { -nanos } else { nanos };
        return seconds_number.checked_mul(1_000_000_000).and_then(|s| s.checked_add(nanos)).ok_or_else(bad);
    }
    if text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
        let seconds: f64 = text.parse().map_err(|_| bad())?;
        let nanos = seconds * 1e9;
        return if nanos.abs() < 9.2e18 { Ok(nanos as i64) } else { Err(bad()) };
    }
    points::parse(text, now).map_err(|_| bad())
}

/// A duration, `1h30m`, `7d`, `1.5h`, in nanoseconds.
pub fn duration(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            "w" => 7.0 * 86_400e9,
            "y" => 365.0 * 86_400e9,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * scale;
        rest = tail;
    }
    (!text.is_empty() && sum < 9.2e18).then_some(sum as i64)
}

/// `start` (included) and `end` (excluded); `since` before `end` when there is no `start`; `default` without both.
///
/// # Errors
/// When a time cannot be read.
pub fn start_end(params: &Params, now: i64, default: i64) -> Result<(i64, i64), Problem> {
    let end = params.filled("end").map(|t| time(t, now)).transpose()?.unwrap_or(now);
    let since = match params.filled("since") {
        None => default,
        Some(text) => duration(text).ok_or_else(|| Problem::bad(format!("since={text:?} is not a duration")))?,
    };
    let start = params.filled("start").map(|t| time(t, now)).transpose()?.unwrap_or(end.min(now).saturating_sub(since));
    Ok((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_nanoseconds() {
        for (text, expected) in [
            ("1700000000123456789", 1_700_000_000_123_456_789),
            ("1700000000", 1_700_000_000_000_000_000),
            ("1700000000.123456789", 1_700_000_000_123_456_789),
            ("-1.5", -1_500_000_000),
            ("1.7e9", 1_700_000_000_000_000_000),
            ("2024-02-29T23:59:59.000000001Z", 1_709_251_199_000_000_001),
            ("2024-03-01T01:00:00+01:00", 1_709_251_200_000_000_000),
        ] {
            assert_eq!(time(text, 0).unwrap(), expected, "{text}");
        }
        for bad in ["", "x", "1e400", "99999999999999999999", "2024-13", "."] {
            assert!(time(bad, 0).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_and_ranges() {
        assert_eq!(duration("1h30m"), Some(5_400_000_000_000));
        assert_eq!(duration("1.5s"), Some(1_500_000_000));
        assert_eq!((duration(""), duration("5"), duration("x"), duration("999999y")), (None, None, None, None));
        let params = |text: &str| Params::from_form(text.as_bytes());
        let now = 1_000_000_000_000_000_000;
        assert_eq!(start_end(&params(""), now, 5).unwrap(), (now - 5, now));
        assert_eq!(start_end(&params("since=1s&end=50000000000"), now, 5).unwrap(), (49_000_000_000, 50_000_000_000));
        assert_eq!(start_end(&params("start=10&end=20&since=1s"), now, 5).unwrap(), (10_000_000_000, 20_000_000_000));
    }
}
