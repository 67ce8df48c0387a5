//! The border to the query language: text to [`Query`], text to a point in time.

use crate::ingest::loki::LabelReader;
use haystore::query::{LabelMatcher, LabelTest, LineFilter, Query};
use haystore::{Error, Result};

/// Reads a query: LogQL's log-query core, or a bare string that lines must hold.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] with the place.
pub fn query(text: &str) -> Result<Query> {
    let text = text.trim();
    if !text.starts_with('{') {
        let filters = if text.is_empty() { vec![] } else { vec![LineFilter::Contains(text.as_bytes().to_vec())] };
        return Ok(Query { matchers: vec![], filters });
    }
    read(&mut LabelReader { text, at: 0 }).map_err(|e| Error::invalid(format!("parse error: {e}")))
}

/// Reads a selector, `{name="value", …}`.
///
/// # Errors
/// As [`query`]; also when there is more than a selector.
pub fn selector(text: &str) -> Result<Vec<LabelMatcher>> {
    let query = query(text)?;
    if query.filters.is_empty() { Ok(query.matchers) } else { Err(Error::invalid(format!("parse error: {text:?} is not a selector"))) }
}

/// Reads a time: RFC 3339, epoch by magnitude, `now-1h`.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] when it is none of these.
pub fn time(text: &str, now: i64) -> Result<i64> {
    let bad = || Error::invalid(format!("{text:?} is not a time"));
    if let Some(rest) = text.strip_prefix("now") {
        let ago = rest.strip_prefix('-').map_or(Some(0), super::loki_params::duration).ok_or_else(bad)?;
        return Ok(now.saturating_sub(ago));
    }
    if let Ok(number) = text.parse::<i64>() {
        let scale = match number.unsigned_abs() {
            0..100_000_000_000 => 1_000_000_000,
            100_000_000_000..100_000_000_000_000 => 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        return number.checked_mul(scale).ok_or_else(bad);
    }
    rfc3339(text).ok_or_else(bad)
}

fn rfc3339(text: &str) -> Option<i64> {
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |r| r.bytes().take_while(u8::is_ascii_digit).count());
    let nanos = if digits == 0 { 0 } else { format!("{:0<9.9}", &rest[1..=digits]).parse::<i64>().ok()? };
    let zone = &rest[if digits == 0 { 0 } else { digits + 1 }..];
    let offset = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let minutes = zone.get(1..3)?.parse::<i64>().ok()? * 60 + zone.get(4..6)?.parse::<i64>().ok()?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let y = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = y * 365 + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + of_year - 719_468;
    let seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

fn read(reader: &mut LabelReader<'_>) -> Result<Query, String> {
    let mut query = Query::default();
    reader.eat("{");
    while !reader.eat("}") {
        let name = reader.name()?;
        let operator = ["=~", "!~", "!=", "="].into_iter().find(|o| reader.eat(o)).ok_or_else(|| reader.error("an operator"))?;
        reader.spaces();
        let value = reader.string()?;
        let regex = |v: &str| regex::Regex::new(&format!("^(?s:{v})$")).map_err(|e| e.to_string());
        let test = match operator {
            "=~" => LabelTest::Match(regex(&value)?),
            "!~" => LabelTest::NoMatch(regex(&value)?),
            "!=" => LabelTest::Ne(value),
            _ => LabelTest::Eq(value),
        };
        query.matchers.push(LabelMatcher { name, test });
        if !reader.eat(",") {
            if reader.eat("}") {
                break;
            }
            return Err(reader.error("',' or '}'"));
        }
    }
    while let Some(operator) = ["|=", "!=", "|~", "!~"].into_iter().find(|o| reader.eat(o)) {
        reader.spaces();
        let value = reader.string()?;
        let regex = |v: &str| regex::bytes::Regex::new(v).map_err(|e| e.to_string());
        query.filters.push(match operator {
            "|~" => LineFilter::Match(regex(&value)?),
            "!~" => LineFilter::NoMatch(regex(&value)?),
            "!=" => LineFilter::ContainsNot(value.into_bytes()),
            _ => LineFilter::Contains(value.into_bytes()),
        });
    }
    reader.spaces();
    if reader.at == reader.text.len() { Ok(query) } else { Err(reader.error("the end of the query")) }
}
