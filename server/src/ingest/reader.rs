//! Records from a stream of bytes, batch by batch; and from a whole request body.
//!
//! Memory: one batch, one buffer of about 256 KiB or twice the longest line. Batches, and the state between them,
//! depend on the bytes alone, not on how the stream hands them out.
//! This module must not know formats.

use super::options::ReadOptions;
use super::parser::{Parser, Report, Step};
use super::state::ReaderState;
use haystore::{Batch, Error, Result};
use std::io::{self, Read};

const READ_BYTES: usize = 256 << 10;

/// Reads records from a stream of unpacked bytes.
#[derive(Debug)]
pub struct RecordReader<R> {
    source: R,
    parser: Parser,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are consumed.
    used: usize,
    is_ended: bool,
    /// What the source failed with; told once all whole records before it are out.
    failed: Option<io::Error>,
}

impl<R: Read> RecordReader<R> {
    /// Reads `source` from its first byte.
    pub fn new(source: R, options: ReadOptions) -> Self {
        Self::with(source, Parser::new(options))
    }

    /// Reads on where `state` was taken: `source` must give the input from byte [`ReaderState::position`] on (as [`super::Input::open`]
    /// does). What was decided comes from the state, labels and limits from `options`.
    pub fn resume(source: R, options: ReadOptions, state: ReaderState) -> Self {
        Self::with(source, Parser::resume(options, state))
    }

    fn with(source: R, parser: Parser) -> Self {
        RecordReader { source, parser, buffer: Vec::new(), used: 0, is_ended: false, failed: None }
    }

    /// The next records, in the input's order; `None` at its end.
    ///
    /// # Errors
    /// Io errors of the source, after the whole records before them (none, when they come in the first 64 KiB); options that
    /// do not fit the input. Then reading is over.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        let mut batch = Batch::new();
        loop {
            let (used, step) = self.parser.parse(&self.buffer[self.used..], self.is_ended, &mut batch)?;
            self.used += used;
            if step == Step::Full && !batch.is_empty() {
                return Ok(Some(batch));
            }
            if step == Step::Full {
                continue;
            }
            if self.is_ended || (self.failed.is_some() && !batch.is_empty()) {
                return Ok(Some(batch).filter(|b| !b.is_empty()));
            }
            if let Some(error) = self.failed.take() {
                let position = self.parser.state().position();
                return Err(Error::io(format!("reading failed behind byte {position}"), error));
            }
            self.fill();
        }
    }

    /// Reads at least as many bytes as were left over, so that a long line is looked at a bounded number of times.
    fn fill(&mut self) {
        self.buffer.drain(..self.used);
        self.used = 0;
        let wanted = READ_BYTES.max(self.buffer.len());
        let mut source = self.source.by_ref().take(wanted as u64);
        match source.read_to_end(&mut self.buffer) {
            Ok(read) => self.is_ended = read < wanted,
            Err(error) => self.failed = Some(error),
        }
    }

    /// The place behind the last record of the batches given out so far.
    pub fn state(&self) -> &ReaderState {
        self.parser.state()
    }

    /// Bytes of unpacked input behind the last record given out.
    pub fn position(&self) -> u64 {
        self.parser.state().position()
    }

    /// What became of the input so far.
    pub fn report(&self) -> Report {
        self.parser.report()
    }
}

#[cfg(test)]
impl<R> RecordReader<R> {
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

/// The records of a whole request body; nothing is copied but the lines.
///
/// # Errors
/// Options that do not fit the body. Lines that became no record are in the report.
pub fn parse_body(body: &[u8], options: ReadOptions) -> Result<(Vec<Batch>, Report)> {
    let mut parser = Parser::new(options);
    let mut batches = Vec::new();
    let mut at = 0;
    loop {
        let mut batch = Batch::new();
        let (used, step) = parser.parse(&body[at..], true, &mut batch)?;
        at += used;
        if !batch.is_empty() {
            batches.push(batch);
        }
        if step == Step::More {
            return Ok((batches, parser.report()));
        }
    }
}
