//! A run: the matching rows of one source (a row group, the memtables), in the order of all records.

use super::prune;
use crate::column::decode::Slice;
use crate::error::Result;
use crate::query::{LineMatcher, Query};
use crate::record::{Batch, Labels, RecordRef};
use crate::segment::RowGroup;
use crate::store::Direction;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Rows in the order (timestamp, stream, arrival). A backward scan reads them from the end.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few runs are alive at once")]
pub(super) enum Run {
    /// Rows of its own; `order` says which comes when, if not as they lie.
    Owned { batch: Batch, order: Option<Vec<u32>> },
    /// Rows that stay where they are.
    Shared { batches: Vec<Arc<Batch>>, rows: Vec<(u32, u32)> },
}

impl Run {
    pub fn len(&self) -> usize {
        match self {
            Run::Owned { batch, .. } => batch.len(),
            Run::Shared { rows, .. } => rows.len(),
        }
    }

    pub fn get(&self, index: usize) -> RecordRef<'_> {
        match self {
            Run::Owned { batch, order: None } => batch.get(index),
            Run::Owned { batch, order: Some(order) } => batch.get(order[index] as usize),
            Run::Shared { batches, rows } => batches[rows[index].0 as usize].get(rows[index].1 as usize),
        }
    }

    /// Roughly what the run takes in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Run::Owned { batch, order } => batch.memory_bytes() + order.as_ref().map_or(0, |o| o.len() * 4),
            Run::Shared { rows, .. } => rows.len() * 8,
        }
    }

    /// A run without rows.
    pub fn empty() -> Run {
        Run::Owned { batch: Batch::new(), order: None }
    }

    /// Takes the rows out, where they lie in order and are all the batch has.
    pub fn take_batch(&mut self) -> Option<Batch> {
        match self {
            Run::Owned { batch, order: None } => Some(std::mem::take(batch)),
            _ => None,
        }
    }
}

/// What a scan costs, counted where it is spent.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Cost {
    pub rows: u64,
    pub line_bytes: u64,
}

/// What is asked of a row group.
#[derive(Debug)]
pub(super) struct Asked {
    pub query: Arc<Query>,
    pub matcher: LineMatcher,
    pub range: RangeInclusive<i64>,
    pub direction: Direction,
}

/// The matching rows of an open row group, as runs that follow each other in the order asked for.
///
/// Rows of one stream lie in order: they come a row range a run, as they are decoded. Rows of several come as one run, which is sorted.
#[derive(Debug)]
pub(super) struct GroupRuns {
    group: RowGroup,
    streams: Vec<Labels>,
    ends: Vec<u32>,
    wanted: Vec<bool>,
    /// Row ranges still to be decoded.
    ranges: VecDeque<usize>,
}

impl GroupRuns {
    pub fn new(mut group: RowGroup, asked: &Asked) -> Result<Self> {
        let (streams, ends) = group.streams()?;
        let wanted: Vec<bool> = streams.iter().map(|s| asked.query.matches_stream(s)).collect();
        let mut ranges: VecDeque<usize> = (0..group.ranges()).filter(|&r| may_match(&group, r, &ends, &wanted, &asked.range)).collect();
        if !ranges.is_empty()
            && let Some(may) = prune::ranges(&mut group, &asked.query)?
        {
            ranges.retain(|&r| may[r]);
        }
        if asked.direction == Direction::Backward && wanted.iter().filter(|w| **w).count() == 1 {
            ranges.make_contiguous().reverse();
        }
        Ok(GroupRuns { group, streams, ends, wanted, ranges })
    }

    /// Whether all was given.
    pub fn is_done(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The next rows; `None` when there are no more.
    pub fn next(&mut self, asked: &Asked, cost: &mut Cost) -> Result<Option<Run>> {
        let several = self.wanted.iter().filter(|w| **w).count() > 1;
        let mut batch = Batch::new();
        let mut index = |(labels, wanted): (&Labels, &bool)| if *wanted { batch.stream(labels) } else { u32::MAX };
        let indexes: Vec<u32> = self.streams.iter().zip(&self.wanted).map(&mut index).collect();
        while let Some(row_range) = self.ranges.pop_front() {
            add_range(&mut self.group, row_range, (&self.ends, &indexes), asked, cost, &mut batch)?;
            if !several && !batch.is_empty() {
                return Ok(Some(Run::Owned { batch, order: None }));
            }
        }
        if batch.is_empty() {
            return Ok(None);
        }
        let order = sorted(&batch);
        Ok(Some(Run::Owned { batch, order }))
    }
}

/// Whether a row range can hold rows that are wanted.
fn may_match(group: &RowGroup, row_range: usize, ends: &[u32], wanted: &[bool], range: &RangeInclusive<i64>) -> bool {
    let times = group.times(row_range);
    if times.start() > range.end() || times.end() < range.start() {
        return false;
    }
    let rows = group.rows(row_range);
    let first = ends.partition_point(|&e| e as usize <= rows.start);
    let last = ends.partition_point(|&e| (e as usize) < rows.end);
    wanted[first..=last].contains(&true)
}

/// The order of rows that lie as (stream, timestamp, arrival); `None` when they lie in order already.
fn sorted(batch: &Batch) -> Option<Vec<u32>> {
    let key = |row: usize| (batch.timestamps()[row], batch.row_streams()[row]);
    if (1..batch.len()).all(|row| key(row - 1) <= key(row)) {
        return None;
    }
    let mut order: Vec<u32> = (0..batch.len() as u32).collect();
    order.sort_by_key(|&row| key(row as usize));
    Some(order)
}

fn add_range(
    group: &mut RowGroup,
    row_range: usize,
    (ends, indexes): (&[u32], &[u32]),
    asked: &Asked,
    cost: &mut Cost,
    batch: &mut Batch,
) -> Result<()> {
    let lines = group.lines(row_range)?;
    cost.rows += lines.len() as u64;
    cost.line_bytes += lines.bytes() as u64;
    let hits = hits_of(&lines, &asked.matcher);
    if hits.as_ref().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    let start = group.rows(row_range).start;
    let metadata = group.metadata(row_range)?;
    let (formats, row_formats) = group.formats(row_range)?;
    let formats: Vec<u16> = formats.iter().map(|f| batch.format(f)).collect::<Result<_>>()?;
    let mut timestamps = Vec::with_capacity(lines.len());
    group.timestamps(row_range, &mut timestamps)?;
    let mut stream = ends.partition_point(|&e| e as usize <= start);
    if hits.is_none() {
        batch.reserve(lines.len(), lines.bytes());
        let one_stream = ends[stream] as usize >= start + lines.len() && indexes[stream] != u32::MAX;
        let times = group.times(row_range);
        let inside = asked.range.contains(times.start()) && asked.range.contains(times.end());
        if let ([format], Some(lines), true) = (&formats[..], lines.as_text(), one_stream && inside && metadata.bytes() == 0) {
            return batch.push_rows(&timestamps, indexes[stream], *format, lines);
        }
    }
    let mut add = |row: usize| {
        while ends[stream] as usize <= start + row {
            stream += 1;
        }
        if indexes[stream] != u32::MAX && asked.range.contains(&timestamps[row]) {
            let format = formats[row_formats[row] as usize];
            batch.push(timestamps[row], indexes[stream], format, lines.get(row), metadata.get(row))?;
        }
        Ok(())
    };
    match hits {
        Some(hits) => hits.into_iter().try_for_each(&mut add),
        None => (0..lines.len()).try_for_each(&mut add),
    }
}

/// The rows whose line passes; `None`: all.
fn hits_of(lines: &Slice, matcher: &LineMatcher) -> Option<Vec<usize>> {
    if matcher.is_always() {
        return None;
    }
    let mut hits = Vec::new();
    match lines.as_text() {
        Some((arena, ends)) => matcher.find_rows(arena, ends, |row| hits.push(row)),
        None => hits.extend((0..lines.len()).filter(|&row| matcher.matches(lines.get(row)))),
    }
    Some(hits)
}

/// The matching rows of the memtables' batches, which are in arrival order.
pub(super) fn of_batches(
    batches: &[Arc<Batch>],
    query: &Query,
    matcher: &LineMatcher,
    range: &RangeInclusive<i64>,
    cost: &mut Cost,
) -> Run {
    let mut rows = Vec::new();
    for (index, batch) in batches.iter().enumerate() {
        let wanted: Vec<bool> = batch.streams().iter().map(|s| query.matches_stream(s)).collect();
        let fits = |row: usize| wanted[batch.row_streams()[row] as usize] && range.contains(&batch.timestamps()[row]);
        cost.rows += batch.len() as u64;
        cost.line_bytes += batch.line_bytes() as u64;
        if matcher.is_always() {
            rows.extend((0..batch.len()).filter(|&r| fits(r)).map(|r| (index as u32, r as u32)));
        } else {
            let (arena, ends) = batch.lines();
            matcher.find_rows(arena, ends, |row| {
                if fits(row) {
                    rows.push((index as u32, row as u32));
                }
            });
        }
    }
    let batches = batches.to_vec();
    let key = |&(b, r): &(u32, u32)| {
        let record = batches[b as usize].get(r as usize);
        (record.timestamp, record.labels)
    };
    if !rows.is_sorted_by(|a, b| key(a) <= key(b)) {
        rows.sort_by(|a, b| key(a).cmp(&key(b)));
    }
    Run::Shared { batches, rows }
}
