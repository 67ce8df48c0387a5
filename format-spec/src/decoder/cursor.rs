//! Reading numbers and bytes from a slice that lies somewhere in a segment.

use super::{DecodeError, Result};

/// A slice that is read from front to back.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset in the segment of the stored piece the slice comes from.
    pub offset: u64,
    /// What the slice is, for messages.
    name: &'static str,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], offset: u64, name: &'static str) -> Self {
        Cursor { bytes, at: 0, offset, name }
    }

    pub fn error(&self, what: &str) -> DecodeError {
        DecodeError { offset: self.offset, what: format!("{what} (before byte {} of the {})", self.at, self.name) }
    }

    pub fn fail<T>(&self, what: &str) -> Result<T> {
        Err(self.error(what))
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else { return self.fail("bytes end early") };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn u32(&mut self) -> Result<u32> {
        let mut value = 0;
        for (i, &byte) in self.take(4)?.iter().enumerate() {
            value |= u32::from(byte) << (8 * i);
        }
        Ok(value)
    }

    /// LEB128 of at most 64 bits, in its shortest form.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value: u128 = 0;
        for i in 0..10 {
            let byte = self.u8()?;
            value |= u128::from(byte & 127) << (7 * i);
            if byte < 128 {
                if byte == 0 && i > 0 {
                    return self.fail("a number longer than it need be");
                }
                return u64::try_from(value).map_err(|_| self.error("a number of more than 64 bits"));
            }
        }
        self.fail("a number of more than ten bytes")
    }

    /// Zigzag.
    pub fn signed(&mut self) -> Result<i64> {
        Ok(unzigzag(self.varint()?))
    }

    /// A varint that is at most `max`.
    pub fn at_most(&mut self, max: u64, what: &str) -> Result<usize> {
        let value = self.varint()?;
        if value > max {
            return self.fail(what);
        }
        usize::try_from(value).map_err(|_| self.error(what))
    }

    /// A varint below `bound`.
    pub fn below(&mut self, bound: usize, what: &str) -> Result<usize> {
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(value) if value < bound => Ok(value),
            _ => self.fail(what),
        }
    }

    /// How many things follow that take at least a byte each.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.at_most(u64::MAX, "count out of bounds")?;
        if count > self.left() { self.fail("count larger than the bytes left") } else { Ok(count) }
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.at_most(u64::MAX, "length out of bounds")?;
        self.take(len)
    }

    pub fn end(&self) -> Result<()> {
        if self.left() == 0 { Ok(()) } else { self.fail("bytes left over") }
    }
}

/// 0, 1, 2, 3 … to 0, -1, 1, -2 …
pub fn unzigzag(value: u64) -> i64 {
    let half = (value / 2) as i64;
    if value.is_multiple_of(2) { half } else { -1 - half }
}
