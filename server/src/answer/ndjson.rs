//! NDJSON: one record a line, `{"timestamp":"…","labels":{},"line":"…","metadata":{}}`.
//!
//! A line that is not UTF-8 comes as `"line_base64"` instead of `"line"`.

use super::json::{push_base64, push_labels, push_metadata, push_string, push_timestamp};
use haystore::{Metadata, RecordRef, Result};

/// Appends `record` and a newline.
///
/// # Errors
/// When the record's metadata is not metadata.
pub fn push_record(out: &mut Vec<u8>, record: RecordRef<'_>) -> Result<()> {
    push_object(out, record)?;
    out.push(b'\n');
    Ok(())
}

/// Appends `record` without a newline.
///
/// # Errors
/// When the record's metadata is not metadata.
pub fn push_object(out: &mut Vec<u8>, record: RecordRef<'_>) -> Result<()> {
    out.extend_from_slice(b"{\"timestamp\":\"");
    push_timestamp(out, record.timestamp);
    out.extend_from_slice(b"\",\"labels\":");
    push_labels(out, record.labels);
    match std::str::from_utf8(record.line) {
        Ok(line) => {
            out.extend_from_slice(b",\"line\":");
            push_string(out, line);
        }
        Err(_) => {
            out.extend_from_slice(b",\"line_base64\":\"");
            push_base64(out, record.line);
            out.push(b'"');
        }
    }
    out.extend_from_slice(b",\"metadata\":");
    if record.metadata.is_empty() {
        out.extend_from_slice(b"{}");
    } else {
        push_metadata(out, &Metadata::decode(record.metadata)?);
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use haystore::{Batch, Format, Labels, Value};

    #[test]
    fn a_record_is_one_line_of_json() {
        let mut batch = Batch::new();
        let metadata = Metadata(vec![("k".into(), Value::Int(1))]);
        batch.push_record(1, &Labels::new([("a", "b")]), b"x\ny", &metadata, &Format::Text).unwrap();
        batch.push_record(2, &Labels::default(), b"\xff\0", &Metadata::default(), &Format::Text).unwrap();
        let mut out = Vec::new();
        batch.iter().for_each(|r| push_record(&mut out, r).unwrap());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"timestamp":"1970-01-01T00:00:00.000000001Z","labels":{"a":"b"},"line":"x\ny","metadata":{"k":1}}"#,
                "\n",
                r#"{"timestamp":"1970-01-01T00:00:00.000000002Z","labels":{},"line_base64":"/wA=","metadata":{}}"#,
                "\n"
            )
        );
    }
}
