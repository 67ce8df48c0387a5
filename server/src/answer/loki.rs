//! Loki's JSON answers: streams of entries, lists of names, series.
//!
//! A client that says it knows categories gets each entry's metadata beside the entry, and streams are the store's streams.
//! Another gets it merged into the stream's labels, so a stream here is one set of labels and metadata; a metadata name
//! that is also a label's name gets the suffix `_extracted`. Values that are no strings are written as JSON.
//! JSON cannot hold a line that is not UTF-8: its bad bytes are replaced by U+FFFD here (the native API gives the bytes).

use super::json::{push_fmt, push_labels, push_pairs, push_string, push_value};
use haystore::{Batch, Labels, Metadata, QueryStats, RecordRef, Result, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// Entries of a search's result, grouped into Loki's streams, ready to be written piece by piece.
pub struct Streams {
    records: Batch,
    /// Rows of each stream, in the order of the result.
    groups: Vec<(Labels, Vec<usize>)>,
    categorize: bool,
}

impl Streams {
    /// Groups `records`.
    ///
    /// # Errors
    /// When a record's metadata is not metadata.
    pub fn new(records: Batch, categorize: bool) -> Result<Self> {
        let mut groups: BTreeMap<Labels, Vec<usize>> = BTreeMap::new();
        for (row, record) in records.iter().enumerate() {
            let labels =
                if categorize || record.metadata.is_empty() { record.labels.clone() } else { merged(record.labels, record.metadata)? };
            groups.entry(labels).or_default().push(row);
        }
        Ok(Streams { records, groups: groups.into_iter().collect(), categorize })
    }

    /// Appends the beginning of the answer.
    pub fn push_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"status\":\"success\",\"data\":{\"resultType\":\"streams\",");
        if self.categorize {
            out.extend_from_slice(b"\"encodingFlags\":[\"categorize-labels\"],");
        }
        out.extend_from_slice(b"\"result\":[");
    }

    /// The entries, in the order in which [`Streams::push_entry`] wants them.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + use<'_> {
        self.groups.iter().enumerate().flat_map(|(group, (_, rows))| {
            rows.iter().enumerate().map(move |(i, &row)| Entry { group, row, first: i == 0, last: i + 1 == rows.len() })
        })
    }

    /// Appends one entry, with its stream's head and tail where it is the first or last of it.
    ///
    /// # Errors
    /// When a record's metadata is not metadata.
    pub fn push_entry(&self, out: &mut Vec<u8>, entry: &Entry) -> Result<()> {
        if entry.first {
            out.extend_from_slice(if entry.group > 0 { b",{\"stream\":" } else { b"{\"stream\":" });
            push_labels(out, &self.groups[entry.group].0);
            out.extend_from_slice(b",\"values\":[");
        } else {
            out.push(b',');
        }
        self.push_value(out, self.records.get(entry.row))?;
        if entry.last {
            out.extend_from_slice(b"]}");
        }
        Ok(())
    }

    fn push_value(&self, out: &mut Vec<u8>, record: RecordRef<'_>) -> Result<()> {
        push_fmt(out, format_args!("[\"{}\",", record.timestamp));
        push_string(out, &String::from_utf8_lossy(record.line));
        if self.categorize {
            out.extend_from_slice(b",{");
            if !record.metadata.is_empty() {
                let pairs = strings(record.metadata)?;
                let labels = Labels::new(pairs);
                out.extend_from_slice(b"\"structuredMetadata\":");
                push_pairs(out, labels.iter());
            }
            out.push(b'}');
        }
        out.push(b']');
        Ok(())
    }

    /// Appends the end of the answer: what the search cost, and `warnings`.
    pub fn push_tail(&self, out: &mut Vec<u8>, stats: &QueryStats, took: Duration, warnings: &[String]) {
        out.extend_from_slice(b"],\"stats\":");
        push_stats(out, stats, took, self.records.len());
        out.push(b'}');
        if !warnings.is_empty() {
            out.extend_from_slice(b",\"warnings\":");
            push_list(out, warnings.iter().map(String::as_str));
        }
        out.push(b'}');
    }
}

/// One entry's place in [`Streams`].
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    group: usize,
    row: usize,
    first: bool,
    last: bool,
}

/// Metadata as strings.
fn strings(metadata: &[u8]) -> Result<Vec<(String, String)>> {
    let pairs = Metadata::decode(metadata)?.0;
    Ok(pairs.into_iter().map(|(k, v)| (k, to_string(v))).collect())
}

fn to_string(value: Value) -> String {
    match value {
        Value::Str(s) => s,
        other => {
            let mut out = Vec::new();
            push_value(&mut out, &other);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

fn merged(labels: &Labels, metadata: &[u8]) -> Result<Labels> {
    let mut pairs: Vec<(String, String)> = labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    for (name, value) in strings(metadata)? {
        let name = if labels.get(&name).is_some() { format!("{name}_extracted") } else { name };
        pairs.push((name, value));
    }
    Ok(Labels::new(pairs))
}

/// The statistics object with every part that clients look for; what has no meaning here is zero.
fn push_stats(out: &mut Vec<u8>, stats: &QueryStats, took: Duration, returned: usize) {
    const CHUNK: &str = "{\"headChunkBytes\":0,\"headChunkLines\":0,\"decompressedBytes\":0,\"decompressedLines\":0,\"compressedBytes\":0,\"totalDuplicates\":0,\"postFilterLines\":0}";
    let store = format!("{{\"totalChunksRef\":0,\"totalChunksDownloaded\":0,\"chunksDownloadTime\":0,\"chunk\":{CHUNK}}}");
    let seconds = took.as_secs_f64().max(1e-9);
    let (bytes, lines) = (stats.line_bytes, stats.rows);
    let rate = |n: u64| (n as f64 / seconds) as u64;
    push_fmt(
        out,
        format_args!(
            "{{\"summary\":{{\"bytesProcessedPerSecond\":{},\"linesProcessedPerSecond\":{},\"totalBytesProcessed\":{bytes},\
             \"totalLinesProcessed\":{lines},\"execTime\":{seconds:?},\"queueTime\":0,\"subqueries\":0,\"totalEntriesReturned\":{returned},\
             \"splits\":0,\"shards\":0,\"totalPostFilterLines\":{returned},\"totalStructuredMetadataBytesProcessed\":0}},\
             \"querier\":{{\"store\":{store}}},\
             \"ingester\":{{\"totalReached\":0,\"totalChunksMatched\":0,\"totalBatches\":0,\"totalLinesSent\":0,\"store\":{store}}},\
             \"cache\":{{}}}}",
            rate(bytes),
            rate(lines),
        ),
    );
}

/// Appends a list of strings.
pub fn push_list<'a>(out: &mut Vec<u8>, items: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, item);
    }
    out.push(b']');
}

/// The answer that is a list of names or values.
pub fn list_answer<'a>(items: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut out = b"{\"status\":\"success\",\"data\":".to_vec();
    push_list(&mut out, items);
    out.push(b'}');
    out
}

/// The answer that is a list of label sets.
pub fn series_answer(series: &[Labels]) -> Vec<u8> {
    let mut out = b"{\"status\":\"success\",\"data\":[".to_vec();
    for (i, labels) in series.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_labels(&mut out, labels);
    }
    out.extend_from_slice(b"]}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use haystore::Format;

    fn answer(categorize: bool) -> serde_json::Value {
        let mut batch = Batch::new();
        let a = Labels::new([("app", "a"), ("k", "label")]);
        let with = |v: i64| Metadata(vec![("k".into(), Value::Str("meta".into())), ("n".into(), Value::Int(v))]);
        for (t, line, metadata) in [(1, "x", Metadata::default()), (2, "y", with(1)), (3, "z", Metadata::default())] {
            batch.push_record(t, &a, line.as_bytes(), &metadata, &Format::Text).unwrap();
        }
        batch.push_record(4, &Labels::new([("app", "b")]), b"\xff\"", &Metadata::default(), &Format::Text).unwrap();
        let streams = Streams::new(batch, categorize).unwrap();
        let mut out = Vec::new();
        streams.push_head(&mut out);
        for entry in streams.entries() {
            streams.push_entry(&mut out, &entry).unwrap();
        }
        streams.push_tail(&mut out, &QueryStats::default(), Duration::from_millis(1), &["w".to_string()]);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn metadata_is_merged_or_categorized() {
        let merged = answer(false);
        assert_eq!(
            merged["data"]["result"],
            serde_json::json!([
                {"stream": {"app": "a", "k": "label"}, "values": [["1", "x"], ["3", "z"]]},
                {"stream": {"app": "a", "k": "label", "k_extracted": "meta", "n": "1"}, "values": [["2", "y"]]},
                {"stream": {"app": "b"}, "values": [["4", "\u{fffd}\""]]},
            ])
        );
        assert_eq!(merged["warnings"], serde_json::json!(["w"]));
        assert_eq!(merged["data"]["stats"]["summary"]["totalEntriesReturned"], 4);
        let categorized = answer(true);
        assert_eq!(categorized["data"]["encodingFlags"], serde_json::json!(["categorize-labels"]));
        assert_eq!(
            categorized["data"]["result"][0],
            serde_json::json!({"stream": {"app": "a", "k": "label"}, "values": [
                ["1", "x", {}], ["2", "y", {"structuredMetadata": {"k": "meta", "n": "1"}}], ["3", "z", {}],
            ]})
        );
    }
}
