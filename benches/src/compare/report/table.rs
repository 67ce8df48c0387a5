//! Text for a terminal: figures, what each store keeps, where answers differ.

use super::{Report, Store};
use crate::peer::Sort;
use haystore_server::cli::table::Table;
use haystore_server::cli::units::{count, of, ratio, size};
use std::fmt::Write as _;

/// A number, or a dash when there is none.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |n| format!("{n:.digits$}"))
}

/// Milliseconds with as many digits as they are worth.
pub fn milliseconds(value: Option<f64>) -> String {
    number(value, value.map_or(0, |ms| if ms < 1.0 { 2 } else { usize::from(ms < 100.0) }))
}

/// Sorts of needles that this report has.
pub fn sorts(report: &Report) -> Vec<Sort> {
    Sort::ALL.into_iter().filter(|&sort| report.survey.needles.iter().any(|n| n.sort == sort)).collect()
}

/// One line on the input.
pub fn input(report: &Report) -> String {
    let survey = &report.survey;
    let times = if survey.has_times { "with times" } else { "no times found" };
    let files = of(report.files.len() as u64, "file");
    format!("{files}, {}, {} (newlines counted), {times}", of(survey.sum.lines, "line"), size(survey.sum.bytes))
}

/// The needles of one sort with the lines that hold them.
pub fn needles(report: &Report, sort: Sort) -> String {
    let of_sort = report.survey.needles.iter().filter(|n| n.sort == sort);
    of_sort.map(|n| format!("{:?} ({})", n.text, count(n.lines))).collect::<Vec<_>>().join(", ")
}

/// The whole report; `bold` marks headers.
pub fn table(report: &Report, bold: bool) -> String {
    let mut out = format!("{}\n", input(report));
    for sort in sorts(report) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "needles, {} (lines that hold them): {}", sort.name(), needles(report, sort));
    }
    let _ = write!(out, "\n{}\n{}", figures(report).render(bold), keeps(report).render(bold));
    for store in &report.stores {
        let _ = notes(&mut out, store);
    }
    out
}

fn figures(report: &Report) -> Table {
    let sorts = sorts(report);
    let mut header: Vec<String> = ["store", "stored", "smaller", "ingest CPU s", "ingest s"].map(String::from).to_vec();
    header.extend(sorts.iter().map(|sort| format!("{} ms", sort.name())));
    header.extend(["read CPU s", "read s", "answers"].map(String::from));
    let mut table = Table::new(header);
    for store in &report.stores {
        let stored = store.stored_bytes;
        let mut cells = vec![
            store.name.to_string(),
            stored.map_or_else(|| "-".into(), size),
            ratio(report.survey.sum.bytes, stored.unwrap_or(0)),
            number(store.ingest.and_then(|s| s.cpu_s), 2),
            number(store.ingest.map(|s| s.wall_s), 2),
        ];
        cells.extend(sorts.iter().map(|&sort| milliseconds(store.needle_ms(sort))));
        cells.push(number(store.full.and_then(|f| f.step.cpu_s), 2));
        cells.push(number(store.full.map(|f| f.step.wall_s), 2));
        cells.push(store.verdict().to_string());
        table.row(cells);
    }
    table
}

fn keeps(report: &Report) -> Table {
    let mut table = Table::new(["store keeps", "bytes", "order", "substring", "token", "fields"]);
    for store in &report.stores {
        let k = &store.keeps;
        table.row([store.name, k.bytes.name(), k.order.name(), k.substring.name(), k.token.name(), k.fields]);
    }
    table
}

fn notes(out: &mut String, store: &Store) -> std::fmt::Result {
    write!(out, "\n{}: {}", store.name, store.keeps.how)?;
    for line in store.differences().iter().chain(&store.errors) {
        write!(out, "\n  {line}")?;
    }
    if store.differences().is_empty() && store.errors.is_empty() { Ok(()) } else { writeln!(out) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn a_line_a_store() {
        let text = table(&sample(), false);
        assert!(text.starts_with("1 file, 10 lines, 110 B (newlines counted), no times found\n"), "{text}");
        assert!(text.contains("needles, token (lines that hold them): \"<a&b>\" (1)\n"), "{text}");
        let row: Vec<&str> = text.lines().find(|l| l.starts_with("plain")).unwrap().split_whitespace().collect();
        assert_eq!(row, ["plain", "1.0", "kB", "0.1x", "0.25", "0.50", "2.0", "-", "0.10", "same"]);
        assert!(text.contains("words: a <file> & more\n  token \"<a&b>\": 1 lines hold it"), "{text}");
    }

    #[test]
    fn times_keep_their_digits() {
        assert_eq!([Some(0.123), Some(12.34), Some(1234.5), None].map(milliseconds), ["0.12", "12.3", "1234", "-"]);
    }
}
