//! `row-group.md`: which piece lies where in which frame, and the pages of a domain.

use super::file::{checked, decompress};
use super::plan::{Area, Domain};
use super::{Result, fail};
use crate::constants::{OWN_FRAME_BYTES, PAGE_VALUES_MIN, SHARED_FRAME_BYTES};

/// A piece and the offset of its frame in the segment.
pub struct Piece {
    pub bytes: Vec<u8>,
    pub offset: u64,
}

/// For each piece its frame and first byte in there, and the length of each frame's contents.
fn places(pieces: &[(u64, bool)]) -> (Vec<(usize, u64)>, Vec<u64>) {
    let mut places = Vec::new();
    let mut frames: Vec<u64> = Vec::new();
    let (mut open_soft, mut open_hard) = (None, None);
    for &(len, hard) in pieces {
        let open = if hard { &mut open_hard } else { &mut open_soft };
        let shared = len < OWN_FRAME_BYTES;
        let frame = match *open {
            Some(frame) if shared => frame,
            _ => {
                frames.push(0);
                frames.len() - 1
            }
        };
        places.push((frame, frames[frame]));
        frames[frame] += len;
        if shared {
            *open = if frames[frame] < SHARED_FRAME_BYTES { Some(frame) } else { None };
        }
    }
    (places, frames)
}

/// Reads all pieces of an area that begins at `at`; returns also where it ends.
pub fn read_pieces(segment: &[u8], area: &Area, mut at: u64) -> Result<(Vec<Piece>, u64)> {
    let (places, lengths) = places(&area.pieces);
    if lengths.len() != area.frames.len() {
        return fail(at, "pieces and frames do not go together");
    }
    let mut frames = Vec::new();
    for (&(stored_len, compressed, crc), len) in area.frames.iter().zip(lengths) {
        let stored = checked(segment, at, stored_len, crc, "frame")?;
        let contents = if compressed { decompress(stored, len, at, "frame")? } else { stored.to_vec() };
        if contents.len() as u64 != len {
            return fail(at, "frame of another length than its pieces");
        }
        frames.push((contents, at));
        at += stored_len;
    }
    let mut pieces = Vec::new();
    for ((frame, first), &(len, _)) in places.into_iter().zip(&area.pieces) {
        let (contents, offset) = &frames[frame];
        let Some(bytes) = contents.get(first as usize..(first + len) as usize) else { return fail(*offset, "piece passes its frame") };
        pieces.push(Piece { bytes: bytes.to_vec(), offset: *offset });
    }
    Ok((pieces, at))
}

/// The pages of a domain: first range and number of values of each.
pub fn pages(domain: &Domain) -> Vec<(usize, usize)> {
    let mut pages = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (range, &count) in domain.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (first, values) = open.unwrap_or((range, 0));
        if values + count >= PAGE_VALUES_MIN {
            pages.push((first, values + count));
            open = None;
        } else {
            open = Some((first, values + count));
        }
    }
    pages.extend(open);
    pages
}
