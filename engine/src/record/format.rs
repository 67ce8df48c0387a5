//! The format of a line: how fields are read from it. It never changes what is stored.

use crate::error::{Error, Result};

/// How fields are read from a line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Format {
    /// Plain text; fields are found by looking.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// `key=value` pairs.
    Logfmt,
    /// Separated values.
    Csv {
        /// The separator.
        delimiter: u8,
        /// Column names, in order; empty when the file had no header.
        columns: Vec<String>,
    },
}

impl Format {
    /// The format as text, the form in which it is stored: `text`, `json`, `logfmt`, or
    /// `csv` + delimiter byte + column names, each ended by a NUL (`0x00` inside a name is written `0x01 0x30`, `0x01` as `0x01 0x31`).
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Format::Text => b"text".to_vec(),
            Format::Json => b"json".to_vec(),
            Format::Logfmt => b"logfmt".to_vec(),
            Format::Csv { delimiter, columns } => {
                let mut out = b"csv".to_vec();
                out.push(*delimiter);
                for name in columns {
                    for &b in name.as_bytes() {
                        match b {
                            0 => out.extend_from_slice(&[1, b'0']),
                            1 => out.extend_from_slice(&[1, b'1']),
                            _ => out.push(b),
                        }
                    }
                    out.push(0);
                }
                out
            }
        }
    }

    /// The inverse of [`Format::to_bytes`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `bytes` is no format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes {
            b"text" => Ok(Format::Text),
            b"json" => Ok(Format::Json),
            b"logfmt" => Ok(Format::Logfmt),
            [b'c', b's', b'v', delimiter, rest @ ..] => {
                let columns = csv_columns(rest).ok_or_else(|| Error::invalid("unknown format"))?;
                Ok(Format::Csv { delimiter: *delimiter, columns })
            }
            _ => Err(Error::invalid("unknown format")),
        }
    }
}

fn csv_columns(mut rest: &[u8]) -> Option<Vec<String>> {
    let mut columns = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|&b| b == 0)?;
        let mut name = Vec::with_capacity(end);
        let mut bytes = rest[..end].iter();
        while let Some(&b) = bytes.next() {
            if b == 1 {
                name.push(bytes.next()?.checked_sub(b'0').filter(|&c| c < 2)?);
            } else {
                name.push(b);
            }
        }
        columns.push(String::from_utf8(name).ok()?);
        rest = &rest[end + 1..];
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_survive_their_bytes() {
        let csv = |columns: &[&str]| Format::Csv { delimiter: b';', columns: columns.iter().map(|s| (*s).to_string()).collect() };
        for format in [Format::Text, Format::Json, Format::Logfmt, csv(&[]), csv(&["", "a\0b", "\u{1}0", "é,\n"])] {
            assert_eq!(Format::from_bytes(&format.to_bytes()), Ok(format));
        }
        assert!(Format::from_bytes(b"csv,ab").is_err());
        assert!(Format::from_bytes(b"").is_err());
    }
}
