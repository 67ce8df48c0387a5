//! A page of unsigned 64-bit integers as one piece.
//!
//! | tag | form | bytes after the tag |
//! |---|---|---|
//! | 0 | constant | value (varint) |
//! | 1 | short | least value (varint), then each value less the least (varints); soft |
//! | 2 | planes | width in bytes `w`, base (varint), then `w` planes of one byte a value, low bytes first; soft |
//! | 3 | delta planes | first value (varint), `w`, then planes of the zigzag differences of the 2nd, 3rd … value; soft |
//! | 4 | pco 32 | base (varint), then pco's wrapped header, chunk metadata and page over u32; hard |
//! | 5 | pco 64 | the same over u64; hard |
//!
//! Every form restarts in each page. Differences wrap around.

use super::Piece;
use crate::wire::{Reader, WireError, WireResult, put_varint, unzigzag, zigzag};
use pco::wrapped::{FileCompressor, FileDecompressor};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};

const CONSTANT: u8 = haystore_format::constants::integer::CONSTANT;
const SHORT: u8 = haystore_format::constants::integer::SHORT;
const PLANES: u8 = haystore_format::constants::integer::PLANES;
const DELTA_PLANES: u8 = haystore_format::constants::integer::DELTA_PLANES;
const PCO32: u8 = haystore_format::constants::integer::PCO32;
const PCO64: u8 = haystore_format::constants::integer::PCO64;

/// Pages with fewer values are written in the short form.
const SHORT_VALUES_MAX: usize = 64;

/// How the larger pages of one column are written; chosen once a column by [`choose`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntCoding {
    /// Code differences of neighbours.
    pub delta: bool,
    /// Use pco rather than byte planes.
    pub pco: bool,
    /// pco's level.
    pub level: u8,
}

/// Encodes one page.
pub fn encode(values: &[u64], coding: IntCoding) -> Piece {
    let (least, most) = bounds(values);
    let mut bytes = Vec::new();
    if least == most {
        bytes.push(CONSTANT);
        put_varint(&mut bytes, least);
        return Piece { bytes, hard: false };
    }
    if values.len() < SHORT_VALUES_MAX {
        bytes.push(SHORT);
        put_varint(&mut bytes, least);
        values.iter().for_each(|v| put_varint(&mut bytes, v - least));
        return Piece { bytes, hard: false };
    }
    if coding.pco
        && let Some(bytes) = encode_pco(values, least, most, coding)
    {
        return Piece { bytes, hard: true };
    }
    if coding.delta {
        encode_delta_planes(&mut bytes, values);
    } else {
        bytes.push(PLANES);
        let width = byte_width(most - least);
        bytes.push(width as u8);
        put_varint(&mut bytes, least);
        put_planes(&mut bytes, values.iter().map(|v| v - least), width);
    }
    Piece { bytes, hard: false }
}

/// Chooses how to write a column from a sample of neighbouring values: whether differences are smaller,
/// and whether pco or byte planes under `compressed_len` (the length after general compression) take fewer bytes.
pub fn choose(sample: &[u64], level: u8, mut compressed_len: impl FnMut(&[u8]) -> usize) -> IntCoding {
    let (least, _) = bounds(sample);
    let plain: u64 = sample.iter().map(|v| bits(v - least)).sum();
    let differences: u64 = sample.windows(2).map(|w| bits(zigzag(w[1].wrapping_sub(w[0]) as i64))).sum();
    let delta = differences + sample.len() as u64 / 2 < plain;
    let mut coding = IntCoding { delta, pco: true, level };
    if sample.len() < SHORT_VALUES_MAX {
        return coding;
    }
    let packed = encode(sample, coding).bytes.len();
    coding.pco = false;
    let planes = compressed_len(&encode(sample, coding).bytes);
    let other = if delta { compressed_len(&encode(sample, IntCoding { delta: false, ..coding }).bytes) } else { planes };
    if other < planes {
        coding.delta = false;
    }
    if packed <= planes.min(other) {
        coding = IntCoding { delta, pco: true, level };
    }
    coding
}

/// Decodes a page of `count` values, appended to `out`.
///
/// # Errors
/// When `bytes` is no piece of `count` values.
pub fn decode(bytes: &[u8], count: usize, out: &mut Vec<u64>) -> WireResult<()> {
    let mut reader = Reader::new(bytes);
    match reader.byte()? {
        CONSTANT => {
            let value = reader.varint()?;
            out.resize(out.len() + count, value);
        }
        SHORT => {
            let least = reader.varint()?;
            for _ in 0..count {
                out.push(least.wrapping_add(reader.varint()?));
            }
        }
        PLANES => {
            let width = plane_width(&mut reader)?;
            let base = reader.varint()?;
            let start = out.len();
            take_planes(&mut reader, count, width, out)?;
            out[start..].iter_mut().for_each(|v| *v = v.wrapping_add(base));
        }
        DELTA_PLANES => {
            let first = reader.varint()?;
            let width = plane_width(&mut reader)?;
            let start = out.len();
            out.push(first);
            let differences = count.checked_sub(1).ok_or(reader.error("no values"))?;
            take_planes(&mut reader, differences, width, out)?;
            let mut last = first;
            for value in &mut out[start + 1..] {
                last = last.wrapping_add(unzigzag(*value) as u64);
                *value = last;
            }
        }
        PCO32 => return decode_pco::<u32>(&mut reader, count, out),
        PCO64 => return decode_pco::<u64>(&mut reader, count, out),
        _ => return Err(reader.error("unknown integer form")),
    }
    reader.end()
}

fn bounds(values: &[u64]) -> (u64, u64) {
    let mut least = u64::MAX;
    let mut most = 0;
    for &value in values {
        least = least.min(value);
        most = most.max(value);
    }
    if values.is_empty() { (0, 0) } else { (least, most) }
}

fn bits(value: u64) -> u64 {
    u64::from(64 - value.leading_zeros())
}

fn byte_width(most: u64) -> usize {
    (bits(most).div_ceil(8) as usize).max(1)
}

fn put_planes(out: &mut Vec<u8>, values: impl Iterator<Item = u64> + Clone, width: usize) {
    for plane in 0..width {
        out.extend(values.clone().map(|v| (v >> (8 * plane)) as u8));
    }
}

fn encode_delta_planes(out: &mut Vec<u8>, values: &[u64]) {
    out.push(DELTA_PLANES);
    put_varint(out, values[0]);
    let differences = values.windows(2).map(|w| zigzag(w[1].wrapping_sub(w[0]) as i64));
    let width = byte_width(differences.clone().max().unwrap_or(0));
    out.push(width as u8);
    put_planes(out, differences, width);
}

fn plane_width(reader: &mut Reader<'_>) -> WireResult<usize> {
    let width = usize::from(reader.byte()?);
    if (1..=8).contains(&width) { Ok(width) } else { Err(reader.error("bad width")) }
}

fn take_planes(reader: &mut Reader<'_>, count: usize, width: usize, out: &mut Vec<u64>) -> WireResult<()> {
    let start = out.len();
    let low = reader.take(count)?;
    out.extend(low.iter().map(|&b| u64::from(b)));
    for plane in 1..width {
        let bytes = reader.take(count)?;
        for (value, &byte) in out[start..].iter_mut().zip(bytes) {
            *value |= u64::from(byte) << (8 * plane);
        }
    }
    Ok(())
}

fn encode_pco(values: &[u64], least: u64, most: u64, coding: IntCoding) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(values.len() * 2 + 64);
    let narrow = most - least <= u64::from(u32::MAX);
    out.push(if narrow { PCO32 } else { PCO64 });
    put_varint(&mut out, least);
    if narrow {
        let shifted: Vec<u32> = values.iter().map(|v| (v - least) as u32).collect();
        write_pco(&shifted, coding, out)
    } else {
        let shifted: Vec<u64> = values.iter().map(|v| v - least).collect();
        write_pco(&shifted, coding, out)
    }
}

fn write_pco<T: pco::data_types::Number>(values: &[T], coding: IntCoding, out: Vec<u8>) -> Option<Vec<u8>> {
    let config = ChunkConfig::default()
        .with_compression_level(usize::from(coding.level))
        .with_mode_spec(ModeSpec::Classic)
        .with_delta_spec(if coding.delta { DeltaSpec::TryConsecutive(1) } else { DeltaSpec::NoOp })
        .with_paging_spec(PagingSpec::Exact(vec![values.len()]));
    let file = FileCompressor::default();
    let mut chunk = file.chunk_compressor(values, &config).ok()?;
    let out = file.write_header(out).ok()?;
    let out = chunk.write_meta(out).ok()?;
    chunk.write_page(0, out).ok()
}

trait Narrow: pco::data_types::Number {
    fn widen(self) -> u64;
}
impl Narrow for u32 {
    fn widen(self) -> u64 {
        u64::from(self)
    }
}
impl Narrow for u64 {
    fn widen(self) -> u64 {
        self
    }
}

fn decode_pco<T: Narrow + Default>(reader: &mut Reader<'_>, count: usize, out: &mut Vec<u64>) -> WireResult<()> {
    let base = reader.varint()?;
    let damaged = |_| WireError { offset: 0, what: "damaged pco page" };
    let (file, rest) = FileDecompressor::new(reader.rest()).map_err(damaged)?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(damaged)?;
    let mut values = vec![T::default(); count];
    let mut page = chunk.page_decompressor(rest, count).map_err(damaged)?;
    let progress = page.read(&mut values).map_err(damaged)?;
    if progress.n_processed != count || !page.into_src().is_empty() {
        return Err(reader.error("pco page of another length"));
    }
    out.extend(values.into_iter().map(|v| base.wrapping_add(v.widen())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[u64], coding: IntCoding) {
        let piece = encode(values, coding);
        let mut back = Vec::new();
        decode(&piece.bytes, values.len(), &mut back).unwrap();
        assert_eq!(back, values, "{coding:?}");
    }

    proptest! {
        #[test]
        fn pages_survive(values in prop_oneof![
            prop::collection::vec(any::<u64>(), 0..300),
            prop::collection::vec(0..1000u64, 0..300),
            prop::collection::vec(5_000_000_000..5_000_000_100u64, 0..300),
            (any::<u64>(), prop::collection::vec(0..50u64, 0..300)).prop_map(|(start, steps)| {
                steps.into_iter().scan(start, |at, step| { *at = at.wrapping_add(step); Some(*at) }).collect()
            }),
        ]) {
            for delta in [false, true] {
                for pco in [false, true] {
                    round_trip(&values, IntCoding { delta, pco, level: 4 });
                }
            }
            round_trip(&values, choose(&values, 2, <[u8]>::len));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), tag in 0u8..4, count in 0usize..300) {
            let mut piece = vec![tag];
            piece.extend(bytes);
            let _ = decode(&piece, count, &mut Vec::new());
        }
    }
}
