//! The segment file: header, row groups, footer, trailer.
//!
//! | part | bytes |
//! |---|---|
//! | header | magic `HAYSEG\x01\x00` (8) |
//! | row groups | one behind the other |
//! | footer | one zstd frame |
//! | trailer | footer's stored length u32, its decompressed length u32, its CRC-32 u32, CRC-32 of the 12 bytes before and the header u32, magic `HAYSEG\x01\x00` |

use super::row_group::{RowGroupMeta, Rows, Section, encode};
use crate::column::decode::Source;
use crate::column::encode::Effort;
use crate::error::{Error, Result};
use crate::packing;
use crate::record::{Labels, Tenant};
use crate::wire::{Reader, WireError, WireResult, put_bytes, put_signed, put_varint};

/// Format name and version, first and last in the file.
pub const MAGIC: &[u8; 8] = haystore_format::constants::MAGIC;
const TRAILER_BYTES: usize = haystore_format::constants::TRAILER_BYTES;
/// Read so many bytes from the end to have the footer, most times.
pub const FOOTER_READ_BYTES: u64 = 64 << 10;

/// One row group of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupInfo {
    /// Whose rows.
    pub tenant: Tenant,
    /// First byte in the segment.
    pub offset: u64,
    /// The rest.
    pub meta: RowGroupMeta,
}

/// What is in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footer {
    /// Row groups in the order of their bytes.
    pub groups: Vec<GroupInfo>,
}

/// Writes a segment in memory.
#[derive(Debug)]
pub struct SegmentWriter {
    bytes: Vec<u8>,
    footer: Footer,
}

impl Default for SegmentWriter {
    fn default() -> Self {
        SegmentWriter { bytes: MAGIC.to_vec(), footer: Footer::default() }
    }
}

impl SegmentWriter {
    /// Encodes and adds a row group.
    ///
    /// # Errors
    /// As [`encode`].
    pub fn add(&mut self, tenant: &Tenant, rows: &Rows, effort: Effort) -> Result<()> {
        let mut bytes = Vec::new();
        let meta = encode(rows, effort, &mut bytes)?;
        self.add_encoded(tenant, meta, &bytes);
        Ok(())
    }

    /// Adds a row group encoded elsewhere.
    pub fn add_encoded(&mut self, tenant: &Tenant, meta: RowGroupMeta, bytes: &[u8]) {
        self.footer.groups.push(GroupInfo { tenant: tenant.clone(), offset: self.bytes.len() as u64, meta });
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.footer.groups.is_empty()
    }

    /// Ends the segment: its bytes and its footer.
    ///
    /// # Errors
    /// When zstd fails.
    pub fn finish(mut self) -> Result<(Vec<u8>, Footer)> {
        let mut raw = Vec::new();
        put_varint(&mut raw, self.footer.groups.len() as u64);
        self.footer.groups.iter().for_each(|g| put_group(&mut raw, g));
        let stored = packing::compress(&raw, 3)?;
        self.bytes.extend_from_slice(&stored);
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        for length in [stored.len(), raw.len()] {
            trailer.extend_from_slice(&u32::try_from(length).map_err(|_| Error::limit("a footer passes 4 GiB"))?.to_le_bytes());
        }
        trailer.extend_from_slice(&crc32fast::hash(&stored).to_le_bytes());
        trailer.extend_from_slice(&trailer_crc(&trailer).to_le_bytes());
        trailer.extend_from_slice(MAGIC);
        self.bytes.extend_from_slice(&trailer);
        Ok((self.bytes, self.footer))
    }
}

fn trailer_crc(twelve: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(twelve);
    hasher.update(MAGIC);
    hasher.finalize()
}

fn put_section(out: &mut Vec<u8>, section: Section) {
    put_varint(out, u64::from(section.stored));
    put_varint(out, u64::from(section.raw));
    out.extend_from_slice(&section.crc.to_le_bytes());
}

fn take_section(reader: &mut Reader<'_>) -> WireResult<Section> {
    let mut number = || reader.bounded(u32::MAX as usize).map(|n| n as u32);
    let (stored, raw) = (number()?, number()?);
    Ok(Section { stored, raw, crc: reader.u32()? })
}

fn put_group(out: &mut Vec<u8>, group: &GroupInfo) {
    let meta = &group.meta;
    put_bytes(out, group.tenant.as_str().as_bytes());
    put_varint(out, group.offset);
    put_varint(out, u64::from(meta.rows));
    put_varint(out, meta.line_bytes);
    put_signed(out, *meta.times.start());
    put_signed(out, *meta.times.end());
    put_varint(out, u64::from(meta.streams));
    put_bytes(out, &meta.labels_min.encode());
    put_varint(out, meta.frames_len);
    put_section(out, meta.plan);
    put_section(out, meta.root);
}

fn take_group(reader: &mut Reader<'_>) -> WireResult<GroupInfo> {
    let tenant = Tenant::new(reader.text()?).map_err(|_| reader.error("bad tenant"))?;
    let offset = reader.varint()?;
    let rows = reader.bounded(u32::MAX as usize)? as u32;
    let line_bytes = reader.varint()?;
    let times = reader.signed()?..=reader.signed()?;
    let streams = reader.bounded(u32::MAX as usize)? as u32;
    let labels_min = Labels::decode(reader.bytes()?).map_err(|_| reader.error("bad labels"))?;
    let frames_len = reader.varint()?;
    let (plan, root) = (take_section(reader)?, take_section(reader)?);
    Ok(GroupInfo { tenant, offset, meta: RowGroupMeta { rows, line_bytes, times, streams, labels_min, frames_len, plan, root } })
}

/// Reads the footer of a segment of `size` bytes out of its last bytes `tail`. `Ok(Err(n))`: give the last `n` bytes instead.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`].
pub fn read_footer(name: &str, size: u64, tail: &[u8]) -> Result<std::result::Result<Footer, u64>> {
    let trailer_at = size.saturating_sub(TRAILER_BYTES as u64);
    let fail = |at: u64, what: &str| Error::corrupt(name, at, what);
    let trailer =
        tail.len().checked_sub(TRAILER_BYTES).and_then(|at| tail.get(at..)).ok_or_else(|| fail(0, "too short to be a segment"))?;
    if &trailer[16..] != MAGIC {
        return Err(fail(trailer_at + 16, "not a segment of this format version"));
    }
    let mut reader = Reader::new(trailer);
    let damaged = |e: WireError| fail(trailer_at, e.what);
    let mut number = || reader.u32().map_err(damaged);
    let (stored, raw, crc, own_crc) = (number()?, number()?, number()?, number()?);
    if trailer_crc(&trailer[..12]) != own_crc {
        return Err(fail(trailer_at, "checksum of the trailer does not match"));
    }
    let needed = u64::from(stored) + TRAILER_BYTES as u64;
    if needed + MAGIC.len() as u64 > size {
        return Err(fail(trailer_at, "footer longer than the segment"));
    }
    if needed > tail.len() as u64 {
        return Ok(Err(needed));
    }
    let footer_at = size - needed;
    let stored = &tail[tail.len() - needed as usize..tail.len() - TRAILER_BYTES];
    if crc32fast::hash(stored) != crc {
        return Err(fail(footer_at, "checksum of the footer does not match"));
    }
    let bytes = packing::decompress(stored, raw as usize).ok_or_else(|| fail(footer_at, "not a zstd frame of its length"))?;
    let footer = decode_footer(&bytes).map_err(|e| fail(footer_at, e.what))?;
    let mut end = MAGIC.len() as u64;
    for group in &footer.groups {
        if group.offset != end {
            return Err(fail(footer_at, "row groups are not one behind the other"));
        }
        end = end
            .checked_add(group.meta.stored_bytes())
            .filter(|&e| e <= footer_at)
            .ok_or_else(|| fail(footer_at, "row groups pass the footer"))?;
    }
    if end != footer_at {
        return Err(fail(footer_at, "bytes between row groups and footer"));
    }
    Ok(Ok(footer))
}

fn decode_footer(bytes: &[u8]) -> WireResult<Footer> {
    let mut reader = Reader::new(bytes);
    let mut groups = Vec::new();
    for _ in 0..reader.count()? {
        groups.push(take_group(&mut reader)?);
    }
    reader.end()?;
    Ok(Footer { groups })
}

impl GroupInfo {
    /// The bytes of the row group in its object.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.meta.stored_bytes()
    }

    /// A source over bytes read from [`GroupInfo::range`].
    pub fn source(&self, name: &str, bytes: bytes::Bytes) -> Source {
        Source { bytes, name: name.into(), offset: self.offset }
    }
}
