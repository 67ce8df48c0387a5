//! Checked reading and plain writing of little-endian integers, varints and length-prefixed bytes.
//!
//! Reading never panics and never allocates by an unchecked length: every count is compared with the bytes left. Every value has one
//! encoding; any other is an error.

/// Why bytes could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// Byte offset in the slice that was read.
    pub offset: usize,
    /// What was wrong.
    pub what: &'static str,
}

pub type WireResult<T> = Result<T, WireError>;

/// Appends `value` as LEB128, 7 bits a byte, low bits first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed value: zigzag, then LEB128.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

/// Appends length and bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Small magnitudes to small numbers: 0, -1, 1, -2 … to 0, 1, 2, 3 …
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// A cursor over bytes.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// An error at the current place.
    pub fn error(&self, what: &'static str) -> WireError {
        WireError { offset: self.at, what }
    }

    /// Where the next byte lies.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes not yet read.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Everything not yet read.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// One byte.
    pub fn byte(&mut self) -> WireResult<u8> {
        let byte = *self.bytes.get(self.at).ok_or(self.error("bytes end early"))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> WireResult<&'a [u8]> {
        if len > self.left() {
            return Err(self.error("bytes end early"));
        }
        self.at += len;
        Ok(&self.bytes[self.at - len..self.at])
    }

    /// A LEB128 number of at most 64 bits, in its shortest form.
    pub fn varint(&mut self) -> WireResult<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(self.error("number too large"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return if byte == 0 && shift > 0 { Err(self.error("number longer than it need be")) } else { Ok(value) };
            }
        }
        Err(self.error("number too long"))
    }

    /// A signed number.
    pub fn signed(&mut self) -> WireResult<i64> {
        Ok(unzigzag(self.varint()?))
    }

    /// A number that fits `usize` and is at most `max`.
    pub fn bounded(&mut self, max: usize) -> WireResult<usize> {
        let value = self.varint()?;
        usize::try_from(value).ok().filter(|&v| v <= max).ok_or(self.error("number out of bounds"))
    }

    /// A count of things that take at least one byte each in what is left.
    pub fn count(&mut self) -> WireResult<usize> {
        self.count_of(1)
    }

    /// A count of things that take at least `bytes_min` (not 0) bytes each in what is left.
    pub fn count_of(&mut self, bytes_min: usize) -> WireResult<usize> {
        let value = self.varint()?;
        let most = self.left() / bytes_min;
        usize::try_from(value).ok().filter(|&v| v <= most).ok_or(self.error("count larger than the bytes left"))
    }

    /// Length-prefixed bytes.
    pub fn bytes(&mut self) -> WireResult<&'a [u8]> {
        let len = self.count()?;
        self.take(len)
    }

    /// Length-prefixed UTF-8.
    pub fn text(&mut self) -> WireResult<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.error("text is not UTF-8"))
    }

    /// A little-endian u16.
    pub fn u16(&mut self) -> WireResult<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// A little-endian u32.
    pub fn u32(&mut self) -> WireResult<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A little-endian u64.
    pub fn u64(&mut self) -> WireResult<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A little-endian i64.
    pub fn i64(&mut self) -> WireResult<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A little-endian u128.
    pub fn u128(&mut self) -> WireResult<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> WireResult<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// Succeeds when every byte was read.
    pub fn end(&self) -> WireResult<()> {
        if self.left() == 0 { Ok(()) } else { Err(self.error("bytes left over")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive(unsigned in any::<u64>(), signed in any::<i64>(), bytes in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            put_varint(&mut out, unsigned);
            put_signed(&mut out, signed);
            put_bytes(&mut out, &bytes);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(unsigned));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.bytes(), Ok(&bytes[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn a_number_has_one_encoding(bytes in prop::collection::vec(prop::sample::select(vec![0, 1, 0x7f, 0x80, 0x81, 0xff]), 1..12)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(value) = reader.varint() {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                prop_assert_eq!(&out[..], &bytes[..bytes.len() - reader.left()]);
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            let mut reader = Reader::new(&bytes);
            let _ = (reader.varint(), reader.bytes(), reader.text(), reader.u64(), reader.signed());
        }
    }

    #[test]
    fn overlong_numbers_are_errors() {
        assert!(Reader::new(&[0xff; 9]).varint().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint().is_err());
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).varint(), Ok(u64::MAX));
        for longer in [&[0x80, 0][..], &[0x81, 0x80, 0], &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]] {
            assert_eq!(Reader::new(longer).varint().unwrap_err().what, "number longer than it need be");
        }
        assert!(Reader::new(&[200, 1, 0]).bytes().is_err());
        assert_eq!(Reader::new(&[2, 0, 0, 0, 0]).count_of(2), Ok(2));
        assert!(Reader::new(&[2, 0, 0, 0]).count_of(2).is_err());
    }
}
