//! A query written as canonical LogQL: it parses to the same query.

use super::{LabelMatcher, LabelTest, LineFilter, Query};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, matcher) in self.matchers.iter().enumerate() {
            write!(f, "{}{matcher}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("}")?;
        self.filters.iter().try_for_each(|filter| write!(f, " {filter}"))
    }
}

impl Display for LabelMatcher {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_identifier(&self.name) {
            f.write_str(&self.name)?;
        } else {
            quote(f, self.name.as_bytes())?;
        }
        let (operator, value) = match &self.test {
            LabelTest::Eq(value) => ("=", value.as_str()),
            LabelTest::Ne(value) => ("!=", value.as_str()),
            LabelTest::Match(pattern) => ("=~", pattern.source()),
            LabelTest::NoMatch(pattern) => ("!~", pattern.source()),
        };
        f.write_str(operator)?;
        quote(f, value.as_bytes())
    }
}

impl Display for LineFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LineFilter::Contains(needle) => alternatives(f, "|=", [needle.as_slice()]),
            LineFilter::ContainsNot(needle) => alternatives(f, "!=", [needle.as_slice()]),
            LineFilter::ContainsAny(needles) => alternatives(f, "|=", needles.iter().map(Vec::as_slice)),
            LineFilter::Match(pattern) => alternatives(f, "|~", [pattern.source().as_bytes()]),
            LineFilter::NoMatch(pattern) => alternatives(f, "!~", [pattern.source().as_bytes()]),
            LineFilter::MatchAny(patterns) => alternatives(f, "|~", patterns.iter().map(|p| p.source().as_bytes())),
        }
    }
}

/// `operator "a" or "b"`. Without any alternative: `!= ""`, which no line passes.
fn alternatives<'a>(f: &mut Formatter<'_>, operator: &str, texts: impl IntoIterator<Item = &'a [u8]>) -> fmt::Result {
    let mut texts = texts.into_iter();
    let Some(first) = texts.next() else { return f.write_str("!= \"\"") };
    write!(f, "{operator} ")?;
    quote(f, first)?;
    texts.try_for_each(|text| {
        f.write_str(" or ")?;
        quote(f, text)
    })
}

/// Whether a label's name needs no quotes.
fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_') && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `text` in double quotes, with the escapes that the parser knows.
fn quote(f: &mut Formatter<'_>, text: &[u8]) -> fmt::Result {
    f.write_str("\"")?;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                _ if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                _ => f.write_char(c)?,
            }
        }
        chunk.invalid().iter().try_for_each(|b| write!(f, "\\x{b:02x}"))?;
    }
    f.write_str("\"")
}
