//! Numbers, times and JSON strings as text, appended to a buffer without allocation.

use super::rng::Rng;

/// The decimal digits of `n`.
pub(super) fn number(out: &mut Vec<u8>, n: u64) {
    padded(out, n, 1, b'0');
}

/// The decimal digits of `n`, filled up on the left to `width`.
pub(super) fn padded(out: &mut Vec<u8>, mut n: u64, width: usize, fill: u8) {
    let mut digits = [fill; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

/// The last `width` hexadecimal digits of `n`; `alphabet` says which case.
pub(super) fn hex(out: &mut Vec<u8>, n: u64, width: u32, alphabet: &[u8; 16]) {
    out.extend((0..width).rev().map(|i| alphabet[((n >> (4 * i)) & 15) as usize]));
}

/// Lower-case digits.
pub(super) const LOWER: &[u8; 16] = b"0123456789abcdef";
/// Upper-case digits.
pub(super) const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// `seconds` with six decimals.
pub(super) fn seconds(out: &mut Vec<u8>, seconds: f64) {
    let micros = (seconds * 1e6 + 0.5) as u64;
    number(out, micros / 1_000_000);
    out.push(b'.');
    padded(out, micros % 1_000_000, 6, b'0');
}

/// A random UUID.
pub(super) fn uuid(out: &mut Vec<u8>, rng: &mut Rng) {
    let (a, b) = (rng.bits(), rng.bits());
    hex(out, a >> 32, 8, LOWER);
    for part in [a >> 16, a, b >> 48] {
        out.push(b'-');
        hex(out, part, 4, LOWER);
    }
    out.push(b'-');
    hex(out, b, 12, LOWER);
}

/// A random public IPv4 address.
pub(super) fn address(rng: &mut Rng) -> Vec<u8> {
    format!("{}.{}.{}.{}", rng.between(1, 223), rng.below(256), rng.below(256), rng.between(1, 254)).into_bytes()
}

/// `text` as the inside of a JSON string. Holds for text without control characters other than newline and tab.
pub(super) fn json_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut done = 0;
    for (at, &byte) in text.iter().enumerate() {
        let escape = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\t' => b't',
            _ => continue,
        };
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(&[b'\\', escape]);
        done = at + 1;
    }
    out.extend_from_slice(&text[done..]);
}

/// Year, month (1 to 12) and day (1 to 31) of the day `days` after 1970-01-01.
pub(super) fn civil(days: u64) -> (u64, u64, u64) {
    // Years of 400 are alike; counted from 0000-03-01 the leap day is a year's last.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// `HH:MM:SS` of second `second` since the epoch.
pub(super) fn clock(out: &mut Vec<u8>, second: u64) {
    let of_day = second % 86_400;
    padded(out, of_day / 3600, 2, b'0');
    out.push(b':');
    padded(out, of_day / 60 % 60, 2, b'0');
    out.push(b':');
    padded(out, of_day % 60, 2, b'0');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_right() {
        let made = |f: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            f(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(made(&|o| number(o, 0)), "0");
        assert_eq!(made(&|o| number(o, u64::MAX)), u64::MAX.to_string());
        assert_eq!(made(&|o| padded(o, 7, 2, b' ')), " 7");
        assert_eq!(made(&|o| padded(o, 123, 2, b' ')), "123");
        assert_eq!(made(&|o| hex(o, 0xabc, 5, LOWER)), "00abc");
        assert_eq!(made(&|o| seconds(o, 1.5)), "1.500000");
        assert_eq!(made(&|o| json_escaped(o, b"a\"b\\\n\tc")), "a\\\"b\\\\\\n\\tc");
        assert_eq!(made(&|o| clock(o, 86_399)), "23:59:59");
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(16_568), (2015, 5, 13));
    }
}
