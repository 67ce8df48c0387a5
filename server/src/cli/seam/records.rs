//! Files as records.

use crate::cli::args::{InputFormat, Timestamps};
use crate::ingest::{self, Input, Plan, ReaderState, RecordReader, TimeRules};
use haystore::{Batch, Labels, Result};
use std::io::{self, Read};

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
    /// Most bytes of input in a piece, apart from a record that is longer.
    pub batch_bytes_max: usize,
    /// The current time, nanoseconds since the epoch.
    pub now_ns: i64,
}

impl ReadOptions {
    fn to_ingest(&self) -> ingest::ReadOptions {
        let usual = ingest::ReadOptions::new(TimeRules::new(self.now_ns));
        ingest::ReadOptions {
            format: match self.format {
                InputFormat::Auto => ingest::InputFormat::Auto,
                InputFormat::Lines => ingest::InputFormat::Lines,
                InputFormat::Ndjson => ingest::InputFormat::Ndjson,
                InputFormat::Csv => ingest::InputFormat::Csv,
            },
            labels: self.labels.clone(),
            timestamps: match self.timestamps {
                Timestamps::Auto => ingest::Timestamps::Auto,
                Timestamps::None => ingest::Timestamps::All(self.now_ns),
            },
            time_field: self.time_field.clone(),
            line_bytes_max: self.line_bytes_max,
            batch_bytes: usual.batch_bytes.min(self.batch_bytes_max),
            ..usual
        }
    }
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

/// A streaming reader of records.
#[derive(Debug)]
pub struct Records(RecordReader<Input>);

impl Records {
    /// Reads `input`, packed or not, from its beginning; with a `state`, from behind the piece it came with.
    ///
    /// # Errors
    /// Read errors; a state that is none, or that lies behind the input's end.
    pub fn open(input: Box<dyn Read + Send>, options: &ReadOptions, state: Option<&[u8]>) -> anyhow::Result<Self> {
        let state = state.map(ReaderState::from_bytes).transpose()?;
        let input = Input::from_reader(input, state.as_ref().map_or(0, ReaderState::position))?;
        let options = options.to_ingest();
        Ok(Records(match state {
            Some(state) => RecordReader::resume(input, options, state),
            None => RecordReader::new(input, options),
        }))
    }

    /// The next records; `None` at the end.
    ///
    /// # Errors
    /// Read errors; damage in packed input; options that do not fit the input.
    pub fn next_piece(&mut self) -> Result<Option<Piece>> {
        let Some(batch) = self.0.next_batch()? else { return Ok(None) };
        Ok(Some(Piece { batch, state: self.0.state().to_bytes()? }))
    }

    /// What was unusual so far.
    pub fn tally(&self) -> Tally {
        let report = self.0.report();
        let reasons = report.errors.iter().map(|e| format!("line {}: {}", e.line, e.message)).collect();
        Tally { odd: report.counts.odd, rejected: report.counts.rejected, reasons }
    }
}

/// Unpacks gzip and zstd, known by their first bytes; anything else passes as it is.
///
/// # Errors
/// Read errors.
pub fn decoded(input: Box<dyn Read + Send>) -> io::Result<Input> {
    Input::from_reader(input, 0)
}

/// What is seen at the head of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The format's name in the HTTP API.
    pub format: &'static str,
    /// Of separated values.
    pub csv: Option<CsvLook>,
}

/// What is seen at the head of separated values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvLook {
    /// What separates the columns.
    pub delimiter: u8,
    /// The record that names them, if there is one.
    pub header: Option<Vec<u8>>,
    /// The column that holds the time: its name, else its number from 1.
    pub time_field: Option<String>,
}

/// Looks at the first bytes of an input, or at all of them when `whole`.
///
/// # Errors
/// Options that do not fit the input.
pub fn look(first: &[u8], whole: bool, options: &ReadOptions) -> Result<Look> {
    Ok(match ingest::detect(first, whole, &options.to_ingest())?.plan {
        Plan::Lines { .. } => Look { format: "lines", csv: None },
        Plan::Ndjson => Look { format: "ndjson", csv: None },
        Plan::Csv { time_column, delimiter, columns } => {
            let header = ingest::csv_header(first, whole, delimiter).filter(|_| !columns.is_empty()).map(<[u8]>::to_vec);
            let time_field = time_column.map(|column| time_field(&columns, header.is_some(), column));
            Look { format: "csv", csv: Some(CsvLook { delimiter, header, time_field }) }
        }
    })
}

/// What names `column` to a server: its name, where that is sent along and names no other column.
fn time_field(columns: &[String], is_sent: bool, column: usize) -> String {
    let name = columns.get(column).filter(|name| is_sent && columns.iter().position(|n| n == *name) == Some(column));
    name.cloned().unwrap_or_else(|| (column + 1).to_string())
}
