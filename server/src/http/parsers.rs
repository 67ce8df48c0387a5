//! The border to the parsers of native bodies: what this API needs of them, in one place.

use haystore::{Batch, Error, Format, Labels, Result};

/// How a body is read.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// `auto`, `lines`, `ndjson` or `csv`.
    pub format: String,
    /// Labels of every record.
    pub labels: Labels,
    /// The field that holds the time.
    pub time_field: Option<String>,
    /// Whether timestamps are looked for; else every record gets `now`.
    pub find_timestamps: bool,
    /// Longest line.
    pub line_bytes_max: usize,
    /// Most records of a request.
    pub request_records_max: usize,
    /// The time of the request.
    pub now: i64,
}

/// What a body held.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The good records, in order.
    pub batches: Vec<Batch>,
    /// How many were rejected.
    pub rejected: u64,
    /// Number and message of the first 100 of them.
    pub errors: Vec<(u64, String)>,
}

/// Reads a body.
///
/// # Errors
/// When nothing of it can be read, or it holds too many records.
pub fn parse(body: &[u8], options: &NativeOptions) -> Result<Parsed> {
    let json = options.format == "ndjson" || options.format == "auto" && body.first() == Some(&b'{');
    let mut batch = Batch::new();
    let stream = batch.stream(&options.labels);
    let format = batch.format(if json { &Format::Json } else { &Format::Text })?;
    let mut parsed = Parsed::default();
    let mut lines = body.split(|&b| b == b'\n').peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() && (json || lines.peek().is_none()) {
            continue;
        }
        let number = batch.len() as u64 + parsed.rejected;
        let bad = if line.len() > options.line_bytes_max {
            Some(format!("the line has {} bytes; at most {} are taken", line.len(), options.line_bytes_max))
        } else if json {
            serde_json::from_slice::<serde::de::IgnoredAny>(line).err().map(|e| format!("not JSON: {e}"))
        } else {
            None
        };
        if let Some(message) = bad {
            parsed.rejected += 1;
            if parsed.errors.len() < 100 {
                parsed.errors.push((number, message));
            }
        } else if batch.len() >= options.request_records_max {
            return Err(Error::limit(format!("a request takes at most {} records", options.request_records_max)));
        } else {
            batch.push(options.now, stream, format, line, b"")?;
        }
    }
    parsed.batches.push(batch);
    Ok(parsed)
}
