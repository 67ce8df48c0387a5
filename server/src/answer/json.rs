//! The JSON parts that all answers share: strings, base64, timestamps, labels, metadata.

use haystore::{Labels, Metadata, Value};
use std::io::Write as _;

/// Appends `text` as a JSON string, quotes included.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (i, &b) in bytes.iter().enumerate() {
        if b >= 0x20 && b != b'"' && b != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..i]);
        start = i + 1;
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => push_fmt(out, format_args!("\\u{b:04x}")),
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// Appends formatted text.
pub fn push_fmt(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a Vec does not fail.
    let _ = out.write_fmt(text);
}

/// Appends `bytes` in standard base64, padded, without quotes.
pub fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let word = u32::from(chunk[0]) << 16 | u32::from(*chunk.get(1).unwrap_or(&0)) << 8 | u32::from(*chunk.get(2).unwrap_or(&0));
        let digit = |shift: u32| DIGITS[(word >> shift & 63) as usize];
        out.extend_from_slice(&[
            digit(18),
            digit(12),
            if chunk.len() > 1 { digit(6) } else { b'=' },
            if chunk.len() > 2 { digit(0) } else { b'=' },
        ]);
    }
}

/// Appends `nanoseconds` as RFC 3339 in UTC with nine digits, `2024-02-29T23:59:59.000000001Z`, without quotes.
pub fn push_timestamp(out: &mut Vec<u8>, nanoseconds: i64) {
    let (seconds, nanos) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted in eras of 400 years that begin on a first of March, so that leap days end a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    // Years of 64-bit nanoseconds lie between 1677 and 2262: each part has its fixed width.
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    for (value, at, width) in
        [(year, 0, 4), (month, 5, 2), (day, 8, 2), (second / 3600, 11, 2), (second / 60 % 60, 14, 2), (second % 60, 17, 2), (nanos, 20, 9)]
    {
        let mut value = value.unsigned_abs();
        for digit in text[at..at + width].iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    out.extend_from_slice(&text);
}

/// Appends a label set as an object.
pub fn push_labels(out: &mut Vec<u8>, labels: &Labels) {
    push_pairs(out, labels.iter());
}

/// Appends an object of strings.
pub fn push_pairs<'a>(out: &mut Vec<u8>, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    out.push(b'{');
    for (i, (name, value)) in pairs.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, name);
        out.push(b':');
        push_string(out, value);
    }
    out.push(b'}');
}

/// Appends metadata as a plain JSON object.
///
/// Values keep their JSON type. Bytes come as `{"base64":"…"}`; the floats that JSON has no number for come as the
/// strings `NaN`, `Infinity`, `-Infinity`.
pub fn push_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    push_map(out, &metadata.0);
}

fn push_map(out: &mut Vec<u8>, pairs: &[(String, Value)]) {
    out.push(b'{');
    for (i, (key, value)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, key);
        out.push(b':');
        push_value(out, value);
    }
    out.push(b'}');
}

/// Appends one metadata value, as [`push_metadata`] does.
pub fn push_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(b) => push_fmt(out, format_args!("{b}")),
        Value::Int(i) => push_fmt(out, format_args!("{i}")),
        Value::Float(f) if f.is_finite() => push_fmt(out, format_args!("{f:?}")),
        Value::Float(f) if f.is_nan() => out.extend_from_slice(b"\"NaN\""),
        Value::Float(f) => out.extend_from_slice(if *f > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" }),
        Value::Str(s) => push_string(out, s),
        Value::Bytes(b) => {
            out.extend_from_slice(b"{\"base64\":\"");
            push_base64(out, b);
            out.extend_from_slice(b"\"}");
        }
        Value::List(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_value(out, item);
            }
            out.push(b']');
        }
        Value::Map(pairs) => push_map(out, pairs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn timestamps_have_nine_digits() {
        for (ns, expected) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (1_709_251_199_000_000_001, "2024-02-29T23:59:59.000000001Z"),
            (1_709_251_200_000_000_000, "2024-03-01T00:00:00.000000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            assert_eq!(text(|o| push_timestamp(o, ns)), expected);
        }
    }

    #[test]
    fn strings_are_json() {
        let all: String = (0..0x300_u32).filter_map(char::from_u32).collect();
        assert_eq!(serde_json::from_str::<String>(&text(|o| push_string(o, &all))).unwrap(), all);
        assert_eq!(text(|o| push_string(o, "a\"\\\n\0é")), r#""a\"\\\n\u0000é""#);
    }

    #[test]
    fn base64_is_padded() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(text(|o| push_base64(o, bytes.as_bytes())), expected);
        }
    }

    #[test]
    fn metadata_is_plain_json() {
        let metadata = Metadata(vec![
            ("n".into(), Value::Null),
            ("i".into(), Value::Int(-1)),
            ("f".into(), Value::Float(1.0)),
            ("x".into(), Value::Float(f64::NEG_INFINITY)),
            ("b".into(), Value::Bytes(vec![0xff])),
            ("l".into(), Value::List(vec![Value::Bool(true), Value::Map(vec![("$m".into(), Value::Str("s".into()))])])),
        ]);
        let expected = r#"{"n":null,"i":-1,"f":1.0,"x":"-Infinity","b":{"base64":"/w=="},"l":[true,{"$m":"s"}]}"#;
        assert_eq!(text(|o| push_metadata(o, &metadata)), expected);
    }
}
