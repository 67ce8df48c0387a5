//! Files to lines, the same for every store: raw text for those that keep lines, records with their times for those that keep them.

use anyhow::{Context, Result, bail};
use haystore::{Batch, Labels};
use haystore_server::cli::args::{InputFormat, Timestamps};
use haystore_server::cli::ingest::{Source, expand};
use haystore_server::cli::seam::{ReadOptions, Records, Tally, decoded};
use std::io::Read;

/// Bytes of text handed on at a time.
const TEXT_BYTES: usize = 1 << 20;
/// The longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The files of a comparison.
#[derive(Debug, Clone)]
pub struct Logs {
    /// In the order given, those of a glob sorted.
    pub sources: Vec<Source>,
    /// How records are cut; the survey changes it to lines where a record holds newlines.
    pub format: InputFormat,
    /// The time of lines that have none, ns since the epoch.
    pub now_ns: i64,
}

impl Logs {
    /// The files that `inputs` name.
    ///
    /// # Errors
    /// A file that is not there; standard input, which cannot be read again for each store.
    pub fn open(inputs: &[String]) -> Result<Logs> {
        let sources = expand(inputs)?;
        if sources.iter().any(|s| s.path.as_ref().is_none_or(|p| !p.is_file())) {
            bail!("every store reads the logs anew, so they must be files");
        }
        Ok(Logs { sources, format: InputFormat::Auto, now_ns: haystore_server::cli::open::now_ns() })
    }

    /// How records are read, all with `labels`.
    pub fn options(&self, labels: Labels) -> ReadOptions {
        ReadOptions {
            format: self.format,
            labels,
            timestamps: Timestamps::Auto,
            time_field: None,
            line_bytes_max: LINE_BYTES_MAX,
            batch_bytes_max: usize::MAX,
            now_ns: self.now_ns,
        }
    }

    /// Hands every record to `take`, in batches of about 4 MB of lines; what was unusual.
    ///
    /// # Errors
    /// Those of the files and of `take`.
    pub fn records(&self, labels: &Labels, take: &mut dyn FnMut(&Batch) -> Result<()>) -> Result<Tally> {
        let mut tally = Tally::default();
        for source in &self.sources {
            let mut records = Records::open(source.open()?, &self.options(labels.clone()), None)?;
            while let Some(piece) = records.next_piece().with_context(|| source.name())? {
                take(&piece.batch)?;
            }
            let one = records.tally();
            tally.rejected += one.rejected;
            tally.reasons.extend(one.reasons);
        }
        Ok(tally)
    }

    /// Hands all text to `take`, in pieces of whole lines, each with its newline.
    ///
    /// # Errors
    /// Those of the files and of `take`.
    pub fn text(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for source in &self.sources {
            whole_lines(decoded(source.open()?)?, take).with_context(|| source.name())?;
        }
        Ok(())
    }

    /// Hands every line to `take`, without its newline.
    ///
    /// # Errors
    /// Those of the files and of `take`.
    pub fn lines(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.text(&mut |text| each_line(text, take))
    }
}

/// Hands what `input` gives to `take`, in pieces of whole lines; the last one gets the newline that it may lack.
///
/// # Errors
/// Those of the input and of `take`.
pub fn whole_lines(mut input: impl Read, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut buffer = Vec::with_capacity(2 * TEXT_BYTES);
    loop {
        let read = input.by_ref().take(TEXT_BYTES as u64).read_to_end(&mut buffer)?;
        if read == 0 {
            break;
        }
        let fresh = buffer.len() - read;
        if let Some(at) = memchr::memrchr(b'\n', &buffer[fresh..]) {
            let end = fresh + at + 1;
            take(&buffer[..end])?;
            buffer.drain(..end);
        }
    }
    if buffer.is_empty() {
        return Ok(());
    }
    buffer.push(b'\n');
    take(&buffer)
}

/// Hands each line of `text`, which ends with a newline, to `take`.
///
/// # Errors
/// Those of `take`.
pub fn each_line(text: &[u8], take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text) {
        take(&text[start..end])?;
        start = end + 1;
    }
    Ok(())
}

/// Hands each line of `text`, which ends with a newline, that holds what `finder` looks for to `take`, once.
///
/// # Errors
/// Those of `take`.
pub fn matching_lines(text: &[u8], finder: &memchr::memmem::Finder<'_>, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut at = 0;
    while let Some(hit) = finder.find(&text[at..]).map(|hit| at + hit) {
        let start = memchr::memrchr(b'\n', &text[at..hit]).map_or(at, |newline| at + newline + 1);
        let end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |newline| hit + newline);
        take(&text[start..end])?;
        at = (end + 1).min(text.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(input: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        whole_lines(input, &mut |text| {
            out.push(text.to_vec());
            Ok(())
        })
        .unwrap();
        out
    }

    #[test]
    fn pieces_are_whole_lines() {
        assert!(pieces(b"").is_empty());
        assert_eq!(pieces(b"a\n\nb"), [b"a\n\n".to_vec(), b"b\n".to_vec()]);
        let long = [vec![b'x'; 3 * TEXT_BYTES], b"\ny\nz".to_vec()].concat();
        let all = pieces(&long);
        assert_eq!(all.concat(), [long, b"\n".to_vec()].concat());
        assert!(all.iter().all(|piece| piece.ends_with(b"\n")));
    }

    #[test]
    fn lines_that_match_come_once() {
        let found = |text: &[u8], needle: &[u8]| {
            let mut out = Vec::new();
            let finder = memchr::memmem::Finder::new(needle);
            let mut keep = |line: &[u8]| {
                out.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            };
            matching_lines(text, &finder, &mut keep).unwrap();
            out
        };
        assert_eq!(found(b"aa\nba\n\nc\naaa\n", b"a"), ["aa", "ba", "aaa"]);
        assert_eq!(found(b"aa\n", b"aa"), ["aa"]);
        assert!(found(b"a\nb\n", b"ab").is_empty());
    }
}
