//! Bounding memory: which part of the time axis is scanned at once.
//!
//! A row group is held, decoded, from its first record to its last. Where too many overlap, time is cut, and the groups that
//! reach over a cut are decoded once for each part. Everything here is an estimate; it decides cost, never results.

use super::GroupRef;
use crate::record::Labels;
use std::ops::RangeInclusive;

/// A row group of one stream is decoded as the merge goes on; so many bytes of it are held.
const STREAMED_BYTES: u64 = 4 << 20;

/// A group's place in the order of all records, and its bytes.
struct Place<'a> {
    first: (i64, &'a Labels, (u64, u32)),
    last: (i64, bool, (u64, u32)),
    times: &'a RangeInclusive<i64>,
    bytes: u64,
}

/// Cuts `range` into parts, ascending, in each of which the groups alive at once hold about `bytes_max` of lines, where that can be.
pub(super) fn cut(groups: &[GroupRef], range: &RangeInclusive<i64>, bytes_max: u64) -> Vec<RangeInclusive<i64>> {
    let places: Vec<Place<'_>> = groups
        .iter()
        .map(|g| {
            let meta = &g.info.meta;
            let first = (*meta.times.start(), &meta.labels_min, g.order);
            let bytes = if meta.streams > 1 { meta.line_bytes } else { meta.line_bytes.min(STREAMED_BYTES) };
            Place { first, last: (*meta.times.end(), meta.streams > 1, g.order), times: &meta.times, bytes }
        })
        .collect();
    let mut parts = Vec::new();
    let mut open = vec![range.clone()];
    while let Some(part) = open.pop() {
        let (start, end) = (*part.start(), *part.end());
        let least = places.iter().filter(|p| overlaps(p.times, &part)).map(|p| (*p.times.start()).max(start)).min().unwrap_or(start);
        let most = places.iter().filter(|p| overlaps(p.times, &part)).map(|p| (*p.times.end()).min(end)).max().unwrap_or(end);
        if least >= most || parts.len() + open.len() > 4096 || peak(&places, &part) <= bytes_max {
            parts.push(part);
            continue;
        }
        let middle = least + ((i128::from(most) - i128::from(least)) / 2) as i64;
        open.push(middle.saturating_add(1)..=end);
        open.push(start..=middle);
    }
    parts
}

fn overlaps(times: &RangeInclusive<i64>, part: &RangeInclusive<i64>) -> bool {
    times.start() <= part.end() && times.end() >= part.start()
}

/// The most bytes alive at once while `part` is scanned, rows taken as spread evenly over their group's time.
fn peak(places: &[Place<'_>], part: &RangeInclusive<i64>) -> u64 {
    let mut alive: Vec<&Place<'_>> = places.iter().filter(|p| overlaps(p.times, part)).collect();
    alive.sort_by(|a, b| a.first.cmp(&b.first));
    let mut held: Vec<&Place<'_>> = Vec::new();
    let mut most = 0;
    for place in alive {
        held.retain(|p| !ends_before(p, place));
        held.push(place);
        most = most.max(held.iter().map(|p| share(p, part)).sum());
    }
    most
}

/// Whether the last record of `earlier` comes before the first of `later`.
fn ends_before(earlier: &Place<'_>, later: &Place<'_>) -> bool {
    let (time, many, order) = earlier.last;
    time < later.first.0 || (time == later.first.0 && !many && (earlier.first.1, order) < (later.first.1, later.first.2))
}

fn share(place: &Place<'_>, part: &RangeInclusive<i64>) -> u64 {
    let whole = i128::from(*place.times.end()) - i128::from(*place.times.start()) + 1;
    let inside = i128::from(*place.times.end().min(part.end())) - i128::from(*place.times.start().max(part.start())) + 1;
    (i128::from(place.bytes) * inside.max(0) / whole) as u64
}
