//! What is in the input? Decided once, by its first [`SAMPLE_BYTES`]; the rest is read by that [`Plan`].
//!
//! - **NDJSON**: the first line that is not blank begins with `{`, and at least 80 % of such lines do and are JSON.
//! - **CSV**: one of `,` `;` tab `|` splits at least 95 % of the records into the same number of columns, at least
//!   three, and either a header names them above a column of values, or some column is a timestamp in every record.
//!   Ordinary text with commas in it is none of these.
//! - else **lines**. So is UTF-16: its bytes are kept, and cut at every byte 0x0A, as any input is.
//!
//! A UTF-8 byte order mark is looked through; it stays in the first record.
//! This module must not know how records are cut from the rest of the input, or where the input comes from.

use super::csv::{self, Cut};
use super::json;
use super::options::{CsvHeader, InputFormat, ReadOptions};
use super::timestamp::{self, SEARCH_BYTES, TimeRules};
use haystore::{Error, Result};

/// The input's first so many bytes decide.
pub const SAMPLE_BYTES: usize = 64 << 10;

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
const COLUMNS_MIN: usize = 3;

/// How to read an input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Plan {
    /// Text, one record a line.
    Lines {
        /// A timestamp begins in the first so many bytes of a line. It is [`SEARCH_BYTES`], but less where the sample's
        /// timestamps stand near the head of lines and many lines have none there: then what looks like a timestamp
        /// far inside a line is part of a message that runs over several lines.
        window: usize,
    },
    /// One JSON value a line.
    Ndjson,
    /// Separated values.
    Csv {
        /// The separator.
        delimiter: u8,
        /// The columns' names; empty when there is no header.
        columns: Vec<String>,
        /// The column, from 0, that holds the time.
        time_column: Option<usize>,
    },
}

/// The plan, and the first timestamp that it finds in the sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// How to read the input.
    pub plan: Plan,
    /// For the records that come before the first timestamp.
    pub first_time: Option<i64>,
}

/// Looks at `sample`, the head of an input, or all of it when `whole`.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] when the options do not fit the input: a CSV column that is not there, a delimiter that cannot be one.
pub fn detect(sample: &[u8], whole: bool, options: &ReadOptions) -> Result<Detected> {
    if let Some(delimiter) = options.delimiter.filter(|d| matches!(d, b'"' | b'\n' | b'\r')) {
        return Err(Error::invalid(format!("delimiter {:?}: a quote or line end can't separate fields", char::from(delimiter))));
    }
    let sample = &sample[..sample.len().min(SAMPLE_BYTES)];
    let text = sample.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sample);
    match options.format {
        InputFormat::Lines => Ok(lines(text, &options.rules)),
        InputFormat::Ndjson => Ok(ndjson(text, options)),
        InputFormat::Csv => csv_plan(text, whole, options),
        InputFormat::Auto if is_ndjson(text, whole) => Ok(ndjson(text, options)),
        InputFormat::Auto => match find_table(text, whole, options) {
            Some(table) => table.plan(options),
            None => Ok(lines(text, &options.rules)),
        },
    }
}

fn is_ndjson(text: &[u8], whole: bool) -> bool {
    let mut reader = json::Reader::default();
    let (mut good, mut all) = (0, 0);
    let mut lines = text.split(|&b| b == b'\n').peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let cut_off = lines.peek().is_none() && !whole;
        let is_object = line.starts_with(b"{");
        if all == 0 && !is_object {
            return false;
        }
        all += 1;
        good += usize::from(is_object && reader.read(line, |_, _| {}).map_or_else(|flaw| cut_off && flaw.ended, |()| true));
    }
    all > 0 && good * 5 >= all * 4
}

fn ndjson(text: &[u8], options: &ReadOptions) -> Detected {
    let mut reader = json::Reader::default();
    let time = |line| reader.time(line, options.time_field.as_deref(), &options.rules).ok().flatten();
    let first_time = text.split(|&b| b == b'\n').find_map(time);
    Detected { plan: Plan::Ndjson, first_time }
}

fn lines(text: &[u8], rules: &TimeRules) -> Detected {
    let mut starts = Vec::new();
    let mut first_time = None;
    let mut count = 0;
    for line in text.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        count += 1;
        if let Some(found) = timestamp::find(line, SEARCH_BYTES, rules) {
            first_time.get_or_insert(found.nanos);
            starts.push(found.start);
        }
    }
    starts.sort_unstable();
    let narrow = starts.get(starts.len() / 2).map_or(SEARCH_BYTES, |median| (2 * median + 24).min(SEARCH_BYTES));
    let inside = starts.partition_point(|&start| start < narrow);
    let is_clear = starts.len() >= 20 && inside * 4 >= starts.len() * 3 && (count - inside) * 20 >= count;
    let window = if is_clear { narrow } else { SEARCH_BYTES };
    Detected { plan: Plan::Lines { window }, first_time }
}

fn csv_plan(text: &[u8], whole: bool, options: &ReadOptions) -> Result<Detected> {
    let delimiters: &[u8] = options.delimiter.as_ref().map_or(&DELIMITERS, std::slice::from_ref);
    let tables = delimiters.iter().map(|&d| Table::read(text, whole, d));
    // Of equals the first: commas before the others.
    let best = tables.rev().max_by_key(|table| (table.is_even() && table.width > 1, table.width));
    best.ok_or_else(|| Error::internal("no delimiter to try"))?.plan(options)
}

fn find_table<'a>(text: &'a [u8], whole: bool, options: &ReadOptions) -> Option<Table<'a>> {
    let delimiters: &[u8] = options.delimiter.as_ref().map_or(&DELIMITERS, std::slice::from_ref);
    let tables = delimiters.iter().map(|&d| Table::read(text, whole, d));
    tables.rev().filter(|table| table.is_certain(options)).max_by_key(|table| table.width)
}

/// The bytes of the record of `head` whose fields [`detect`] takes for the columns' names: the first that is not blank. `head` is the head of an
/// input, or all of it when `whole`. `None`: it does not end within the sample.
pub fn csv_header(head: &[u8], whole: bool, delimiter: u8) -> Option<&[u8]> {
    let whole = whole && head.len() <= SAMPLE_BYTES;
    let sample = &head[..head.len().min(SAMPLE_BYTES)];
    let mut rest = sample.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sample);
    loop {
        let (record, used) = match csv::cut(rest, delimiter, whole, csv::RECORD_BYTES_MAX) {
            Cut::At(newline) => (&rest[..newline], newline + 1),
            Cut::End => (rest, rest.len()),
            Cut::More => return None,
        };
        if !record.trim_ascii().is_empty() {
            return Some(record);
        }
        rest = rest.get(used..).filter(|rest| !rest.is_empty())?;
    }
}

/// The sample, split by one delimiter.
struct Table<'a> {
    delimiter: u8,
    rows: Vec<Vec<&'a [u8]>>,
    /// The most frequent number of columns.
    width: usize,
}

impl<'a> Table<'a> {
    fn read(text: &'a [u8], whole: bool, delimiter: u8) -> Self {
        let mut rows: Vec<Vec<&[u8]>> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let len = match csv::cut(rest, delimiter, whole, csv::RECORD_BYTES_MAX) {
                Cut::At(newline) => newline,
                Cut::End => rest.len(),
                // The sample ends inside a record; one that is all there is must do.
                Cut::More if rows.is_empty() => rest.len(),
                Cut::More => break,
            };
            if !rest[..len].trim_ascii().is_empty() {
                rows.push(csv::fields(&rest[..len], delimiter).collect());
            }
            at += len + 1;
        }
        let mut widths: Vec<usize> = rows.iter().map(Vec::len).collect();
        widths.sort_unstable();
        let width = widths.chunk_by(|a, b| a == b).max_by_key(|run| run.len()).map_or(0, |run| run[0]);
        Table { delimiter, rows, width }
    }

    fn is_even(&self) -> bool {
        let same = self.rows.iter().filter(|row| row.len() == self.width).count();
        same * 20 >= self.rows.len() * 19
    }

    /// Whether this is a table beyond reasonable doubt.
    fn is_certain(&self, options: &ReadOptions) -> bool {
        if self.width < COLUMNS_MIN || !self.is_even() || self.rows.len() < 3 {
            return false;
        }
        let headed = self.has_names() && (0..self.width).any(|column| self.is_column_of_values(column, &options.rules));
        // Numbers of ten digits may count anything.
        let is_clear = |field: &&[u8]| field.trim_ascii().len() != 10;
        headed || (0..self.width).any(|column| self.is_column_of_times(column, 0, &options.rules) && self.all(column, 0, is_clear))
    }

    fn plan(&self, options: &ReadOptions) -> Result<Detected> {
        let headed = match options.header {
            CsvHeader::Auto => self.has_names(),
            CsvHeader::First | CsvHeader::Repeated => true,
            CsvHeader::None => false,
        };
        let first = self.rows.first().filter(|_| headed);
        let columns: Vec<String> = first.map(|row| row.iter().map(|field| csv::text(field)).collect()).unwrap_or_default();
        let time_column = match &options.time_field {
            Some(field) => Some(self.column(field, &columns)?),
            None => self.time_column(&columns, usize::from(headed), &options.rules),
        };
        let time = |row: &Vec<&[u8]>| timestamp::value(row.get(time_column?)?, &options.rules);
        let first_time = self.rows.iter().skip(usize::from(headed)).find_map(time);
        Ok(Detected { plan: Plan::Csv { delimiter: self.delimiter, columns, time_column }, first_time })
    }

    /// The column that `field` means: a name, else a number from 1.
    fn column(&self, field: &str, columns: &[String]) -> Result<usize> {
        let named = columns.iter().position(|name| name == field);
        let numbered = || field.parse::<usize>().ok().filter(|n| (1..=self.width.max(columns.len())).contains(n)).map(|n| n - 1);
        named.or_else(numbered).ok_or_else(|| {
            let known = if columns.is_empty() { "there is no header".to_string() } else { format!("there are {}", columns.join(", ")) };
            Error::invalid(format!("time field {field:?}: no such column; {known}"))
        })
    }

    /// The named one, else the first in which times written out lie, else the first with epoch numbers.
    fn time_column(&self, columns: &[String], headed: usize, rules: &TimeRules) -> Option<usize> {
        let is_mostly_times = |column: usize| {
            let rows = &self.rows[headed.min(self.rows.len())..];
            let times = rows.iter().filter_map(|row| row.get(column)).filter(|field| timestamp::value(field, rules).is_some()).count();
            times > 0 && times * 2 >= rows.len()
        };
        let is_written_out = |column: usize| self.all(column, headed, |field| timestamp::epoch_value(field.trim_ascii()).is_none());
        let mut named: Vec<(usize, usize)> =
            columns.iter().enumerate().filter_map(|(i, name)| Some((json::time_rank(name.as_bytes())?, i))).collect();
        named.sort_unstable();
        let named = named.into_iter().map(|(_, column)| column).find(|&column| is_mostly_times(column));
        let all = || (0..self.width).filter(|&column| is_mostly_times(column));
        let whole = |column: &usize| self.is_column_of_times(*column, headed, rules);
        let written_out = |column: &usize| is_written_out(*column);
        named
            .or_else(|| all().filter(written_out).find(whole))
            .or_else(|| all().find(written_out))
            .or_else(|| all().find(whole))
            .or_else(|| all().next())
    }

    /// Whether `test` holds for every field of `column` from row `from` on.
    fn all(&self, column: usize, from: usize, test: impl FnMut(&&[u8]) -> bool) -> bool {
        self.rows.iter().skip(from).filter_map(|row| row.get(column)).all(test)
    }

    /// Whether the first row looks like a header: names, each one once, and none of them a value of its column.
    fn has_names(&self) -> bool {
        let Some((names, rows)) = self.rows.split_first() else { return false };
        let is_unique = |i: usize| !names[..i].contains(&names[i]) && !rows.iter().take(100).any(|row| row.get(i) == Some(&names[i]));
        names.len() == self.width && names.iter().enumerate().all(|(i, name)| is_name(name) && is_unique(i))
    }

    fn is_column_of_values(&self, column: usize, rules: &TimeRules) -> bool {
        let fields = || self.rows.iter().skip(1).filter_map(|row| row.get(column)).filter(|field| !field.trim_ascii().is_empty());
        let (mut all, mut values) = (0, 0);
        for field in fields() {
            all += 1;
            values += usize::from(is_value(field, rules));
        }
        all > 0 && values * 20 >= all * 19
    }

    /// Whether every row from `from` on has a timestamp, and nothing else, in `column`.
    fn is_column_of_times(&self, column: usize, from: usize, rules: &TimeRules) -> bool {
        let mut rows = self.rows.iter().skip(from).filter(|row| row.len() == self.width).peekable();
        rows.peek().is_some() && rows.all(|row| timestamp::is_whole(row[column], rules) && !self.is_comma_decimal(row, column))
    }

    /// Whether the delimiter behind `column` is the comma of a fraction: `2015-05-13 23:39:43,945 INFO …`.
    fn is_comma_decimal(&self, row: &[&[u8]], column: usize) -> bool {
        let (Some(next), true) = (row.get(column + 1), self.delimiter == b',' && row[column].last().is_some_and(u8::is_ascii_digit)) else {
            return false;
        };
        let digits = next.iter().take_while(|b| b.is_ascii_digit()).count();
        (1..10).contains(&digits) && matches!(next.get(digits), Some(b' ' | b'\t' | b']' | b')' | b':' | b'Z' | b'+' | b'-'))
    }
}

/// Whether a column may be called so.
fn is_name(field: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(field.trim_ascii()) else { return false };
    let opens = name.chars().next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '@' | '#' | '$'));
    let fits = name.len() <= 64 && name.split(' ').count() <= 4 && !name.contains(['{', '}', '<', '>', '=', '"', '!', '?']);
    opens && fits && !matches!(name, "true" | "false" | "null")
}

/// Whether a field holds a value that nobody would call a column.
fn is_value(field: &[u8], rules: &TimeRules) -> bool {
    let Ok(text) = std::str::from_utf8(field.trim_ascii()) else { return false };
    matches!(text, "true" | "false")
        || (text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) && text.parse::<f64>().is_ok())
        || text.parse::<std::net::IpAddr>().is_ok()
        || timestamp::value(field, rules).is_some()
}

#[cfg(test)]
mod tests;
