//! What a scan must give: the corpus made once more, in the order of time.

use crate::corpus::{Amount, Corpus, Kind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, BufRead, BufReader};

/// Application log lines come at most this much behind their turn.
const APP_LATE_MS_MAX: u64 = 2000;

/// The lines of a corpus in the order of time; lines of the same time as they came.
pub(super) struct Expected {
    lines: BufReader<Corpus>,
    kind: Kind,
    newest_ms: u64,
    seen: u64,
    waiting: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    ready: VecDeque<Vec<u8>>,
    ended: bool,
}

impl Expected {
    pub(super) fn new(kind: Kind, amount: Amount, seed: u64) -> Self {
        let lines = BufReader::with_capacity(1 << 18, Corpus::new(kind, amount, seed));
        Expected { lines, kind, newest_ms: 0, seen: 0, waiting: BinaryHeap::new(), ready: VecDeque::new(), ended: false }
    }

    /// The next line without its newline.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        while self.ready.is_empty() && !self.ended {
            self.take_one()?;
        }
        Ok(self.ready.pop_front())
    }

    fn take_one(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        if self.lines.read_until(b'\n', &mut line)? == 0 {
            self.ended = true;
        } else {
            line.pop();
            // The other kinds are in the order of time as they are made.
            if self.kind != Kind::App {
                self.ready.push_back(line);
                return Ok(());
            }
            let ms = app_ms(&line).unwrap_or(self.newest_ms);
            self.newest_ms = self.newest_ms.max(ms);
            self.waiting.push(Reverse((ms, self.seen, line)));
            self.seen += 1;
        }
        while let Some(Reverse((ms, _, _))) = self.waiting.peek() {
            if !self.ended && ms + APP_LATE_MS_MAX > self.newest_ms {
                break;
            }
            self.ready.extend(self.waiting.pop().map(|Reverse((_, _, line))| line));
        }
        Ok(())
    }
}

/// The member `_ts` of an application log line.
fn app_ms(line: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, b"\",\"_ts\":")? + 8;
    let digits = line[at..].iter().take_while(|b| b.is_ascii_digit());
    Some(digits.fold(0, |n, d| n * 10 + u64::from(d - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_the_order_of_time() {
        for kind in Kind::ALL {
            let mut made = Vec::new();
            crate::corpus::generate(kind, Amount::Rows(9000), 4, &mut made).unwrap();
            let mut wanted: Vec<(u64, &[u8])> = made
                .split(|&b| b == b'\n')
                .filter(|l| !l.is_empty())
                .map(|l| (if kind == Kind::App { app_ms(l).unwrap() } else { 0 }, l))
                .collect();
            let unsorted = wanted.clone();
            wanted.sort_by_key(|(ms, _)| *ms);
            assert_eq!(wanted != unsorted, kind == Kind::App);
            let mut expected = Expected::new(kind, Amount::Rows(9000), 4);
            for (_, line) in wanted {
                assert_eq!(expected.next_line().unwrap().as_deref(), Some(line));
            }
            assert_eq!(expected.next_line().unwrap(), None);
        }
    }
}
