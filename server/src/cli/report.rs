//! What `du`, `verify` and `compact` print of what the engine says. Pure: no store, no terminal.

use super::table::Table;
use super::units::{count, of, ratio, size};
use haystore::{Compacted, Purpose, SegmentUsage, Usage, Verified};
use std::collections::BTreeMap;

/// What bytes are for, in the order shown, and the names shown.
const PURPOSES: [(Purpose, &str); 3] = [(Purpose::Data, "data"), (Purpose::SearchAids, "search aids"), (Purpose::Metadata, "metadata")];

/// Where the bytes are: by purpose always; by segment and by column when asked for.
pub fn usage(usage: &Usage, segments: bool, columns: bool, bold: bool) -> String {
    let mut out = String::new();
    if segments {
        out += &segment_table(usage).render(bold);
        out.push('\n');
    }
    if columns {
        out += &column_table(usage).render(bold);
        out.push('\n');
    }
    out + &purpose_table(usage).render(bold)
}

fn stored_bytes(usage: &Usage) -> u64 {
    usage.segments.iter().map(|s| s.stored_bytes).sum()
}

/// Bytes of the lines, a newline each.
fn raw_bytes(segment: &SegmentUsage) -> u64 {
    segment.line_bytes + segment.records
}

/// Bytes of each kind of column, over all segments.
fn sums(usage: &Usage) -> BTreeMap<(Purpose, &str), u64> {
    let mut sums = BTreeMap::new();
    for column in usage.segments.iter().flat_map(|s| &s.columns) {
        *sums.entry((column.purpose, column.name.as_str())).or_default() += column.stored_bytes;
    }
    sums
}

fn purpose_name(purpose: Purpose) -> &'static str {
    PURPOSES.iter().find(|(p, _)| *p == purpose).map_or("", |(_, name)| name)
}

fn segment_table(usage: &Usage) -> Table {
    let mut table = Table::new(["segment", "tenant", "level", "records", "raw", "stored", "ratio"]);
    for s in &usage.segments {
        table.row([
            s.key.clone(),
            if s.tenant.is_empty() { "(several)".into() } else { s.tenant.clone() },
            s.level.to_string(),
            count(s.records),
            size(raw_bytes(s)),
            size(s.stored_bytes),
            ratio(raw_bytes(s), s.stored_bytes),
        ]);
    }
    table
}

fn column_table(usage: &Usage) -> Table {
    let total = stored_bytes(usage);
    let mut rows: Vec<((Purpose, &str), u64)> = sums(usage).into_iter().collect();
    rows.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let mut table = Table::new(["column", "for", "stored", "share"]);
    for ((purpose, name), bytes) in rows {
        table.row([name.to_string(), purpose_name(purpose).into(), size(bytes), share(bytes, total)]);
    }
    table
}

fn purpose_table(usage: &Usage) -> Table {
    let (total, raw) = (stored_bytes(usage), usage.segments.iter().map(raw_bytes).sum::<u64>());
    let columns = sums(usage);
    let mut table = Table::new(["", "bytes", "share of stored", "share of raw"]);
    table.row(["raw logs".into(), count(raw), String::new(), share(raw, raw)]);
    for (purpose, name) in PURPOSES {
        let bytes = columns.iter().filter(|((p, _), _)| *p == purpose).map(|(_, b)| b).sum();
        table.row([name.into(), count(bytes), share(bytes, total), share(bytes, raw)]);
    }
    let records = usage.segments.iter().map(|s| s.records).sum();
    let live = format!("stored ({}, {})", of(records, "record"), of(usage.segments.len() as u64, "segment"));
    table.row([live, count(total), share(total, total), share(total, raw)]);
    for (name, bytes) in
        [("manifest", usage.manifest_bytes), ("write-ahead log", usage.wal_bytes), ("replaced, to be deleted", usage.replaced_bytes)]
    {
        if bytes > 0 {
            table.row([name.into(), count(bytes), String::new(), share(bytes, raw)]);
        }
    }
    table
}
/// One line that says what a check found; damage is listed apart.
pub fn verified(found: &Verified) -> String {
    format!(
        "{}, {} read, {} rebuilt: {}\n",
        of(found.objects, "object"),
        size(found.bytes),
        of(found.records, "record"),
        if found.damage.is_empty() { "no damage".into() } else { format!("{} damaged", count(found.damage.len() as u64)) }
    )
}

/// What compaction did: a line for merges, one for deletions if there were any.
pub fn compacted(done: &Compacted) -> String {
    let mut out = match done.replaced {
        0 => "nothing to merge\n".into(),
        replaced => {
            let (before, after) = (of(replaced, "segment"), count(done.written));
            format!("{before} ({} of lines) became {after} of {}\n", size(done.line_bytes), size(done.stored_bytes))
        }
    };
    if done.deleted + done.orphans > 0 {
        let (deleted, orphans) = (of(done.deleted, "replaced object"), of(done.orphans, "object"));
        out += &format!("deleted {deleted}, {orphans} never published\n");
    }
    out
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haystore::ColumnUsage;

    fn example() -> Usage {
        let column = |name: &str, purpose, stored_bytes| ColumnUsage { name: name.into(), purpose, stored_bytes };
        let columns =
            vec![column("shape", Purpose::Data, 700), column("terms", Purpose::SearchAids, 200), column("footer", Purpose::Metadata, 100)];
        let segment = SegmentUsage {
            key: "t/fake/1".into(),
            tenant: "fake".into(),
            level: 0,
            records: 1200,
            line_bytes: 8_800,
            stored_bytes: 1000,
            columns,
        };
        Usage { segments: vec![segment.clone(), segment], manifest_bytes: 50, ..Usage::default() }
    }

    #[test]
    fn usage_adds_up() {
        let text = usage(&example(), false, false, false);
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
        let text = usage(&example(), true, true, false);
        assert!(text.contains("t/fake/1") && text.contains("10.0x"), "{text}");
        assert!(text.contains("terms   search aids"), "{text}");
        assert!(usage(&Usage::default(), true, true, true).contains("stored (0 records, 0 segments)"));
    }

    #[test]
    fn verdicts_are_sentences() {
        let mut found = Verified { objects: 3, bytes: 5_000_000, records: 12_345, damage: Vec::new() };
        assert_eq!(verified(&found), "3 objects, 5.0 MB read, 12,345 records rebuilt: no damage\n");
        found.damage.push("x: damaged at byte 3".into());
        assert!(verified(&found).ends_with("1 damaged\n"));
        assert_eq!(compacted(&Compacted::default()), "nothing to merge\n");
        let done = Compacted { replaced: 3, written: 1, line_bytes: 1_200_000, stored_bytes: 100_000, ..Compacted::default() };
        assert_eq!(compacted(&done), "3 segments (1.2 MB of lines) became 1 of 100 kB\n");
        let done = Compacted { deleted: 2, orphans: 1, ..Compacted::default() };
        assert_eq!(compacted(&done), "nothing to merge\ndeleted 2 replaced objects, 1 object never published\n");
    }
}
