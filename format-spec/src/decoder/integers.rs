//! `encodings.md`: pages of unsigned 64-bit integers, and pages of byte strings.

use super::cursor::{Cursor, unzigzag};
use super::{DecodeError, Result, Seen};
use crate::constants::integer;
use pco::data_types::Number;
use pco::wrapped::FileDecompressor;

/// The `count` integers of a page.
pub fn integers(bytes: &[u8], count: usize, offset: u64, seen: &mut Seen) -> Result<Vec<u64>> {
    let mut cursor = Cursor::new(bytes, offset, "integer page");
    let r = &mut cursor;
    let tag = r.u8()?;
    seen.insert(("integers", u64::from(tag)));
    let values = match tag {
        integer::CONSTANT => vec![r.varint()?; count],
        integer::SHORT => {
            let base = r.varint()?;
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(base.wrapping_add(r.varint()?));
            }
            values
        }
        integer::PLANES => {
            let width = r.u8()?;
            let base = r.varint()?;
            planes(r, count, width)?.into_iter().map(|v| base.wrapping_add(v)).collect()
        }
        integer::DELTA_PLANES => {
            if count == 0 {
                return r.fail("a delta page without values");
            }
            let mut last = r.varint()?;
            let width = r.u8()?;
            let mut values = vec![last];
            for difference in planes(r, count - 1, width)? {
                last = last.wrapping_add(unzigzag(difference) as u64);
                values.push(last);
            }
            values
        }
        integer::PCO32 => {
            let base = r.varint()?;
            pco_page::<u32>(r, count)?.into_iter().map(|v| base.wrapping_add(u64::from(v))).collect()
        }
        integer::PCO64 => {
            let base = r.varint()?;
            pco_page::<u64>(r, count)?.into_iter().map(|v| base.wrapping_add(v)).collect()
        }
        _ => return r.fail("unknown form of integers"),
    };
    r.end()?;
    Ok(values)
}

fn planes(r: &mut Cursor<'_>, count: usize, width: u8) -> Result<Vec<u64>> {
    if !(1..=8).contains(&width) {
        return r.fail("bad width of planes");
    }
    let mut values = Vec::new();
    for plane in 0..width {
        let bytes = r.take(count)?;
        values.resize(count, 0u64);
        for (value, &byte) in values.iter_mut().zip(bytes) {
            *value |= u64::from(byte) << (8 * plane);
        }
    }
    Ok(values)
}

fn pco_page<T: Number + Default>(r: &mut Cursor<'_>, count: usize) -> Result<Vec<T>> {
    let offset = r.offset;
    let damaged = |_| DecodeError { offset, what: "damaged pco page".to_string() };
    let (file, rest) = FileDecompressor::new(r.rest()).map_err(damaged)?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(damaged)?;
    let mut page = chunk.page_decompressor(rest, count).map_err(damaged)?;
    let mut values = vec![T::default(); count];
    let read = page.read(&mut values).map_err(damaged)?;
    if read.n_processed != count || !page.into_src().is_empty() {
        return r.fail("pco page of another length");
    }
    Ok(values)
}

/// The `count` byte strings of a page.
pub fn texts(bytes: &[u8], count: usize, offset: u64, seen: &mut Seen) -> Result<Vec<Vec<u8>>> {
    let mut cursor = Cursor::new(bytes, offset, "text page");
    let lengths = integers(cursor.bytes()?, count, offset, seen)?;
    let mut values = Vec::new();
    for length in lengths {
        let length = usize::try_from(length).map_err(|_| cursor.error("length out of bounds"))?;
        values.push(cursor.take(length)?.to_vec());
    }
    cursor.end()?;
    Ok(values)
}
