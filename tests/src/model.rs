//! The model: what the store is, without files. A vector for each tenant, and filters that look at every record.

use crate::record::Rec;
use haystore::query::{LabelMatcher, LabelTest, LineFilter, Query};
use haystore::{Labels, Tenant};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Records in the order of their arrival: first what is published, then what is in memory.
#[derive(Debug, Default, Clone)]
pub struct Model {
    published: BTreeMap<Tenant, Vec<Rec>>,
    in_memory: BTreeMap<Tenant, Vec<Rec>>,
}

impl Model {
    /// Records came through an append.
    pub fn append(&mut self, tenant: &Tenant, records: Vec<Rec>) {
        self.in_memory.entry(tenant.clone()).or_default().extend(records);
    }

    /// Records were published by a job: they come before what is still in memory.
    pub fn publish(&mut self, tenant: &Tenant, records: Vec<Rec>) {
        self.published.entry(tenant.clone()).or_default().extend(records);
    }

    /// What was in memory is published.
    pub fn flush(&mut self) {
        for (tenant, records) in std::mem::take(&mut self.in_memory) {
            self.publish(&tenant, records);
        }
    }

    /// All records of a tenant, in the store's order.
    pub fn all(&self, tenant: &Tenant) -> Vec<Rec> {
        let of = |records: &BTreeMap<Tenant, Vec<Rec>>| records.get(tenant).cloned().unwrap_or_default();
        let mut records = of(&self.published);
        records.extend(of(&self.in_memory));
        records.sort_by(|a, b| (a.timestamp, &a.labels).cmp(&(b.timestamp, &b.labels)));
        records
    }

    /// The records that a query finds, oldest first.
    pub fn find(&self, tenant: &Tenant, query: &Query, range: &RangeInclusive<i64>) -> Vec<Rec> {
        let mut records = self.all(tenant);
        records.retain(|r| range.contains(&r.timestamp) && matches(query, r));
        records
    }

    /// The streams that a selector finds.
    pub fn series(&self, tenant: &Tenant, selectors: &[Vec<LabelMatcher>], range: &RangeInclusive<i64>) -> Vec<Labels> {
        let wanted = |l: &Labels| selectors.is_empty() || selectors.iter().any(|s| s.iter().all(|m| label_matches(m, l)));
        let all = self.all(tenant);
        let found: BTreeSet<Labels> = all.into_iter().filter(|r| range.contains(&r.timestamp)).map(|r| r.labels).collect();
        found.into_iter().filter(wanted).collect()
    }
}

/// Whether a line holds a needle: the slow, plain way.
pub fn holds(line: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || line.windows(needle.len()).any(|w| w == needle)
}

fn matches(query: &Query, record: &Rec) -> bool {
    query.matchers.iter().all(|m| label_matches(m, &record.labels)) && query.filters.iter().all(|f| line_matches(f, &record.line))
}

fn line_matches(filter: &LineFilter, line: &[u8]) -> bool {
    match filter {
        LineFilter::Contains(needle) => holds(line, needle),
        LineFilter::ContainsNot(needle) => !holds(line, needle),
        LineFilter::ContainsAny(needles) => needles.iter().any(|n| holds(line, n)),
        LineFilter::Match(pattern) => pattern.is_match(line),
        LineFilter::NoMatch(pattern) => !pattern.is_match(line),
        LineFilter::MatchAny(patterns) => patterns.iter().any(|p| p.is_match(line)),
    }
}

fn label_matches(matcher: &LabelMatcher, labels: &Labels) -> bool {
    let value = labels.iter().find(|(name, _)| *name == matcher.name).map_or("", |(_, value)| value);
    match &matcher.test {
        LabelTest::Eq(wanted) => value == wanted,
        LabelTest::Ne(wanted) => value != wanted,
        LabelTest::Match(pattern) => pattern.is_match(value.as_bytes()),
        LabelTest::NoMatch(pattern) => !pattern.is_match(value.as_bytes()),
    }
}
