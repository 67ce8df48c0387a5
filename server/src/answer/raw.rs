//! Raw: each line's bytes and a newline, nothing else.

use haystore::RecordRef;

/// Appends `record`.
pub fn push_record(out: &mut Vec<u8>, record: RecordRef<'_>) {
    out.extend_from_slice(record.line);
    out.push(b'\n');
}
