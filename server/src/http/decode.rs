//! Content-Encoding: packed bytes to bytes, within a limit; snappy here, the others as the file reader does.
//!
//! Pure CPU work. What holds: the result never grows past the limit, whatever the bytes claim of themselves.

use crate::ingest::{self, BodyError};
use std::borrow::Cow;
use std::io::Read;

/// Unpacks `body`, to at most `bytes_max` bytes; `None` when it is not packed.
///
/// # Errors
/// See [`BodyError`].
pub fn decode_body(encoding: &str, body: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, BodyError> {
    match encoding {
        "snappy" | "x-snappy-framed" if body.starts_with(b"\xff\x06\0\0sNaPpY") => {
            let mut out = Vec::new();
            let reader = snap::read::FrameDecoder::new(body);
            reader.take(bytes_max as u64 + 1).read_to_end(&mut out).map_err(|e| damaged(&e))?;
            if out.len() > bytes_max { Err(BodyError::TooLarge(bytes_max)) } else { Ok(Some(out)) }
        }
        "snappy" => decode_snappy_block(body, bytes_max).map(Some),
        other => Ok(match ingest::decode_body(other, body, bytes_max)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(bytes) => Some(bytes),
        }),
    }
}

/// Unpacks one snappy block, the form that protobuf pushes use.
///
/// # Errors
/// See [`BodyError`].
pub fn decode_snappy_block(body: &[u8], bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let len = snap::raw::decompress_len(body).map_err(|e| damaged(&e))?;
    if len > bytes_max {
        return Err(BodyError::TooLarge(bytes_max));
    }
    snap::raw::Decoder::new().decompress_vec(body).map_err(|e| damaged(&e))
}

fn damaged(cause: &dyn std::fmt::Display) -> BodyError {
    BodyError::Damaged { encoding: "snappy", message: cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(encoding: &str, bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::fast();
        match encoding {
            "gzip" => {
                let mut w = flate2::write::GzEncoder::new(Vec::new(), level);
                w.write_all(bytes).unwrap();
                w.finish().unwrap()
            }
            "zlib" => {
                let mut w = flate2::write::ZlibEncoder::new(Vec::new(), level);
                w.write_all(bytes).unwrap();
                w.finish().unwrap()
            }
            "deflate" => {
                let mut w = flate2::write::DeflateEncoder::new(Vec::new(), level);
                w.write_all(bytes).unwrap();
                w.finish().unwrap()
            }
            "zstd" => zstd::encode_all(bytes, 1).unwrap(),
            "snappy" => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            "frames" => {
                let mut w = snap::write::FrameEncoder::new(Vec::new());
                w.write_all(bytes).unwrap();
                w.into_inner().unwrap()
            }
            _ => bytes.to_vec(),
        }
    }

    #[test]
    fn every_encoding_comes_back_within_the_limit_and_fails_past_it() {
        let text = b"some words, again some words. ".repeat(1000);
        for (form, encoding) in
            [("gzip", "gzip"), ("zlib", "deflate"), ("deflate", "deflate"), ("zstd", "zstd"), ("snappy", "snappy"), ("frames", "snappy")]
        {
            let body = packed(form, &text);
            assert_eq!(decode_body(encoding, &body, text.len()).unwrap().unwrap(), text, "{form}");
            assert_eq!(decode_body(encoding, &body, text.len() - 1), Err(BodyError::TooLarge(text.len() - 1)), "{form}");
            assert!(matches!(decode_body(encoding, b"\x01plain text", 100), Err(BodyError::Damaged { .. })), "{form}");
            assert!(decode_body(encoding, &body[..body.len() / 2], text.len()).is_err(), "{form} cut");
        }
        assert_eq!(decode_body("br", b"", 1), Err(BodyError::UnknownEncoding("br".to_string())));
        assert_eq!(decode_body("", b"x", 1), Ok(None));
    }
}
