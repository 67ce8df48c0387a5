//! Cuts bytes into records, finds their timestamps, appends them to a batch.
//!
//! It is pushed: the caller gives what it has, and keeps what was not consumed. A record is one line without its `\n`
//! (a `\r` stays); what follows the last `\n` is one too, unless it is empty. A CSV record may hold newlines inside quotes.
//! Empty lines are records, except in NDJSON with [`OddLines::Reject`]. A CSV header is a record like any other.
//! Records are the sender's text as it came: an NDJSON line that happens to look like this store's own output is not
//! taken apart.
//! What holds: batches end at the same records however the bytes were cut; memory for a line too long is bounded.
//! This module must not know where bytes come from.

use super::csv::{self, Cut};
use super::detect::{self, Plan, SAMPLE_BYTES};
use super::json;
use super::options::{CsvHeader, OddLines, ReadOptions, Timestamps};
use super::state::{Counts, ReaderState};
use super::timestamp::{self, SEARCH_BYTES};
use haystore::{Batch, Error, Format, Result};

/// A batch has at most so many records, however short they are.
pub const BATCH_RECORDS_MAX: usize = 1 << 18;
/// A report holds at most so many errors; all are counted.
pub const ERRORS_KEPT_MAX: usize = 100;

/// Why one line became no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// The line's number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}

/// What became of the input so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Totals since the input's first byte, also over a resume.
    pub counts: Counts,
    /// The first errors, at most [`ERRORS_KEPT_MAX`], since the parser was made.
    pub errors: Vec<RecordError>,
}

/// Why the parser stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It needs more bytes, behind those it did not consume.
    More,
    /// The batch is full: take it.
    Full,
}

/// Makes records from bytes.
#[derive(Debug)]
pub struct Parser {
    options: ReadOptions,
    state: ReaderState,
    errors: Vec<RecordError>,
    json: json::Reader,
    /// Bytes already dropped of a line that is too long.
    skipped: Option<u64>,
    /// Position of the first byte of the batch that is being filled.
    batch_position: u64,
}

impl Parser {
    /// A parser at the input's first byte.
    pub fn new(options: ReadOptions) -> Self {
        let state = ReaderState::new(options.timestamps, options.time_field.clone(), options.rules);
        Self::resume(options, state)
    }

    /// A parser that goes on where `state` was taken. Format, time field, timestamps and rules are the state's; labels and
    /// limits are those of `options`.
    pub fn resume(options: ReadOptions, state: ReaderState) -> Self {
        let batch_position = state.position;
        Parser { options, state, errors: Vec::new(), json: json::Reader::default(), skipped: None, batch_position }
    }

    /// The place behind the last record.
    pub fn state(&self) -> &ReaderState {
        &self.state
    }

    /// What became of the input so far.
    pub fn report(&self) -> Report {
        Report { counts: self.state.counts, errors: self.errors.clone() }
    }

    /// Appends the records of `data` to `batch` until it is full; `end`: nothing follows `data`. Returns how many bytes were consumed:
    /// the next call must begin with the byte behind them. Hold at least twice as much as was left over before calling
    /// again, or long lines cost quadratic time.
    ///
    /// # Errors
    /// [`haystore::ErrorKind::Invalid`] when the options do not fit the input (see [`detect::detect`]); limits of the batch.
    pub fn parse(&mut self, data: &[u8], end: bool, batch: &mut Batch) -> Result<(usize, Step)> {
        if self.state.plan.is_none() {
            // One byte more than the sample tells that the sample is not all.
            if data.len() <= SAMPLE_BYTES && !end {
                return Ok((0, Step::More));
            }
            let detected = detect::detect(data, end && data.len() <= SAMPLE_BYTES, &self.options)?;
            self.state.last_time = detected.first_time.unwrap_or(self.state.rules.now);
            self.state.plan = Some(detected.plan);
        }
        let plan = self.state.plan.take().ok_or_else(|| Error::internal("no plan"))?;
        let result = self.parse_by(&plan, data, end, batch);
        self.state.plan = Some(plan);
        result
    }

    fn parse_by(&mut self, plan: &Plan, data: &[u8], end: bool, batch: &mut Batch) -> Result<(usize, Step)> {
        let mut sink = Sink::new(batch, plan, &self.options)?;
        let reach_max = csv::RECORD_BYTES_MAX.min(self.options.line_bytes_max);
        let mut at = 0;
        while at < data.len() {
            let rest = &data[at..];
            if self.skipped.is_some() {
                at += self.skip(rest, end);
                continue;
            }
            let found = match plan {
                Plan::Csv { delimiter, .. } => csv::cut(rest, *delimiter, end, reach_max),
                _ => cut_line(rest, end),
            };
            let (len, used) = match found {
                Cut::At(newline) => (newline, newline + 1),
                Cut::End => (rest.len(), rest.len()),
                Cut::More if rest.len() > self.options.line_bytes_max && memchr::memchr(b'\n', rest).is_none() => {
                    self.skipped = Some(0);
                    continue;
                }
                Cut::More => break,
            };
            let record = &rest[..len];
            let is_repeated = self.state.position == 0 && self.options.header == CsvHeader::Repeated && matches!(plan, Plan::Csv { .. });
            if is_repeated {
                // It is a record of the input whose later part this is.
            } else if len > self.options.line_bytes_max {
                self.reject_long(len as u64);
            } else {
                self.take(plan, record, &mut sink)?;
            }
            self.state.line += 1;
            if matches!(plan, Plan::Csv { .. }) {
                self.state.line += memchr::memchr_iter(b'\n', record).count() as u64;
            }
            self.state.position += used as u64;
            at += used;
            let is_full = self.state.position - self.batch_position >= self.options.batch_bytes as u64;
            if is_full || sink.batch.len() >= BATCH_RECORDS_MAX {
                self.batch_position = self.state.position;
                return Ok((at, Step::Full));
            }
        }
        if end && self.skipped.is_some() {
            self.skip(&[], end);
        }
        Ok((at, Step::More))
    }

    /// Drops bytes of a line that is too long; returns how many.
    fn skip(&mut self, rest: &[u8], end: bool) -> usize {
        let newline = memchr::memchr(b'\n', rest);
        let dropped = self.skipped.unwrap_or(0) + newline.unwrap_or(rest.len()) as u64;
        let used = newline.map_or(rest.len(), |n| n + 1);
        if newline.is_some() || end {
            self.skipped = None;
            self.reject_long(dropped);
            self.state.line += 1;
            self.state.position += dropped + u64::from(newline.is_some());
        } else {
            self.skipped = Some(dropped);
        }
        used
    }

    fn reject_long(&mut self, len: u64) {
        self.reject(format!("the line has {len} bytes, more than {} are not taken", self.options.line_bytes_max));
    }

    fn reject(&mut self, message: String) {
        self.state.counts.rejected += 1;
        if self.errors.len() < ERRORS_KEPT_MAX {
            self.errors.push(RecordError { line: self.state.line + 1, message });
        }
    }

    fn take(&mut self, plan: &Plan, line: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let rules = self.state.rules;
        let is_timed = self.state.timestamps == Timestamps::Auto;
        let text = if self.state.position == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        let mut is_text = false;
        let found = match plan {
            Plan::Lines { window } if is_timed => timestamp::find(text, *window, &rules).map(|f| f.nanos),
            Plan::Csv { delimiter, time_column: Some(column), .. } if is_timed => {
                csv::fields(text, *delimiter).nth(*column).and_then(|field| timestamp::value(field, &rules))
            }
            Plan::Lines { .. } | Plan::Csv { .. } => None,
            Plan::Ndjson => match self.read_json(text, is_timed) {
                Ok(found) => found,
                Err(_) if self.options.odd_lines == OddLines::Reject && text.trim_ascii().is_empty() => return Ok(()),
                Err(flaw) if self.options.odd_lines == OddLines::Reject => {
                    self.reject(flaw.to_string());
                    return Ok(());
                }
                Err(_) => {
                    is_text = true;
                    self.state.counts.odd += u64::from(!text.trim_ascii().is_empty());
                    if is_timed { timestamp::find(text, SEARCH_BYTES, &rules).map(|f| f.nanos) } else { None }
                }
            },
        };
        let nanos = match self.state.timestamps {
            Timestamps::All(nanos) => nanos,
            Timestamps::Auto => {
                self.state.counts.untimed += u64::from(found.is_none());
                let nanos = found.unwrap_or(self.state.last_time);
                self.state.last_time = nanos;
                nanos
            }
        };
        self.state.counts.records += 1;
        self.state.counts.line_bytes += line.len() as u64;
        sink.push(nanos, line, is_text)
    }

    fn read_json(&mut self, text: &[u8], is_timed: bool) -> Result<Option<i64>, json::Flaw> {
        if is_timed {
            self.json.time(text, self.state.time_field.as_deref(), &self.state.rules)
        } else {
            self.json.read(text, |_, _| {}).map(|()| None)
        }
    }
}

fn cut_line(data: &[u8], end: bool) -> Cut {
    match memchr::memchr(b'\n', data) {
        Some(newline) => Cut::At(newline),
        None if end => Cut::End,
        None => Cut::More,
    }
}

/// The batch, with the stream and format of most records at hand.
struct Sink<'b> {
    batch: &'b mut Batch,
    stream: u32,
    format: u16,
}

impl<'b> Sink<'b> {
    fn new(batch: &'b mut Batch, plan: &Plan, options: &ReadOptions) -> Result<Self> {
        let format = match plan {
            Plan::Lines { .. } => Format::Text,
            Plan::Ndjson => Format::Json,
            Plan::Csv { delimiter, columns, .. } => Format::Csv { delimiter: *delimiter, columns: columns.clone() },
        };
        let (stream, format) = (batch.stream(&options.labels), batch.format(&format)?);
        Ok(Sink { batch, stream, format })
    }

    fn push(&mut self, nanos: i64, line: &[u8], is_text: bool) -> Result<()> {
        let format = if is_text { self.batch.format(&Format::Text)? } else { self.format };
        self.batch.push(nanos, self.stream, format, line, &[])
    }
}

#[cfg(test)]
mod tests;
