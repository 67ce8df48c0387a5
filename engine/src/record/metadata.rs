//! Metadata: per record, ordered key → typed value, and its stored form.
//!
//! The stored form is one JSON object in UTF-8 without spaces, so that segments can take it apart as they
//! take apart any JSON line. It is canonical: one metadata value has exactly one stored form, and types survive:
//!
//! | value | stored |
//! |---|---|
//! | null, bool | `null`, `true`, `false` |
//! | int | digits, `-` before negatives |
//! | float, finite | shortest form that reads back the same bits, always with `.` or `e` |
//! | float, other | `{"$f":"<16 hex digits of the IEEE 754 bits>"}` |
//! | string | JSON string; escaped are `"`, `\` and bytes below 0x20 (as `\u00xx`), nothing else |
//! | bytes | `{"$b":"<lower-case hex>"}` |
//! | list | `[a,b]` |
//! | map | `{"k":v}`; when its first key starts with `$`, `{"$m":{"k":v}}` |

use crate::error::{Error, Result};
use std::fmt::Write as _;

/// A typed value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A 64-bit signed integer.
    Int(i64),
    /// An IEEE 754 double; every bit pattern survives.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A sequence.
    List(Vec<Value>),
    /// An ordered map; keys may repeat.
    Map(Vec<(String, Value)>),
}

/// Ordered key → typed value pairs; keys may repeat.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata(pub Vec<(String, Value)>);

impl Metadata {
    /// How deep values may nest.
    pub const DEPTH_MAX: usize = haystore_format::constants::METADATA_DEPTH_MAX;

    /// The stored form; empty for no pairs.
    pub fn encode(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut out = String::new();
        write_map(&mut out, &self.0);
        out.into_bytes()
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `bytes` is not the stored form of any metadata.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Metadata::default());
        }
        let text = std::str::from_utf8(bytes).map_err(|e| Error::invalid(format!("metadata: {e}")))?;
        let mut reader = Reader { text, at: 0 };
        let pairs = reader.map(0)?;
        if reader.at == text.len() { Ok(Metadata(pairs)) } else { Err(reader.error("end")) }
    }

    /// The first value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

/// Appends `text` as a JSON string, quotes included, in the stored form's escapes.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    // Runs without escapes are copied whole; all escaped bytes are ASCII, so every cut is at a character's border.
    while let Some(len) = rest.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
        out.push_str(&rest[..len]);
        match rest.as_bytes()[len] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b => {
                let _ = write!(out, "\\u{b:04x}");
            }
        }
        rest = &rest[len + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn write_map(out: &mut String, pairs: &[(String, Value)]) {
    out.push('{');
    for (i, (key, value)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_hex(out: &mut String, bytes: &[u8]) {
    for b in bytes {
        let _ = write!(out, "{b:02x}");
    }
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => {
            let _ = write!(out, "{i}");
        }
        Value::Float(f) if f.is_finite() => {
            let _ = write!(out, "{f:?}");
        }
        Value::Float(f) => {
            let _ = write!(out, "{{\"$f\":\"{:016x}\"}}", f.to_bits());
        }
        Value::Str(s) => write_string(out, s),
        Value::Bytes(b) => {
            out.push_str("{\"$b\":\"");
            write_hex(out, b);
            out.push_str("\"}");
        }
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Map(pairs) if pairs.first().is_some_and(|(k, _)| k.starts_with('$')) => {
            out.push_str("{\"$m\":");
            write_map(out, pairs);
            out.push('}');
        }
        Value::Map(pairs) => write_map(out, pairs),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, wanted: &str) -> Error {
        Error::invalid(format!("metadata: expected {wanted} at byte {}", self.at))
    }
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }
    fn eat(&mut self, token: &str) -> bool {
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }
    fn want(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.error(token)) }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(String, Value)>> {
        self.want("{")?;
        let mut pairs = Vec::new();
        if self.eat("}") {
            return Ok(pairs);
        }
        loop {
            let key = self.string()?;
            self.want(":")?;
            pairs.push((key, self.value(depth + 1)?));
            if self.eat("}") {
                return Ok(pairs);
            }
            self.want(",")?;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > Metadata::DEPTH_MAX {
            return Err(self.error("less depth"));
        }
        match self.peek() {
            b'"' => Ok(Value::Str(self.string()?)),
            b'[' => self.list(depth),
            b'{' => self.object(depth),
            b't' => self.want("true").map(|()| Value::Bool(true)),
            b'f' => self.want("false").map(|()| Value::Bool(false)),
            b'n' => self.want("null").map(|()| Value::Null),
            _ => self.number(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        self.want("[")?;
        let mut items = Vec::new();
        if self.eat("]") {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.eat("]") {
                return Ok(Value::List(items));
            }
            self.want(",")?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value> {
        let value = if self.eat("{\"$f\":\"") {
            let digits = self.until_quote()?;
            Value::Float(f64::from_bits(u64::from_str_radix(digits, 16).map_err(|_| self.error("hex digits"))?))
        } else if self.eat("{\"$b\":\"") {
            let digits = self.until_quote()?;
            Value::Bytes(from_hex(digits).ok_or_else(|| self.error("hex digits"))?)
        } else if self.eat("{\"$m\":") {
            Value::Map(self.map(depth + 1)?)
        } else {
            return Ok(Value::Map(self.map(depth)?));
        };
        self.want("}")?;
        Ok(value)
    }

    fn until_quote(&mut self) -> Result<&str> {
        let start = self.at;
        let len = self.text[start..].find('"').ok_or_else(|| self.error("a quote"))?;
        self.at += len + 1;
        Ok(&self.text[start..start + len])
    }

    fn number(&mut self) -> Result<Value> {
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(|b| b.is_ascii_digit() || b"+-.eE".contains(b)).count();
        let digits = &rest[..len];
        let value = if digits.bytes().any(|b| b == b'.' || b == b'e') {
            digits.parse().map(Value::Float).ok()
        } else {
            digits.parse().map(Value::Int).ok()
        };
        let value = value.ok_or_else(|| self.error("a value"))?;
        self.at += len;
        Ok(value)
    }

    fn string(&mut self) -> Result<String> {
        self.want("\"")?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let len = rest.find(['"', '\\']).ok_or_else(|| self.error("a quote"))?;
            out.push_str(&rest[..len]);
            self.at += len;
            if self.eat("\"") {
                return Ok(out);
            }
            if self.eat("\\\"") {
                out.push('"');
            } else if self.eat("\\\\") {
                out.push('\\');
            } else {
                self.want("\\u00")?;
                let digits = self.text.get(self.at..self.at + 2).ok_or_else(|| self.error("two hex digits"))?;
                let code = u8::from_str_radix(digits, 16).map_err(|_| self.error("two hex digits"))?;
                out.push(char::from(code));
                self.at += 2;
            }
        }
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
            any::<String>().prop_map(Value::Str),
            any::<Vec<u8>>().prop_map(Value::Bytes),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            let key = prop_oneof![any::<String>(), Just("$b".to_string()), Just("$m".to_string()), Just("$f".to_string())];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
                prop::collection::vec((key, inner), 0..5).prop_map(Value::Map),
            ]
        })
    }

    fn bits(value: &Value) -> String {
        let mut out = String::new();
        write_value(&mut out, value);
        out
    }

    proptest! {
        #[test]
        fn metadata_survives_its_stored_form(pairs in prop::collection::vec((any::<String>(), any_value()), 1..6)) {
            let metadata = Metadata(pairs);
            let stored = metadata.encode();
            let back = Metadata::decode(&stored).unwrap();
            prop_assert_eq!(back.encode(), stored);
            let same = back.0.iter().zip(&metadata.0).all(|(a, b)| a.0 == b.0 && bits(&a.1) == bits(&b.1) && std::mem::discriminant(&a.1) == std::mem::discriminant(&b.1));
            prop_assert!(same);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            let _ = Metadata::decode(&bytes);
        }
    }

    #[test]
    fn types_are_told_apart() {
        let metadata = Metadata(vec![
            ("a".into(), Value::Int(1)),
            ("b".into(), Value::Float(1.0)),
            ("c".into(), Value::Str("1".into())),
            ("d".into(), Value::Map(vec![("$b".into(), Value::Str("00".into()))])),
            ("e".into(), Value::Bytes(vec![0])),
            ("f".into(), Value::Float(1e300)),
        ]);
        assert_eq!(metadata.encode(), br#"{"a":1,"b":1.0,"c":"1","d":{"$m":{"$b":"00"}},"e":{"$b":"00"},"f":1e300}"#);
        assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
    }
}
