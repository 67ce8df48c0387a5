//! Records as bytes.

use crate::answer::{ndjson, raw};
use crate::cli::args::Output;
use haystore::{RecordRef, Result};

/// Appends `record` in the form `output`, with its newline.
///
/// # Errors
/// When the record's metadata is damaged.
pub fn push_record(out: &mut Vec<u8>, output: Output, record: RecordRef<'_>) -> Result<()> {
    match output {
        Output::Raw => raw::push_record(out, record),
        Output::Ndjson => ndjson::push_record(out, record)?,
    }
    Ok(())
}
