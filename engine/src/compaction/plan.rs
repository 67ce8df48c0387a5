//! What to merge next. Pure: a manifest state in, a task out.

use crate::manifest::{LivePart, State};
use crate::record::Tenant;
use std::collections::BTreeMap;

const DAY_NS: i64 = 86_400_000_000_000;
/// Level-0 segments of a tenant at which they are merged …
const LEVEL0_SEGMENTS: usize = 8;
/// … or bytes of their lines.
const LEVEL0_LINE_BYTES: u64 = 512 << 20;
/// Small neighbours of one day at which they are merged.
const DAY_SEGMENTS: usize = 4;
/// Segments of at least so many bytes are not rewritten.
const LARGE_BYTES: u64 = 32 << 20;
/// Among small ones, one is left alone when it has so many times the lines of the others together.
const LEAVE_TIMES: u64 = 4;

/// Segments to merge.
#[derive(Debug)]
pub(super) struct Task {
    /// By `order`.
    pub inputs: Vec<LivePart>,
    /// Level of the outputs.
    pub level: u8,
}

/// The next merge for `tenant`; `None` when nothing pays.
pub(super) fn next(state: &State, tenant: &Tenant, everything: bool) -> Option<Task> {
    let mut level0 = Vec::new();
    let mut days: BTreeMap<i64, Vec<LivePart>> = BTreeMap::new();
    for part in state.parts(tenant, &(i64::MIN..=i64::MAX)) {
        if part.segment.level == 0 {
            level0.push(part);
        } else {
            days.entry(part.part.timestamp_min.div_euclid(DAY_NS)).or_default().push(part);
        }
    }
    let bytes: u64 = level0.iter().map(|p| p.part.line_bytes).sum();
    if !level0.is_empty() && (everything || level0.len() >= LEVEL0_SEGMENTS || bytes >= LEVEL0_LINE_BYTES) {
        level0.sort_by_key(|p| p.segment.order);
        return Some(Task { inputs: level0, level: 1 });
    }
    let least = if everything { 2 } else { DAY_SEGMENTS };
    days.into_values().find_map(|day| day_task(day, least))
}

/// Each day's compacted segments of `tenant`, to be written once more.
pub(super) fn days(state: &State, tenant: &Tenant) -> Vec<Task> {
    let mut days: BTreeMap<i64, Vec<LivePart>> = BTreeMap::new();
    for part in state.parts(tenant, &(i64::MIN..=i64::MAX)).into_iter().filter(|p| p.segment.level > 0) {
        days.entry(part.part.timestamp_min.div_euclid(DAY_NS)).or_default().push(part);
    }
    let task = |mut inputs: Vec<LivePart>| {
        inputs.sort_by_key(|p| (p.segment.order, p.part.timestamp_min));
        let level = inputs.iter().map(|p| p.segment.level).max().unwrap_or(1).saturating_add(1);
        Task { inputs, level }
    };
    days.into_values().map(task).collect()
}

/// The longest run of small neighbours, when it has at least `least`.
fn day_task(mut day: Vec<LivePart>, least: usize) -> Option<Task> {
    day.sort_by_key(|p| (p.segment.order, p.part.timestamp_min));
    let mut runs: Vec<Vec<LivePart>> = vec![Vec::new()];
    for part in day {
        if part.segment.bytes >= LARGE_BYTES {
            runs.push(Vec::new());
        } else if let Some(run) = runs.last_mut() {
            run.push(part);
        }
    }
    let mut inputs = runs.into_iter().max_by_key(Vec::len)?;
    // The first is the oldest and most often the largest: it stays until what came later is worth its rewriting.
    while inputs.len() >= least && inputs[0].part.line_bytes > LEAVE_TIMES * inputs[1..].iter().map(|p| p.part.line_bytes).sum::<u64>() {
        inputs.remove(0);
    }
    let level = inputs.iter().map(|p| p.segment.level).max()?.saturating_add(1);
    (inputs.len() >= least).then_some(Task { inputs, level })
}
