//! Records as Arrow record batches, for embedders and analysis.
//!
//! | column | type | note |
//! |---|---|---|
//! | `timestamp` | timestamp(ns, UTC) | |
//! | `labels` | map(utf8, utf8) | sorted by name |
//! | `line` | binary | the bytes as sent |
//! | `metadata` | utf8, nullable | the stored form: one JSON object with types, see [`crate::Metadata`]; null when there is none |

use crate::error::{Error, Result};
use crate::record::Batch;
use crate::store::Scan;
use arrow_array::builder::{BinaryBuilder, MapBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// The schema of [`to_record_batch`].
pub fn schema() -> SchemaRef {
    let entries = vec![Field::new("keys", DataType::Utf8, false), Field::new("values", DataType::Utf8, true)];
    let entries = Field::new("entries", DataType::Struct(entries.into()), false);
    Arc::new(Schema::new(vec![
        Field::new("timestamp", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false),
        Field::new("labels", DataType::Map(Arc::new(entries), false), false),
        Field::new("line", DataType::Binary, false),
        Field::new("metadata", DataType::Utf8, true),
    ]))
}

/// The records of `batch`, in their order.
///
/// # Errors
/// [`crate::ErrorKind::Limit`] when the batch has 2 GiB of lines or more, which Arrow's `binary` cannot hold; batches of a scan have about 1 MB.
pub fn to_record_batch(batch: &Batch) -> Result<RecordBatch> {
    if batch.line_bytes() > i32::MAX as usize {
        return Err(Error::limit("a batch of 2 GiB or more does not fit an Arrow binary column"));
    }
    let failed = |e: arrow_schema::ArrowError| Error::internal(format!("arrow: {e}"));
    let mut labels = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    let mut lines = BinaryBuilder::with_capacity(batch.len(), batch.line_bytes());
    let mut metadata = StringBuilder::new();
    for record in batch.iter() {
        for (name, value) in record.labels.iter() {
            labels.keys().append_value(name);
            labels.values().append_value(value);
        }
        labels.append(true).map_err(failed)?;
        lines.append_value(record.line);
        match std::str::from_utf8(record.metadata) {
            Ok("") => metadata.append_null(),
            Ok(text) => metadata.append_value(text),
            Err(e) => return Err(Error::internal(format!("stored metadata is not UTF-8: {e}"))),
        }
    }
    let timestamps = TimestampNanosecondArray::from(batch.timestamps().to_vec()).with_timezone("UTC");
    let columns: Vec<ArrayRef> =
        vec![Arc::new(timestamps), Arc::new(labels.finish()), Arc::new(lines.finish()), Arc::new(metadata.finish())];
    RecordBatch::try_new(schema(), columns).map_err(failed)
}

impl Scan {
    /// As [`Scan::next`], as an Arrow record batch with [`schema`].
    ///
    /// # Errors
    /// As [`Scan::next`] and [`to_record_batch`].
    pub async fn next_arrow(&mut self) -> Result<Option<RecordBatch>> {
        self.next().await?.as_ref().map(to_record_batch).transpose()
    }

    /// The scan as a stream of Arrow record batches with [`schema`].
    pub fn into_arrow(self) -> impl futures_util::Stream<Item = Result<RecordBatch>> {
        futures_util::stream::unfold(Some(self), |scan| async move {
            let mut scan = scan?;
            match scan.next_arrow().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(scan))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Format, Labels, Metadata, Value};
    use arrow_array::cast::AsArray;
    use arrow_array::types::TimestampNanosecondType;

    #[test]
    fn records_become_rows() {
        let mut batch = Batch::new();
        let labels = Labels::new([("b", "2"), ("a", "1")]);
        let metadata = Metadata(vec![("n".into(), Value::Int(7))]);
        batch.push_record(5, &labels, b"x\xff", &metadata, &Format::Text).unwrap();
        batch.push_record(-6, &Labels::default(), b"", &Metadata::default(), &Format::Text).unwrap();
        let rows = to_record_batch(&batch).unwrap();
        assert_eq!(rows.schema(), schema());
        assert_eq!(rows.column(0).as_primitive::<TimestampNanosecondType>().values(), &[5, -6]);
        let map = rows.column(1).as_map();
        assert_eq!((map.value_length(0), map.value_length(1)), (2, 0));
        assert_eq!(map.keys().as_string::<i32>().value(0), "a");
        assert_eq!(rows.column(2).as_binary::<i32>().value(0), b"x\xff");
        assert_eq!(rows.column(3).as_string::<i32>().value(0), r#"{"n":7}"#);
        assert!(arrow_array::Array::is_null(rows.column(3), 1));
    }
}
