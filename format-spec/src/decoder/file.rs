//! `segment.md`: header, footer, trailer, and the zstd frames with a length and a checksum.

use super::cursor::Cursor;
use super::{Result, fail};
use crate::constants::{MAGIC, TENANT_BYTES_MAX, TRAILER_BYTES};
use std::io::Read;

/// Length and checksum of a zstd frame.
pub struct Section {
    pub stored: u64,
    pub raw: u64,
    pub crc: u32,
}

/// What the footer says of a row group.
pub struct Group {
    pub tenant: String,
    pub offset: u64,
    pub rows: u64,
    pub line_bytes: u64,
    pub least: i64,
    pub greatest: i64,
    pub streams: u64,
    pub labels_min: Vec<u8>,
    pub frames_len: u64,
    pub plan: Section,
    pub root: Section,
}

/// The row groups of a segment.
pub fn read_footer(segment: &[u8]) -> Result<Vec<Group>> {
    if segment.len() < MAGIC.len() + TRAILER_BYTES {
        return fail(0, "too short to be a segment");
    }
    if !segment.starts_with(MAGIC) {
        return fail(0, "no header of this format version");
    }
    let trailer_at = segment.len() - TRAILER_BYTES;
    if !segment.ends_with(MAGIC) {
        return fail(trailer_at as u64 + 16, "no trailer of this format version");
    }
    let mut trailer = Cursor::new(&segment[trailer_at..], trailer_at as u64, "trailer");
    let (stored, raw, crc, own_crc) = (trailer.u32()?, trailer.u32()?, trailer.u32()?, trailer.u32()?);
    let mut covered = segment[trailer_at..trailer_at + 12].to_vec();
    covered.extend_from_slice(MAGIC);
    if crc32fast::hash(&covered) != own_crc {
        return fail(trailer_at as u64, "checksum of the trailer does not match");
    }
    let Some(footer_at) = trailer_at.checked_sub(stored as usize).filter(|&at| at >= MAGIC.len()) else {
        return fail(trailer_at as u64, "footer longer than the segment");
    };
    let section = Section { stored: u64::from(stored), raw: u64::from(raw), crc };
    let bytes = unpack(segment, footer_at as u64, &section, "footer")?;
    let mut cursor = Cursor::new(&bytes, footer_at as u64, "footer");
    let mut groups = Vec::new();
    let mut end = MAGIC.len() as u64;
    for _ in 0..cursor.count()? {
        let group = read_group(&mut cursor)?;
        if group.offset != end {
            return cursor.fail("row groups do not lie one behind the other");
        }
        let len = group.frames_len.checked_add(group.plan.stored + group.root.stored);
        end = len
            .and_then(|len| end.checked_add(len))
            .filter(|&end| end <= footer_at as u64)
            .ok_or(cursor.error("row group passes the footer"))?;
        groups.push(group);
    }
    cursor.end()?;
    if end != footer_at as u64 {
        return fail(end, "bytes between the last row group and the footer");
    }
    Ok(groups)
}

fn read_group(cursor: &mut Cursor<'_>) -> Result<Group> {
    let tenant = cursor.bytes()?.to_vec();
    let fits = (1..=TENANT_BYTES_MAX).contains(&tenant.len()) && tenant != b"." && tenant != b"..";
    if !fits || !tenant.iter().all(|b| b.is_ascii_alphanumeric() || b"!-_.*'()".contains(b)) {
        return cursor.fail("bad tenant");
    }
    let small = u64::from(u32::MAX);
    Ok(Group {
        tenant: String::from_utf8(tenant).map_err(|_| cursor.error("bad tenant"))?,
        offset: cursor.varint()?,
        rows: cursor.at_most(small, "too many rows")? as u64,
        line_bytes: cursor.varint()?,
        least: cursor.signed()?,
        greatest: cursor.signed()?,
        streams: cursor.at_most(small, "too many streams")? as u64,
        labels_min: cursor.bytes()?.to_vec(),
        frames_len: cursor.varint()?,
        plan: read_section(cursor)?,
        root: read_section(cursor)?,
    })
}

fn read_section(cursor: &mut Cursor<'_>) -> Result<Section> {
    let stored = cursor.at_most(u64::from(u32::MAX), "length out of bounds")? as u64;
    let raw = cursor.at_most(u64::from(u32::MAX), "length out of bounds")? as u64;
    Ok(Section { stored, raw, crc: cursor.u32()? })
}

/// The stored bytes `at..at + len`, when their checksum is `crc`.
pub fn checked<'a>(segment: &'a [u8], at: u64, len: u64, crc: u32, name: &str) -> Result<&'a [u8]> {
    let place = usize::try_from(at).ok().zip(usize::try_from(len).ok()).and_then(|(at, len)| segment.get(at..at.checked_add(len)?));
    let Some(stored) = place else { return fail(at, format!("the {name} passes the segment")) };
    if crc32fast::hash(stored) != crc { fail(at, format!("checksum of the {name} does not match")) } else { Ok(stored) }
}

/// The contents of a section.
pub fn unpack(segment: &[u8], at: u64, section: &Section, name: &str) -> Result<Vec<u8>> {
    let stored = checked(segment, at, section.stored, section.crc, name)?;
    decompress(stored, section.raw, at, name)
}

/// Decompresses one zstd frame that gives exactly `len` bytes.
pub fn decompress(stored: &[u8], len: u64, at: u64, name: &str) -> Result<Vec<u8>> {
    let damaged = |_| super::DecodeError { offset: at, what: format!("the {name} is no zstd frame") };
    let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(damaged)?.single_frame();
    let mut out = Vec::new();
    (&mut decoder).take(len.saturating_add(1)).read_to_end(&mut out).map_err(damaged)?;
    if out.len() as u64 != len {
        return fail(at, format!("the {name} decompresses to another length"));
    }
    let mut more = [0];
    if decoder.read(&mut more).map_err(damaged)? != 0 || !decoder.finish().is_empty() {
        return fail(at, format!("bytes behind the zstd frame of the {name}"));
    }
    Ok(out)
}
