//! The JSON form of a push: `{"streams":[{"stream":{"k":"v"},"values":[["<ns>","line",{"k":"v"}],…]},…]}`.
//!
//! The body is read once, and each line goes from the body (or from the decoder's scratch, when it has escapes)
//! straight to the batch's arena. A stream whose `values` come before its `stream` goes through a batch of its own.

use super::metadata::MetadataSeed;
use super::{Sink, Stream};
use crate::ingest::request::{Parsed, RecordLimits};
use haystore::{Error, Labels, Result};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads a decompressed push body.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] with line and column when the body is no push request, [`haystore::ErrorKind::Limit`]
/// past `limits`; nothing is kept.
pub fn parse_json(body: &[u8], limits: &RecordLimits) -> Result<Parsed> {
    let mut sink = Sink::new(limits)?;
    let mut json = serde_json::Deserializer::from_slice(body);
    let outcome = PushSeed(&mut sink).deserialize(&mut json).and_then(|()| json.end());
    match (outcome, sink.fatal) {
        (Ok(()), None) => Ok(sink.parsed),
        (_, Some(fatal)) => Err(fatal),
        (Err(e), None) => Err(Error::invalid(format!("push body: {e}"))),
    }
}

/// The keys that matter.
enum Key {
    Streams,
    Stream,
    Values,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                Ok(match key {
                    "streams" => Key::Streams,
                    "stream" => Key::Stream,
                    "values" => Key::Values,
                    _ => Key::Other,
                })
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct PushSeed<'s>(&'s mut Sink);

impl<'de> DeserializeSeed<'de> for PushSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PushSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"streams\"")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key()? {
            if matches!(key, Key::Streams) {
                map.next_value_seed(StreamsSeed(&mut *self.0))?;
                found = true;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(A::Error::custom("it has no \"streams\"")) }
    }
}

/// An array of streams.
struct StreamsSeed<'s>(&'s mut Sink);

impl<'de> DeserializeSeed<'de> for StreamsSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for StreamsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of streams")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(StreamSeed(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

struct StreamSeed<'s>(&'s mut Sink);

impl<'de> DeserializeSeed<'de> for StreamSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for StreamSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"stream\" and \"values\"")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let sink = self.0;
        let mut stream = None;
        let mut early: Option<Sink> = None;
        while let Some(key) = map.next_key()? {
            match (key, &mut stream) {
                (Key::Stream, stream) => *stream = Some(Stream::new(map.next_value_seed(LabelsSeed)?)),
                (Key::Values, Some(stream)) => map.next_value_seed(ValuesSeed { sink, stream })?,
                (Key::Values, None) => {
                    let mut aside = match early.take() {
                        Some(aside) => aside,
                        None => Sink::new(&sink.limits).map_err(A::Error::custom)?,
                    };
                    let mut unnamed = Stream::new(Ok(Labels::default()));
                    let outcome = map.next_value_seed(ValuesSeed { sink: &mut aside, stream: &mut unnamed });
                    sink.fatal = aside.fatal.take();
                    outcome?;
                    early = Some(aside);
                }
                (Key::Streams | Key::Other, _) => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if let Some(aside) = early {
            let mut stream = stream.unwrap_or_else(|| Stream::Bad("its stream has no \"stream\" object".to_string()));
            replay(&aside.parsed, &mut stream, sink).map_err(|e| fail(sink, e))?;
        }
        Ok(())
    }
}

/// Moves entries whose labels came late.
fn replay(from: &Parsed, stream: &mut Stream, sink: &mut Sink) -> Result<()> {
    let before = sink.parsed.batch.len() as u64 + sink.parsed.rejected;
    for record in from.batch.iter() {
        match stream.index(sink) {
            Ok(index) => sink.entry(index, Ok(record.timestamp), record.line, record.metadata)?,
            Err(message) => sink.parsed.reject(message),
        }
    }
    let room = Parsed::ERRORS_MAX.saturating_sub(sink.parsed.errors.len());
    let moved = from.errors.iter().take(room).cloned();
    sink.parsed.errors.extend(moved.map(|mut e| {
        e.record += before;
        e
    }));
    sink.parsed.rejected += from.rejected;
    Ok(())
}

/// Ends the request for a reason other than its syntax.
fn fail<E: serde::de::Error>(sink: &mut Sink, error: Error) -> E {
    let told = E::custom(error.message());
    sink.fatal = Some(error);
    told
}

/// The labels object: string values, at most [`super::LABELS_MAX`] and one more (which the stream's check then finds).
struct LabelsSeed;

impl<'de> DeserializeSeed<'de> for LabelsSeed {
    type Value = Result<Labels, String>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LabelsSeed {
    type Value = Result<Labels, String>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of labels")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value()?;
            if pairs.len() <= super::LABELS_MAX {
                pairs.push((name, value));
            }
        }
        Ok(Ok(Labels::new(pairs)))
    }
}

struct ValuesSeed<'s> {
    sink: &'s mut Sink,
    stream: &'s mut Stream,
}

impl<'de> DeserializeSeed<'de> for ValuesSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ValuesSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut scratch = Vec::new();
        while seq.next_element_seed(EntrySeed { sink: &mut *self.sink, stream: &mut *self.stream, scratch: &mut scratch })?.is_some() {}
        Ok(())
    }
}

struct EntrySeed<'s> {
    sink: &'s mut Sink,
    stream: &'s mut Stream,
    scratch: &'s mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EntrySeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry [timestamp, line] or [timestamp, line, metadata]")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let EntrySeed { sink, stream, scratch } = self;
        let timestamp = seq.next_element_seed(TimestampSeed)?;
        let line = seq.next_element_seed(LineSeed(&mut *scratch))?;
        let metadata = if line.is_some() { seq.next_element_seed(MetadataSeed)? } else { None };
        let mut extra = false;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            extra = true;
        }
        let (Some(timestamp), Some(line), false) = (timestamp, line, extra) else {
            sink.parsed.reject("an entry has two or three parts: timestamp, line, metadata");
            return Ok(());
        };
        let metadata = match metadata.transpose() {
            Ok(metadata) => metadata.unwrap_or_default(),
            Err(message) => {
                sink.parsed.reject(message);
                return Ok(());
            }
        };
        let line = line.unwrap_or(scratch);
        match stream.index(sink) {
            Ok(index) => sink.entry(index, timestamp, line, &metadata).map_err(|e| fail(sink, e)),
            Err(message) => {
                sink.parsed.reject(message);
                Ok(())
            }
        }
    }
}

/// A line: `Some` when the body holds its bytes as they are, `None` when they were unescaped into the scratch.
struct LineSeed<'s>(&'s mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for LineSeed<'_> {
    type Value = Option<&'de [u8]>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As bytes, not as text: a line that is not UTF-8 is kept as it is.
        deserializer.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for LineSeed<'_> {
    type Value = Option<&'de [u8]>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line (a string)")
    }
    fn visit_borrowed_bytes<E>(self, line: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Some(line))
    }
    fn visit_bytes<E>(self, line: &[u8]) -> Result<Self::Value, E> {
        self.0.clear();
        self.0.extend_from_slice(line);
        Ok(None)
    }
}

/// A timestamp: nanoseconds as a string or an integer; anything else is the entry's fault, not the body's.
struct TimestampSeed;

impl<'de> DeserializeSeed<'de> for TimestampSeed {
    type Value = Result<i64, String>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn bad_timestamp(shown: impl fmt::Display) -> Result<i64, String> {
    let shown: String = shown.to_string().chars().take(40).collect();
    Err(format!("timestamp {shown:?} is not an integer of nanoseconds that fits 64 bits"))
}

impl<'de> Visitor<'de> for TimestampSeed {
    type Value = Result<i64, String>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp")
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.parse().or_else(|_| bad_timestamp(text)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Ok(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).or_else(|_| bad_timestamp(value)))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(bad_timestamp(value))
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(bad_timestamp(value))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(bad_timestamp("null"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(bad_timestamp("[…]"))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(bad_timestamp("{…}"))
    }
}
