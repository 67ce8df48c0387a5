//! Queries: one tree, whatever the language it was written in.

use crate::record::Labels;

/// A query: which streams, and which of their lines.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// All must match the stream's labels. Empty: every stream.
    pub matchers: Vec<LabelMatcher>,
    /// All must hold for the line's bytes, in order.
    pub filters: Vec<LineFilter>,
}

/// One test of a label. A label that a stream lacks has the empty value.
#[derive(Debug, Clone)]
pub struct LabelMatcher {
    /// The label's name.
    pub name: String,
    /// The test.
    pub test: LabelTest,
}

/// What a label's value must be.
#[derive(Debug, Clone)]
pub enum LabelTest {
    /// Equal.
    Eq(String),
    /// Not equal.
    Ne(String),
    /// The regex matches the whole value.
    Match(regex::Regex),
    /// The regex does not match the whole value.
    NoMatch(regex::Regex),
}

/// One test of a line's bytes.
#[derive(Debug, Clone)]
pub enum LineFilter {
    /// Holds these bytes.
    Contains(Vec<u8>),
    /// Does not hold these bytes.
    ContainsNot(Vec<u8>),
    /// The regex matches somewhere.
    Match(regex::bytes::Regex),
    /// The regex matches nowhere.
    NoMatch(regex::bytes::Regex),
}

impl LabelMatcher {
    /// Whether the stream `labels` passes.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.name).unwrap_or("");
        match &self.test {
            LabelTest::Eq(wanted) => value == wanted,
            LabelTest::Ne(wanted) => value != wanted,
            LabelTest::Match(regex) => regex.is_match(value),
            LabelTest::NoMatch(regex) => !regex.is_match(value),
        }
    }
}

impl LineFilter {
    /// Whether `line` passes.
    pub fn matches(&self, line: &[u8]) -> bool {
        match self {
            LineFilter::Contains(needle) => memchr::memmem::find(line, needle).is_some(),
            LineFilter::ContainsNot(needle) => memchr::memmem::find(line, needle).is_none(),
            LineFilter::Match(regex) => regex.is_match(line),
            LineFilter::NoMatch(regex) => !regex.is_match(line),
        }
    }
}

impl Query {
    /// Whether the stream `labels` passes.
    pub fn matches_stream(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|m| m.matches(labels))
    }

    /// Whether `line` passes.
    pub fn matches_line(&self, line: &[u8]) -> bool {
        self.filters.iter().all(|f| f.matches(line))
    }
}
