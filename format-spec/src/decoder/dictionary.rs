//! `encodings.md`: the entries of a dictionary and their page sets.

use super::area::Piece;
use super::cursor::Cursor;
use super::integers::{integers, texts};
use super::plan::{Class, Dictionary};
use super::{Result, Seen, VALUES_MAX, fail, print};

/// A decoded dictionary.
pub struct Entries {
    /// The values as they are in lines.
    pub values: Vec<Vec<u8>>,
    /// The row ranges of each entry that says them.
    pub sets: Vec<Option<Vec<usize>>>,
    /// Where it was stored, for errors.
    pub offset: u64,
}

/// Number of pages, and pieces a page.
pub fn shape(layout: &Dictionary) -> (usize, usize) {
    (layout.entries.div_ceil(layout.page_entries), if layout.sets { 2 } else { 1 })
}

/// Decodes a dictionary out of its pieces; `fences` are its fences in the root.
pub fn read(layout: &Dictionary, pieces: &[Piece], fences: &[Vec<u8>], ranges: usize, seen: &mut Seen) -> Result<Entries> {
    let offset = pieces.first().map_or(0, |p| p.offset);
    let (pages, per_page) = shape(layout);
    if fences.len() != pages || layout.entries > VALUES_MAX {
        return fail(offset, "a dictionary and its fences do not go together");
    }
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut sets = Vec::new();
    for (page, fence) in fences.iter().enumerate() {
        let count = (layout.entries - page * layout.page_entries).min(layout.page_entries);
        let piece = &pieces[page * per_page];
        let here = match width(layout.class) {
            None => text_page(piece, count, layout.page_bytes_max, seen)?,
            Some(width) => fixed_page(piece, count, width, seen)?,
        };
        if keys.last().is_some_and(|last| last >= fence) || here.first().is_some_and(|first| first < fence) {
            return fail(piece.offset, "a fence does not part its dictionary pages");
        }
        keys.extend(here);
        if layout.sets {
            sets.extend(set_page(&pieces[page * per_page + 1], count, ranges, seen)?);
        } else {
            sets.extend(vec![None; count]);
        }
    }
    if !keys.is_sorted_by(|a, b| a < b) {
        return fail(offset, "entries of a dictionary are not sorted");
    }
    let values = keys.into_iter().map(|key| print::entry(layout.class, key)).collect();
    Ok(Entries { values, sets, offset })
}

fn width(class: Class) -> Option<usize> {
    match class {
        Class::Text => None,
        Class::Hex { width, .. } => Some(width),
        Class::Uuid => Some(16),
        Class::Ipv4 => Some(4),
    }
}

fn text_page(piece: &Piece, count: usize, bytes_max: usize, seen: &mut Seen) -> Result<Vec<Vec<u8>>> {
    let mut cursor = Cursor::new(&piece.bytes, piece.offset, "dictionary page");
    let shared = integers(cursor.bytes()?, count, piece.offset, seen)?;
    let rests = texts(cursor.rest(), count, piece.offset, seen)?;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut total = 0;
    for (shared, rest) in shared.into_iter().zip(rests) {
        let last = keys.last().cloned().unwrap_or_default();
        let Some(prefix) = usize::try_from(shared).ok().and_then(|shared| last.get(..shared)) else {
            return cursor.fail("prefix longer than the entry before");
        };
        let mut key = prefix.to_vec();
        key.extend(rest);
        total += key.len();
        if total > bytes_max {
            return cursor.fail("dictionary page of too many bytes");
        }
        keys.push(key);
    }
    Ok(keys)
}

fn fixed_page(piece: &Piece, count: usize, width: usize, seen: &mut Seen) -> Result<Vec<Vec<u8>>> {
    let mut cursor = Cursor::new(&piece.bytes, piece.offset, "dictionary page");
    let mut keys = vec![Vec::new(); count];
    let mut left = width;
    while left > 0 {
        let chunk = left.min(8);
        left -= chunk;
        let page = if left == 0 { cursor.rest() } else { cursor.bytes()? };
        for (key, number) in keys.iter_mut().zip(integers(page, count, piece.offset, seen)?) {
            let (zeros, bytes) = (&number.to_be_bytes()[..8 - chunk], &number.to_be_bytes()[8 - chunk..]);
            if zeros.iter().any(|&b| b != 0) {
                return cursor.fail("entry of too many bytes");
            }
            key.extend_from_slice(bytes);
        }
    }
    Ok(keys)
}

fn set_page(piece: &Piece, count: usize, ranges: usize, seen: &mut Seen) -> Result<Vec<Option<Vec<usize>>>> {
    let mut cursor = Cursor::new(&piece.bytes, piece.offset, "page sets");
    let counts = integers(cursor.bytes()?, count, piece.offset, seen)?;
    let mut total = 0;
    for &count in &counts {
        if count > ranges as u64 {
            return cursor.fail("page set of too many row ranges");
        }
        total += count as usize;
        if total > VALUES_MAX {
            return cursor.fail("more values than the reference decoder takes");
        }
    }
    let mut all = integers(cursor.rest(), total, piece.offset, seen)?.into_iter();
    let mut sets = Vec::new();
    for count in counts {
        let set: Vec<usize> = all.by_ref().take(count as usize).map(|r| r as usize).collect();
        if !set.is_sorted_by(|a, b| a < b) || set.iter().any(|&range| range >= ranges) {
            return cursor.fail("row ranges of a page set are not ascending");
        }
        sets.push(if set.is_empty() { None } else { Some(set) });
    }
    Ok(sets)
}
