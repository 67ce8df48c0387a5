//! Building dictionaries: distinct values in order of appearance first, sorted and paged at the end.

use super::plan::{Column, DictionaryPlan, Domain};
use crate::encoding::Piece;
use crate::encoding::dictionary::{encode_fixed, encode_sets, encode_text};
use crate::encoding::typed::FixedClass;
use crate::error::{Error, Result};
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Entries a page of short entries.
const PAGE_ENTRIES: usize = 1024;
/// Entries a page of long, composite entries.
const PAGE_ENTRIES_LONG: usize = 8192;
/// Mean length from which entries are long.
const LONG_BYTES: usize = 40;
/// Sets of more than one range are kept up to this part of all ranges.
const SET_PART: usize = 6;

/// Distinct values, numbered as they come.
#[derive(Default)]
pub struct Distinct {
    table: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    data: Vec<u8>,
    ends: Vec<u32>,
}

impl Distinct {
    /// Number of distinct values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Value `id`.
    pub fn get(&self, id: u32) -> &[u8] {
        value(&self.data, &self.ends, id)
    }

    /// The numbers of all values, in the order of their bytes.
    fn sorted(&self) -> Vec<u32> {
        // Most are told apart by their first bytes, without going to the arena.
        let mut keys: Vec<(u64, u32)> = (0..self.len() as u32).map(|id| (head(self.get(id)), id)).collect();
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1))));
        keys.into_iter().map(|(_, id)| id).collect()
    }

    /// The number of `bytes`; a new one if it was not seen.
    pub fn id(&mut self, bytes: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(bytes);
        if let Some(&id) = self.table.find(hash, |&id| value(&self.data, &self.ends, id) == bytes) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len() as u32);
        let (data, ends, hasher) = (&self.data, &self.ends, &self.hasher);
        self.table.insert_unique(hash, id, |&id| hasher.hash_one(value(data, ends, id)));
        id
    }
}

/// The first 8 bytes as a number that orders as they do; shorter values are filled up with zeros.
fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut filled = [0; 8];
            filled[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(filled)
        }
    }
}

fn value<'a>(data: &'a [u8], ends: &[u32], id: u32) -> &'a [u8] {
    let start = if id == 0 { 0 } else { ends[id as usize - 1] };
    &data[start as usize..ends[id as usize] as usize]
}

/// A dictionary that columns are still added to.
pub struct Builder {
    /// The class of its values; `None`: text.
    pub class: Option<FixedClass>,
    /// The values; packed when there is a class.
    pub distinct: Distinct,
    /// Columns and their provisional entry numbers.
    pub columns: Vec<(u32, Vec<u32>)>,
}

/// A finished dictionary.
pub struct Finished {
    /// Its part of the plan.
    pub plan: DictionaryPlan,
    /// For each page its entries, then its page sets if it has any.
    pub pieces: Vec<Piece>,
    /// Columns and their entry numbers.
    pub columns: Vec<(u32, Vec<u64>)>,
    /// For each page a key that is above the last entry of the page before and not above its own first.
    pub fences: Vec<Vec<u8>>,
}

/// The shortest prefix of `first` that is above `last`.
fn fence(last: &[u8], first: &[u8]) -> Vec<u8> {
    let shared = last.iter().zip(first).take_while(|(a, b)| a == b).count();
    first[..first.len().min(shared + 1)].to_vec()
}

impl Builder {
    /// An empty dictionary.
    pub fn new(class: Option<FixedClass>) -> Self {
        Builder { class, distinct: Distinct::default(), columns: Vec::new() }
    }

    /// Sorts the entries, renumbers the columns, finds the page sets and encodes the pages.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] when a page of entries is too large.
    pub fn finish(self, columns: &[Column], domains: &[Domain], ranges: usize) -> Result<Finished> {
        let distinct = self.distinct;
        let order = distinct.sorted();
        let mut rank = vec![0u32; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| rank[old as usize] = new as u32);
        let renumbered: Vec<(u32, Vec<u64>)> =
            self.columns.into_iter().map(|(c, ids)| (c, ids.into_iter().map(|id| u64::from(rank[id as usize])).collect())).collect();
        let sets = (ranges > 1).then(|| page_sets(&renumbered, columns, domains, order.len(), ranges));
        let long = self.class.is_none() && distinct.data.len() >= LONG_BYTES * order.len();
        let page_entries = if long { PAGE_ENTRIES_LONG } else { PAGE_ENTRIES };
        let mut pieces = Vec::new();
        let mut fences: Vec<Vec<u8>> = Vec::new();
        let mut page_bytes_max = 0;
        for (page, ids) in order.chunks(page_entries).enumerate() {
            let entries: Vec<&[u8]> = ids.iter().map(|&id| distinct.get(id)).collect();
            let last = if page == 0 { &[][..] } else { distinct.get(order[page * page_entries - 1]) };
            fences.push(fence(last, entries[0]));
            page_bytes_max = page_bytes_max.max(entries.iter().map(|e| e.len()).sum());
            pieces.push(match self.class {
                Some(class) => encode_fixed(&entries.concat(), class.width()),
                None => encode_text(&entries),
            });
            if let Some((ends, list)) = &sets {
                let set = |entry: usize| &list[if entry == 0 { 0 } else { ends[entry - 1] as usize }..ends[entry] as usize];
                pieces.push(encode_sets((page * page_entries..page * page_entries + ids.len()).map(set)));
            }
        }
        let plan = DictionaryPlan {
            class: self.class,
            entries: order.len() as u32,
            page_entries: page_entries as u32,
            sets: sets.is_some(),
            page_bytes_max: u32::try_from(page_bytes_max).map_err(|_| Error::limit("a dictionary page passes 4 GiB"))?,
        };
        Ok(Finished { plan, pieces, columns: renumbered, fences })
    }
}

/// For each entry the row ranges that hold it, empty where it is in too many: the end of each entry's list, and all lists.
fn page_sets(uses: &[(u32, Vec<u64>)], columns: &[Column], domains: &[Domain], entries: usize, ranges: usize) -> (Vec<u32>, Vec<u32>) {
    let most = (ranges / SET_PART).max(1) as u32;
    let mut last = vec![u32::MAX; entries];
    let mut counts = vec![0u32; entries];
    let mut found: Vec<(u32, u32)> = Vec::new();
    for range in 0..ranges {
        for (column, ids) in uses {
            for &id in &ids[domains[columns[*column as usize].domain as usize].range(range)] {
                let id = id as usize;
                if last[id] != range as u32 {
                    last[id] = range as u32;
                    counts[id] += 1;
                    if counts[id] <= most {
                        found.push((id as u32, range as u32));
                    }
                }
            }
        }
    }
    let mut ends = Vec::with_capacity(entries);
    let mut total = 0;
    for &count in &counts {
        total += if count <= most { count } else { 0 };
        ends.push(total);
    }
    let mut next: Vec<u32> = std::iter::once(0).chain(ends.iter().copied()).take(entries).collect();
    let mut lists = vec![0; total as usize];
    for (id, range) in found {
        if counts[id as usize] <= most {
            lists[next[id as usize] as usize] = range;
            next[id as usize] += 1;
        }
    }
    (ends, lists)
}
