//! The protobuf form of a push, after snappy.
//!
//! The containers are walked field by field, so that a body of many tiny messages never becomes many large
//! structs; only the leaves are decoded as messages. Unknown fields are skipped, whatever their type.
//!
//! | message | fields |
//! |---|---|
//! | push request | 1 = stream (repeated) |
//! | stream | 1 = labels as text, 2 = entry (repeated), 3 = hash (ignored) |
//! | entry | 1 = timestamp {1 = seconds, 2 = nanos}, 2 = line, 3 = structured metadata (repeated {1 = name, 2 = value}) |

use super::{METADATA_VALUES_MAX, Sink, Stream, encode_metadata, parse_labels};
use crate::ingest::request::{Parsed, RecordLimits};
use haystore::{Error, Result, Value};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

#[derive(Clone, Copy, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Reads a decompressed push body.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] when the body is no push request, [`haystore::ErrorKind::Limit`] past `limits`; nothing is kept.
pub fn parse_protobuf(body: &[u8], limits: &RecordLimits) -> Result<Parsed> {
    let mut sink = Sink::new(limits)?;
    walk(body, &mut |field, stream| if field == 1 { push_stream(stream, &mut sink) } else { Ok(()) })?;
    Ok(sink.parsed)
}

fn push_stream(bytes: &[u8], sink: &mut Sink) -> Result<()> {
    // Labels come before the entries from every known sender, but the format does not promise it.
    let mut labels: &[u8] = b"";
    walk(bytes, &mut |field, value| {
        if field == 1 {
            labels = value;
        }
        Ok(())
    })?;
    let text = std::str::from_utf8(labels).map_err(|e| format!("labels: {e}"));
    let mut stream = Stream::new(text.and_then(parse_labels));
    walk(bytes, &mut |field, value| if field == 2 { push_entry(value, &mut stream, sink) } else { Ok(()) })
}

fn push_entry(bytes: &[u8], stream: &mut Stream, sink: &mut Sink) -> Result<()> {
    let mut line: &[u8] = b"";
    let mut timestamp = Timestamp::default();
    let mut pairs = Vec::new();
    let mut bad = None;
    walk(bytes, &mut |field, value| {
        match field {
            1 => timestamp = leaf(value)?,
            2 => line = value,
            3 if pairs.len() < METADATA_VALUES_MAX => match leaf::<Pair>(value) {
                Ok(pair) => pairs.push((pair.name, Value::Str(pair.value))),
                Err(e) => bad = Some(format!("structured metadata: {e}")),
            },
            3 => bad = Some(format!("more than {METADATA_VALUES_MAX} pairs of structured metadata")),
            _ => {}
        }
        Ok(())
    })?;
    let index = match (bad, stream.index(sink)) {
        (None, Ok(index)) => index,
        (Some(message), _) | (None, Err(message)) => {
            sink.parsed.reject(message);
            return Ok(());
        }
    };
    sink.entry(index, nanoseconds(&timestamp), line, &encode_metadata(pairs))
}

fn nanoseconds(timestamp: &Timestamp) -> Result<i64, String> {
    i64::try_from(i128::from(timestamp.seconds) * 1_000_000_000 + i128::from(timestamp.nanos))
        .map_err(|_| format!("timestamp {} s + {} ns is outside of what 64 bits of nanoseconds hold", timestamp.seconds, timestamp.nanos))
}

fn leaf<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::invalid(format!("protobuf: {e}")))
}

/// Calls `take(field, bytes)` for each length-delimited field of a message; skips the others.
fn walk<'a>(mut rest: &'a [u8], take: &mut dyn FnMut(u32, &'a [u8]) -> Result<()>) -> Result<()> {
    let bad = |e: prost::DecodeError| Error::invalid(format!("protobuf: {e}"));
    let short = || Error::invalid("protobuf: a field reaches behind the end of its message");
    while !rest.is_empty() {
        let (field, wire) = decode_key(&mut rest).map_err(bad)?;
        let len = match wire {
            WireType::Varint => {
                decode_varint(&mut rest).map_err(bad)?;
                continue;
            }
            WireType::LengthDelimited => decode_varint(&mut rest).map_err(bad)?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::StartGroup | WireType::EndGroup => return Err(Error::invalid("protobuf: groups are not taken")),
        };
        let len = usize::try_from(len).map_err(|_| short())?;
        let (value, tail) = rest.split_at_checked(len).ok_or_else(short)?;
        rest = tail;
        if wire == WireType::LengthDelimited {
            take(field, value)?;
        }
    }
    Ok(())
}
