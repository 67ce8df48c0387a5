//! Content-Encoding: packed bytes to bytes, within a limit.
//!
//! Pure CPU work. What holds: the result never grows past the limit, whatever the bytes claim of themselves.

use haystore::{Error, ErrorKind, Result};
use std::io::Read;

/// Unpacks `body`, to at most `bytes_max` bytes.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an encoding that is not known, [`ErrorKind::Limit`] past `bytes_max`, [`ErrorKind::Invalid`] when the
/// bytes are not what the encoding says.
pub fn decode_body(encoding: &str, body: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
    match encoding {
        "" | "identity" => Ok(body.to_vec()),
        "gzip" | "x-gzip" => drain(flate2::read::MultiGzDecoder::new(body), bytes_max, encoding),
        // RFC 9110 means zlib; some senders mean bare deflate. The first byte of zlib says which.
        "deflate" if body.first().is_some_and(|b| b & 0x0f == 8) && body.len() > 1 && u16::from_be_bytes([body[0], body[1]]) % 31 == 0 => {
            drain(flate2::read::ZlibDecoder::new(body), bytes_max, encoding)
        }
        "deflate" => drain(flate2::read::DeflateDecoder::new(body), bytes_max, encoding),
        "zstd" => {
            let mut decoder = zstd::Decoder::with_buffer(body).map_err(|e| not(encoding, &e))?;
            // A window is memory too: 2^27 bytes is what the zstd tool takes without being asked; 2^26 is our limit.
            decoder.window_log_max(26).map_err(|e| not(encoding, &e))?;
            drain(decoder, bytes_max, encoding)
        }
        "snappy" | "x-snappy-framed" if body.starts_with(b"\xff\x06\0\0sNaPpY") => {
            drain(snap::read::FrameDecoder::new(body), bytes_max, encoding)
        }
        "snappy" => decode_snappy_block(body, bytes_max),
        other => Err(Error::new(ErrorKind::NotFound, format!("the content encoding {other:?} is not one of gzip, deflate, zstd, snappy"))),
    }
}

/// Unpacks one snappy block, the form that protobuf pushes use.
///
/// # Errors
/// As [`decode_body`].
pub fn decode_snappy_block(body: &[u8], bytes_max: usize) -> Result<Vec<u8>> {
    let len = snap::raw::decompress_len(body).map_err(|e| not("snappy", &e))?;
    if len > bytes_max {
        return Err(Error::limit(format!("the body unpacks to more than {bytes_max} bytes")));
    }
    snap::raw::Decoder::new().decompress_vec(body).map_err(|e| not("snappy", &e))
}

fn not(encoding: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("the body is not {encoding}: {cause}"))
}

fn drain(reader: impl Read, bytes_max: usize, encoding: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(bytes_max as u64 + 1).read_to_end(&mut out).map_err(|e| not(encoding, &e))?;
    if out.len() > bytes_max {
        return Err(Error::limit(format!("the body unpacks to more than {bytes_max} bytes")));
    }
    Ok(out)
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
            assert_eq!(decode_body(encoding, &body, text.len()).unwrap(), text, "{form}");
            assert_eq!(decode_body(encoding, &body, text.len() - 1).unwrap_err().kind(), ErrorKind::Limit, "{form}");
            assert_eq!(decode_body(encoding, b"\x01plain text", 100).unwrap_err().kind(), ErrorKind::Invalid, "{form}");
            assert!(decode_body(encoding, &body[..body.len() / 2], text.len()).is_err(), "{form} cut");
        }
        assert_eq!(decode_body("br", b"", 1).unwrap_err().kind(), ErrorKind::NotFound);
        let two = [packed("gzip", b"a"), packed("gzip", b"b")].concat();
        assert_eq!(decode_body("gzip", &two, 10).unwrap(), b"ab");
    }
}
