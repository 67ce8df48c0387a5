//! `encodings.md` and `shapes.md`: what numbers and packed entries print as.

use super::plan::{Class, Type};

/// The text of a number; `None` when the type has no such number.
pub fn number(type_: Type, value: i64) -> Option<Vec<u8>> {
    match type_ {
        Type::Int => Some(value.to_string().into_bytes()),
        Type::Padded { width } => {
            let text = format!("{value:0width$}", width = usize::from(width));
            (value >= 0 && text.len() == usize::from(width)).then(|| text.into_bytes())
        }
        Type::Decimal { scale } => {
            let scale = usize::from(scale);
            let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
            if digits.len() > 18.max(scale + 1) {
                return None;
            }
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            Some(format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" }).into_bytes())
        }
        Type::Time { family, separator, digits } => time(value, family, separator, digits),
        Type::ShortTime { family, separator, digits } => {
            let mut text = time(value, family, separator, digits)?;
            // Separator and fraction stand at the end.
            let fraction = text.split_off(text.len() - usize::from(digits) - 1);
            text.extend(without_zeros(&fraction));
            Some(text)
        }
        Type::ShortDecimal { scale, point } => {
            let mut text = number(Type::Decimal { scale }, value)?;
            let fraction = text.split_off(text.len() - usize::from(scale) - 1);
            let short = without_zeros(&fraction);
            text.extend(if short.is_empty() && point { b".0".to_vec() } else { short });
            Some(text)
        }
    }
}

/// A separator and digits without the zeros at the end; nothing when no digit is left.
fn without_zeros(fraction: &[u8]) -> Vec<u8> {
    let digits = String::from_utf8_lossy(&fraction[1..]).trim_end_matches('0').as_bytes().to_vec();
    if digits.is_empty() { digits } else { [&fraction[..1], &digits].concat() }
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn time(value: i64, family: u8, separator: u8, digits: u8) -> Option<Vec<u8>> {
    let unit = 10i64.pow(u32::from(digits));
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hour, minute, second) = (clock / 3_600, clock / 60 % 60, clock % 60);
    let date = match family {
        5 => {
            if days != 0 {
                return None;
            }
            String::new()
        }
        4 => {
            // Day 0 is 1 January of a leap year; 2000 is one, 10,957 days after 1970 began.
            let (_, month, day) = if (0..366).contains(&days) { date_of(days + 10_957)? } else { return None };
            format!("{} {day:2} ", MONTHS[month])
        }
        _ => {
            let (year, month, day) = date_of(days)?;
            match family {
                0 => format!("{year:04}-{:02}-{day:02}T", month + 1),
                1 => format!("{year:04}-{:02}-{day:02} ", month + 1),
                2 => format!("{year:04}/{:02}/{day:02} ", month + 1),
                _ => format!("{day:02}/{}/{year:04}:", MONTHS[month]),
            }
        }
    };
    let mut text = format!("{date}{hour:02}:{minute:02}:{second:02}");
    if digits > 0 {
        text.push(char::from(separator));
        text.push_str(&format!("{fraction:0width$}", width = usize::from(digits)));
    }
    Some(text.into_bytes())
}

fn year_days(year: i64) -> i64 {
    if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 366 } else { 365 }
}

/// Year 0 to 9999, month from 0, day from 1, by counting.
fn date_of(days: i64) -> Option<(i64, usize, i64)> {
    // Year 0 began 719,528 days before 1970.
    let mut left = days.checked_add(719_528)?;
    if left < 0 {
        return None;
    }
    let mut year = 0;
    while left >= year_days(year) {
        left -= year_days(year);
        year += 1;
        if year > 9_999 {
            return None;
        }
    }
    let february = year_days(year) - 337;
    for (month, len) in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
        if left < len {
            return Some((year, month, left + 1));
        }
        left -= len;
    }
    None
}

/// The text of a dictionary's entry.
pub fn entry(class: Class, key: Vec<u8>) -> Vec<u8> {
    let hex: String = key.iter().map(|b| format!("{b:02x}")).collect();
    match class {
        Class::Text => key,
        Class::Hex { upper: false, .. } => hex.into_bytes(),
        Class::Hex { upper: true, .. } => hex.to_uppercase().into_bytes(),
        Class::Uuid => [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-").into_bytes(),
        Class::Ipv4 => key.iter().map(u8::to_string).collect::<Vec<_>>().join(".").into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of examples in `shapes.md`.
    #[test]
    fn times_print_as_the_chapter_says() {
        let chapter = include_str!("../../chapters/shapes.md");
        let mut seen = 0;
        for row in chapter.lines() {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, value, layout, text, _] = cells[..] else { continue };
            let Ok(value) = value.parse::<i64>() else { continue };
            let layout: Vec<&str> = layout.splitn(2, ", ").collect();
            if layout.len() < 2 {
                continue;
            }
            let (separator, digits) = layout[1].rsplit_once(", ").unwrap();
            let separator = if separator == "none" { 0 } else { separator.as_bytes()[1] };
            let type_ = Type::Time { family: layout[0].parse().unwrap(), separator, digits: digits.parse().unwrap() };
            let printed = String::from_utf8(number(type_, value).unwrap()).unwrap();
            assert_eq!(format!("`{printed}`"), text);
            seen += 1;
        }
        assert_eq!(seen, 7);
    }

    #[test]
    fn numbers_that_a_type_cannot_have() {
        assert_eq!(number(Type::Padded { width: 3 }, 1000), None);
        assert_eq!(number(Type::Padded { width: 3 }, -1), None);
        assert_eq!(number(Type::Padded { width: 3 }, 7), Some(b"007".to_vec()));
        let short = |point, value| number(Type::ShortDecimal { scale: 3, point }, value).map(|text| String::from_utf8(text).unwrap());
        assert_eq!(
            (short(true, 1500), short(true, -7000), short(false, 7000)),
            (Some("1.5".into()), Some("-7.0".into()), Some("7".into()))
        );
        let time =
            |value| number(Type::ShortTime { family: 5, separator: b'.', digits: 3 }, value).map(|text| String::from_utf8(text).unwrap());
        assert_eq!((time(1_020), time(2_000)), (Some("00:00:01.02".into()), Some("00:00:02".into())));
        assert_eq!(number(Type::Decimal { scale: 2 }, -5), Some(b"-0.05".to_vec()));
        assert_eq!(number(Type::Decimal { scale: 17 }, 1_000_000_000_000_000_000), None);
        assert_eq!(number(Type::Decimal { scale: 17 }, 999_999_999_999_999_999), Some(b"9.99999999999999999".to_vec()));
        assert_eq!(number(Type::Time { family: 5, separator: 0, digits: 0 }, 86_400), None);
        assert_eq!(number(Type::Time { family: 0, separator: 0, digits: 0 }, 253_402_300_800), None);
        assert_eq!(number(Type::Time { family: 0, separator: 0, digits: 0 }, i64::MIN), None);
    }
}
