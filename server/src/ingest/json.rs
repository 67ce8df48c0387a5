//! A JSON text in one pass: is it one value, and which members has its top object? No tree is built.
//!
//! The grammar is RFC 8259's, but for two things that must not cost a record its fields: control characters
//! may stand in strings, and bytes need not be UTF-8. Nesting is bounded by the text's length alone (one byte of
//! memory a level, no recursion).
//! This module must not know what members mean, but for the usual names of times.

use super::timestamp::{self, TimeRules};

/// The usual names of a record's time, in order of preference: the first that is there and holds a time wins.
pub const TIME_NAMES: [&str; 32] = [
    "timestamp",
    "@timestamp",
    "time",
    "ts",
    "_ts",
    "t",
    "date",
    "datetime",
    "eventTime",
    "EventTime",
    "created_at",
    "createdAt",
    "Timestamp",
    "Time",
    "event_time",
    "@t",
    "_time",
    "timeStamp",
    "time_iso8601",
    "time_local",
    "start_time",
    "UtcTime",
    "TimeCreated",
    "SystemTime",
    "CreationTime",
    "log_time",
    "asctime",
    "DateTime",
    "eventTimestamp",
    "requestReceivedTimestamp",
    "EdgeStartTimestamp",
    "__REALTIME_TIMESTAMP",
];

/// The rank of `name` among [`TIME_NAMES`].
pub fn time_rank(name: &[u8]) -> Option<usize> {
    // Cheap, and true of every name above.
    let may_be = name.len() <= 24
        && matches!(
            name.first()?,
            b't' | b'@' | b'_' | b'd' | b'e' | b'E' | b'c' | b'C' | b'T' | b's' | b'r' | b'U' | b'S' | b'l' | b'a' | b'D'
        );
    if !may_be {
        return None;
    }
    TIME_NAMES.iter().position(|n| n.as_bytes() == name)
}

/// Why a text is no JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flaw {
    /// The byte at which it goes wrong.
    pub at: usize,
    /// Whether the text ended too early: more bytes could mend it.
    pub ended: bool,
    /// What should have been there.
    pub wanted: &'static str,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = if self.ended { ", the end of" } else { " of" };
        write!(f, "not JSON: wanted {} at byte {}{end} the line", self.wanted, self.at)
    }
}

/// The member of the top object that is being read.
struct Top<'t> {
    name: &'t [u8],
    value_at: usize,
}

/// Reads JSON texts; keeps its memory between them.
#[derive(Debug, Default)]
pub struct Reader {
    /// The open brackets: `{` or `[`.
    open: Vec<u8>,
}

impl Reader {
    /// Reads `text`; gives each member of its top object to `member`, as name (without quotes, escapes as they are) and value.
    pub fn read<'t>(&mut self, text: &'t [u8], mut member: impl FnMut(&'t [u8], &'t [u8])) -> Result<(), Flaw> {
        self.open.clear();
        let mut top = Top { name: &[], value_at: 0 };
        let mut at = 0;
        loop {
            at = blanks(text, at);
            let byte = *text.get(at).ok_or_else(|| flaw(text, at, "a value"))?;
            at = match byte {
                b'"' => string(text, at)?,
                b'{' | b'[' => {
                    at = blanks(text, at + 1);
                    // Brackets differ by two from their partners.
                    if text.get(at) == Some(&(byte + 2)) {
                        at + 1
                    } else {
                        self.open.push(byte);
                        if byte == b'{' {
                            at = self.name(text, at, &mut top)?;
                        }
                        continue;
                    }
                }
                _ => scalar(text, at)?,
            };
            match self.close(text, at, &mut top, &mut member)? {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
    }

    /// Goes on behind a value that ended at `at`: closes what closes, up to the next value; `None` at the end of the text.
    fn close<'t>(
        &mut self,
        text: &'t [u8],
        mut at: usize,
        top: &mut Top<'t>,
        member: &mut impl FnMut(&'t [u8], &'t [u8]),
    ) -> Result<Option<usize>, Flaw> {
        loop {
            let Some(&bracket) = self.open.last() else {
                at = blanks(text, at);
                return if at == text.len() { Ok(None) } else { Err(flaw(text, at, "nothing more")) };
            };
            if self.open.len() == 1 && bracket == b'{' {
                member(top.name, &text[top.value_at..at]);
            }
            at = blanks(text, at);
            match text.get(at) {
                Some(b',') if bracket == b'[' => return Ok(Some(at + 1)),
                Some(b',') => {
                    at = blanks(text, at + 1);
                    return self.name(text, at, top).map(Some);
                }
                Some(&byte) if byte == bracket + 2 => {
                    at += 1;
                    self.open.pop();
                }
                _ => return Err(flaw(text, at, if bracket == b'{' { "',' or '}'" } else { "',' or ']'" })),
            }
        }
    }

    /// Reads a name and its colon; returns where the value begins.
    fn name<'t>(&self, text: &'t [u8], at: usize, top: &mut Top<'t>) -> Result<usize, Flaw> {
        if text.get(at) != Some(&b'"') {
            return Err(flaw(text, at, "a name in quotes"));
        }
        let end = string(text, at)?;
        let colon = blanks(text, end);
        if text.get(colon) != Some(&b':') {
            return Err(flaw(text, colon, "':'"));
        }
        let value_at = blanks(text, colon + 1);
        if self.open.len() == 1 {
            *top = Top { name: &text[at + 1..end - 1], value_at };
        }
        Ok(value_at)
    }

    /// Reads `text` and finds its time: in the member `path`, else in the first of [`TIME_NAMES`] that holds one.
    pub fn time(&mut self, text: &[u8], path: Option<&str>, rules: &TimeRules) -> Result<Option<i64>, Flaw> {
        let mut found = None;
        let Some(path) = path else {
            let mut best = usize::MAX;
            self.read(text, |name, value| {
                if let Some(rank) = time_rank(name).filter(|&r| r < best)
                    && let Some(nanos) = time_of(value, rules)
                {
                    best = rank;
                    found = Some(nanos);
                }
            })?;
            return Ok(found);
        };
        self.read(text, |name, value| {
            if found.is_none() {
                found = time_at(name, value, path, rules);
            }
        })?;
        Ok(found)
    }
}

/// The time at `path` when it begins with the member `name`: all of it, or `name.` and the rest inside `value`.
fn time_at(name: &[u8], value: &[u8], path: &str, rules: &TimeRules) -> Option<i64> {
    let rest = path.as_bytes().strip_prefix(name)?;
    if rest.is_empty() {
        return time_of(value, rules);
    }
    let rest = path.get(path.len() - rest.len() + 1..).filter(|_| rest[0] == b'.')?;
    if value.first() != Some(&b'{') {
        return None;
    }
    let mut found = None;
    let _ = Reader::default().read(value, |name, value| {
        if found.is_none() {
            found = time_at(name, value, rest, rules);
        }
    });
    found
}

/// The time that the JSON text `value` holds: a string, a number, or an object `{"$date":…}`.
fn time_of(value: &[u8], rules: &TimeRules) -> Option<i64> {
    match value.first()? {
        b'"' => {
            let inner = &value[1..value.len().checked_sub(1)?];
            if inner.len() < 256 && memchr::memchr(b'\\', inner).is_some() {
                let plain: String = serde_json::from_slice(value).ok()?;
                return timestamp::value(plain.as_bytes(), rules);
            }
            timestamp::value(inner, rules)
        }
        b'{' => time_at(b"", value, ".$date", rules),
        _ => timestamp::value(value, rules),
    }
}

fn flaw(text: &[u8], at: usize, wanted: &'static str) -> Flaw {
    Flaw { at: at.min(text.len()), ended: at >= text.len(), wanted }
}

fn blanks(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// Behind the string whose opening quote is at `at`.
fn string(text: &[u8], at: usize) -> Result<usize, Flaw> {
    let mut at = at + 1;
    loop {
        at = quote_or_backslash(text, at).ok_or_else(|| flaw(text, text.len(), "a closing quote"))?;
        if text[at] == b'"' {
            return Ok(at + 1);
        }
        match text.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
            Some(b'u') => {
                let digits = text[at + 2..].iter().take(4).take_while(|b| b.is_ascii_hexdigit()).count();
                if digits < 4 {
                    return Err(flaw(text, at + 2 + digits, "a hex digit"));
                }
                at += 6;
            }
            _ => return Err(flaw(text, at + 1, "an escape")),
        }
    }
}

/// The first `"` or `\` from `at` on, eight bytes a step.
fn quote_or_backslash(text: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let (quotes, slashes) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5c));
        let hits = (quotes.wrapping_sub(ONES) & !quotes | slashes.wrapping_sub(ONES) & !slashes) & HIGHS;
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text.get(at..)?;
    rest.iter().position(|&b| b == b'"' || b == b'\\').map(|step| at + step)
}

/// Behind the number, `true`, `false` or `null` at `at`.
fn scalar(text: &[u8], at: usize) -> Result<usize, Flaw> {
    let word: &[u8] = match text[at] {
        b't' => b"true",
        b'f' => b"false",
        b'n' => b"null",
        _ => return number(text, at),
    };
    let same = text[at..].iter().zip(word).take_while(|(a, b)| a == b).count();
    if same == word.len() { Ok(at + same) } else { Err(flaw(text, at + same, "true, false or null")) }
}

fn number(text: &[u8], mut at: usize) -> Result<usize, Flaw> {
    let wanted = if text[at] == b'-' { "a digit" } else { "a value" };
    at += usize::from(text[at] == b'-');
    at = if text.get(at) == Some(&b'0') { at + 1 } else { digits(text, at, wanted)? };
    if text.get(at) == Some(&b'.') {
        at = digits(text, at + 1, "a digit")?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        at = digits(text, at, "a digit")?;
    }
    Ok(at)
}

fn digits(text: &[u8], at: usize, wanted: &'static str) -> Result<usize, Flaw> {
    let len = text.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    if len == 0 { Err(flaw(text, at, wanted)) } else { Ok(at + len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn members(text: &str) -> Result<Vec<(String, String)>, Flaw> {
        let mut found = Vec::new();
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Reader::default().read(text.as_bytes(), |name, value| found.push((text_of(name), text_of(value))))?;
        Ok(found)
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn members_are_those_of_a_tree(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let found = members(&text).unwrap();
            let expected = value.as_object().cloned().unwrap_or_default();
            prop_assert_eq!(found.len(), expected.len());
            for (name, text) in found {
                let name: String = serde_json::from_str(&format!("\"{name}\"")).unwrap();
                let tree = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                prop_assert_eq!(tree(&text), tree(&expected[&name].to_string()));
            }
            for end in 0..text.len() {
                if let Err(flaw) = members(&String::from_utf8_lossy(&text.as_bytes()[..end])) {
                    prop_assert!(flaw.ended, "{} {:?}", end, flaw);
                }
            }
        }

        #[test]
        fn says_what_serde_json_says(
            value in any_json(),
            noise in prop::collection::vec((any::<usize>(), "[{}\\[\\]:,\"\\\\0-9.eE+ tfn-]"), 0..4),
        ) {
            let mut text = value.to_string().into_bytes();
            for (at, new) in noise {
                let at = at % text.len();
                text[at] = new.as_bytes()[0];
            }
            let ours = Reader::default().read(&text, |_, _| {}).is_ok();
            let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok();
            // Ours takes control characters and bytes that are not UTF-8; serde_json alone takes neither, nor numbers past f64.
            prop_assert!(ours || !theirs, "{}", String::from_utf8_lossy(&text));
            if ours && !theirs {
                let is_plain = text.iter().all(|&b| b >= 0x20 && !matches!(b, b'e' | b'E')) && std::str::from_utf8(&text).is_ok();
                let odd = !is_plain || text.windows(2).any(|w| w == b"\\u");
                prop_assert!(odd, "{}", String::from_utf8_lossy(&text));
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(text: Vec<u8>) {
            let _ = Reader::default().time(&text, None, &TimeRules::new(0));
        }
    }

    #[test]
    fn flaws_name_their_place() {
        let at = |text: &str| members(text).map_err(|f| (f.at, f.ended));
        assert_eq!(at("{\"a\":1}x"), Err((7, false)));
        assert_eq!(at("{\"a\" 1}"), Err((5, false)));
        assert_eq!(at("{\"a\":}"), Err((5, false)));
        assert_eq!(at("{\"a\":\"\\x\"}"), Err((7, false)));
        assert_eq!(at("[1,]"), Err((3, false)));
        assert_eq!(at("[01]"), Err((2, false)));
        assert_eq!(at("{\"a\":tru"), Err((8, true)));
        assert_eq!(at(""), Err((0, true)));
        let deep = "[".repeat(1_000_000);
        assert_eq!(at(&deep), Err((1_000_000, true)));
        assert_eq!(at(&(deep + &"]".repeat(1_000_000))), Ok(vec![]));
    }

    #[test]
    fn every_name_has_its_rank() {
        for (rank, name) in TIME_NAMES.iter().enumerate() {
            assert_eq!(time_rank(name.as_bytes()), Some(rank), "{name}");
        }
        assert_eq!((time_rank(b""), time_rank(b"timestamps")), (None, None));
    }

    #[test]
    fn the_time_is_the_best_name_s() {
        let seconds = |text: &str, path: Option<&str>| {
            let found = Reader::default().time(text.as_bytes(), path, &TimeRules::new(0));
            found.unwrap().map(|nanos| nanos as f64 / 1e9)
        };
        let date = "2000-10-10T20:55:36Z";
        let october = Some(971_211_336.0);
        assert_eq!(seconds(&format!(r#"{{"time":"soon","ts":971211336000,"date":"{date}x"}}"#), None), october);
        assert_eq!(seconds(&format!(r#"{{"ts":1,"created_at" : "{date}" }}"#), None), october);
        assert_eq!(seconds(&format!(r#"{{"date":"2001-01-01","timestamp":"{date}"}}"#), None), october);
        assert_eq!(seconds(&format!(r#"{{"timestamp":"{date}","timestamp":"2001-01-01"}}"#), None), october);
        assert_eq!(seconds(&format!(r#"{{"t":{{"$date":"{date}"}},"s":"I"}}"#), None), october);
        assert_eq!(seconds(r#"{"t":{"$date":971211336000}}"#, None), october);
        assert_eq!(seconds(r#"{"time":"2000-10-10T22:55:36\u002B02:00"}"#, None), october);
        assert_eq!(seconds(r#"{"time":"10\/Oct\/2000:13:55:36 -0700"}"#, None), october);
        assert_eq!(seconds(r#"{"a":{"time":"2000-10-10T20:55:36Z"},"b":[{"time":1}]}"#, None), None);
        assert_eq!(seconds(r#"{"a":{"b":{"c":971211336.0}}}"#, Some("a.b.c")), october);
        assert_eq!(seconds(r#"{"a":{"b.c":971211336.0}}"#, Some("a.b.c")), october);
        assert_eq!(seconds(r#"{"a.b":{"c":971211336.0}}"#, Some("a.b.c")), october);
        assert_eq!(seconds(r#"{"a":5,"a.b.c":971211336}"#, Some("a.b.c")), october);
        assert_eq!(seconds(r#"{"time":971211336}"#, Some("a")), None);
        assert_eq!(seconds(r#""2000-10-10T20:55:36Z""#, None), None);
    }
}
