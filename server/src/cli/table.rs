//! A table of text: a header, rows, columns aligned. Numbers stand right, the first column left.

use std::fmt::Write as _;

/// Rows under a header.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Table { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table as text, a newline after each row; `bold` marks the header.
    pub fn render(&self, bold: bool) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                let width = widths[c];
                // Writing to a string cannot fail.
                let _ = if c == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
            }
            let line = line.trim_end();
            let _ = if bold && i == 0 { writeln!(out, "\x1b[1m{line}\x1b[0m") } else { writeln!(out, "{line}") };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["kind", "bytes"]);
        table.row(["a", "1,000"]);
        table.row(["längst", ""]);
        assert_eq!(table.render(false), "kind    bytes\na       1,000\nlängst\n");
        assert!(table.render(true).starts_with("\x1b[1mkind    bytes\x1b[0m\n"));
    }
}
