//! Sizes and counts for people: read from options, written into tables.

use std::time::Duration;

/// Reads a size: digits, maybe a fraction, maybe a unit (`kB MB GB` of 1,000, `KiB MiB GiB` of 1,024; `K M G` mean the latter).
///
/// # Errors
/// What a size looks like.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text:?} is no size; write it like 64MiB, 500kB or 1.5GB");
    let text_trimmed = text.trim();
    let digits = text_trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text_trimmed.len());
    let (number, unit) = text_trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1_048_576.0,
        "g" | "gib" => 1_073_741_824.0,
        _ => return Err(wrong()),
    };
    let bytes = number * factor;
    if (1.0..=1e15).contains(&bytes) { Ok(bytes as usize) } else { Err(wrong()) }
}

/// Reads a duration: a number, maybe with a fraction, of seconds or of the unit behind it (`ms s m h d`).
///
/// # Errors
/// What a duration looks like.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time; write it like 30s, 500ms or 1.5h");
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    // A century: longer than anything here waits, and short enough for every clock.
    let seconds = number * factor;
    if (0.0..=3.2e9).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
}

/// `bytes` in the decimal unit that suits it: `812 B`, `3.1 MB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit < 5 {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(value < 99.95);
    format!("{value:.digits$} {}", ["B", "kB", "MB", "GB", "TB", "PB"][unit])
}

/// `n` with commas between groups of three digits.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n` of what `word` names: `1 file`, `2 files`.
pub fn of(n: u64, word: &str) -> String {
    format!("{} {word}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Megabytes (of 1,000,000 bytes) a second.
pub fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / 1e6 / seconds } else { 0.0 }
}

/// How many times smaller `stored` is than `raw`: `7.3x`; `-` when nothing is stored.
pub fn ratio(raw: u64, stored: u64) -> String {
    if stored == 0 { "-".into() } else { format!("{:.1}x", raw as f64 / stored as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [("1", 1), ("64MiB", 64 << 20), ("1.5MB", 1_500_000), ("2 k", 2048), ("3gb", 3_000_000_000)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "-1", "x", "1.2.3", "5 miles", "1e9", "9999999GB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, millis) in [("30", 30_000), ("0.5", 500), ("250ms", 250), ("1.5m", 90_000), ("2 h", 7_200_000), ("0", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "-1", "s", "1.2.3s", "5 fortnights", "9999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_written() {
        assert_eq!([0, 999, 1000, 99_949, 999_600, 34_000_000].map(size), ["0 B", "999 B", "1.0 kB", "99.9 kB", "1.0 MB", "34.0 MB"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 1000].map(|n| of(n, "file")), ["0 files", "1 file", "1,000 files"]);
        assert_eq!(ratio(10, 0), "-");
        assert_eq!(ratio(100, 8), "12.5x");
    }
}
