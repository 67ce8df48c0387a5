//! The headers of WAL files and frames: where each field lies.
//!
//! What holds: a header parses only when its magic, checksum and reserved bytes are right. All numbers are
//! little-endian. The same tables are in `format-spec/chapters/wal.md`; a test compares them.

/// First bytes of a file.
pub(super) const FILE_MAGIC: [u8; 8] = *b"HAYWAL\r\n";
/// First bytes of a frame; not UTF-8, so that no line in UTF-8 holds them.
pub(super) const FRAME_MAGIC: [u8; 8] = [0xf5, b'H', b'A', b'Y', b'F', 0xc0, 0x0a, 0xff];
/// The version written.
pub(super) const VERSION: u32 = 1;
/// Bytes of a file's header.
pub(super) const FILE_HEADER_BYTES: usize = 80;
/// Bytes of a frame's header.
pub(super) const FRAME_HEADER_BYTES: usize = 56;
/// The most decoded bytes of a frame; a reader refuses more.
pub(super) const FRAME_DECODED_BYTES_MAX: usize = 16 << 20;
/// `previous_number` of a file that has none before it.
pub(super) const NO_FILE: u64 = u64::MAX;
/// A payload stored as it is.
pub(super) const CODING_RAW: u32 = 0;
/// A payload stored as one LZ4 block.
pub(super) const CODING_LZ4: u32 = 1;

/// A file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub writer: u128,
    pub number: u64,
    /// No frame of this file or a later one has a smaller sequence number.
    pub first_sequence: u64,
    /// The file before this one, or [`NO_FILE`].
    pub previous_number: u64,
    /// Bytes of that file that were acknowledged; what lies behind them never was.
    pub previous_bytes: u64,
    /// Repeated in each frame of the file, so that frames of other files, or inside lines, are not taken for its own.
    pub tag: u64,
}

/// What the beginning of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Good(FileHeader),
    /// Damaged or cut.
    Damaged,
    /// Whole, of a version that this program does not read.
    OtherVersion(u32),
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub tag: u64,
    pub sequence: u64,
    pub part: u32,
    pub parts: u32,
    pub stored_bytes: u32,
    pub decoded_bytes: u32,
    pub coding: u32,
    pub payload_crc: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

impl FileHeader {
    pub fn to_bytes(self) -> [u8; FILE_HEADER_BYTES] {
        let mut out = [0; FILE_HEADER_BYTES];
        out[..8].copy_from_slice(&FILE_MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..32].copy_from_slice(&self.writer.to_le_bytes());
        let numbers = [self.number, self.first_sequence, self.previous_number, self.previous_bytes, self.tag];
        for (i, number) in numbers.into_iter().enumerate() {
            out[32 + i * 8..40 + i * 8].copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&out[..76]);
        out[76..].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

impl Header {
    /// The header at the beginning of `bytes`.
    pub fn parse(bytes: &[u8]) -> Header {
        let Some(bytes) = bytes.get(..FILE_HEADER_BYTES) else { return Header::Damaged };
        if bytes[..8] != FILE_MAGIC || u32_at(bytes, 76) != crc32fast::hash(&bytes[..76]) {
            return Header::Damaged;
        }
        let version = u32_at(bytes, 8);
        if version != VERSION || u32_at(bytes, 12) != 0 || u32_at(bytes, 72) != 0 {
            return Header::OtherVersion(version);
        }
        let writer = u128::from(u64_at(bytes, 16)) | u128::from(u64_at(bytes, 24)) << 64;
        Header::Good(FileHeader {
            writer,
            number: u64_at(bytes, 32),
            first_sequence: u64_at(bytes, 40),
            previous_number: u64_at(bytes, 48),
            previous_bytes: u64_at(bytes, 56),
            tag: u64_at(bytes, 64),
        })
    }
}

impl FrameHeader {
    pub fn to_bytes(self) -> [u8; FRAME_HEADER_BYTES] {
        let mut out = [0; FRAME_HEADER_BYTES];
        out[..8].copy_from_slice(&FRAME_MAGIC);
        out[8..16].copy_from_slice(&self.tag.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        let numbers = [self.part, self.parts, self.stored_bytes, self.decoded_bytes, self.coding, self.payload_crc];
        for (i, number) in numbers.into_iter().enumerate() {
            out[24 + i * 4..28 + i * 4].copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32fast::hash(&out[..52]);
        out[52..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at the beginning of `bytes`, if there is a right one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEADER_BYTES)?;
        if bytes[..8] != FRAME_MAGIC || u32_at(bytes, 52) != crc32fast::hash(&bytes[..52]) {
            return None;
        }
        let header = FrameHeader {
            tag: u64_at(bytes, 8),
            sequence: u64_at(bytes, 16),
            part: u32_at(bytes, 24),
            parts: u32_at(bytes, 28),
            stored_bytes: u32_at(bytes, 32),
            decoded_bytes: u32_at(bytes, 36),
            coding: u32_at(bytes, 40),
            payload_crc: u32_at(bytes, 44),
        };
        let sane = header.part < header.parts && header.decoded_bytes as usize <= FRAME_DECODED_BYTES_MAX && u32_at(bytes, 48) == 0;
        sane.then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of a file's header: name, offset, bytes.
    const FILE_FIELDS: [(&str, usize, usize); 11] = [
        ("magic", 0, 8),
        ("version", 8, 4),
        ("reserved", 12, 4),
        ("writer", 16, 16),
        ("number", 32, 8),
        ("first_sequence", 40, 8),
        ("previous_number", 48, 8),
        ("previous_bytes", 56, 8),
        ("tag", 64, 8),
        ("reserved", 72, 4),
        ("header_crc", 76, 4),
    ];

    /// Fields of a frame's header: name, offset, bytes.
    const FRAME_FIELDS: [(&str, usize, usize); 11] = [
        ("magic", 0, 8),
        ("tag", 8, 8),
        ("sequence", 16, 8),
        ("part", 24, 4),
        ("parts", 28, 4),
        ("stored_bytes", 32, 4),
        ("decoded_bytes", 36, 4),
        ("coding", 40, 4),
        ("payload_crc", 44, 4),
        ("reserved", 48, 4),
        ("header_crc", 52, 4),
    ];

    const SPEC: &str = include_str!("../../../format-spec/chapters/wal.md");

    fn spec_table(title: &str) -> Vec<(String, usize, usize)> {
        let (_, rest) = SPEC.split_once(title).unwrap();
        let rows = rest.lines().skip_while(|l| !l.starts_with('|')).take_while(|l| l.starts_with('|')).skip(2);
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            (cells[3].to_string(), cells[1].parse().unwrap(), cells[2].parse().unwrap())
        })
        .collect()
    }

    #[test]
    fn the_spec_has_the_same_tables() {
        for (title, fields, bytes) in
            [("## File header", &FILE_FIELDS, FILE_HEADER_BYTES), ("## Frame header", &FRAME_FIELDS, FRAME_HEADER_BYTES)]
        {
            let ours: Vec<_> = fields.iter().map(|&(name, at, len)| (name.to_string(), at, len)).collect();
            assert_eq!(spec_table(title), ours);
            let mut at = 0;
            for (_, offset, len) in fields {
                assert_eq!(*offset, at);
                at += len;
            }
            assert_eq!(at, bytes);
        }
    }

    #[test]
    fn numbers_lie_where_the_tables_say() {
        let file = FileHeader { writer: 1, number: 2, first_sequence: 3, previous_number: 4, previous_bytes: 5, tag: 6 }.to_bytes();
        let frame = FrameHeader { tag: 1, sequence: 2, part: 3, parts: 4, stored_bytes: 5, decoded_bytes: 6, coding: 7, payload_crc: 8 };
        for (fields, bytes) in [(FILE_FIELDS, &file[..]), (FRAME_FIELDS, &frame.to_bytes()[..])] {
            let mut expected = 1;
            for (name, at, len) in fields {
                let number = bytes[at..at + len].iter().rev().fold(0u128, |n, &byte| n << 8 | u128::from(byte));
                match name {
                    "magic" => assert!(bytes[..8] == FILE_MAGIC || bytes[..8] == FRAME_MAGIC),
                    "version" => assert_eq!(number, u128::from(VERSION)),
                    "reserved" => assert_eq!(number, 0),
                    "header_crc" => assert_eq!(number, u128::from(crc32fast::hash(&bytes[..at]))),
                    _ => {
                        assert_eq!(number, expected, "{name}");
                        expected += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn headers_survive_their_bytes_and_no_flip() {
        let file = FileHeader { writer: 7 << 100 | 3, number: 1, first_sequence: 2, previous_number: 3, previous_bytes: 4, tag: 5 };
        let bytes = file.to_bytes();
        assert_eq!(Header::parse(&bytes), Header::Good(file));
        let frame = FrameHeader { tag: 1, sequence: 2, part: 3, parts: 4, stored_bytes: 5, decoded_bytes: 6, coding: 1, payload_crc: 8 };
        let frame_bytes = frame.to_bytes();
        assert_eq!(FrameHeader::parse(&frame_bytes), Some(frame));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&bytes), Header::Damaged);
        }
        for bit in 0..frame_bytes.len() * 8 {
            let mut bytes = frame_bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::parse(&bytes), None);
        }
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut bytes = FileHeader { writer: 1, number: 1, first_sequence: 2, previous_number: 3, previous_bytes: 4, tag: 5 }.to_bytes();
        bytes[8] = 9;
        let crc = crc32fast::hash(&bytes[..76]);
        bytes[76..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::parse(&bytes), Header::OtherVersion(9));
    }
}
