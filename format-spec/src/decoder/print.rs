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
    }
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
