//! A stream's labels as text, `{name="value", …}`, as the protobuf form of a push carries them.
//!
//! Values are Go string literals: double-quoted with escapes, or raw between backquotes. Pure.

use haystore::Labels;

/// Reads `{name="value", …}`.
///
/// # Errors
/// A sentence that names the byte.
pub fn parse_labels(text: &str) -> Result<Labels, String> {
    let mut reader = LabelReader { text, at: 0 };
    let labels = reader.labels()?;
    reader.spaces();
    if reader.at == text.len() { Ok(labels) } else { Err(reader.error("the end")) }
}

struct LabelReader<'a> {
    text: &'a str,
    at: usize,
}

impl LabelReader<'_> {
    fn error(&self, wanted: &str) -> String {
        format!("labels: expected {wanted} at byte {}", self.at)
    }

    fn spaces(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.spaces();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn labels(&mut self) -> Result<Labels, String> {
        if !self.eat("{") {
            return Err(self.error("'{'"));
        }
        let mut pairs = Vec::new();
        while !self.eat("}") {
            let name = self.name()?;
            if !self.eat("=") {
                return Err(self.error("'='"));
            }
            self.spaces();
            pairs.push((name, self.string()?));
            if pairs.len() > super::LABELS_MAX {
                return Err(self.error(&format!("at most {} labels", super::LABELS_MAX)));
            }
            if !self.eat(",") {
                if self.eat("}") {
                    break;
                }
                return Err(self.error("',' or '}'"));
            }
        }
        Ok(Labels::new(pairs))
    }

    /// A bare or quoted name.
    fn name(&mut self) -> Result<String, String> {
        self.spaces();
        if self.text[self.at..].starts_with('"') {
            return self.string();
        }
        let rest = &self.text[self.at..];
        let len = rest.find(|c: char| !(c.is_alphanumeric() || "_.:-/".contains(c))).unwrap_or(rest.len());
        if len == 0 {
            return Err(self.error("a label's name"));
        }
        self.at += len;
        Ok(rest[..len].to_string())
    }

    /// A Go string literal.
    fn string(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        if let Some(raw) = rest.strip_prefix('`') {
            let len = raw.find('`').ok_or_else(|| self.error("a closing backquote"))?;
            self.at += len + 2;
            return Ok(raw[..len].replace('\r', ""));
        }
        if !rest.starts_with('"') {
            return Err(self.error("a quoted value"));
        }
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let len = rest.find(['"', '\\']).ok_or_else(|| self.error("a closing quote"))?;
            out.extend_from_slice(&rest.as_bytes()[..len]);
            self.at += len + 1;
            if rest.as_bytes()[len] == b'"' {
                return String::from_utf8(out).map_err(|_| self.error("valid UTF-8 before this"));
            }
            self.escape(&mut out)?;
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let c = self.text[self.at..].bytes().next().ok_or_else(|| self.error("an escape"))?;
        let simple = match c {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'"' | b'\'' => c,
            b'x' => return self.code(1, 2, 16).map(|code| out.push((code & 0xff) as u8)),
            b'0'..=b'3' => return self.code(0, 3, 8).map(|code| out.push((code & 0xff) as u8)),
            b'u' | b'U' => {
                let code = self.code(1, if c == b'u' { 4 } else { 8 }, 16)?;
                let c = char::from_u32(code).ok_or_else(|| self.error("a character's code before this"))?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.error("an escape")),
        };
        out.push(simple);
        self.at += 1;
        Ok(())
    }

    fn code(&mut self, skip: usize, digits: usize, radix: u32) -> Result<u32, String> {
        let start = self.at + skip;
        let text = self.text.get(start..start + digits).filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = text.and_then(|t| u32::from_str_radix(t, radix).ok()).ok_or_else(|| self.error("an escape's digits"))?;
        self.at = start + digits;
        Ok(code)
    }
}
