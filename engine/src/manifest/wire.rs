//! Numbers and strings as bytes, and back: the alphabet of the manifest's codec.
//!
//! Every value has exactly one encoding; the reader refuses any other, never reads past its end, and never allocates more
//! than a small multiple of the bytes it was given. This module must not know what is written.

use crate::error::{Error, Result};
use crate::record::Tenant;

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

pub(super) fn put_count(out: &mut Vec<u8>, count: usize) {
    put_varint(out, count as u64);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Reads the body of one object; errors name it and the offset.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    object: &'a str,
    /// What the offset counts from, when that is not the object itself.
    within: &'static str,
    bytes: &'a [u8],
    at: usize,
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which lie at `offset` of `object` (or of what `within` names).
    pub(super) fn new(object: &'a str, within: &'static str, bytes: &'a [u8], offset: usize) -> Self {
        Reader { object, within, bytes, at: 0, offset }
    }

    /// The error `what` at the place last read.
    pub(super) fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(self.object, (self.offset + self.at) as u64, format_args!("{what}{}", self.within))
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let taken = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.wrong(format_args!("{count} bytes wanted, {} left", self.bytes.len() - self.at)))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.wrong("a short read"))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    pub(super) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    pub(super) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }
    pub(super) fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for place in 0..10 {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                return Err(self.wrong("a number above 64 bits"));
            }
            value |= bits << (7 * place);
            if byte < 0x80 {
                return if byte == 0 && place > 0 { Err(self.wrong("a number longer than it need be")) } else { Ok(value) };
            }
        }
        Err(self.wrong("a number above 64 bits"))
    }

    /// A count of things that take at least `bytes_min` (not 0) bytes each.
    pub(super) fn count(&mut self, bytes_min: usize) -> Result<usize> {
        let count = self.varint()?;
        let most = (self.bytes.len() - self.at) / bytes_min;
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => Err(self.wrong(format_args!("a count of {count} where at most {most} fit"))),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count(1)?;
        self.take(count)
    }

    pub(super) fn string(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map(str::to_string).map_err(|e| self.wrong(e))
    }

    pub(super) fn tenant(&mut self) -> Result<Tenant> {
        let bytes = self.bytes()?;
        let text = std::str::from_utf8(bytes).map_err(|e| self.wrong(e))?;
        Tenant::new(text).map_err(|e| self.wrong(e))
    }

    /// Checks that everything was read.
    pub(super) fn end(&self) -> Result<()> {
        let left = self.bytes.len() - self.at;
        if left == 0 { Ok(()) } else { Err(self.wrong(format_args!("{left} bytes too many"))) }
    }
}
