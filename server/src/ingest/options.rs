//! What a caller may choose when it reads records.

use super::timestamp::TimeRules;
use haystore::{Error, Labels, Result};
use std::str::FromStr;

/// How the input is cut into records and its fields are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputFormat {
    /// Found by looking at the input's first 64 KiB.
    #[default]
    Auto,
    /// Text: one record a line.
    Lines,
    /// One JSON value a line.
    Ndjson,
    /// Separated values: a record may hold newlines inside quotes.
    Csv,
}

impl FromStr for InputFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(InputFormat::Auto),
            "lines" => Ok(InputFormat::Lines),
            "ndjson" => Ok(InputFormat::Ndjson),
            "csv" => Ok(InputFormat::Csv),
            _ => Err(Error::invalid(format!("format {name:?}: known are auto, lines, ndjson and csv"))),
        }
    }
}

/// Where timestamps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Timestamps {
    /// The record; one without takes its predecessor's; the ones before the first take the first in the input's
    /// first 64 KiB, or, when there is none, [`TimeRules::now`].
    #[default]
    Auto,
    /// All records get this one, nanoseconds since the epoch; their order is the input's.
    All(i64),
}

/// What becomes of NDJSON lines that are no JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OddLines {
    /// They become records of plain text, empty lines too, and are counted: nothing of a file is lost.
    #[default]
    Keep,
    /// Each is an error with its line number; empty lines are skipped. For request bodies.
    Reject,
}

/// CSV: whether the first record names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CsvHeader {
    /// Found by looking. A header is a record too.
    #[default]
    Auto,
    /// It does, and is a record too.
    First,
    /// It does not.
    None,
    /// It does, and is no record: the input is a later part of a larger one, with the header of that put before it.
    Repeated,
}

/// How to read one input.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The input's format.
    pub format: InputFormat,
    /// The labels of all records.
    pub labels: Labels,
    /// Where timestamps come from.
    pub timestamps: Timestamps,
    /// Where the time lies. JSON: a member's name, or a path `a.b`. CSV: a column's name, or its number from 1.
    /// `None`: the usual names, else the first CSV column that holds timestamps. Without meaning for lines.
    pub time_field: Option<String>,
    /// How gaps in timestamps are filled.
    pub rules: TimeRules,
    /// CSV: the separator; `None`: one of `,` `;` tab `|`, found by looking.
    pub delimiter: Option<u8>,
    /// CSV: whether the first record names the columns.
    pub header: CsvHeader,
    /// What becomes of NDJSON lines that are no JSON.
    pub odd_lines: OddLines,
    /// A batch ends at the first record's end past so many bytes of input.
    pub batch_bytes: usize,
    /// The longest line, in bytes without its newline; longer ones are skipped and reported.
    pub line_bytes_max: usize,
}

impl ReadOptions {
    /// Everything found by looking; no labels; batches of 4 MB, lines of at most 16 MiB.
    pub fn new(rules: TimeRules) -> Self {
        ReadOptions {
            format: InputFormat::Auto,
            labels: Labels::default(),
            timestamps: Timestamps::Auto,
            time_field: None,
            rules,
            delimiter: None,
            header: CsvHeader::Auto,
            odd_lines: OddLines::Keep,
            batch_bytes: 4_000_000,
            line_bytes_max: 16 << 20,
        }
    }
}
