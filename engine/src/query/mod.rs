//! Queries: one tree, whatever the language it was written in.
//!
//! Text becomes a [`Query`] in a language's own module ([`logql`]). The tree says what is asked, never how to find it:
//! [`Query::matches_stream`] and [`Query::matches_line`] are its meaning, and every faster way ([`LineMatcher`], [`prune`])
//! must give the same answer. This module must not know about files, segments or protocols.

mod display;
pub mod logql;
mod needle;
mod pattern;
pub mod prune;
pub(crate) mod scan;
pub mod time;

pub use needle::LineMatcher;
pub use pattern::Pattern;

use crate::record::Labels;

/// A query: which streams, and which of their lines.
///
/// `Display` writes it as LogQL that parses to the same query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// All must match the stream's labels. Empty: every stream.
    pub matchers: Vec<LabelMatcher>,
    /// All must hold for the line's bytes, in order.
    pub filters: Vec<LineFilter>,
}

/// One test of a label. A label that a stream lacks has the empty value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMatcher {
    /// The label's name.
    pub name: String,
    /// The test.
    pub test: LabelTest,
}

/// What a label's value must be. Patterns are made with [`Pattern::label`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelTest {
    /// Equal.
    Eq(String),
    /// Not equal.
    Ne(String),
    /// The regex matches the whole value.
    Match(Pattern),
    /// The regex does not match the whole value.
    NoMatch(Pattern),
}

/// One test of a line's bytes. Patterns are made with [`Pattern::line`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFilter {
    /// Holds these bytes.
    Contains(Vec<u8>),
    /// Does not hold these bytes.
    ContainsNot(Vec<u8>),
    /// Holds at least one of these; none given: never.
    ContainsAny(Vec<Vec<u8>>),
    /// The regex matches somewhere.
    Match(Pattern),
    /// The regex matches nowhere.
    NoMatch(Pattern),
    /// At least one of the regexes matches somewhere; none given: never.
    MatchAny(Vec<Pattern>),
}

impl LabelMatcher {
    /// Whether the stream `labels` passes.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.name).unwrap_or("");
        match &self.test {
            LabelTest::Eq(wanted) => value == wanted,
            LabelTest::Ne(wanted) => value != wanted,
            LabelTest::Match(pattern) => pattern.is_match(value.as_bytes()),
            LabelTest::NoMatch(pattern) => !pattern.is_match(value.as_bytes()),
        }
    }
}

impl LineFilter {
    /// Whether `line` passes. For many lines prepare a [`LineMatcher`].
    pub fn matches(&self, line: &[u8]) -> bool {
        let holds = |needle: &[u8]| memchr::memmem::find(line, needle).is_some();
        match self {
            LineFilter::Contains(needle) => holds(needle),
            LineFilter::ContainsNot(needle) => !holds(needle),
            LineFilter::ContainsAny(needles) => needles.iter().any(|n| holds(n)),
            LineFilter::Match(pattern) => pattern.is_match(line),
            LineFilter::NoMatch(pattern) => !pattern.is_match(line),
            LineFilter::MatchAny(patterns) => patterns.iter().any(|p| p.is_match(line)),
        }
    }
}

impl Query {
    /// The query `{} |= "needle"`: every line that holds these bytes.
    pub fn needle(needle: impl Into<Vec<u8>>) -> Self {
        Query { matchers: Vec::new(), filters: vec![LineFilter::Contains(needle.into())] }
    }

    /// Whether the stream `labels` passes.
    pub fn matches_stream(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|m| m.matches(labels))
    }

    /// Whether `line` passes.
    pub fn matches_line(&self, line: &[u8]) -> bool {
        self.filters.iter().all(|f| f.matches(line))
    }
}
