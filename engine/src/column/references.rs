//! Values that say again what another column says in the same row: a URL that holds a name, a message that holds an id.

use super::encode::{Encoder, Hint, verbatim_shape};
use super::plan::{Computed, Kind};
use crate::encoding::typed::Type;
use crate::error::Result;
use crate::shape::text::Grain;
use crate::shape::{Part, SlotKind, Span};
use memchr::memmem;

/// Mean length of values that are looked for in others.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=100;
/// Columns that are looked for, of those encoded last.
const SIBLINGS_MAX: usize = 64;
/// Columns in which others nest deeper are looked for nowhere: each may refer to the one before it, and a plan's depth has a limit.
const NESTED_MAX: u32 = 24;
/// Columns of numbers that others may be computed from.
const SOURCES_MAX: usize = 8;
/// Numbers closer together are not worth it.
const SPREAD_MIN: i64 = 1_000;
/// Values looked at before all are.
const SAMPLE: usize = 32;
/// A value is looked for where at most this part of the sample, its first values too, do not have it.
const MISSES_PART: usize = 5;
/// What numbers may be divided by: units of time.
const DIVISORS: [i64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];

/// A column that is encoded, whose values may stand in others of its domain.
pub(super) struct Sibling {
    pub domain: u32,
    pub column: u32,
    pub data: Vec<u8>,
    pub spans: Vec<Span>,
}

impl Sibling {
    /// Whether it may stand in other columns.
    fn is_useful(&self) -> bool {
        self.spans.len() >= SAMPLE && LENGTHS.contains(&(self.data.len() / self.spans.len()))
    }

    pub(super) fn value(&self, row: usize) -> &[u8] {
        self.spans[row].of(&self.data)
    }
}

/// A column of numbers that others may be computed from.
pub(super) struct Source {
    domain: u32,
    column: u32,
    numbers: Vec<i64>,
}

impl Encoder {
    /// Remembers a column, when it may stand in others.
    pub(super) fn remember_sibling(&mut self, sibling: Sibling) {
        let column = sibling.column as usize;
        let fits = !matches!(self.columns[column].kind, Kind::Constant(_)) && self.nested[column] <= NESTED_MAX;
        if fits && sibling.is_useful() {
            self.siblings.push(sibling);
        }
    }

    /// The siblings of a column of this domain.
    pub(super) fn siblings_of(&self, domain: u32) -> impl Iterator<Item = &Sibling> {
        self.siblings.iter().rev().filter(move |s| s.domain == domain).take(SIBLINGS_MAX)
    }

    /// A column of numbers that is computed from an earlier one, if it is.
    pub(super) fn computed(&mut self, numbers: Vec<i64>, domain: u32, type_: Type) -> std::result::Result<u32, Vec<i64>> {
        match self.formula(domain, type_, || numbers.iter().copied().enumerate()) {
            Some(formula) => Ok(self.add(domain, Kind::Computed(formula))),
            None => Err(numbers),
        }
    }

    /// How these numbers, given with their rows, follow from an earlier column of the domain.
    pub(super) fn formula<I: Iterator<Item = (usize, i64)>>(&self, domain: u32, type_: Type, numbers: impl Fn() -> I) -> Option<Computed> {
        let (row, first) = numbers().next()?;
        self.sources.iter().filter(|s| s.domain == domain).find_map(|source| {
            DIVISORS.iter().find_map(|&divisor| {
                let addend = first.wrapping_sub(source.numbers[row].div_euclid(divisor));
                let formula = Computed { source: source.column, divisor, addend, type_ };
                numbers().all(|(row, to)| formula.number(source.numbers[row]) == to).then_some(formula)
            })
        })
    }

    /// Remembers the numbers of a column, when others are likely to follow from them.
    pub(super) fn remember(&mut self, column: u32, domain: u32, numbers: &[i64]) {
        let (least, most) = (numbers.iter().min(), numbers.iter().max());
        let spread = most.zip(least).map_or(0, |(most, least)| most.saturating_sub(*least));
        if spread >= SPREAD_MIN && numbers.len() >= SAMPLE && self.sources.iter().filter(|s| s.domain == domain).count() < SOURCES_MAX {
            self.sources.push(Source { domain, column, numbers: numbers.to_vec() });
        }
    }

    /// Cuts the value of a sibling out of the values that hold it.
    pub(super) fn reference(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<Option<u32>> {
        let Some(index) = self.best_sibling(arena, spans, domain) else { return Ok(None) };
        let (mut before, mut after, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let (mut ids, mut cut_ends, mut whole_ends) = (Vec::with_capacity(spans.len()), Vec::new(), Vec::new());
        let sibling = &self.siblings[index];
        for &end in &self.domains[domain as usize].ends {
            while ids.len() < end as usize {
                let row = ids.len();
                let (span, wanted) = (spans[row], sibling.value(row));
                let place = if wanted.is_empty() { None } else { memmem::find(span.of(arena), wanted) };
                ids.push(u64::from(place.is_none()));
                match place {
                    None => whole.push(span),
                    Some(place) => {
                        let rest = place + wanted.len();
                        before.push(Span { at: span.at, len: place as u32 });
                        after.push(Span { at: span.at + rest as u32, len: span.len - rest as u32 });
                    }
                }
            }
            cut_ends.push(before.len() as u32);
            whole_ends.push(whole.len() as u32);
        }
        let aligned = sibling.column;
        let hint = Hint { depth: hint.depth + 1, lines: false, json: false, slot: SlotKind::Verbatim, grain: Some(Grain::Coarse) };
        let cut_domain = self.domain(cut_ends);
        let before = self.column(arena, &before, cut_domain, hint)?;
        let after = self.column(arena, &after, cut_domain, hint)?;
        let mut shapes = vec![vec![Part::Slot(before), Part::Aligned(aligned), Part::Slot(after)]];
        if !whole.is_empty() {
            let whole_domain = self.domain(whole_ends);
            shapes.push(verbatim_shape(self.column(arena, &whole, whole_domain, hint)?));
        }
        let column = self.add(domain, Kind::Shapes(shapes));
        self.integer_pages(column, &ids, domain)?;
        Ok(Some(column))
    }

    /// The sibling whose values stand in most of these, the longest one.
    fn best_sibling(&self, arena: &[u8], spans: &[Span], domain: u32) -> Option<usize> {
        let step = (spans.len() / SAMPLE).max(1);
        let saved = |sibling: &Sibling| {
            let (mut bytes, mut misses) = (0, 0);
            for (seen, row) in (0..spans.len()).step_by(step).take(SAMPLE).enumerate() {
                let wanted = sibling.value(row);
                if wanted.is_empty() || memmem::find(spans[row].of(arena), wanted).is_none() {
                    misses += 1;
                    if misses * MISSES_PART > SAMPLE.min(seen + SAMPLE / 4) {
                        return 0;
                    }
                }
                bytes += wanted.len();
            }
            bytes
        };
        let known = self.siblings.iter().enumerate().rev().filter(|(_, s)| s.domain == domain).take(SIBLINGS_MAX);
        known
            .map(|(index, sibling)| (saved(sibling), index))
            .filter(|&(bytes, _)| bytes >= LENGTHS.start() * SAMPLE)
            .max()
            .map(|best| best.1)
    }
}
