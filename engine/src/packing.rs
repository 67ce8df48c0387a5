//! zstd with contexts that are kept, a few of each kind for all threads, since making one costs more than a small frame does.
//!
//! Frames carry neither their content's length nor a checksum; whoever stores a frame stores both beside it.

use crate::error::{Error, Result};
use std::sync::{Mutex, PoisonError};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

/// A larger compression context is not kept.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// From this level on repeats are looked for …
const LONG_LEVEL: i32 = 19;
/// … in all of the content, where it is larger than the level's own window …
const LONG_BYTES_MIN: usize = 8 << 20;
/// … up to the largest that the format allows, as a power of two.
const LONG_WINDOW_LOG: u32 = 27;

/// So many contexts of a kind are kept.
const KEPT_MAX: usize = 8;

/// Contexts nobody uses just now.
struct Kept<T>(Mutex<Vec<T>>);

static COMPRESSORS: Kept<Compressor<'static>> = Kept(Mutex::new(Vec::new()));
static DECOMPRESSORS: Kept<Decompressor<'static>> = Kept(Mutex::new(Vec::new()));

impl<T> Kept<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, context: T) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(context);
        }
    }
}

/// One zstd frame of level `level`, in place of what `out` holds.
///
/// # Errors
/// When zstd fails.
pub fn compress_into(bytes: &[u8], level: i32, out: &mut Vec<u8>) -> Result<()> {
    let fail = |e| Error::io("zstd", e);
    let mut context = match COMPRESSORS.take() {
        Some(mut context) => {
            context.set_compression_level(level).map_err(fail)?;
            context
        }
        None => {
            let mut context = Compressor::new(level).map_err(fail)?;
            context.set_parameter(CParameter::ContentSizeFlag(false)).map_err(fail)?;
            context.set_parameter(CParameter::ChecksumFlag(false)).map_err(fail)?;
            context
        }
    };
    out.clear();
    out.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
    let long = level >= LONG_LEVEL && bytes.len() > LONG_BYTES_MIN;
    if long {
        context.set_parameter(CParameter::WindowLog(LONG_WINDOW_LOG)).map_err(fail)?;
        context.set_parameter(CParameter::EnableLongDistanceMatching(true)).map_err(fail)?;
    }
    context.compress_to_buffer(bytes, out).map_err(fail)?;
    if !long && context.context_mut().sizeof() <= KEPT_BYTES_MAX {
        COMPRESSORS.put(context);
    }
    Ok(())
}

/// One zstd frame of level `level`.
///
/// # Errors
/// When zstd fails.
pub fn compress(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    compress_into(bytes, level, &mut out)?;
    out.shrink_to_fit();
    Ok(out)
}

/// The contents of a frame, which must be exactly `len` bytes; `None` when they are not, or it is no frame.
pub fn decompress(frame: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut context = match DECOMPRESSORS.take() {
        Some(context) => context,
        None => Decompressor::new().ok()?,
    };
    let bytes = context.decompress(frame, len).ok().filter(|bytes| bytes.len() == len);
    DECOMPRESSORS.put(context);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_and_other_bytes_are_refused() {
        for (level, len) in [(1, 0), (9, 100), (3, 1 << 20), (1, 5000)] {
            let bytes: Vec<u8> = (0..len).map(|i: u32| (i % 251) as u8 ^ (i / 1000) as u8).collect();
            let frame = compress(&bytes, level).unwrap();
            assert_eq!(decompress(&frame, bytes.len()).as_ref(), Some(&bytes));
            assert_eq!(decompress(&frame, bytes.len() + 1), None);
            assert_eq!(decompress(b"no frame", 8), None);
        }
    }
}
