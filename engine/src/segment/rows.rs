//! From batches in arrival order to the rows of row groups.

use super::row_group::Rows;
use crate::record::{Batch, Format, Labels};
use crate::shape::Span;
use hashbrown::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

const DAY_NS: i64 = 86_400_000_000_000;
/// A row group ends with its day once its lines have a part of this many of the most bytes.
const DAY_CUT_PART: usize = 8;
/// The most formats of a row group. Their indexes are 16 bits wide, and finding one takes a look at each.
const FORMATS_MAX: usize = 4096;

/// The records of one tenant, dealt out to row groups.
#[derive(Debug)]
pub struct Cut {
    batches: Vec<Arc<Batch>>,
    /// For each row group its records as (batch, row), in the order (timestamp, arrival).
    groups: Vec<Vec<(u32, u32)>>,
}

impl Cut {
    /// Deals out the records of `batches`, which are in arrival order, to row groups with lines of at most about `bytes_max` bytes and
    /// `FORMATS_MAX` formats, ascending in time.
    pub fn new(batches: Vec<Arc<Batch>>, bytes_max: usize) -> Cut {
        let mut rows: Vec<(i64, u32, u32)> = Vec::with_capacity(batches.iter().map(|b| b.len()).sum());
        for (index, batch) in batches.iter().enumerate() {
            rows.extend(batch.timestamps().iter().enumerate().map(|(row, &t)| (t, index as u32, row as u32)));
        }
        if !rows.is_sorted_by_key(|r| r.0) {
            rows.sort_by_key(|r| r.0);
        }
        let mut groups = Vec::new();
        let mut group: Vec<(u32, u32)> = Vec::new();
        let (mut bytes, mut day) = (0, None);
        let mut formats = FormatCount::new(&batches);
        for (timestamp, batch, row) in rows {
            let len = batches[batch as usize].line(row as usize).len();
            let new_day = day.is_some_and(|d| d != timestamp.div_euclid(DAY_NS)) && bytes >= bytes_max / DAY_CUT_PART;
            let full = bytes + len > bytes_max || !formats.has_room(batch, row);
            if !group.is_empty() && (new_day || full) {
                groups.push(std::mem::take(&mut group));
                formats.clear();
                bytes = 0;
            }
            formats.add(batch, row);
            day = Some(timestamp.div_euclid(DAY_NS));
            bytes += len;
            group.push((batch, row));
        }
        if !group.is_empty() {
            groups.push(group);
        }
        Cut { batches, groups }
    }

    /// Lets go of the records.
    pub fn clear(&mut self) {
        self.batches.clear();
        self.groups.clear();
    }

    /// The number of row groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The rows of group `group`, in the order (stream, timestamp, arrival).
    pub fn rows(&self, group: usize) -> Rows {
        let mut places = self.groups[group].clone();
        let ranks = self.ranks(&places);
        let rank = |&(batch, row): &(u32, u32)| ranks[batch as usize][self.batches[batch as usize].row_streams()[row as usize] as usize];
        if !places.is_sorted_by_key(rank) {
            places.sort_by_key(rank);
        }
        let mut rows = Rows::default();
        rows.reserve(places.len(), places.iter().map(|&(batch, row)| self.batches[batch as usize].line(row as usize).len()).sum());
        let mut stream = None;
        let mut format = None;
        for place in places {
            let batch = &self.batches[place.0 as usize];
            let rank = rank(&place);
            if stream != Some(rank) {
                stream = Some(rank);
                rows.streams.push((batch.get(place.1 as usize).labels.clone(), 0));
            }
            if let Some(last) = rows.streams.last_mut() {
                last.1 += 1;
            }
            let own = (place.0, batch.row_formats()[place.1 as usize]);
            let index = match format {
                Some((known, index)) if known == own => index,
                _ => rows.format(batch.get(place.1 as usize).format),
            };
            format = Some((own, index));
            rows.row_formats.push(index);
            rows.timestamps.push(batch.timestamps()[place.1 as usize]);
            rows.line_spans.push(append(&mut rows.lines, batch.line(place.1 as usize)));
            rows.metadata_spans.push(append(&mut rows.metadata, batch.metadata(place.1 as usize)));
        }
        rows
    }

    /// For each batch the rank of each of its streams among all streams of these records.
    fn ranks(&self, places: &[(u32, u32)]) -> Vec<Vec<u32>> {
        let mut used: Vec<Vec<bool>> = self.batches.iter().map(|b| vec![false; b.streams().len()]).collect();
        for &(batch, row) in places {
            used[batch as usize][self.batches[batch as usize].row_streams()[row as usize] as usize] = true;
        }
        // Numbered as they come first, since most batches bring the same streams; only then sorted.
        let mut numbers: HashMap<&Labels, u32, foldhash::fast::FixedState> = HashMap::default();
        let mut streams: Vec<&Labels> = Vec::new();
        let mut number_of = |labels, used: &bool| {
            if !*used {
                return 0;
            }
            *numbers.entry(labels).or_insert_with(|| {
                streams.push(labels);
                streams.len() as u32 - 1
            })
        };
        let mut ranks: Vec<Vec<u32>> =
            self.batches.iter().zip(&used).map(|(b, used)| b.streams().iter().zip(used).map(|(s, u)| number_of(s, u)).collect()).collect();
        let mut order: Vec<u32> = (0..streams.len() as u32).collect();
        order.sort_unstable_by_key(|&number| streams[number as usize]);
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(index, &number)| rank[number as usize] = index as u32);
        ranks.iter_mut().flatten().for_each(|number| *number = rank.get(*number as usize).copied().unwrap_or(0));
        ranks
    }
}

/// Counts the formats of a row group, where the batches have so many that they could be too many.
struct FormatCount<'a> {
    batches: &'a [Arc<Batch>],
    needed: bool,
    used: HashSet<&'a Format>,
}

impl<'a> FormatCount<'a> {
    fn new(batches: &'a [Arc<Batch>]) -> Self {
        let formats: usize = batches.iter().map(|batch| batch.formats().len()).sum();
        FormatCount { batches, needed: formats > FORMATS_MAX, used: HashSet::new() }
    }

    fn format(&self, batch: u32, row: u32) -> &'a Format {
        self.batches[batch as usize].get(row as usize).format
    }

    /// Whether the group can take a row of this format.
    fn has_room(&self, batch: u32, row: u32) -> bool {
        self.used.len() < FORMATS_MAX || self.used.contains(self.format(batch, row))
    }

    fn add(&mut self, batch: u32, row: u32) {
        if self.needed {
            self.used.insert(self.format(batch, row));
        }
    }

    fn clear(&mut self) {
        self.used.clear();
    }
}

impl Rows {
    fn reserve(&mut self, rows: usize, line_bytes: usize) {
        self.lines.reserve_exact(line_bytes);
        self.line_spans.reserve_exact(rows);
        self.metadata_spans.reserve_exact(rows);
        self.timestamps.reserve_exact(rows);
        self.row_formats.reserve_exact(rows);
    }

    /// The index of `format`; added when new. The cut leaves a group at most [`FORMATS_MAX`] of them.
    fn format(&mut self, format: &Format) -> u16 {
        let known = self.formats.iter().position(|f| f == format);
        known.unwrap_or_else(|| {
            self.formats.push(format.clone());
            self.formats.len() - 1
        }) as u16
    }
}

fn append(arena: &mut Vec<u8>, bytes: &[u8]) -> Span {
    let at = arena.len() as u32;
    arena.extend_from_slice(bytes);
    Span { at, len: bytes.len() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Metadata;

    #[test]
    fn a_row_group_ends_before_it_has_too_many_formats() {
        let csv = |i: usize| Format::Csv { delimiter: b',', columns: vec![format!("column {i}")] };
        let labels = Labels::new([("s", "x")]);
        let mut batches = [Batch::new(), Batch::new()];
        for i in 0..FORMATS_MAX + 10 {
            // The same formats again in the other batch are no new ones.
            for batch in &mut batches {
                batch.push_record(i as i64, &labels, i.to_string().as_bytes(), &Metadata::default(), &csv(i)).unwrap();
            }
        }
        let cut = Cut::new(batches.map(Arc::new).to_vec(), usize::MAX);
        assert_eq!(cut.len(), 2);
        let mut line = 0;
        for (group, formats) in [FORMATS_MAX, 10].into_iter().enumerate() {
            let rows = cut.rows(group);
            assert_eq!((rows.formats.len(), rows.row_formats.len()), (formats, 2 * formats));
            for (&format, span) in rows.row_formats.iter().zip(&rows.line_spans) {
                let (i, at) = (line / 2, span.at as usize);
                assert_eq!(rows.lines[at..at + span.len as usize], *i.to_string().as_bytes());
                assert_eq!(rows.formats[format as usize], csv(i));
                line += 1;
            }
        }
    }
}
