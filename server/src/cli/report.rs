//! What `du`, `verify` and `compact` print, over plain data. Pure: no store, no terminal.

use super::table::Table;
use super::units::{count, of, ratio, size};
use std::collections::BTreeMap;

/// What bytes at rest are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// What the records are rebuilt from.
    Data,
    /// Fences, term dictionaries, page sets: what only skips.
    SearchAids,
    /// Footers, roots, templates, labels, manifest: what says where and what the rest is.
    Metadata,
}

impl Purpose {
    /// All, in the order shown.
    pub const ALL: [Purpose; 3] = [Purpose::Data, Purpose::SearchAids, Purpose::Metadata];

    /// The name shown.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Data => "data",
            Purpose::SearchAids => "search aids",
            Purpose::Metadata => "metadata",
        }
    }
}

/// Bytes of one column, summed over a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnUsage {
    /// `timestamp`, `stream`, `shape`, `slot: integers`, …
    pub name: String,
    /// What they are for.
    pub purpose: Purpose,
    /// Bytes at rest.
    pub stored_bytes: u64,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentUsage {
    /// The object's key.
    pub key: String,
    /// The tenant; empty when it spans several.
    pub tenant: String,
    /// 0: as flushed; more: compacted.
    pub level: u32,
    /// Records.
    pub records: u64,
    /// Bytes of their lines, a newline each.
    pub raw_bytes: u64,
    /// Size of the object; the columns' bytes add up to it.
    pub stored_bytes: u64,
    /// Its parts.
    pub columns: Vec<ColumnUsage>,
}

/// A store's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Live segments.
    pub segments: Vec<SegmentUsage>,
    /// Bytes of manifests.
    pub manifest_bytes: u64,
    /// Bytes of replaced objects that still wait out their grace.
    pub replaced_bytes: u64,
    /// Bytes of the write-ahead log, when its folder is known.
    pub wal_bytes: u64,
}

/// What `verify` found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Objects read.
    pub objects: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Records rebuilt.
    pub records: u64,
    /// Damage: each names object and offset.
    pub damage: Vec<String>,
}

/// What `compact` did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Live segments before.
    pub segments_before: u64,
    /// And after.
    pub segments_after: u64,
    /// Their bytes.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
    /// Replaced objects deleted, their grace being over.
    pub deleted: u64,
}

impl Usage {
    /// Bytes of live segments.
    pub fn stored_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.stored_bytes).sum()
    }

    /// Bytes of the lines in them.
    pub fn raw_bytes(&self) -> u64 {
        self.segments.iter().map(|s| s.raw_bytes).sum()
    }

    fn columns(&self) -> BTreeMap<(Purpose, &str), u64> {
        let mut sums = BTreeMap::new();
        for column in self.segments.iter().flat_map(|s| &s.columns) {
            *sums.entry((column.purpose, column.name.as_str())).or_default() += column.stored_bytes;
        }
        sums
    }

    /// The tables: by purpose always; by segment and by column when asked for.
    pub fn render(&self, segments: bool, columns: bool, bold: bool) -> String {
        let mut out = String::new();
        if segments {
            out += &self.segment_table().render(bold);
            out.push('\n');
        }
        if columns {
            out += &self.column_table().render(bold);
            out.push('\n');
        }
        out + &self.purpose_table().render(bold)
    }

    fn segment_table(&self) -> Table {
        let mut table = Table::new(["segment", "tenant", "level", "records", "raw", "stored", "ratio"]);
        for s in &self.segments {
            table.row([
                s.key.clone(),
                if s.tenant.is_empty() { "(several)".into() } else { s.tenant.clone() },
                s.level.to_string(),
                count(s.records),
                size(s.raw_bytes),
                size(s.stored_bytes),
                ratio(s.raw_bytes, s.stored_bytes),
            ]);
        }
        table
    }

    fn column_table(&self) -> Table {
        let total = self.stored_bytes();
        let mut rows: Vec<((Purpose, &str), u64)> = self.columns().into_iter().collect();
        rows.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
        let mut table = Table::new(["column", "for", "stored", "share"]);
        for ((purpose, name), bytes) in rows {
            table.row([name.to_string(), purpose.name().into(), size(bytes), share(bytes, total)]);
        }
        table
    }

    fn purpose_table(&self) -> Table {
        let (total, raw) = (self.stored_bytes(), self.raw_bytes());
        let columns = self.columns();
        let mut table = Table::new(["", "bytes", "share of stored", "share of raw"]);
        table.row(["raw logs".into(), count(raw), String::new(), share(raw, raw)]);
        for purpose in Purpose::ALL {
            let bytes = columns.iter().filter(|((p, _), _)| *p == purpose).map(|(_, b)| b).sum();
            table.row([purpose.name().into(), count(bytes), share(bytes, total), share(bytes, raw)]);
        }
        let records = self.segments.iter().map(|s| s.records).sum();
        let live = format!("stored ({}, {})", of(records, "record"), of(self.segments.len() as u64, "segment"));
        table.row([live, count(total), share(total, total), share(total, raw)]);
        for (name, bytes) in
            [("manifest", self.manifest_bytes), ("write-ahead log", self.wal_bytes), ("replaced, to be deleted", self.replaced_bytes)]
        {
            if bytes > 0 {
                table.row([name.into(), count(bytes), String::new(), share(bytes, raw)]);
            }
        }
        table
    }
}

impl Verified {
    /// One line that says it all; damage is listed apart.
    pub fn render(&self) -> String {
        format!(
            "{}, {} read, {} rebuilt: {}\n",
            of(self.objects, "object"),
            size(self.bytes),
            of(self.records, "record"),
            if self.damage.is_empty() { "no damage".into() } else { format!("{} damaged", count(self.damage.len() as u64)) }
        )
    }
}

impl Compacted {
    /// One line that says it all.
    pub fn render(&self) -> String {
        if self.segments_before == 0 {
            return "nothing to merge\n".into();
        }
        format!(
            "{} of {} became {} of {}\n",
            of(self.segments_before, "segment"),
            size(self.bytes_before),
            count(self.segments_after),
            size(self.bytes_after)
        )
    }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> Usage {
        let column = |name: &str, purpose, stored_bytes| ColumnUsage { name: name.into(), purpose, stored_bytes };
        let columns =
            vec![column("shape", Purpose::Data, 700), column("terms", Purpose::SearchAids, 200), column("footer", Purpose::Metadata, 100)];
        let segment = SegmentUsage {
            key: "t/fake/1".into(),
            tenant: "fake".into(),
            level: 0,
            records: 1200,
            raw_bytes: 10_000,
            stored_bytes: 1000,
            columns,
        };
        Usage { segments: vec![segment.clone(), segment], manifest_bytes: 50, ..Usage::default() }
    }

    #[test]
    fn usage_adds_up() {
        let text = usage().render(false, false, false);
        let wanted = [
            "                                   bytes  share of stored  share of raw",
            "raw logs                          20,000                        100.0 %",
            "data                               1,400           70.0 %         7.0 %",
            "search aids                          400           20.0 %         2.0 %",
            "metadata                             200           10.0 %         1.0 %",
            "stored (2,400 records, 2 segments)  2,000          100.0 %        10.0 %",
            "manifest                              50                          0.2 %",
        ];
        let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(squeeze).collect();
        assert_eq!(lines, wanted.map(squeeze));
    }

    #[test]
    fn segments_and_columns_come_when_asked_for() {
        let text = usage().render(true, true, false);
        assert!(text.contains("t/fake/1") && text.contains("10.0x"), "{text}");
        assert!(text.contains("terms   search aids"), "{text}");
        assert!(Usage::default().render(true, true, true).contains("stored (0 records, 0 segments)"));
    }

    #[test]
    fn verdicts_are_sentences() {
        let mut verified = Verified { objects: 3, bytes: 5_000_000, records: 12_345, damage: Vec::new() };
        assert_eq!(verified.render(), "3 objects, 5.0 MB read, 12,345 records rebuilt: no damage\n");
        verified.damage.push("x: damaged at byte 3".into());
        assert!(verified.render().ends_with("1 damaged\n"));
        assert_eq!(Compacted::default().render(), "nothing to merge\n");
    }
}
