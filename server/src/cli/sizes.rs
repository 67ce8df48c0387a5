//! How large general compressors make an input; streamed, nothing is kept.

use std::io::{self, Read, Write};

/// A compressor and its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// gzip of this level.
    Gzip(u32),
    /// zstd of this level.
    Zstd(i32),
}

/// Counts what is written and forgets it.
#[derive(Debug, Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of `input`, compressed.
///
/// # Errors
/// Those of `input`.
pub fn compressed_bytes(input: &mut impl Read, compressor: Compressor) -> io::Result<u64> {
    match compressor {
        Compressor::Gzip(level) => {
            let mut encoder = flate2::write::GzEncoder::new(Counter::default(), flate2::Compression::new(level));
            io::copy(input, &mut encoder)?;
            Ok(encoder.finish()?.0)
        }
        Compressor::Zstd(level) => {
            let mut encoder = zstd::stream::write::Encoder::new(Counter::default(), level)?;
            io::copy(input, &mut encoder)?;
            Ok(encoder.finish()?.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_compressed_bytes() {
        let text = b"the same words again and again, ".repeat(1000);
        let gzip = compressed_bytes(&mut &text[..], Compressor::Gzip(6)).unwrap();
        let zstd = compressed_bytes(&mut &text[..], Compressor::Zstd(3)).unwrap();
        assert!((50..400).contains(&gzip) && (30..200).contains(&zstd), "{gzip} {zstd}");
        assert_eq!(compressed_bytes(&mut &b""[..], Compressor::Gzip(6)).unwrap(), 20);
    }
}
