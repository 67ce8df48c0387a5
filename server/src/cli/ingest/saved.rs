//! What a file's job saves at a checkpoint: enough to know the file again, and the reader's own state.

use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Bytes at a file's beginning by which it is known again.
const HEAD_BYTES: usize = 4096;
const VERSION: u8 = 1;

/// The beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    bytes: u32,
    crc: u32,
}

impl Head {
    /// That of an input which cannot be read twice.
    pub const EMPTY: Head = Head { bytes: 0, crc: 0 };

    /// Reads it, at most `bytes_max` of it, and leaves the file at its beginning.
    fn read_up_to(file: &mut File, bytes_max: usize) -> Result<Self> {
        let mut head = Vec::with_capacity(bytes_max);
        file.seek(SeekFrom::Start(0))?;
        file.take(bytes_max as u64).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(0))?;
        let mut crc = flate2::Crc::new();
        crc.update(&head);
        Ok(Head { bytes: head.len() as u32, crc: crc.sum() })
    }

    /// Reads the beginning of `file` and leaves the file there.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read(file: &mut File) -> Result<Self> {
        Self::read_up_to(file, HEAD_BYTES)
    }
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The file's beginning when the job began.
    pub head: Head,
    /// Bytes of the file read by then.
    pub read_bytes: u64,
    /// The reader's state.
    pub reader: Vec<u8>,
}

/// How a file relates to a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It is the file, maybe longer: go on.
    Same,
    /// Another file lies in its place: begin anew.
    Other,
}

impl Saved {
    /// As bytes: version, head length, head checksum, bytes read (little-endian), reader state.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.head.bytes.to_le_bytes());
        out.extend_from_slice(&self.head.crc.to_le_bytes());
        out.extend_from_slice(&self.read_bytes.to_le_bytes());
        out.extend_from_slice(&self.reader);
        out
    }

    /// The inverse of [`Saved::to_bytes`].
    ///
    /// # Errors
    /// When `bytes` is no checkpoint of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let no = "the job's checkpoint was written by another version; finish it with that version";
        let (&version, rest) = bytes.split_first().context(no)?;
        ensure!(version == VERSION, no);
        let (head_bytes, rest) = rest.split_first_chunk().context(no)?;
        let (crc, rest) = rest.split_first_chunk().context(no)?;
        let (read_bytes, reader) = rest.split_first_chunk().context(no)?;
        let head = Head { bytes: u32::from_le_bytes(*head_bytes), crc: u32::from_le_bytes(*crc) };
        ensure!(head.bytes as usize <= HEAD_BYTES, no);
        Ok(Saved { head, read_bytes: u64::from_le_bytes(*read_bytes), reader: reader.to_vec() })
    }

    /// Compares with the file as it is now, and leaves it at its beginning.
    ///
    /// # Errors
    /// Those of the file; a file that is the same but has become shorter.
    pub fn fit(&self, file: &mut File) -> Result<Fit> {
        if Head::read_up_to(file, self.head.bytes as usize)? != self.head {
            return Ok(Fit::Other);
        }
        let bytes = file.metadata()?.len();
        if bytes < self.read_bytes {
            bail!(
                "it was cut to {bytes} bytes after {} of them had been read by an ingest that did not end; \
                 restore it to go on, or ingest a copy under another name",
                self.read_bytes
            );
        }
        Ok(Fit::Same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_known_again() {
        let path = std::env::temp_dir().join(format!("haystore-saved-{}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        file.write_all(b"first\nsecond\n").unwrap();
        let saved = Saved { head: Head::read(&mut file).unwrap(), read_bytes: 13, reader: vec![1, 2, 3] };
        assert_eq!(Saved::from_bytes(&saved.to_bytes()).unwrap(), saved);
        assert_eq!(saved.fit(&mut file).unwrap(), Fit::Same);
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"third\n").unwrap();
        assert_eq!(saved.fit(&mut file).unwrap(), Fit::Same, "it grew");
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(b"other").unwrap();
        assert_eq!(saved.fit(&mut file).unwrap(), Fit::Other);
        let longer = Saved { head: Head::read(&mut file).unwrap(), read_bytes: 100, ..saved };
        assert!(longer.fit(&mut file).is_err(), "it was cut");
        for bad in [&b""[..], b"\x01abc", b"\x02aaaabbbbccccdddd", &[1, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(Saved::from_bytes(bad).is_err(), "{bad:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
