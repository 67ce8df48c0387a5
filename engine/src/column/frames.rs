//! Packing pieces into frames and finding them again. The packing follows from the pieces' lengths alone:
//!
//! - a piece of [`OWN_FRAME_BYTES`] or more has a frame of its own;
//! - smaller ones share: one open frame for soft, one for hard pieces, each closed once it has [`SHARED_FRAME_BYTES`];
//! - frames are numbered, and stored, in the order in which they were opened.
//!
//! A frame is stored as one zstd frame where that is shorter, else as it is. Hard frames are not tried.

use super::plan::{Area, Frame};
use crate::encoding::Piece;
use crate::error::{Error, Result};
use crate::packing;

/// Pieces of at least so many bytes have a frame of their own.
pub const OWN_FRAME_BYTES: usize = haystore_format::constants::OWN_FRAME_BYTES;
/// A shared frame is closed once it has so many bytes.
pub const SHARED_FRAME_BYTES: usize = haystore_format::constants::SHARED_FRAME_BYTES;

/// Where a piece lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Number of the frame.
    pub frame: u32,
    /// First byte in the frame's contents.
    pub at: u32,
    /// Length.
    pub len: u32,
}

/// The addresses of pieces of these lengths, and the length of each frame's contents.
pub fn layout(pieces: &[(u32, bool)]) -> (Vec<Address>, Vec<u64>) {
    let mut addresses = Vec::with_capacity(pieces.len());
    let mut frames: Vec<u64> = Vec::new();
    let mut open: [Option<usize>; 2] = [None, None];
    for &(len, hard) in pieces {
        let frame = if len as usize >= OWN_FRAME_BYTES {
            frames.push(0);
            frames.len() - 1
        } else {
            *open[usize::from(hard)].get_or_insert_with(|| {
                frames.push(0);
                frames.len() - 1
            })
        };
        addresses.push(Address { frame: frame as u32, at: frames[frame] as u32, len });
        frames[frame] += u64::from(len);
        if frames[frame] >= SHARED_FRAME_BYTES as u64 && (len as usize) < OWN_FRAME_BYTES {
            open[usize::from(hard)] = None;
        }
    }
    (addresses, frames)
}

/// Packs pieces, in order, into frames appended to `out`.
///
/// # Errors
/// When zstd fails or an area passes 4 GiB.
pub fn pack(pieces: &[&Piece], level: i32, out: &mut Vec<u8>) -> Result<Area> {
    let lengths: Vec<(u32, bool)> = pieces
        .iter()
        .map(|p| u32::try_from(p.bytes.len()).map(|len| (len, p.hard)).map_err(|_| Error::limit("a page passes 4 GiB")))
        .collect::<Result<_>>()?;
    let (addresses, contents) = layout(&lengths);
    let mut buffers: Vec<Vec<u8>> = contents.iter().map(|&len| Vec::with_capacity(len as usize)).collect();
    let mut hard = vec![false; contents.len()];
    for (piece, address) in pieces.iter().zip(&addresses) {
        buffers[address.frame as usize].extend_from_slice(&piece.bytes);
        hard[address.frame as usize] = piece.hard;
    }
    let mut frames = Vec::with_capacity(buffers.len());
    let mut compressed = Vec::new();
    for (buffer, hard) in buffers.iter().zip(hard) {
        if !hard {
            packing::compress_into(buffer, level, &mut compressed)?;
        }
        let shorter = !hard && compressed.len() < buffer.len();
        let stored = if shorter { &compressed } else { buffer };
        frames.push(Frame { stored: stored.len() as u32, compressed: shorter, crc: crc32fast::hash(stored) });
        out.extend_from_slice(stored);
    }
    Ok(Area { pieces: lengths, frames })
}

/// Finds the pieces of an area, frame by frame.
#[derive(Debug)]
pub struct Unpacker {
    addresses: Vec<Address>,
    contents: Vec<u64>,
    frames: Vec<Frame>,
    offsets: Vec<u64>,
    /// Contents of shared frames, kept once decompressed.
    shared: Vec<Option<std::sync::Arc<Vec<u8>>>>,
}

impl Unpacker {
    /// Prepares an area whose first frame begins at `offset`.
    ///
    /// # Errors
    /// When pieces and frames do not go together; the message is a static sentence.
    pub fn new(area: &Area, offset: u64) -> std::result::Result<Self, &'static str> {
        let (addresses, contents) = layout(&area.pieces);
        if contents.len() != area.frames.len() {
            return Err("pieces and frames do not go together");
        }
        let mut offsets = Vec::with_capacity(area.frames.len());
        let mut at = offset;
        for frame in &area.frames {
            offsets.push(at);
            at += u64::from(frame.stored);
        }
        let shared = vec![None; contents.len()];
        Ok(Unpacker { addresses, contents, frames: area.frames.clone(), offsets, shared })
    }

    /// Bytes of all frames.
    pub fn stored_bytes(&self) -> u64 {
        self.frames.iter().map(|f| u64::from(f.stored)).sum()
    }

    /// The stored bytes of each piece, by its part of its frame's contents.
    pub fn shares(&self) -> Vec<f64> {
        let share = |a: &Address| {
            let frame = a.frame as usize;
            f64::from(self.frames[frame].stored) * f64::from(a.len) / (self.contents[frame].max(1) as f64)
        };
        self.addresses.iter().map(share).collect()
    }

    /// The bytes of piece `piece`, out of the row group's bytes; `name` and `base` (the row group's offset in its object) are for errors.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when a checksum or a length is wrong.
    pub fn piece(
        &mut self,
        piece: usize,
        bytes: &[u8],
        name: &str,
        base: u64,
    ) -> Result<(std::sync::Arc<Vec<u8>>, std::ops::Range<usize>)> {
        let address = *self.addresses.get(piece).ok_or_else(|| Error::corrupt(name, base, "no such page"))?;
        let index = address.frame as usize;
        let range = address.at as usize..address.at as usize + address.len as usize;
        if let Some(contents) = &self.shared[index] {
            return Ok((contents.clone(), range));
        }
        let frame = self.frames[index];
        let at = self.offsets[index];
        let fail = |what: &str| Error::corrupt(name, base + at, what);
        let end = at + u64::from(frame.stored);
        let stored = bytes.get(at as usize..end as usize).ok_or_else(|| fail("bytes end early"))?;
        if crc32fast::hash(stored) != frame.crc {
            return Err(fail("checksum does not match"));
        }
        let length = self.contents[index] as usize;
        let contents = match frame.compressed {
            true => packing::decompress(stored, length).ok_or_else(|| fail("not a zstd frame of its length"))?,
            false if stored.len() == length => stored.to_vec(),
            false => return Err(fail("frame of another length")),
        };
        let contents = std::sync::Arc::new(contents);
        if (address.len as usize) < OWN_FRAME_BYTES {
            self.shared[index] = Some(contents.clone());
        }
        Ok((contents, range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_found_again(pieces in prop::collection::vec((0usize..20_000, any::<bool>(), any::<u8>()), 0..40)) {
            let pieces: Vec<Piece> = pieces.into_iter().map(|(len, hard, fill)| Piece { bytes: vec![fill; len], hard }).collect();
            let mut out = b"before".to_vec();
            let area = pack(&pieces.iter().collect::<Vec<_>>(), 1, &mut out).unwrap();
            let mut unpacker = Unpacker::new(&area, 6).unwrap();
            prop_assert_eq!(unpacker.stored_bytes() + 6, out.len() as u64);
            for (i, piece) in pieces.iter().enumerate().rev() {
                let (contents, range) = unpacker.piece(i, &out, "x", 0).unwrap();
                prop_assert_eq!(&contents[range], &piece.bytes[..]);
            }
        }
    }
}
