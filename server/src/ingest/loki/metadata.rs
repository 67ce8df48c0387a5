//! The structured metadata of a JSON entry: an object, to the stored form of metadata.
//!
//! Strings are what Loki's own senders give; other JSON values keep their type. Too many or too deep values
//! are the entry's fault, not the body's. An integer past 64 bits becomes the nearest float, as JSON readers do.

use super::METADATA_VALUES_MAX;
use haystore::{Metadata, Value};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The stored form, or why the entry is bad.
pub(super) struct MetadataSeed;

impl<'de> DeserializeSeed<'de> for MetadataSeed {
    type Value = Result<Vec<u8>, String>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let mut room = Room { values: METADATA_VALUES_MAX, passed: None };
        let value = ValueSeed { room: &mut room, depth: 0 }.deserialize(deserializer)?;
        Ok(match (room.passed, value) {
            (Some(limit), _) => Err(limit),
            (None, Value::Map(pairs)) => Ok(Metadata(pairs).encode()),
            (None, Value::Null) => Ok(Vec::new()),
            (None, _) => Err("structured metadata is not an object".to_string()),
        })
    }
}

/// What is left of the entry's limits; set `passed` when one was passed.
struct Room {
    values: usize,
    passed: Option<String>,
}

struct ValueSeed<'s> {
    room: &'s mut Room,
    depth: usize,
}

impl ValueSeed<'_> {
    /// Room for a value inside this one, or `None` when a limit is passed.
    fn inner(&mut self) -> Option<ValueSeed<'_>> {
        if self.room.values == 0 {
            self.room.passed = Some(format!("structured metadata has more than {METADATA_VALUES_MAX} values"));
        } else if self.depth + 1 >= Metadata::DEPTH_MAX / 2 {
            // Half: a map whose first key starts with `$` takes two levels of the stored form.
            self.room.passed = Some(format!("structured metadata is nested deeper than {}", Metadata::DEPTH_MAX / 2));
        } else {
            self.room.values -= 1;
            return Some(ValueSeed { room: &mut *self.room, depth: self.depth + 1 });
        }
        None
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("structured metadata")
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Str(value.to_string()))
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(inner) = self.inner() {
            match seq.next_element_seed(inner)? {
                Some(item) => items.push(item),
                None => return Ok(Value::List(items)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(inner) = self.inner() {
            match map.next_key()? {
                Some(key) => pairs.push((key, map.next_value_seed(inner)?)),
                None => return Ok(Value::Map(pairs)),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }
}
