//! Records as plain text, the form of the golden files' expected output.
//!
//! One record a line, six fields with a tab between them: tenant, labels, timestamp, format, metadata, line. Labels are `name=value`
//! with a tab-free comma between them. In every field the bytes below 0x20 and from 0x7f, and `\`, are written `\xHH`; in labels also `=` and `,`.

use super::Record;

/// The text of `records`.
pub fn dump(records: &[Record]) -> String {
    let mut out = String::new();
    for record in records {
        put(&mut out, record.tenant.as_bytes(), b"");
        out.push('\t');
        for (index, (name, value)) in record.labels.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            put(&mut out, name.as_bytes(), b"=,");
            out.push('=');
            put(&mut out, value.as_bytes(), b"=,");
        }
        out.push_str(&format!("\t{}\t", record.timestamp));
        put(&mut out, &record.format, b"");
        out.push('\t');
        put(&mut out, &record.metadata, b"");
        out.push('\t');
        put(&mut out, &record.line, b"");
        out.push('\n');
    }
    out
}

fn put(out: &mut String, bytes: &[u8], also: &[u8]) {
    for &byte in bytes {
        if (0x20..0x7f).contains(&byte) && byte != b'\\' && !also.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
}
