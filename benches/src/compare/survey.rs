//! One look before anything is measured: how many lines, whether they hold times, which needles, how often each is there.

use crate::logs::{Logs, matching_lines};
use crate::peer::{Needle, Sort};
use anyhow::{Result, ensure};
use haystore::{Batch, Labels};
use haystore_bench::input::{Sum, absent};
use haystore_server::cli::args::InputFormat;

/// Words that are counted before the rarest are taken.
const WORDS: usize = 12;
/// Needles of each sort.
const NEEDLES: usize = 3;
/// The shortest word that makes a needle, and the longest.
const WORD_BYTES: std::ops::RangeInclusive<usize> = 6..=40;

/// What is known of the logs.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Lines, their bytes, a sum over them.
    pub sum: Sum,
    /// CRC-32 of all lines in order, a newline each.
    pub crc: u32,
    /// Whether lines hold times.
    pub has_times: bool,
    /// First and last time, ns since the epoch.
    pub times: (i64, i64),
    /// What to look for.
    pub needles: Vec<Needle>,
}

/// Looks at `logs`; cuts them into lines where a record would hold newlines. `given` are needles of the user.
///
/// # Errors
/// Those of the files; a line that is too long; logs without a line.
pub fn survey(logs: &mut Logs, given: &[String]) -> Result<Survey> {
    let mut look = Look::of(logs)?;
    if look.has_newlines {
        logs.format = InputFormat::Lines;
        look = Look::of(logs)?;
    }
    ensure!(look.lines > 0, "the logs hold no line");
    let candidates = candidates(&look.words, given);
    let (sum, crc, needles) = count(logs, candidates)?;
    ensure!(sum.lines == look.lines, "the files were changed while they were read");
    Ok(Survey { sum, crc, has_times: look.has_times, times: look.times, needles: choose(needles) })
}

/// What a pass over the records shows.
#[derive(Debug)]
struct Look {
    lines: u64,
    has_newlines: bool,
    has_times: bool,
    times: (i64, i64),
    words: Words,
}

impl Look {
    fn of(logs: &Logs) -> Result<Look> {
        let words = Words { every: 1, seen: 0, words: Vec::new() };
        let mut look = Look { lines: 0, has_newlines: false, has_times: false, times: (i64::MAX, i64::MIN), words };
        let tally = logs.records(&Labels::default(), &mut |batch| {
            look.add(batch, logs.now_ns);
            Ok(())
        })?;
        ensure!(tally.rejected == 0, "{} lines cannot be read: {}", tally.rejected, tally.reasons.join("; "));
        Ok(look)
    }

    fn add(&mut self, batch: &Batch, now_ns: i64) {
        self.lines += batch.len() as u64;
        for (row, &time) in batch.timestamps().iter().enumerate() {
            self.has_times |= time != now_ns;
            self.times = (self.times.0.min(time), self.times.1.max(time));
            self.words.add(batch.line(row));
        }
        self.has_newlines |= memchr::memchr(b'\n', batch.lines().0).is_some();
    }
}

/// Words spread evenly over the lines: from [`WORDS`] to twice as many.
#[derive(Debug)]
struct Words {
    every: u64,
    seen: u64,
    words: Vec<String>,
}

impl Words {
    fn add(&mut self, line: &[u8]) {
        self.seen += 1;
        if self.seen % self.every != 0 {
            return;
        }
        let Some(word) = word_of(line) else { return };
        self.words.push(word);
        if self.words.len() >= 2 * WORDS {
            let mut keep = false;
            self.words.retain(|_| {
                keep = !keep;
                keep
            });
            self.every *= 2;
        }
    }
}

/// The longest run of letters and digits; one that has both before any other.
fn word_of(line: &[u8]) -> Option<String> {
    let runs = line.split(|b| !b.is_ascii_alphanumeric()).filter(|run| WORD_BYTES.contains(&run.len()));
    let is_id = |run: &[u8]| run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
    let word = runs.max_by_key(|run| (is_id(run), run.len()))?;
    String::from_utf8(word.to_vec()).ok()
}

/// Needles that may be taken, not counted yet.
fn candidates(words: &Words, given: &[String]) -> Vec<Needle> {
    let mut all: Vec<Needle> = Vec::new();
    let mut add = |text: &str, sort| {
        if !text.is_empty() && !all.iter().any(|n| n.text == text && n.sort == sort) {
            all.push(Needle { text: text.to_string(), sort, lines: 0 });
        }
    };
    for word in &words.words {
        add(word, Sort::Token);
        add(&word[1..word.len() - 1], Sort::Substring);
        add(&absent(word), Sort::Absent);
    }
    for text in given {
        add(text, Sort::Given);
    }
    all
}

/// Counts the lines that hold each needle, by a plain scan, and sums all lines.
fn count(logs: &Logs, mut needles: Vec<Needle>) -> Result<(Sum, u32, Vec<Needle>)> {
    let texts: Vec<String> = needles.iter().map(|n| n.text.clone()).collect();
    let finders: Vec<_> = texts.iter().map(memchr::memmem::Finder::new).collect();
    let (mut sum, mut crc) = (Sum::default(), crc32fast::Hasher::new());
    logs.text(&mut |text| {
        crc.update(text);
        crate::logs::each_line(text, &mut |line| {
            sum.add(line);
            Ok(())
        })?;
        for (needle, finder) in needles.iter_mut().zip(&finders) {
            matching_lines(text, finder, &mut |_| {
                needle.lines += 1;
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok((sum, crc.finalize(), needles))
}

/// Of each sort the rarest few, of those that shall be nowhere the ones that are; all that were given.
fn choose(mut counted: Vec<Needle>) -> Vec<Needle> {
    counted.retain(|n| (n.sort == Sort::Absent) == (n.lines == 0) || n.sort == Sort::Given);
    // Of those that are as rare the longer ones: ids rather than parts of times.
    counted.sort_by_key(|n| (n.lines, std::cmp::Reverse(n.text.len())));
    let of = |sort: Sort| {
        let most = if sort == Sort::Given { usize::MAX } else { NEEDLES };
        counted.iter().filter(move |n| n.sort == sort).take(most).cloned()
    };
    Sort::ALL.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_digits_come_first() {
        assert_eq!(word_of(b"internationalization id=a1b2c3 x").as_deref(), Some("a1b2c3"));
        assert_eq!(word_of(b"one longest 12345678").as_deref(), Some("12345678"));
        assert_eq!(word_of(b"a b c \xff"), None);
    }

    #[test]
    fn words_are_spread_over_all_lines() {
        let mut words = Words { every: 1, seen: 0, words: Vec::new() };
        for i in 0..10_000 {
            words.add(format!("line{i:06}").as_bytes());
        }
        assert!((WORDS..2 * WORDS).contains(&words.words.len()));
        assert!(words.words.last().unwrap().as_str() > "line009000");
    }

    #[test]
    fn the_rarest_are_chosen() {
        let needle = |text: &str, sort, lines| Needle { text: text.into(), sort, lines };
        let counted = vec![
            needle("often", Sort::Token, 9),
            needle("once", Sort::Token, 1),
            needle("gone", Sort::Token, 0),
            needle("there", Sort::Absent, 1),
            needle("nowhere", Sort::Absent, 0),
            needle("mine", Sort::Given, 0),
        ];
        let chosen: Vec<String> = choose(counted).into_iter().map(|n| n.text).collect();
        assert_eq!(chosen, ["once", "often", "nowhere", "mine"]);
    }
}
