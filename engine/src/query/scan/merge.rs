//! Merging runs: opens row groups when their turn comes, gives out batches.

use super::opening::{Opening, Openings};
use super::run::{self, Asked, Cost, Run};
use super::{GroupRef, GroupSource, slices};
use crate::error::{Error, Result};
use crate::query::{LineMatcher, Query};
use crate::record::{Batch, Labels, RecordRef};
use crate::store::{Cursor, Direction};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Lines of so many bytes make a batch.
const BATCH_BYTES: usize = 1 << 20;
/// Rows make a batch.
const BATCH_ROWS: usize = 64 << 10;
/// A query is ended when it holds so many times its budget: estimates were wrong by more than they may be.
const BUDGET_TIMES_MAX: usize = 3;

/// What to give out.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub query: Arc<Query>,
    pub range: RangeInclusive<i64>,
    pub direction: Direction,
    pub after: Option<Cursor>,
    /// Bytes of decoded records held at once.
    pub bytes_max: usize,
    /// Row groups decoded ahead of the merge.
    pub ahead: usize,
    /// Most records wanted; a batch is given out as soon as it has them.
    pub rows_max: usize,
}

/// A merge over one read view.
pub(crate) struct Merge {
    pub wanted: Wanted,
    pub groups: Vec<GroupRef>,
    /// Batches not yet in segments, in arrival order.
    pub memtables: Vec<Arc<Batch>>,
    pub source: Arc<dyn GroupSource>,
    /// Where helpers run.
    pub handle: Handle,
}

/// What a merge cost.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Spent {
    pub row_groups: u64,
    pub rows: u64,
    pub line_bytes: u64,
}

/// Takes batches; `false` ends the merge.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Batch, &Cursor) -> bool;

struct Active {
    run: Run,
    at: usize,
    order: (u64, u32),
    /// The runs behind this one.
    more: Option<Opening>,
}

impl Active {
    fn record(&self, direction: Direction) -> Option<RecordRef<'_>> {
        let left = self.run.len().checked_sub(self.at + 1)?;
        Some(self.run.get(if direction == Direction::Forward { self.at } else { left }))
    }
}

/// A place in the order of all records; `labels` of `None` comes before every stream, or behind it when going backward.
#[derive(Clone, Copy)]
struct Key<'a> {
    timestamp: i64,
    labels: Option<&'a Labels>,
    order: (u64, u32),
}

fn compare(a: Key<'_>, b: Key<'_>, direction: Direction) -> Ordering {
    let forward = a.timestamp.cmp(&b.timestamp);
    match direction {
        Direction::Forward => forward.then_with(|| a.labels.cmp(&b.labels)).then(a.order.cmp(&b.order)),
        Direction::Backward => forward
            .reverse()
            .then_with(|| match (a.labels, b.labels) {
                (None, None) => Ordering::Equal,
                (None, _) => Ordering::Less,
                (_, None) => Ordering::Greater,
                (Some(a), Some(b)) => b.cmp(a),
            })
            .then(b.order.cmp(&a.order)),
    }
}

impl Merge {
    /// Gives every matching record to `sink`, in order.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`], io errors, [`crate::ErrorKind::Limit`] when the budget is passed by far.
    pub fn run(mut self, sink: Sink<'_>) -> Result<Spent> {
        let mut range = self.wanted.range.clone();
        if let Some(after) = &self.wanted.after {
            range = match self.wanted.direction {
                Direction::Forward => after.timestamp.max(*range.start())..=*range.end(),
                Direction::Backward => *range.start()..=after.timestamp.min(*range.end()),
            };
        }
        if range.is_empty() {
            return Ok(Spent::default());
        }
        self.groups.retain(|g| overlaps(&g.info.meta.times, &range));
        let mut parts = slices::cut(&self.groups, &range, self.wanted.bytes_max as u64);
        if self.wanted.direction == Direction::Backward {
            parts.reverse();
        }
        let mut output = Output::new(&self.wanted);
        let mut spent = Spent::default();
        for part in parts {
            if !self.part(&part, &mut output, &mut spent, sink)? {
                return Ok(spent);
            }
        }
        output.flush(sink);
        Ok(spent)
    }

    fn part(&self, part: &RangeInclusive<i64>, output: &mut Output, spent: &mut Spent, sink: Sink<'_>) -> Result<bool> {
        let direction = self.wanted.direction;
        let mut groups: Vec<&GroupRef> = self.groups.iter().filter(|g| overlaps(&g.info.meta.times, part)).collect();
        groups.sort_by(|a, b| compare(bound(a, part, direction), bound(b, part, direction), direction));
        spent.row_groups += groups.len() as u64;
        let query = self.wanted.query.clone();
        let asked = Asked { matcher: LineMatcher::new(&query), query, range: part.clone(), direction };
        let mut openings = Openings::new(self, Arc::new(asked), groups.iter().copied().collect());
        let mut pending: VecDeque<&GroupRef> = groups.into();
        let mut active: Vec<Active> = Vec::new();
        if !self.memtables.is_empty() {
            let mut cost = Cost::default();
            let run = run::of_batches(&self.memtables, &self.wanted.query, &LineMatcher::new(&self.wanted.query), part, &mut cost);
            spent.add(cost);
            active.push(Active { run, at: 0, order: (u64::MAX, 0), more: None });
        }
        loop {
            refill(&mut active, spent)?;
            let best = least(&active, direction, None);
            if let Some(next) = pending.front()
                && best.is_none_or(|b| compare(bound(next, part, direction), key_of(&active[b], direction), direction).is_lt())
            {
                let order = next.order;
                pending.pop_front();
                let more = Some(openings.next()?);
                active.push(Active { run: Run::empty(), at: 0, order, more });
                refill(&mut active, spent)?;
                self.check_budget(&active)?;
                continue;
            }
            let Some(best) = best else { return Ok(true) };
            let next_bound = pending.front().map(|g| bound(g, part, direction));
            if active.len() == 1 && active[0].at == 0 && direction == Direction::Forward && output.takes_whole() {
                let fits = next_bound.is_none_or(|bound| compare(last_key(&active[0]), bound, direction).is_lt());
                if fits && let Some(batch) = active[0].run.take_batch() {
                    if !output.whole(batch, sink) {
                        return Ok(false);
                    }
                    continue;
                }
            }
            if !drain(&mut active, best, next_bound, direction, output, sink)? {
                return Ok(false);
            }
        }
    }

    fn check_budget(&self, active: &[Active]) -> Result<()> {
        let held: usize = active.iter().map(|a| a.run.memory_bytes()).sum();
        if held > self.wanted.bytes_max.saturating_mul(BUDGET_TIMES_MAX) {
            return Err(Error::limit(format!(
                "the query holds {held} bytes of records at once, more than {BUDGET_TIMES_MAX} times its limit of {}: ask for a shorter time, or compact the store",
                self.wanted.bytes_max
            )));
        }
        Ok(())
    }
}

/// Gives the active groups whose run is at its end the next one; drops those that have none.
fn refill(active: &mut Vec<Active>, spent: &mut Spent) -> Result<()> {
    let mut index = 0;
    while index < active.len() {
        let group = &mut active[index];
        if group.at < group.run.len() {
            index += 1;
            continue;
        }
        match group.more.as_mut().map_or(Ok(None), Opening::next)? {
            Some((run, cost)) => {
                spent.add(cost);
                (group.run, group.at) = (run, 0);
            }
            None => {
                active.remove(index);
            }
        }
    }
    Ok(())
}

/// Gives out rows of the run `best` while they come before those of all others.
fn drain(
    active: &mut [Active],
    best: usize,
    bound: Option<Key<'_>>,
    direction: Direction,
    output: &mut Output,
    sink: Sink<'_>,
) -> Result<bool> {
    let second = least(active, direction, Some(best));
    loop {
        let key = key_of(&active[best], direction);
        let after_other = second.is_some_and(|s| compare(key_of(&active[s], direction), key, direction).is_lt());
        if after_other || bound.is_some_and(|b| compare(b, key, direction).is_lt()) {
            return Ok(true);
        }
        if let Some(record) = active[best].record(direction)
            && !output.push(record, sink)?
        {
            return Ok(false);
        }
        active[best].at += 1;
        if active[best].at >= active[best].run.len() {
            return Ok(true);
        }
    }
}

fn least(active: &[Active], direction: Direction, but: Option<usize>) -> Option<usize> {
    let all = (0..active.len()).filter(|&i| Some(i) != but && active[i].at < active[i].run.len());
    all.min_by(|&a, &b| compare(key_of(&active[a], direction), key_of(&active[b], direction), direction))
}

fn key_of(active: &Active, direction: Direction) -> Key<'_> {
    match active.record(direction) {
        Some(record) => Key { timestamp: record.timestamp, labels: Some(record.labels), order: active.order },
        None => Key { timestamp: if direction == Direction::Forward { i64::MAX } else { i64::MIN }, labels: None, order: active.order },
    }
}

fn last_key(active: &Active) -> Key<'_> {
    let record = active.run.get(active.run.len() - 1);
    Key { timestamp: record.timestamp, labels: Some(record.labels), order: active.order }
}

/// A place not behind the first record that the group can give.
fn bound<'a>(group: &'a GroupRef, part: &RangeInclusive<i64>, direction: Direction) -> Key<'a> {
    let meta = &group.info.meta;
    match direction {
        Direction::Forward => Key { timestamp: *meta.times.start().max(part.start()), labels: Some(&meta.labels_min), order: group.order },
        Direction::Backward => {
            let labels = (meta.streams == 1).then_some(&meta.labels_min);
            Key { timestamp: *meta.times.end().min(part.end()), labels, order: group.order }
        }
    }
}

fn overlaps(times: &RangeInclusive<i64>, range: &RangeInclusive<i64>) -> bool {
    times.start() <= range.end() && times.end() >= range.start()
}

impl Spent {
    fn add(&mut self, cost: Cost) {
        self.rows += cost.rows;
        self.line_bytes += cost.line_bytes;
    }
}

/// Collects records into batches; skips those up to the cursor that the query begins behind.
struct Output {
    batch: Batch,
    direction: Direction,
    after: Option<Cursor>,
    last: Option<Cursor>,
    stream: Option<(Labels, u32)>,
    batch_rows: usize,
}

impl Output {
    fn new(wanted: &Wanted) -> Self {
        Output {
            batch: Batch::new(),
            direction: wanted.direction,
            after: wanted.after.clone(),
            last: None,
            stream: None,
            batch_rows: wanted.rows_max.min(BATCH_ROWS),
        }
    }

    fn push(&mut self, record: RecordRef<'_>, sink: Sink<'_>) -> Result<bool> {
        Cursor::step(&mut self.last, record.timestamp, record.labels);
        if let (Some(after), Some(last)) = (&self.after, &self.last) {
            if !after.is_before(last, self.direction) {
                return Ok(true);
            }
            self.after = None;
        }
        let stream = match &self.stream {
            Some((labels, stream)) if labels == record.labels => *stream,
            _ => {
                let stream = self.batch.stream(record.labels);
                self.stream = Some((record.labels.clone(), stream));
                stream
            }
        };
        let format = self.batch.format(record.format)?;
        self.batch.push(record.timestamp, stream, format, record.line, record.metadata)?;
        if self.batch.line_bytes() >= BATCH_BYTES || self.batch.len() >= self.batch_rows {
            return Ok(self.flush(sink));
        }
        Ok(true)
    }

    fn takes_whole(&self) -> bool {
        self.after.is_none()
    }

    /// Gives out a batch that is in order already.
    fn whole(&mut self, batch: Batch, sink: Sink<'_>) -> bool {
        if !self.flush(sink) {
            return false;
        }
        let last = batch.get(batch.len() - 1);
        let (timestamp, labels) = (last.timestamp, last.labels.clone());
        let equal = (0..batch.len()).rev().take_while(|&r| batch.timestamps()[r] == timestamp && *batch.get(r).labels == labels).count();
        let before = match &self.last {
            Some(cursor) if equal == batch.len() && cursor.timestamp == timestamp && cursor.labels == labels => cursor.ordinal,
            _ => 0,
        };
        let cursor = Cursor { timestamp, labels, ordinal: before + equal as u64 };
        let goes_on = sink(batch, &cursor);
        self.last = Some(cursor);
        goes_on
    }

    fn flush(&mut self, sink: Sink<'_>) -> bool {
        self.stream = None;
        match &self.last {
            Some(cursor) if !self.batch.is_empty() => sink(std::mem::take(&mut self.batch), cursor),
            _ => true,
        }
    }
}
