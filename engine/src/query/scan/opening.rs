//! Row groups on their way to the merge: fetched and decoded by helpers, a few runs at a time.
//!
//! What holds: a helper never waits for the merge. It decodes a portion, hands it over with the open row group, and ends; the next portion is
//! begun when this one is taken. So however slow the reader, and however many groups overlap, no thread is held, and a group has at
//! most two portions in memory.

use super::run::{Asked, Cost, GroupRuns, Run};
use super::{GroupRef, GroupSource, Merge};
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Portions decoded ahead hold this part of the query's bytes, those of all groups being opened together.
const AHEAD_PART: usize = 8;
/// A decoded row range takes about so many bytes.
const RANGE_BYTES: usize = 1 << 20;
/// Most runs of a portion.
const PORTION_RUNS_MAX: usize = 64;
/// A query for at most so many records decodes a run at a time.
const FEW_ROWS: usize = 4096;

/// Runs, and the open row group when it has more.
type Portion = (VecDeque<(Run, Cost)>, Option<GroupRuns>);

/// The runs of one row group, in the order of the merge.
pub(super) struct Opening {
    ready: VecDeque<(Run, Cost)>,
    coming: Option<oneshot::Receiver<Result<Portion>>>,
    asked: Arc<Asked>,
    portion_runs: usize,
    handle: Handle,
}

impl Opening {
    /// The next run; `None` behind the last. Blocks.
    pub fn next(&mut self) -> Result<Option<(Run, Cost)>> {
        while self.ready.is_empty() {
            let Some(coming) = self.coming.take() else { return Ok(None) };
            let portion = coming.blocking_recv().map_err(|_| Error::internal("a helper of a query ended early"))?;
            let (ready, rest) = portion?;
            self.ready = ready;
            if let Some(group) = rest {
                self.begin(move || Ok(group));
            }
        }
        Ok(self.ready.pop_front())
    }

    fn begin(&mut self, open: impl FnOnce() -> Result<GroupRuns> + Send + 'static) {
        let (sender, receiver) = oneshot::channel();
        let (asked, runs_max) = (self.asked.clone(), self.portion_runs);
        self.coming = Some(receiver);
        self.handle.spawn_blocking(move || {
            if !sender.is_closed() {
                // Where nobody takes it, the merge has ended meanwhile.
                let _ = sender.send(open().and_then(|group| portion(group, &asked, runs_max)));
            }
        });
    }
}

fn portion(mut group: GroupRuns, asked: &Asked, runs_max: usize) -> Result<Portion> {
    let mut runs = VecDeque::new();
    let mut cost = Cost::default();
    while runs.len() < runs_max && !group.is_done() {
        if let Some(run) = group.next(asked, &mut cost)? {
            runs.push_back((run, std::mem::take(&mut cost)));
        }
    }
    if cost.rows > 0 {
        runs.push_back((Run::empty(), cost));
    }
    let rest = (!group.is_done()).then_some(group);
    Ok((runs, rest))
}

/// Row groups in the order in which the merge needs them; a few are begun ahead of it.
pub(super) struct Openings<'a> {
    source: &'a Arc<dyn GroupSource>,
    handle: &'a Handle,
    asked: Arc<Asked>,
    ahead: usize,
    portion_runs: usize,
    waiting: VecDeque<&'a GroupRef>,
    started: VecDeque<Opening>,
}

impl<'a> Openings<'a> {
    /// The openings of `groups`.
    pub fn new(merge: &'a Merge, asked: Arc<Asked>, groups: VecDeque<&'a GroupRef>) -> Self {
        let wanted = &merge.wanted;
        let portion_runs = if wanted.rows_max <= FEW_ROWS { 1 } else { wanted.bytes_max / AHEAD_PART / (wanted.ahead + 1) / RANGE_BYTES };
        Openings {
            source: &merge.source,
            handle: &merge.handle,
            asked,
            ahead: wanted.ahead,
            portion_runs: portion_runs.clamp(1, PORTION_RUNS_MAX),
            waiting: groups,
            started: VecDeque::new(),
        }
    }

    /// The next group's runs.
    pub fn next(&mut self) -> Result<Opening> {
        while self.started.len() <= self.ahead
            && let Some(group) = self.waiting.pop_front()
        {
            let mut opening = Opening {
                ready: VecDeque::new(),
                coming: None,
                asked: self.asked.clone(),
                portion_runs: self.portion_runs,
                handle: self.handle.clone(),
            };
            let (source, group, asked) = (self.source.clone(), group.clone(), self.asked.clone());
            opening.begin(move || GroupRuns::new(source.open(&group)?, &asked));
            self.started.push_back(opening);
        }
        self.started.pop_front().ok_or_else(|| Error::internal("no row group is being opened"))
    }
}
