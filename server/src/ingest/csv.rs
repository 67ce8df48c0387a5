//! Separated values: where a record ends, where its fields lie.
//!
//! A quote opens a quoted field only as the field's first byte; in it `""` is a quote and newlines are text. A quote that
//! does not close within [`RECORD_BYTES_MAX`], or by the end of the input, opens nothing: its physical line is a
//! record of its own, so that one stray quote never swallows a file.
//! This module must not know what fields mean.

/// A record that holds newlines is at most so long.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// What is known of the record at the head of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It ends at this newline.
    At(usize),
    /// It ends with the input.
    End,
    /// More bytes are needed to tell.
    More,
}

/// Finds the end of the first record of `data`; `end`: the input ends with it; `reach_max`: a record with newlines is at
/// most so long.
pub fn cut(data: &[u8], delimiter: u8, end: bool, reach_max: usize) -> Cut {
    let Some(newline) = memchr::memchr(b'\n', data) else {
        return if end { Cut::End } else { Cut::More };
    };
    if !ends_in_quotes(&data[..newline], delimiter) {
        return Cut::At(newline);
    }
    let reach = &data[..data.len().min(reach_max)];
    match quoted_end(reach, delimiter, newline) {
        Some(at) => Cut::At(at),
        None if reach.len() < data.len() || reach.len() == reach_max => Cut::At(newline),
        // Closed, but on the last line, which has no newline.
        None if end && !ends_in_quotes(data, delimiter) => Cut::End,
        None if end => Cut::At(newline),
        None => Cut::More,
    }
}

/// How many bytes of `data`, which goes on, are whole records.
pub fn whole_records(data: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    while let Cut::At(newline) = cut(&data[at..], delimiter, false, RECORD_BYTES_MAX) {
        at += newline + 1;
    }
    at
}

/// The first newline of `data` from `newline` on that is not inside quotes.
fn quoted_end(data: &[u8], delimiter: u8, newline: usize) -> Option<usize> {
    let mut walk = Quotes::new(data, delimiter);
    let mut at = newline;
    while let Some((open, close)) = walk.next_field() {
        // Newlines before this field are outside quotes.
        if let Some(step) = data.get(at..open).and_then(|gap| memchr::memchr(b'\n', gap)) {
            return Some(at + step);
        }
        at = at.max(close?);
    }
    data.get(at..).and_then(|rest| memchr::memchr(b'\n', rest)).map(|step| at + step)
}

fn ends_in_quotes(data: &[u8], delimiter: u8) -> bool {
    let mut walk = Quotes::new(data, delimiter);
    while let Some((_, close)) = walk.next_field() {
        if close.is_none() {
            return true;
        }
    }
    false
}

/// Walks over the quoted fields of some bytes.
struct Quotes<'a> {
    data: &'a [u8],
    delimiter: u8,
    at: usize,
}

impl<'a> Quotes<'a> {
    fn new(data: &'a [u8], delimiter: u8) -> Self {
        Quotes { data, delimiter, at: 0 }
    }

    /// Where the next quoted field opens, and the byte behind its closing quote, if it closes.
    fn next_field(&mut self) -> Option<(usize, Option<usize>)> {
        loop {
            let open = self.at + memchr::memchr(b'"', self.data.get(self.at..)?)?;
            self.at = open + 1;
            let opens = match open.checked_sub(1).map(|before| self.data[before]) {
                None | Some(b'\n') => true,
                Some(before) => before == self.delimiter,
            };
            if opens {
                let close = closing(self.data, open + 1);
                self.at = close.unwrap_or(self.data.len());
                return Some((open, close));
            }
        }
    }
}

/// Behind the closing quote of the field whose text begins at `at`.
fn closing(data: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(b'"', data.get(at..)?)? + 1;
        if data.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

/// The fields of one record, without the quotes around them; `""` inside stays as it is.
pub struct Fields<'a> {
    record: &'a [u8],
    delimiter: u8,
    at: Option<usize>,
}

/// Splits `record`; a `\r` at its end belongs to no field.
pub fn fields(record: &[u8], delimiter: u8) -> Fields<'_> {
    Fields { record: record.strip_suffix(b"\r").unwrap_or(record), delimiter, at: Some(0) }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.at?;
        let rest = &self.record[start..];
        let quoted = if rest.first() == Some(&b'"') { closing(self.record, start + 1) } else { None };
        let from = quoted.unwrap_or(start);
        let end = memchr::memchr(self.delimiter, &self.record[from..]).map_or(self.record.len(), |step| from + step);
        self.at = (end < self.record.len()).then_some(end + 1);
        Some(match quoted {
            Some(close) if close == end => &self.record[start + 1..close - 1],
            _ => &self.record[start..end],
        })
    }
}

/// The text of a field of [`Fields`]: doubled quotes halved, bytes that are not UTF-8 replaced.
pub fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).replace("\"\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(record: &str) -> Vec<&str> {
        fields(record.as_bytes(), b',').map(|f| std::str::from_utf8(f).unwrap()).collect()
    }

    #[test]
    fn fields_are_split_outside_quotes() {
        assert_eq!(split(""), [""]);
        assert_eq!(split("a,,b,"), ["a", "", "b", ""]);
        assert_eq!(split("a,\"b,c\",d\r"), ["a", "b,c", "d"]);
        assert_eq!(split("\"a\"\"b\",c"), ["a\"\"b", "c"]);
        assert_eq!(split("a\"b,c\"d,\"e\"f,g"), ["a\"b", "c\"d", "\"e\"f", "g"]);
        assert_eq!(split("\"a,b"), ["\"a", "b"]);
        assert_eq!(text(b"a\"\"b\xff"), "a\"b\u{fffd}");
    }

    #[test]
    fn records_end_outside_quotes() {
        let at = |data: &str, end| cut(data.as_bytes(), b',', end, RECORD_BYTES_MAX);
        assert_eq!(at("a,b\nc", false), Cut::At(3));
        assert_eq!(at("a,b", false), Cut::More);
        assert_eq!(at("a,b", true), Cut::End);
        assert_eq!(at("a,\"b\nc\"\nd", false), Cut::At(7));
        assert_eq!(at("a,\"b\nc\",\"\n\"\"\n\"\nd", false), Cut::At(14));
        assert_eq!(at("a,\"b\nc\"", false), Cut::More);
        assert_eq!(at("a,\"b\nc\"", true), Cut::End);
        assert_eq!(at("a,\"b\nc", false), Cut::More);
        assert_eq!(at("a,\"b\nc", true), Cut::At(4));
        assert_eq!(at("a,b\"\nc", true), Cut::At(4));
        assert_eq!(at("\"\n\"\n", true), Cut::At(3));
        let mut stray = b"a,\"b\n".to_vec();
        stray.resize(RECORD_BYTES_MAX - 1, b'c');
        assert_eq!(cut(&stray, b',', false, RECORD_BYTES_MAX), Cut::More);
        stray.push(b'c');
        assert_eq!(cut(&stray, b',', false, RECORD_BYTES_MAX), Cut::At(4));
        stray.push(b'"');
        assert_eq!(cut(&stray, b',', true, RECORD_BYTES_MAX), Cut::At(4));
    }

    /// The plain way: a state machine, a byte a step.
    fn slow_cut(data: &[u8]) -> Option<usize> {
        let (mut quoted, mut first) = (false, true);
        let mut at = 0;
        while at < data.len() {
            match data[at] {
                b'"' if quoted && data.get(at + 1) == Some(&b'"') => at += 1,
                b'"' if quoted => quoted = false,
                b'"' if first => quoted = true,
                b'\n' if !quoted => return Some(at),
                _ => {}
            }
            first = !quoted && data[at] == b',';
            at += 1;
        }
        None
    }

    proptest! {
        #[test]
        fn cuts_where_the_plain_way_cuts(data in "[a\",\n]{0,24}") {
            let data = format!("{data}\"\n\n\",\n");
            let found = cut(data.as_bytes(), b',', false, RECORD_BYTES_MAX);
            match slow_cut(data.as_bytes()) {
                Some(at) => prop_assert_eq!(found, Cut::At(at)),
                None => prop_assert_eq!(found, Cut::More),
            }
        }
    }
}
