//! From a batch to frames, and from a file's bytes back to batches.
//!
//! What holds: a batch is read whole or not at all; behind damage, reading goes on at the next good frame of the same
//! file. Memory: the file's bytes, and one batch.

use super::codec;
use super::layout::{
    CODING_LZ4, CODING_RAW, FILE_HEADER_BYTES, FRAME_DECODED_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_MAGIC, FileHeader, FrameHeader,
};
use crate::error::{Error, Result};
use crate::record::{Batch, Tenant};
use memchr::memmem;

/// A batch's frames, complete but for tag and sequence number.
pub(super) struct Prepared {
    pub bytes: Vec<u8>,
    /// Each frame's header and where it goes.
    headers: Vec<(usize, FrameHeader)>,
}

impl Prepared {
    /// Encodes and compresses `batch`, in frames of at most `frame_bytes_max` decoded bytes.
    pub fn new(tenant: &Tenant, batch: &Batch, frame_bytes_max: usize) -> Result<Self> {
        let payload = codec::encode(tenant, batch);
        let piece_bytes = frame_bytes_max.clamp(1, FRAME_DECODED_BYTES_MAX);
        let parts = u32::try_from(payload.len().div_ceil(piece_bytes)).map_err(|_| Error::limit("batch has too many WAL frames"))?;
        let mut prepared = Prepared { bytes: Vec::with_capacity(payload.len() / 2 + 256), headers: Vec::with_capacity(parts as usize) };
        for (part, piece) in (0..).zip(payload.chunks(piece_bytes)) {
            prepared.push(part, parts, piece);
        }
        Ok(prepared)
    }

    fn push(&mut self, part: u32, parts: u32, piece: &[u8]) {
        let at = self.bytes.len();
        let start = at + FRAME_HEADER_BYTES;
        self.bytes.resize(start + lz4_flex::block::get_maximum_output_size(piece.len()), 0);
        let coding = match lz4_flex::block::compress_into(piece, &mut self.bytes[start..]) {
            Ok(len) if len < piece.len() => {
                self.bytes.truncate(start + len);
                CODING_LZ4
            }
            _ => {
                self.bytes.truncate(start);
                self.bytes.extend_from_slice(piece);
                CODING_RAW
            }
        };
        let stored = &self.bytes[start..];
        let header = FrameHeader {
            tag: 0,
            sequence: 0,
            part,
            parts,
            stored_bytes: stored.len() as u32,
            decoded_bytes: piece.len() as u32,
            coding,
            payload_crc: crc32fast::hash(stored),
        };
        self.headers.push((at, header));
    }

    /// Writes the headers.
    pub fn stamp(&mut self, tag: u64, sequence: u64) {
        for (at, header) in &self.headers {
            let header = FrameHeader { tag, sequence, ..*header };
            self.bytes[*at..*at + FRAME_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        }
    }

    pub fn frames(&self) -> usize {
        self.headers.len()
    }
}

/// What is found in a file, in order.
pub(super) enum Found {
    /// The payload of a whole batch.
    Batch { sequence: u64, offset: usize, payload: Vec<u8> },
    /// Bytes `offset..end` that are no whole batch, and good frames behind them.
    Damage { offset: usize, end: usize },
    /// Bytes from `offset` to the file's end that are no whole batch.
    Tail { offset: usize },
}

/// Reads a file's bytes.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    tag: Option<u64>,
    started: bool,
}

struct Frame<'a> {
    header: FrameHeader,
    stored: &'a [u8],
    end: usize,
}

impl<'a> Scanner<'a> {
    /// `header` is the file's, `None` when it is damaged.
    pub fn new(bytes: &'a [u8], header: Option<&FileHeader>) -> Self {
        Scanner { bytes, at: if header.is_some() { FILE_HEADER_BYTES } else { 0 }, tag: header.map(|h| h.tag), started: false }
    }

    /// The good frame that begins at `at`.
    fn frame_at(&self, at: usize) -> Option<Frame<'a>> {
        let rest = self.bytes.get(at..)?;
        let header = FrameHeader::parse(rest)?;
        let stored = rest[FRAME_HEADER_BYTES..].get(..header.stored_bytes as usize)?;
        let own = self.tag.is_none_or(|tag| tag == header.tag);
        let good = own && crc32fast::hash(stored) == header.payload_crc;
        good.then_some(Frame { header, stored, end: at + FRAME_HEADER_BYTES + stored.len() })
    }

    /// Where the next good frame that begins a batch lies, at `from` or behind it.
    fn resync(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        memmem::find_iter(rest, &FRAME_MAGIC).map(|i| from + i).find(|&at| self.frame_at(at).is_some_and(|frame| frame.header.part == 0))
    }

    /// Damage from `offset` up to the next batch at or behind `from`, or to the end.
    fn skip(&mut self, offset: usize, from: usize) -> Found {
        match self.resync(from) {
            Some(end) => {
                self.at = end;
                Found::Damage { offset, end }
            }
            None => {
                self.at = self.bytes.len();
                Found::Tail { offset }
            }
        }
    }

    /// The frames of one batch, joined.
    fn batch(&mut self) -> Found {
        let offset = self.at;
        let mut payload = Vec::new();
        let mut first: Option<FrameHeader> = None;
        loop {
            let Some(frame) = self.frame_at(self.at) else {
                return self.skip(offset, (offset + 1).max(self.at));
            };
            let header = frame.header;
            let fits = match &first {
                None => header.part == 0,
                Some(before) => header.part == before.part + 1 && header.parts == before.parts && header.sequence == before.sequence,
            };
            if !fits || !append_decoded(&mut payload, &frame) {
                // A frame that begins another batch is not skipped.
                let next = if !fits && header.part == 0 { self.at } else { frame.end };
                return self.skip(offset, next);
            }
            self.tag = Some(header.tag);
            self.at = frame.end;
            if header.part + 1 == header.parts {
                return Found::Batch { sequence: header.sequence, offset, payload };
            }
            first = Some(header);
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if self.at >= self.bytes.len() {
            return None;
        }
        if self.tag.is_none() && !self.started {
            self.started = true;
            return Some(self.skip(0, 0));
        }
        Some(self.batch())
    }
}

/// Decodes the frame's payload behind `out`; says whether that went well.
fn append_decoded(out: &mut Vec<u8>, frame: &Frame<'_>) -> bool {
    let decoded_bytes = frame.header.decoded_bytes as usize;
    match frame.header.coding {
        CODING_RAW if frame.stored.len() == decoded_bytes => {
            out.extend_from_slice(frame.stored);
            true
        }
        CODING_LZ4 => {
            let start = out.len();
            out.resize(start + decoded_bytes, 0);
            lz4_flex::block::decompress_into(frame.stored, &mut out[start..]).is_ok_and(|len| len == decoded_bytes)
        }
        _ => false,
    }
}
