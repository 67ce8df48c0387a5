//! Encoding timestamps that are not all written alike: some with the zeros at the end of their fraction, some without.

use super::encode::{Encoder, Hint};
use super::plan::{Kind, Shape};
use crate::encoding::typed::Type;
use crate::error::Result;
use crate::shape::time::{Layout, Times};
use crate::shape::{Part, SlotKind, Span};

/// More ways of writing make no column.
const WAYS_MAX: usize = 12;

/// The timestamps written in one way.
struct Way {
    type_: Type,
    numbers: Vec<i64>,
    rows: Vec<u32>,
}

impl Encoder {
    /// A shape for each way of writing; `None` when there is one way only, or a value is no timestamp.
    pub(super) fn mixed_times(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<Option<u32>> {
        if hint.slot != SlotKind::Time {
            return Ok(None);
        }
        let Some((ways, ids)) = ways(arena, spans) else { return Ok(None) };
        let mut shapes: Vec<Shape> = Vec::with_capacity(ways.len());
        for way in ways {
            let formula = self.formula(domain, way.type_, || way.rows.iter().map(|&row| row as usize).zip(way.numbers.iter().copied()));
            if let Some(formula) = formula {
                shapes.push(vec![Part::Aligned(self.add(domain, Kind::Computed(formula)))]);
                continue;
            }
            let ends = self.domains[domain as usize].ends.iter().map(|&end| way.rows.partition_point(|&row| row < end) as u32).collect();
            let own_domain = self.domain(ends);
            let column = self.add(own_domain, Kind::Number(way.type_));
            self.number_pages(column, &way.numbers, own_domain)?;
            shapes.push(vec![Part::Slot(column)]);
        }
        let column = self.add(domain, Kind::Shapes(shapes));
        self.integer_pages(column, &ids, domain)?;
        Ok(Some(column))
    }
}

/// The ways, and the number of each value's.
fn ways(arena: &[u8], spans: &[Span]) -> Option<(Vec<Way>, Vec<u64>)> {
    let mut times = Times::default();
    let mut layouts = Vec::with_capacity(spans.len());
    for span in spans {
        layouts.push(times.find(span.of(arena), 0).filter(|l| l.text_len() == span.len as usize)?);
    }
    let digits = layouts.iter().map(|l| l.digits).max()?;
    let mut ways: Vec<Way> = Vec::new();
    let mut ids = Vec::with_capacity(spans.len());
    for (row, (span, layout)) in spans.iter().zip(layouts).enumerate() {
        let short = Type::ShortTime(Layout { digits, ..layout });
        let (value, own) = (span.of(arena), Type::Time(layout));
        let (type_, number) = match short.number_with(value, &mut times).filter(|_| layout.digits > 0) {
            Some(number) => (short, number),
            None => (own, own.number_with(value, &mut times)?),
        };
        let way = match ways.iter().position(|w| w.type_ == type_) {
            Some(way) => way,
            None if ways.len() == WAYS_MAX => return None,
            None => {
                ways.push(Way { type_, numbers: Vec::new(), rows: Vec::new() });
                ways.len() - 1
            }
        };
        ways[way].numbers.push(number);
        ways[way].rows.push(row as u32);
        ids.push(way as u64);
    }
    (ways.len() > 1).then_some((ways, ids))
}
