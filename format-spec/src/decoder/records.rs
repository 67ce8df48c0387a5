//! `row-group.md` and `records.md`: from a row group's bytes to its records.

use super::area::read_pieces;
use super::column::{self, Values};
use super::file::{Group, unpack};
use super::labels::{is_format, labels};
use super::plan::{Kind, Part, Plan, Range, read_plan, read_root};
use super::{Record, Result, Seen, dictionary, fail};

/// Decodes a row group; its records go behind `out`.
pub fn read_group(segment: &[u8], group: &Group, seen: &mut Seen, out: &mut Vec<Record>) -> Result<()> {
    let at = group.offset;
    let plan_at = at + group.frames_len;
    let plan = read_plan(&unpack(segment, plan_at, &group.plan, "plan")?, plan_at, seen)?;
    let root_at = plan_at + group.plan.stored;
    let (ranges, fences) = read_root(&unpack(segment, root_at, &group.root, "root")?, root_at)?;
    check_ranges(&plan, &ranges, group, root_at)?;
    let (dictionary_pieces, data_at) = read_pieces(segment, &plan.dictionary_area, at)?;
    let (data_pieces, end) = read_pieces(segment, &plan.data_area, data_at)?;
    if end != plan_at {
        return fail(end, "bytes between the frames and the plan");
    }
    if fences.len() != plan.dictionaries.len() {
        return fail(root_at, "the root has fences of another number of dictionaries");
    }
    let mut dictionaries = Vec::new();
    let mut left = &dictionary_pieces[..];
    for (layout, fences) in plan.dictionaries.iter().zip(&fences) {
        let (pages, per_page) = dictionary::shape(layout);
        let Some((pieces, rest)) = left.split_at_checked(pages * per_page) else { return fail(at, "a dictionary without its pieces") };
        dictionaries.push(dictionary::read(layout, pieces, fences, plan.ranges, seen)?);
        left = rest;
    }
    if !left.is_empty() {
        return fail(at, "pieces of no dictionary");
    }
    let columns = column::read_all(&plan, &dictionaries, &data_pieces, at, seen)?;
    let records = join(&plan, &columns, group, seen)?;
    check_records(&records, &ranges, group)?;
    out.extend(records);
    Ok(())
}

fn check_ranges(plan: &Plan, ranges: &[Range], group: &Group, root_at: u64) -> Result<()> {
    let rows: Vec<usize> = ranges.iter().map(|r| r.rows).collect();
    let roots = [plan.roots.lines, plan.roots.metadata, plan.roots.formats];
    let fits = roots.iter().all(|&column| plan.domains[plan.columns[column].domain] == rows);
    if !fits || rows.iter().sum::<usize>() as u64 != group.rows || rows.len() != plan.ranges || rows.is_empty() || rows.contains(&0) {
        return fail(root_at, "root, plan and footer say different rows");
    }
    let mut streams = vec![0; rows.len()];
    streams[0] = plan.roots.streams;
    let fits = [plan.roots.labels, plan.roots.stream_rows].iter().all(|&column| plan.domains[plan.columns[column].domain] == streams);
    if !fits || plan.roots.streams as u64 != group.streams {
        return fail(root_at, "plan and footer say different streams");
    }
    Ok(())
}

/// The records of a row group, in stored order.
fn join(plan: &Plan, columns: &[Values], group: &Group, seen: &mut Seen) -> Result<Vec<Record>> {
    let column = |index: usize| &columns[index];
    let timestamps = timestamps(plan, columns, group, seen)?;
    let (lines, metadata, formats) = (column(plan.roots.lines), column(plan.roots.metadata), column(plan.roots.formats));
    let mut records = Vec::new();
    for (index, stored) in column(plan.roots.labels).texts.iter().enumerate() {
        let Some(labels) = labels(stored) else { return fail(group.offset, "bytes that are no labels") };
        if index == 0 && *stored != group.labels_min {
            return fail(group.offset, "the first stream has other labels than the footer says");
        }
        let rows = column(plan.roots.stream_rows).number(index).unwrap_or(0);
        if rows < 1 {
            return fail(group.offset, "a stream without rows");
        }
        for _ in 0..rows {
            let row = records.len();
            let (Some(line), Some(metadata), Some(format)) = (lines.texts.get(row), metadata.texts.get(row), formats.texts.get(row)) else {
                return fail(group.offset, "streams have more rows than the row group");
            };
            if !is_format(format) {
                return fail(group.offset, "bytes that are no format");
            }
            records.push(Record {
                tenant: group.tenant.clone(),
                labels: labels.clone(),
                timestamp: timestamps[row],
                line: line.clone(),
                metadata: metadata.clone(),
                format: format.clone(),
            });
        }
    }
    if records.len() as u64 != group.rows {
        return fail(group.offset, "streams have fewer rows than the row group");
    }
    Ok(records)
}

fn timestamps(plan: &Plan, columns: &[Values], group: &Group, seen: &mut Seen) -> Result<Vec<i64>> {
    let lines = &plan.roots.lines;
    let mut explicit = 0;
    let mut next = vec![0; columns.len()];
    let mut out = Vec::new();
    let mut expected = vec![0; plan.ranges];
    for (range, &rows) in plan.domains[plan.columns[*lines].domain].iter().enumerate() {
        for _ in 0..rows {
            let shape = if let Kind::Shapes(shapes) = &plan.columns[*lines].kind {
                let id = columns[*lines].integers[out.len()] as usize;
                Some((id, &shapes[id]))
            } else {
                None
            };
            let derived = shape.and_then(|(id, _)| plan.roots.derived.iter().find(|d| d.shape == id));
            seen.insert(("timestamp", u64::from(derived.is_some())));
            let timestamp = match derived {
                Some(d) => columns[d.column].number(next[d.column]).map(|n| n.wrapping_mul(d.multiplier).wrapping_add(d.addend)),
                None => {
                    explicit += 1;
                    expected[range] += 1;
                    columns[plan.roots.explicit].number(explicit - 1)
                }
            };
            let Some(timestamp) = timestamp else { return fail(group.offset, "a timestamp is missing") };
            out.push(timestamp);
            for part in shape.map(|s| s.1).into_iter().flatten() {
                if let Part::Slot(column) = part {
                    next[*column] += 1;
                }
            }
        }
    }
    if plan.domains[plan.columns[plan.roots.explicit].domain] != expected {
        return fail(group.offset, "explicit timestamps of another number than rows without derived ones");
    }
    Ok(out)
}

/// Order, and what footer and root say of the records.
fn check_records(records: &[Record], ranges: &[Range], group: &Group) -> Result<()> {
    let order = |a: &Record, b: &Record| (&a.labels, a.timestamp) <= (&b.labels, b.timestamp);
    if !records.is_sorted_by(order) {
        return fail(group.offset, "rows are not in the order (stream, timestamp)");
    }
    let mut streams: Vec<_> = records.iter().map(|r| &r.labels).collect();
    streams.dedup();
    if streams.len() as u64 != group.streams {
        return fail(group.offset, "a stream occurs twice");
    }
    if records.iter().map(|r| r.line.len() as u64).sum::<u64>() != group.line_bytes {
        return fail(group.offset, "lines have other bytes than the footer says");
    }
    if bounds(records) != Some((group.least, group.greatest)) {
        return fail(group.offset, "least and greatest timestamp are not those of the footer");
    }
    let mut left = records;
    for range in ranges {
        let (here, rest) = left.split_at(range.rows.min(left.len()));
        if bounds(here) != Some((range.least, range.greatest)) {
            return fail(group.offset, "least and greatest timestamp of a row range are not those of the root");
        }
        left = rest;
    }
    Ok(())
}

fn bounds(records: &[Record]) -> Option<(i64, i64)> {
    let timestamps = || records.iter().map(|r| r.timestamp);
    timestamps().min().zip(timestamps().max())
}
