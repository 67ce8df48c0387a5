//! Corpora: logs made by rule, shaped like real traffic, for the demo, the tests and the benches.
//!
//! Three kinds of text ([`Kind`]) and one of many streams ([`many`]). What holds: the same kind and seed give the same
//! bytes on every machine and in every build (own generator, own logarithm), and a longer corpus begins with the
//! shorter one. Hosts, addresses and paths are skewed the way traffic is: few hot ones, a long tail, bursts, ids that
//! never repeat. This module must not know the store.

mod app;
mod elb;
pub mod many;
mod rng;
mod syslog;
mod text;

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

/// A kind of log text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Load balancer access log: comma-separated, no header, about 300 bytes a line.
    Elb,
    /// Nested JSON of applications, with JSON inside a string, about 1.7 KB a line.
    App,
    /// RFC 3164 messages without the `<PRI>` part, about 120 bytes a line.
    Syslog,
}

impl Kind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Kind; 3] = [Kind::Elb, Kind::App, Kind::Syslog];

    /// The kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Elb => "elb",
            Kind::App => "app",
            Kind::Syslog => "syslog",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Kind::ALL.into_iter().find(|k| k.name() == name).ok_or_else(|| format!("unknown kind of log {name:?}: elb, app or syslog"))
    }
}

/// How much to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// This many lines.
    Rows(u64),
    /// Whole lines until at least this many bytes are there.
    Bytes(u64),
}

/// How much was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Made {
    /// Lines.
    pub rows: u64,
    /// Bytes, newlines included.
    pub bytes: u64,
}

/// Bytes made between two writes to the output.
const PIECE_BYTES: usize = 256 << 10;

/// Writes a corpus of `kind` to `out`; every line ends with a newline.
///
/// # Errors
/// Those of `out`.
pub fn generate(kind: Kind, amount: Amount, seed: u64, out: &mut impl Write) -> io::Result<Made> {
    let mut corpus = Corpus::new(kind, amount, seed);
    while corpus.fill() {
        out.write_all(&corpus.piece)?;
    }
    Ok(corpus.made)
}

/// A corpus as a byte stream: what [`generate`] writes, to be read.
pub struct Corpus {
    lines: Box<dyn Lines + Send>,
    amount: Amount,
    made: Made,
    piece: Vec<u8>,
    read: usize,
}

/// Makes one line after the other.
trait Lines {
    /// Appends the next line and its newline to `out`.
    fn push_line(&mut self, out: &mut Vec<u8>);
}

impl Corpus {
    /// The corpus of `kind` and `seed`, `amount` of it.
    pub fn new(kind: Kind, amount: Amount, seed: u64) -> Self {
        let lines: Box<dyn Lines + Send> = match kind {
            Kind::Elb => Box::new(elb::Elb::new(seed)),
            Kind::App => Box::new(app::App::new(seed)),
            Kind::Syslog => Box::new(syslog::Syslog::new(seed)),
        };
        Corpus { lines, amount, made: Made::default(), piece: Vec::with_capacity(PIECE_BYTES + 8192), read: 0 }
    }

    /// What was made so far.
    pub fn made(&self) -> Made {
        self.made
    }

    /// Replaces the piece by the next one; false at the end.
    fn fill(&mut self) -> bool {
        self.piece.clear();
        self.read = 0;
        while self.piece.len() < PIECE_BYTES {
            let bytes = self.made.bytes + self.piece.len() as u64;
            let more = match self.amount {
                Amount::Rows(rows) => self.made.rows < rows,
                Amount::Bytes(wanted) => bytes < wanted,
            };
            if !more {
                break;
            }
            self.lines.push_line(&mut self.piece);
            self.made.rows += 1;
        }
        self.made.bytes += self.piece.len() as u64;
        !self.piece.is_empty()
    }
}

impl Read for Corpus {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() && !self.fill() {
            return Ok(0);
        }
        let bytes = out.len().min(self.piece.len() - self.read);
        out[..bytes].copy_from_slice(&self.piece[self.read..self.read + bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corpus").field("amount", &self.amount).field("made", &self.made).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: Kind, amount: Amount, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let made = generate(kind, amount, seed, &mut out).unwrap();
        assert_eq!(made.bytes, out.len() as u64);
        assert_eq!(made.rows, memchr::memchr_iter(b'\n', &out).count() as u64);
        out
    }

    /// FNV-1a: short, and not part of what is tested.
    fn hash(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
    }

    #[test]
    fn bytes_are_pinned() {
        let pinned = [(Kind::Elb, 0x52f3_666e_73f0_b462), (Kind::App, 0xee1d_a0d1_7dbc_9672), (Kind::Syslog, 0xaa2f_a412_b6c0_fe9b)];
        for (kind, wanted) in pinned {
            let made = bytes(kind, Amount::Bytes(100_000), 1);
            assert_eq!(hash(&made[..100_000]), wanted, "{kind}: {:#018x}", hash(&made[..100_000]));
        }
    }

    #[test]
    fn a_longer_corpus_begins_with_the_shorter_and_reads_as_it_is_written() {
        for kind in Kind::ALL {
            let long = bytes(kind, Amount::Bytes(700_000), 7);
            let short = bytes(kind, Amount::Rows(50), 7);
            assert!(long.starts_with(&short), "{kind}");
            assert_ne!(short, bytes(kind, Amount::Rows(50), 8), "{kind}");
            let mut read = Vec::new();
            Corpus::new(kind, Amount::Bytes(700_000), 7).read_to_end(&mut read).unwrap();
            assert!(read == long, "{kind}");
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!(bytes(Kind::Elb, Amount::Rows(0), 1).is_empty());
    }

    #[test]
    fn lines_have_the_stated_size_and_form() {
        for (kind, least, most) in [(Kind::Elb, 250, 340), (Kind::App, 1400, 2100), (Kind::Syslog, 90, 140)] {
            let made = bytes(kind, Amount::Rows(2000), 3);
            let mean = made.len() / 2000;
            assert!((least..most).contains(&mean), "{kind}: {mean} bytes a line");
        }
        for line in bytes(Kind::App, Amount::Rows(300), 3).split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
            let outer: serde_json::Value = serde_json::from_slice(line).unwrap();
            let inner: serde_json::Value = serde_json::from_str(outer["_line"].as_str().unwrap()).unwrap();
            assert_eq!(inner["message"], outer["message"]);
            assert_eq!(serde_json::to_vec(&inner["instant"]["epochSecond"]).unwrap().len(), 10);
        }
        for line in bytes(Kind::Elb, Amount::Rows(300), 3).split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
            let text = std::str::from_utf8(line).unwrap();
            assert_eq!(&text[26..28], "Z,", "{text}");
        }
    }
}
