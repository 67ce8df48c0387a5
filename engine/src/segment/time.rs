//! The timestamps of a row group. Where a line's shape holds its timestamp as a number, it is not stored again:
//! timestamp = number × multiplier + addend. Rows of other shapes have theirs in a column of their own.

use crate::column::decode::Decoder;
use crate::column::encode::Encoder;
use crate::column::plan::{Kind, Plan, Shape};
use crate::encoding::typed::Type;
use crate::error::{Error, Result};
use crate::shape::Part;
use crate::wire::{Reader, WireResult, put_signed, put_varint};

/// How the rows of one shape get their timestamps from a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Derived {
    /// Number of the shape in the line column.
    pub shape: u32,
    /// The column whose next value, at its first slot in the shape, gives the number.
    pub column: u32,
    /// Nanoseconds a unit.
    pub multiplier: i64,
    /// Nanoseconds added.
    pub addend: i64,
}

/// Where timestamps are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimePlan {
    /// Shapes that hold their timestamp, by shape number.
    pub derived: Vec<Derived>,
    /// The column of all other rows' timestamps.
    pub explicit: u32,
}

impl TimePlan {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.explicit));
        put_varint(out, self.derived.len() as u64);
        for derived in &self.derived {
            put_varint(out, u64::from(derived.shape));
            put_varint(out, u64::from(derived.column));
            put_signed(out, derived.multiplier);
            put_signed(out, derived.addend);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>, plan: &Plan, lines: u32) -> WireResult<TimePlan> {
        let columns = plan.columns.len();
        let column = |reader: &mut Reader<'_>| reader.bounded(columns.saturating_sub(1)).map(|c| c as u32);
        let explicit = column(reader)?;
        let shapes = shapes_of(plan, lines).map_or(0, <[Shape]>::len);
        let mut derived: Vec<Derived> = Vec::new();
        for _ in 0..reader.count()? {
            let shape = reader.bounded(u32::MAX as usize)? as u32;
            if shape as usize >= shapes || derived.last().is_some_and(|d| d.shape >= shape) {
                return Err(reader.error("no such shape"));
            }
            derived.push(Derived { shape, column: column(reader)?, multiplier: reader.signed()?, addend: reader.signed()? });
        }
        Ok(TimePlan { derived, explicit })
    }
}

fn shapes_of(plan: &Plan, lines: u32) -> Option<&[Shape]> {
    match &plan.columns.get(lines as usize)?.kind {
        Kind::Shapes(shapes) => Some(shapes),
        _ => None,
    }
}

fn slots(shape: &Shape) -> impl Iterator<Item = u32> + '_ {
    shape.iter().filter_map(|part| if let Part::Slot(column) = part { Some(*column) } else { None })
}

/// A formula on trial.
#[derive(Clone, Copy)]
struct Candidate {
    derived: Derived,
    proved: bool,
    refuted: bool,
}

/// Finds for each shape of the line column a slot that gives the timestamp, and stores the timestamps of all other rows.
pub(super) fn encode(encoder: &mut Encoder, lines: u32, range_ends: &[u32], timestamps: &[i64]) -> Result<TimePlan> {
    let rows = std::mem::take(&mut encoder.line_shapes);
    let mut derived = Vec::new();
    if let Kind::Shapes(shapes) = &encoder.columns[lines as usize].kind
        && rows.len() == timestamps.len()
    {
        derived = find(encoder, shapes, &rows, timestamps);
    }
    let has = |row: usize| rows.get(row).is_some_and(|&shape| derived.binary_search_by_key(&shape, |d: &Derived| d.shape).is_ok());
    let mut explicit = Vec::new();
    let mut ends = Vec::with_capacity(range_ends.len());
    let mut row = 0;
    for &end in range_ends {
        while row < end as usize {
            if !has(row) {
                explicit.push(timestamps[row]);
            }
            row += 1;
        }
        ends.push(explicit.len() as u32);
    }
    let domain = encoder.domain(ends);
    let explicit = encoder.number_column(&explicit, domain)?;
    Ok(TimePlan { derived, explicit })
}

fn find(encoder: &Encoder, shapes: &[Shape], rows: &[u32], timestamps: &[i64]) -> Vec<Derived> {
    let columns: Vec<u32>;
    let target = |column: u32| match encoder.columns[column as usize].kind {
        Kind::Same(other) => other,
        _ => column,
    };
    // For each shape its number columns; only the first slot of a column counts, later ones just use a value up.
    let used: Vec<Vec<(usize, bool)>> = {
        let mut known: Vec<u32> = Vec::new();
        let mut index_of: hashbrown::HashMap<u32, usize> = hashbrown::HashMap::new();
        let mut of_shape = |shape: &Shape| {
            let mut list: Vec<(usize, bool)> = Vec::new();
            for column in slots(shape).filter(|&c| encoder.numbers.contains_key(&target(c))) {
                let index = *index_of.entry(column).or_insert_with(|| {
                    known.push(column);
                    known.len() - 1
                });
                list.push((index, !list.iter().any(|&(i, _)| i == index)));
            }
            list
        };
        let used = shapes.iter().map(&mut of_shape).collect();
        columns = known;
        used
    };
    let numbers: Vec<&[i64]> = columns.iter().map(|&c| encoder.numbers.get(&target(c)).map_or(&[][..], Vec::as_slice)).collect();
    let mut next = vec![0usize; columns.len()];
    let mut trials: Vec<Vec<Candidate>> = vec![Vec::new(); shapes.len()];
    for (&shape, &timestamp) in rows.iter().zip(timestamps) {
        for &(index, first) in &used[shape as usize] {
            let number = numbers[index].get(next[index]).copied();
            next[index] += 1;
            if let (true, Some(number)) = (first, number) {
                let column = columns[index];
                try_row(&mut trials[shape as usize], encoder, shape, column, target(column), number, timestamp);
            }
        }
    }
    trials.into_iter().filter_map(|t| t.into_iter().find(|c| c.proved && !c.refuted).map(|c| c.derived)).collect()
}

fn try_row(trials: &mut Vec<Candidate>, encoder: &Encoder, shape: u32, column: u32, target: u32, number: i64, timestamp: i64) {
    let known = trials.iter_mut().find(|c| c.derived.column == column);
    let gives = |d: &Derived| number.checked_mul(d.multiplier).and_then(|n| n.checked_add(d.addend)) == Some(timestamp);
    match known {
        Some(candidate) => candidate.refuted = candidate.refuted || !gives(&candidate.derived),
        None => {
            let multiplier = match encoder.columns[target as usize].kind {
                Kind::Number(Type::Time(layout) | Type::ShortTime(layout)) => 1_000_000_000 / layout.per_second(),
                _ => match number.unsigned_abs() {
                    0..100_000_000_000 => 1_000_000_000,
                    100_000_000_000..100_000_000_000_000 => 1_000_000,
                    100_000_000_000_000..100_000_000_000_000_000 => 1_000,
                    _ => 1,
                },
            };
            let addend = number.checked_mul(multiplier).and_then(|n| timestamp.checked_sub(n));
            let derived = Derived { shape, column, multiplier, addend: addend.unwrap_or(0) };
            trials.push(Candidate { derived, proved: addend.is_some(), refuted: addend.is_none() });
        }
    }
}

/// For a shape the number columns whose values a row uses up, and which of them gives its timestamp.
type Step = (Vec<usize>, Option<(usize, Derived)>);

/// The timestamps of the rows of `range`, appended to `out`.
pub(super) fn decode(decoder: &mut Decoder, plan: &TimePlan, lines: u32, rows: usize, range: usize, out: &mut Vec<i64>) -> Result<()> {
    let explicit = decoder.numbers(plan.explicit, range)?;
    let mut next_explicit = 0;
    let mut take_explicit = |source: &crate::column::decode::Source| -> Result<i64> {
        next_explicit += 1;
        explicit.get(next_explicit - 1).ok_or_else(|| source.corrupt("a timestamp is missing"))
    };
    if plan.derived.is_empty() {
        for _ in 0..rows {
            out.push(take_explicit(decoder.source())?);
        }
        return Ok(());
    }
    let columns_plan = decoder.plan().clone();
    let shapes = shapes_of(&columns_plan, lines).unwrap_or_default();
    let mut columns: Vec<u32> = plan.derived.iter().map(|d| d.column).collect();
    columns.sort_unstable();
    columns.dedup();
    let ids = decoder.numbers(lines, range)?;
    let mut numbers = Vec::with_capacity(columns.len());
    for &column in &columns {
        numbers.push(decoder.numbers(column, range)?);
    }
    let steps: Vec<Step> = shapes
        .iter()
        .enumerate()
        .map(|(id, shape)| {
            let used: Vec<usize> = slots(shape).filter_map(|c| columns.binary_search(&c).ok()).collect();
            let derived = plan.derived.binary_search_by_key(&(id as u32), |d| d.shape).ok().map(|i| plan.derived[i]);
            (used, derived.and_then(|d| columns.binary_search(&d.column).ok().map(|c| (c, d))))
        })
        .collect();
    let mut next = vec![0usize; columns.len()];
    let source = decoder.source();
    let missing = || -> Error { source.corrupt("a timestamp is missing") };
    for &id in ids.raw() {
        let (used, derived) = usize::try_from(id).ok().and_then(|id| steps.get(id)).ok_or_else(missing)?;
        out.push(match derived {
            Some((column, d)) => {
                let number = numbers[*column].get(next[*column]).ok_or_else(missing)?;
                number.wrapping_mul(d.multiplier).wrapping_add(d.addend)
            }
            None => take_explicit(source)?,
        });
        used.iter().for_each(|&column| next[column] += 1);
    }
    Ok(())
}
