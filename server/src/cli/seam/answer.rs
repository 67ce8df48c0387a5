//! Records as bytes.

use crate::cli::args::Output;
use haystore::{RecordRef, Result};
use serde_json::{Map, Value, json};

/// Appends `record` in the form `output`, with its newline.
///
/// # Errors
/// When the record's metadata is damaged.
pub fn push_record(out: &mut Vec<u8>, output: Output, record: RecordRef<'_>) -> Result<()> {
    match output {
        Output::Raw => out.extend_from_slice(record.line),
        Output::Ndjson => {
            let labels: Map<String, Value> = record.labels.iter().map(|(k, v)| (k.to_string(), v.into())).collect();
            let line = String::from_utf8_lossy(record.line);
            let object = json!({"timestamp": record.timestamp.to_string(), "labels": labels, "line": line, "metadata": {}});
            out.extend_from_slice(object.to_string().as_bytes());
        }
    }
    out.push(b'\n');
    Ok(())
}
