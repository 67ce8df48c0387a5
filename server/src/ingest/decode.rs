//! Unpacking: gzip and zstd files by their first bytes, request bodies by their `Content-Encoding`.
//!
//! Files: any number of gzip members or zstd frames back to back. A zstd window takes at most
//! 2^[`WINDOW_LOG_MAX`] bytes of memory; a file that needs more is refused. Names and suffixes mean nothing.
//! Bodies: unpacked in memory, never past the limit given; nothing is allocated ahead on the word of a header.
//! This module must not know records.

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The largest zstd window is 2 to this power, 128 MiB: what `zstd --long` writes.
pub const WINDOW_LOG_MAX: u32 = 27;

const BUFFER_BYTES: usize = 128 << 10;
const MAGIC_BYTES: usize = 4;

/// A file or stream, unpacked as it is read.
pub struct Input {
    reader: Box<dyn Read + Send>,
}

impl Input {
    /// Opens the file at `path`, or standard input for `-`, and goes to byte `position` of its unpacked content.
    /// Plain files are not read up to there; packed ones, and what cannot seek, have to be.
    ///
    /// # Errors
    /// Those of the file system; damage in packed bytes; `UnexpectedEof` when the content is shorter than `position`.
    pub fn open(path: &Path, position: u64) -> io::Result<Input> {
        if path.as_os_str() == "-" {
            return Input::from_reader(io::stdin(), position);
        }
        let mut file = File::open(path)?;
        if position > 0 && file.metadata()?.is_file() {
            let mut head = Vec::with_capacity(MAGIC_BYTES);
            file.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
            if Packing::of(&head) == Packing::None {
                if file.metadata()?.len() < position {
                    return Err(too_short(position));
                }
                file.seek(SeekFrom::Start(position))?;
                return Ok(Input { reader: Box::new(file) });
            }
            file.rewind()?;
        }
        Input::from_reader(file, position)
    }

    /// Unpacks `source`, from byte `position` of its unpacked content on.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub fn from_reader(source: impl Read + Send + 'static, position: u64) -> io::Result<Input> {
        // The first bytes are looked at and put back; a pipe may give them one by one.
        let mut source = source;
        let mut head = Vec::with_capacity(MAGIC_BYTES);
        source.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
        let packing = Packing::of(&head);
        let whole = io::Cursor::new(head).chain(source);
        let mut reader: Box<dyn Read + Send> = match packing {
            Packing::None => Box::new(whole),
            Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, whole))),
            Packing::Zstd => Box::new(zstd_decoder(BufReader::with_capacity(BUFFER_BYTES, whole))?),
        };
        if io::copy(&mut reader.by_ref().take(position), &mut io::sink())? < position {
            return Err(too_short(position));
        }
        Ok(Input { reader })
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Input")
    }
}

fn too_short(position: u64) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the content ends before byte {position}, where reading was to go on"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(head: &[u8]) -> Packing {
        match head {
            [0x1f, 0x8b, 8, ..] => Packing::Gzip,
            // A frame, or a skippable frame before it.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
            _ => Packing::None,
        }
    }
}

fn zstd_decoder<'a, R: BufRead>(source: R) -> io::Result<zstd::stream::read::Decoder<'a, R>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// Why a body could not be unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// Nobody here knows this encoding (HTTP: 415).
    UnknownEncoding(String),
    /// It is larger than the limit, in bytes, once unpacked (HTTP: 413).
    TooLarge(usize),
    /// It is not what its encoding says, or ends early (HTTP: 400).
    Damaged {
        /// The encoding.
        encoding: &'static str,
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::UnknownEncoding(name) => write!(f, "content-encoding {name:?}: known are gzip, deflate, zstd and identity"),
            BodyError::TooLarge(limit) => write!(f, "the body is larger than {limit} bytes once unpacked"),
            BodyError::Damaged { encoding, message } => write!(f, "the body can't be unpacked as {encoding}: {message}"),
        }
    }
}

impl std::error::Error for BodyError {}

/// Unpacks `body`, whose `Content-Encoding` is `encoding` (empty: none; a list: applied from the left, so undone
/// from the right), to at most `limit` bytes.
///
/// # Errors
/// See [`BodyError`].
pub fn decode_body<'b>(encoding: &str, body: &'b [u8], limit: usize) -> Result<Cow<'b, [u8]>, BodyError> {
    let mut body = Cow::Borrowed(body);
    for name in encoding.rsplit(',').map(str::trim) {
        let lower = name.to_ascii_lowercase();
        let unpacked = match lower.as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => collect("gzip", MultiGzDecoder::new(&*body), limit)?,
            "deflate" if is_zlib(&body) => collect("deflate", ZlibDecoder::new(&*body), limit)?,
            // Some senders leave out the envelope that the standard asks for.
            "deflate" => collect("deflate", DeflateDecoder::new(&*body), limit)?,
            "zstd" => {
                let decoder = zstd_decoder(&*body).map_err(|e| damaged("zstd", &e))?;
                collect("zstd", decoder, limit)?
            }
            _ => return Err(BodyError::UnknownEncoding(name.to_string())),
        };
        body = Cow::Owned(unpacked);
    }
    if body.len() > limit { Err(BodyError::TooLarge(limit)) } else { Ok(body) }
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, &[a, b, ..] if a & 0x0f == 8 && (u16::from(a) << 8 | u16::from(b)).is_multiple_of(31))
}

fn collect(encoding: &'static str, source: impl Read, limit: usize) -> Result<Vec<u8>, BodyError> {
    let mut out = Vec::new();
    source.take((limit as u64).saturating_add(1)).read_to_end(&mut out).map_err(|e| damaged(encoding, &e))?;
    if out.len() > limit { Err(BodyError::TooLarge(limit)) } else { Ok(out) }
}

fn damaged(encoding: &'static str, error: &io::Error) -> BodyError {
    BodyError::Damaged { encoding, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd_long(data: &[u8], window_log: u32) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.long_distance_matching(true).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Gives one byte a call, as a slow pipe does.
    struct Drip(io::Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }

    fn unpack(packed: &[u8], position: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Input::from_reader(Drip(io::Cursor::new(packed.to_vec())), position)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn files_are_unpacked_by_their_first_bytes() {
        let text = b"one\ntwo\nthree".repeat(100);
        let (a, b) = text.split_at(500);
        for packed in [text.clone(), [gzip(a), gzip(b)].concat(), [zstd_long(a, 20), zstd_long(b, 27)].concat()] {
            for position in [0, 1, 499, 500, 501, text.len()] {
                assert_eq!(unpack(&packed, position as u64).unwrap(), text[position..]);
            }
            assert_eq!(unpack(&packed, text.len() as u64 + 1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        for short in [&b""[..], b"a", b"\x1f", b"\x28\xb5"] {
            assert_eq!(unpack(short, 0).unwrap(), short);
        }
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd_long(a, 20)].concat();
        assert_eq!(unpack(&skippable, 0).unwrap(), a);
    }

    #[test]
    fn damage_is_an_error() {
        let text = b"some words, again and again ".repeat(1000);
        for packed in [gzip(&text), zstd_long(&text, 20)] {
            assert!(unpack(&packed[..packed.len() - 9], 0).is_err());
        }
        assert!(unpack(&zstd_long(&text, 28), 0).is_err());
    }

    #[test]
    fn a_file_opens_where_reading_stopped() {
        let folder = std::env::temp_dir().join(format!("haystore-decode-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in [("plain.gz", b"0123456789".to_vec()), ("packed", gzip(b"0123456789"))] {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            let rest = |position| {
                let mut out = String::new();
                Input::open(&path, position)?.read_to_string(&mut out)?;
                io::Result::Ok(out)
            };
            assert_eq!(rest(0).unwrap(), "0123456789");
            assert_eq!(rest(7).unwrap(), "789");
            assert_eq!(rest(10).unwrap(), "");
            assert!(rest(11).is_err());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn bodies_are_unpacked_by_their_encoding() {
        let text = b"some words ".repeat(100);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(&text).unwrap();
        let two = [gzip(&text[..50]), gzip(&text[50..])].concat();
        for (encoding, body) in [
            ("", text.clone()),
            ("identity", text.clone()),
            ("gzip", gzip(&text)),
            (" GZip ", two),
            ("x-gzip", gzip(&text)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("zstd", zstd_long(&text, 20)),
            ("gzip, zstd", zstd_long(&gzip(&text), 20)),
        ] {
            assert_eq!(decode_body(encoding, &body, text.len()).as_deref(), Ok(&text[..]), "{encoding}");
            assert_eq!(decode_body(encoding, &body, text.len() - 1), Err(BodyError::TooLarge(text.len() - 1)), "{encoding}");
        }
        assert!(matches!(decode_body("br", b"", 9), Err(BodyError::UnknownEncoding(name)) if name == "br"));
        for encoding in ["gzip", "deflate", "zstd"] {
            assert!(matches!(decode_body(encoding, b"no such thing", 99), Err(BodyError::Damaged { .. })), "{encoding}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = vec![0; 64 << 20];
        for (encoding, body) in [("gzip", gzip(&zeros)), ("zstd", zstd_long(&zeros, 20))] {
            assert!(body.len() < 1 << 20);
            assert_eq!(decode_body(encoding, &body, 1 << 20), Err(BodyError::TooLarge(1 << 20)));
        }
    }
}
