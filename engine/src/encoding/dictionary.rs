//! Pages of a sorted dictionary, and the page sets of their entries.
//!
//! Text entries are sorted by their bytes, front-coded in each page: an integer page of shared prefix lengths (length first),
//! then a text page of the rest; soft. Entries of a fixed class are sorted by their packed bytes and cut into
//! chunks of 8 bytes, the last one shorter: for each an integer page of big-endian numbers, with its length first in all but the last; hard.
//!
//! A page set says in which row ranges an entry occurs. Its piece: an integer page of counts, one an entry (length first; 0: not said,
//! the entry may be anywhere), then an integer page of all range numbers, ascending within an entry; soft.

use super::Piece;
use super::integers::{self, IntCoding};
use super::text;
use super::typed::FixedClass;
use crate::wire::{Reader, WireResult, put_bytes};

const PLANES: IntCoding = IntCoding { delta: false, pco: false, level: 0 };

/// Encodes a page of sorted text entries.
pub fn encode_text(entries: &[&[u8]]) -> Piece {
    let mut shared = Vec::with_capacity(entries.len());
    let mut last: &[u8] = &[];
    for &entry in entries {
        shared.push(entry.iter().zip(last).take_while(|(a, b)| a == b).count() as u64);
        last = entry;
    }
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, &integers::encode(&shared, PLANES).bytes);
    let rest = entries.iter().zip(&shared).map(|(e, &s)| &e[s as usize..]);
    bytes.extend_from_slice(&text::encode(rest).bytes);
    Piece { bytes, hard: false }
}

/// Decodes a page of `count` text entries behind `data` and `ends`. `bytes_max` bounds the page's text.
///
/// # Errors
/// When `bytes` is no such page.
pub fn decode_text(bytes: &[u8], count: usize, bytes_max: usize, data: &mut Vec<u8>, ends: &mut Vec<u32>) -> WireResult<()> {
    let mut reader = Reader::new(bytes);
    let mut shared = Vec::new();
    integers::decode(reader.bytes()?, count, &mut shared)?;
    let (mut rest, mut rest_ends) = (Vec::new(), Vec::new());
    text::decode(reader.rest(), count, &mut rest, &mut rest_ends)?;
    let page_start = data.len();
    let mut last = page_start..page_start;
    let mut rest_at = 0;
    for (shared, rest_end) in shared.into_iter().zip(rest_ends) {
        let start = data.len();
        let shared = usize::try_from(shared).ok().filter(|&s| s <= last.len()).ok_or(reader.error("prefix longer than its entry"))?;
        data.extend_from_within(last.start..last.start + shared);
        data.extend_from_slice(&rest[rest_at..rest_end as usize]);
        rest_at = rest_end as usize;
        last = start..data.len();
        if data.len() - page_start > bytes_max || data.len() > u32::MAX as usize {
            return Err(reader.error("dictionary page too large"));
        }
        ends.push(data.len() as u32);
    }
    Ok(())
}

/// Bytes of an entry that are one number.
const CHUNK_BYTES: usize = 8;

/// Encodes a page of sorted packed entries, each `width` bytes.
pub fn encode_fixed(packed: &[u8], width: usize) -> Piece {
    let mut bytes = Vec::new();
    for start in (0..width).step_by(CHUNK_BYTES) {
        let end = width.min(start + CHUNK_BYTES);
        let numbers: Vec<u64> = packed.chunks(width).map(|e| e[start..end].iter().fold(0, |k, &b| k << 8 | u64::from(b))).collect();
        let coding = if start == 0 { IntCoding { delta: true, pco: true, level: 4 } } else { later_chunk(&numbers) };
        let page = integers::encode(&numbers, coding).bytes;
        if end == width {
            bytes.extend_from_slice(&page);
        } else {
            put_bytes(&mut bytes, &page);
        }
    }
    Piece { bytes, hard: true }
}

/// Behind the first chunk bytes are random mostly, or count up while the first stays.
fn later_chunk(numbers: &[u64]) -> IntCoding {
    let smaller = numbers.windows(2).filter(|w| w[1].abs_diff(w[0]) < w[0] / 256).count();
    if smaller * 2 > numbers.len() { IntCoding { delta: true, pco: true, level: 4 } } else { PLANES }
}

/// Decodes a page of `count` entries of `class` as text behind `data` and `ends`.
///
/// # Errors
/// When `bytes` is no such page.
pub fn decode_fixed(bytes: &[u8], count: usize, class: FixedClass, data: &mut Vec<u8>, ends: &mut Vec<u32>) -> WireResult<()> {
    let width = class.width();
    let mut reader = Reader::new(bytes);
    let mut packed = vec![0; count * width];
    let mut numbers = Vec::new();
    for start in (0..width).step_by(CHUNK_BYTES) {
        let end = width.min(start + CHUNK_BYTES);
        numbers.clear();
        integers::decode(if end == width { reader.rest() } else { reader.bytes()? }, count, &mut numbers)?;
        for (entry, number) in packed.chunks_mut(width).zip(&numbers) {
            let bytes = number.to_be_bytes();
            if bytes[..CHUNK_BYTES - (end - start)].iter().any(|&b| b != 0) {
                return Err(reader.error("entry of too many bytes"));
            }
            entry[start..end].copy_from_slice(&bytes[CHUNK_BYTES - (end - start)..]);
        }
    }
    for entry in packed.chunks(width) {
        class.print(entry, data);
        ends.push(u32::try_from(data.len()).map_err(|_| reader.error("dictionary too large"))?);
    }
    Ok(())
}

/// Encodes the page sets of one dictionary page: for each entry its row ranges, empty for "not said".
pub fn encode_sets<'a>(sets: impl Iterator<Item = &'a [u32]> + Clone) -> Piece {
    let counts: Vec<u64> = sets.clone().map(|s| s.len() as u64).collect();
    let ranges: Vec<u64> = sets.flatten().map(|&r| u64::from(r)).collect();
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, &integers::encode(&counts, PLANES).bytes);
    bytes.extend_from_slice(&integers::encode(&ranges, PLANES).bytes);
    Piece { bytes, hard: false }
}

/// Decodes the page sets of `count` entries: the end of each entry's ranges, and all ranges, each below `ranges_max`.
///
/// # Errors
/// When `bytes` are no page sets.
pub fn decode_sets(bytes: &[u8], count: usize, ranges_max: u32) -> WireResult<(Vec<u32>, Vec<u32>)> {
    let mut reader = Reader::new(bytes);
    let mut counts = Vec::new();
    integers::decode(reader.bytes()?, count, &mut counts)?;
    let mut ends = Vec::with_capacity(count);
    let mut total = 0u64;
    for n in counts {
        total = total.checked_add(n).filter(|_| n <= u64::from(ranges_max)).ok_or(reader.error("page set too large"))?;
        ends.push(u32::try_from(total).map_err(|_| reader.error("page set too large"))?);
    }
    let mut ranges = Vec::new();
    integers::decode(reader.rest(), total as usize, &mut ranges)?;
    let fits = |r: u64| u32::try_from(r).ok().filter(|&r| r < ranges_max).ok_or(reader.error("no such row range"));
    let ranges = ranges.into_iter().map(fits).collect::<WireResult<_>>()?;
    Ok((ends, ranges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn lines(data: &[u8], ends: &[u32]) -> Vec<Vec<u8>> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(s, &e)| data[s as usize..e as usize].to_vec()).collect()
    }

    proptest! {
        #[test]
        fn text_pages_survive(entries in prop::collection::btree_set("[a-c]{0,6}", 0..100)) {
            let entries: Vec<&[u8]> = entries.iter().map(|e| e.as_bytes()).collect();
            let piece = encode_text(&entries);
            let (mut data, mut ends) = (Vec::new(), Vec::new());
            decode_text(&piece.bytes, entries.len(), 1 << 20, &mut data, &mut ends).unwrap();
            prop_assert_eq!(lines(&data, &ends), entries);
        }

        #[test]
        fn fixed_pages_survive(values in prop::collection::btree_set(any::<[u8; 16]>(), 1..100), width in 4usize..17) {
            let packed: BTreeSet<&[u8]> = values.iter().map(|v| &v[..width]).collect();
            let class = FixedClass::Hex { width: width as u8, upper: true };
            let piece = encode_fixed(&packed.iter().copied().flatten().copied().collect::<Vec<_>>(), width);
            let (mut data, mut ends) = (Vec::new(), Vec::new());
            decode_fixed(&piece.bytes, packed.len(), class, &mut data, &mut ends).unwrap();
            let text: Vec<Vec<u8>> = packed.iter().map(|p| { let mut t = Vec::new(); class.print(p, &mut t); t }).collect();
            prop_assert_eq!(lines(&data, &ends), text);
        }

        #[test]
        fn page_sets_survive(sets in prop::collection::vec(prop::collection::btree_set(0u32..50, 0..4), 0..200)) {
            let sets: Vec<Vec<u32>> = sets.into_iter().map(|s| s.into_iter().collect()).collect();
            let piece = encode_sets(sets.iter().map(Vec::as_slice));
            let (ends, ranges) = decode_sets(&piece.bytes, sets.len(), 50).unwrap();
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let back: Vec<&[u32]> = starts.zip(&ends).map(|(s, &e)| &ranges[s as usize..e as usize]).collect();
            prop_assert_eq!(back, sets);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), count in 0usize..100) {
            let _ = decode_text(&bytes, count, 1000, &mut Vec::new(), &mut Vec::new());
            let _ = decode_sets(&bytes, count, 10);
            let _ = decode_fixed(&bytes, count, FixedClass::Uuid, &mut Vec::new(), &mut Vec::new());
        }
    }
}
