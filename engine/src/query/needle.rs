//! A query's line filters, prepared for many lines.
//!
//! Holds: the answer is that of [`Query::matches_line`], for one line and for an arena of lines.
//! This module must not know where the lines come from.

use super::pattern::Literals;
use super::{LineFilter, Pattern, Query};
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::Arc;

/// The line filters of one [`Query`], prepared. Make or clone one for each thread.
#[derive(Debug, Clone)]
pub struct LineMatcher {
    /// Cheap tests first.
    tests: Vec<Test>,
    /// What every line that passes must hold.
    anchor: Option<Anchor>,
}

#[derive(Debug, Clone)]
enum Test {
    Holds(Arc<Literals>),
    HoldsNot(Box<Finder<'static>>),
    Match(Pattern),
    NoMatch(Pattern),
    /// A filter that is fine as it is.
    Plain(LineFilter),
}

/// The literals that are looked for in the whole arena.
#[derive(Debug, Clone)]
struct Anchor {
    literals: Arc<Literals>,
    /// The test that a hit bears on.
    test: usize,
}

impl LineMatcher {
    /// Prepares the line filters of `query`.
    pub fn new(query: &Query) -> Self {
        let mut tests: Vec<Test> = query.filters.iter().filter(|f| !always_holds(f)).map(Test::new).collect();
        tests.sort_by_key(Test::cost);
        let anchors = tests.iter().enumerate().filter_map(|(test, t)| t.literals().map(|literals| (literals.weight(), test, literals)));
        // Of equals the first, which is the cheaper test.
        let best = anchors.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let anchor = best.map(|(_, test, literals)| Anchor { literals: Arc::clone(literals), test });
        LineMatcher { tests, anchor }
    }

    /// Whether every line passes.
    pub fn is_always(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether `line` passes.
    pub fn matches(&self, line: &[u8]) -> bool {
        self.tests.iter().all(|test| test.matches(line))
    }

    /// Calls `hit` with each row of an arena that passes, in order.
    ///
    /// Lines lie back to back in `arena`: line `i` is `arena[ends[i - 1]..ends[i]]`, the first begins at 0, `ends` ascends.
    /// Panics when `ends` goes past `arena`.
    pub fn find_rows(&self, arena: &[u8], ends: &[u32], mut hit: impl FnMut(usize)) {
        let Some(anchor) = &self.anchor else {
            for row in 0..ends.len() {
                if self.matches(&arena[line_range(ends, row)]) {
                    hit(row);
                }
            }
            return;
        };
        let arena = &arena[..ends.last().map_or(0, |&end| end as usize)];
        let (mut row, mut start) = (0, 0);
        // No line before the one that a hit begins in holds an anchor. That line is tested, then the search goes on behind it:
        // a hit across its border says nothing of the next line.
        while let Some(found) = anchor.literals.find(&arena[start..]) {
            let found = found.start + start..found.end + start;
            row = row_at(ends, row, found.start);
            let line = line_range(ends, row);
            let passes = if found.end <= line.end {
                self.matches_with_anchor(anchor, &arena[line.clone()])
            } else {
                self.matches(&arena[line.clone()])
            };
            if passes {
                hit(row);
            }
            row += 1;
            start = line.end;
        }
    }

    /// Whether `line`, in which an anchor was found, passes.
    fn matches_with_anchor(&self, anchor: &Anchor, line: &[u8]) -> bool {
        self.tests.iter().enumerate().all(|(i, test)| if i == anchor.test { test.matches_with_literal(line) } else { test.matches(line) })
    }
}

impl Test {
    fn new(filter: &LineFilter) -> Self {
        let holds = |needles: &[Vec<u8>]| Literals::new(needles).map(|literals| Test::Holds(Arc::new(literals)));
        match filter {
            LineFilter::Contains(needle) => holds(std::slice::from_ref(needle)),
            LineFilter::ContainsAny(needles) => holds(needles),
            LineFilter::ContainsNot(needle) => Some(Test::HoldsNot(Box::new(Finder::new(needle).into_owned()))),
            LineFilter::Match(pattern) => Some(Test::Match(pattern.clone())),
            LineFilter::NoMatch(pattern) => Some(Test::NoMatch(pattern.clone())),
            LineFilter::MatchAny(_) => None,
        }
        .unwrap_or_else(|| Test::Plain(filter.clone()))
    }

    fn cost(&self) -> u8 {
        match self {
            Test::Holds(_) => 0,
            Test::HoldsNot(_) => 1,
            Test::Plain(LineFilter::Contains(_) | LineFilter::ContainsAny(_)) => 2,
            Test::Match(_) | Test::NoMatch(_) | Test::Plain(_) => 3,
        }
    }

    fn matches(&self, line: &[u8]) -> bool {
        match self {
            Test::Holds(literals) => literals.find(line).is_some(),
            Test::HoldsNot(finder) => finder.find(line).is_none(),
            Test::Match(pattern) => pattern.is_match(line),
            Test::NoMatch(pattern) => !pattern.is_match(line),
            Test::Plain(filter) => filter.matches(line),
        }
    }

    /// As [`Test::matches`], for a line known to hold one of the test's literals.
    fn matches_with_literal(&self, line: &[u8]) -> bool {
        match self {
            Test::Holds(_) => true,
            Test::Match(pattern) => pattern.is_match_unchecked(line),
            _ => self.matches(line),
        }
    }

    /// Literals of which every line that passes holds one.
    fn literals(&self) -> Option<&Arc<Literals>> {
        match self {
            Test::Holds(literals) => Some(literals),
            Test::Match(pattern) => pattern.required(),
            Test::HoldsNot(_) | Test::NoMatch(_) | Test::Plain(_) => None,
        }
    }
}

/// Whether the filter passes every line: the empty needle lies in all of them.
fn always_holds(filter: &LineFilter) -> bool {
    match filter {
        LineFilter::Contains(needle) => needle.is_empty(),
        LineFilter::ContainsAny(needles) => needles.iter().any(Vec::is_empty),
        LineFilter::Match(pattern) => pattern.source().is_empty(),
        LineFilter::MatchAny(patterns) => patterns.iter().any(|p| p.source().is_empty()),
        LineFilter::ContainsNot(_) | LineFilter::NoMatch(_) => false,
    }
}

fn line_range(ends: &[u32], row: usize) -> Range<usize> {
    let start = if row == 0 { 0 } else { ends[row - 1] as usize };
    start..ends[row] as usize
}

/// The row whose line holds byte `at`, which lies at or behind the start of row `from`.
fn row_at(ends: &[u32], from: usize, at: usize) -> usize {
    let ends = &ends[from..];
    let before = |end: &u32| *end as usize <= at;
    // Hits are often near: look at growing distances, then halve.
    let mut reach = 1;
    while ends.get(reach - 1).is_some_and(before) {
        reach *= 2;
    }
    let low = reach / 2;
    let high = reach.min(ends.len());
    from + low + ends[low..high].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn needle() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![4 => "[ab]{1,3}".prop_map(String::into_bytes), 1 => Just(Vec::new()), 1 => Just(vec![0xff]), 1 => Just("é".into())]
    }

    fn pattern() -> impl Strategy<Value = Pattern> {
        let sources = prop_oneof![
            "[ab]{1,3}",
            "[ab.?]{0,1}[ab]{1,2}(\\.\\*[ab])?",
            Just("(?i)AB|ba".to_string()),
            Just("^a.*b$".to_string()),
            Just("(ab|ba)+a".to_string()),
            Just("a[^b]b".to_string()),
            Just("(a|b)é?".to_string()),
            Just("\u{fffd}a".to_string()),
            Just("b\\b".to_string()),
            Just(".*".to_string()),
            Just("^$".to_string()),
        ];
        sources.prop_filter_map("a regex", |source| Pattern::line(&source).ok())
    }

    fn filter() -> impl Strategy<Value = LineFilter> {
        prop_oneof![
            3 => needle().prop_map(LineFilter::Contains),
            1 => needle().prop_map(LineFilter::ContainsNot),
            2 => prop::collection::vec(needle(), 0..4).prop_map(LineFilter::ContainsAny),
            2 => pattern().prop_map(LineFilter::Match),
            1 => pattern().prop_map(LineFilter::NoMatch),
            1 => prop::collection::vec(pattern(), 0..3).prop_map(LineFilter::MatchAny),
        ]
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            8 => "[ab]{0,6}".prop_map(String::into_bytes),
            1 => "[abAé\u{fffd}\n]{0,5}".prop_map(String::into_bytes),
            1 => prop::collection::vec(prop::sample::select(vec![b'a', b'b', 0xff, 0xc3, 0xa9]), 0..6),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn bulk_and_single_matching_agree_with_the_plain_filters(
            lines in prop::collection::vec(line(), 0..40), filters in prop::collection::vec(filter(), 0..4), rest in needle(),
        ) {
            let query = Query { matchers: Vec::new(), filters };
            let matcher = LineMatcher::new(&query);
            let expected: Vec<usize> = (0..lines.len()).filter(|&row| query.matches_line(&lines[row])).collect();
            let single: Vec<usize> = (0..lines.len()).filter(|&row| matcher.matches(&lines[row])).collect();
            prop_assert_eq!(&single, &expected);
            let mut arena = Vec::new();
            let ends: Vec<u32> = lines.iter().map(|line| { arena.extend_from_slice(line); arena.len() as u32 }).collect();
            arena.extend_from_slice(&rest);
            let mut bulk = Vec::new();
            matcher.find_rows(&arena, &ends, |row| bulk.push(row));
            prop_assert_eq!(bulk, expected);
        }
    }

    #[test]
    fn the_most_telling_literal_leads() {
        let cases: &[(&str, Option<&str>)] = &[
            (r#"{} |= "GET" |= "id-123""#, Some("id-123")),
            (r#"{} |~ "status=5.. .*upstream timed out""#, Some(" .*upstream timed out")),
            (r#"{} |= "x" |~ "user=[0-9]+""#, Some("user=")),
            (r#"{} != "x""#, None),
            (r#"{} |~ "[0-9]+""#, None),
            (r#"{} |= """#, None),
        ];
        for (text, expected) in cases {
            let matcher = LineMatcher::new(&super::super::logql::parse(text).unwrap());
            let lead = matcher.anchor.map(|anchor| match &*anchor.literals {
                Literals::One(finder) => String::from_utf8(finder.needle().to_vec()).unwrap(),
                Literals::Many(..) => "many".to_string(),
            });
            let expected = expected.map(|e| e.trim_start_matches(" .*"));
            assert_eq!(lead.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn rows_are_found_at_any_distance() {
        let ends: Vec<u32> = (0..100).map(|i| i / 3 * 5).collect();
        for from in 0..99 {
            let start = if from == 0 { 0 } else { ends[from - 1] as usize };
            for at in start..ends[99] as usize {
                let expected = ends.iter().position(|&end| end as usize > at).unwrap();
                assert_eq!(row_at(&ends, from, at), expected, "from {from}, byte {at}");
            }
        }
    }
}
