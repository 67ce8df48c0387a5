//! LogQL's tokens: text to a run of [`Token`]s, each with its place.
//!
//! Holds: every call moves forward by at least one character or ends; nothing is read twice.

use crate::error::Error;

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Punctuation or an operator, as it is written.
    Sign(&'static str),
    /// A name or keyword.
    Name(&'a str),
    /// A number, perhaps with a unit: anything that begins with a digit.
    Number(&'a str),
    /// A quoted string, escapes resolved: any bytes.
    Text(Vec<u8>),
    /// A character that begins no token.
    Unknown(char),
    /// The end of the text.
    End,
}

/// Signs, longest first where one begins another.
const SIGNS: &[&str] = &[
    "|=", "|~", "|>", "!=", "!~", "!>", "=~", "==", ">=", "<=", "|", "=", "{", "}", "(", ")", "[", "]", ",", "+", "-", "*", "/", "%", "^",
    ">", "<",
];

impl Token<'_> {
    /// The token as an error names it.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Sign(sign) => format!("`{sign}`"),
            Token::Name(name) => format!("`{}`", shortened(name)),
            Token::Number(number) => format!("`{}`", shortened(number)),
            Token::Text(_) => "a string".to_string(),
            Token::Unknown(c) => format!("the character {c:?}"),
            Token::End => "the end of the query".to_string(),
        }
    }
}

/// Keeps an error short, however long the text it speaks of.
fn shortened(text: &str) -> &str {
    &text[..text.len().min(60)]
}

/// Where in the text the next token begins.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text, at: 0 }
    }

    /// The next token and the byte it begins at.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), Error> {
        self.skip_blank();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start)) };
        let token = match first {
            '"' => self.quoted()?,
            '`' => self.raw()?,
            'a'..='z' | 'A'..='Z' | '_' => Token::Name(self.word()),
            '0'..='9' => Token::Number(self.word()),
            _ => self.sign(rest, first),
        };
        Ok((token, start))
    }

    /// An error that names the line and column of byte `at`.
    pub(super) fn error(&self, at: usize, what: impl std::fmt::Display) -> Error {
        let before = &self.text[..at];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = before[before.rfind('\n').map_or(0, |i| i + 1)..].chars().count() + 1;
        Error::invalid(format!("parse error at line {line}, col {column}: {what}"))
    }

    /// White space and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            if !rest.starts_with('#') {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let len = rest.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn sign(&mut self, rest: &str, first: char) -> Token<'a> {
        if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            self.at += sign.len();
            return Token::Sign(sign);
        }
        self.at += first.len_utf8();
        Token::Unknown(first)
    }

    /// A string in backticks: taken as it is, over several lines if need be.
    fn raw(&mut self) -> Result<Token<'a>, Error> {
        let body = &self.text[self.at + 1..];
        let len = body.find('`').ok_or_else(|| self.error(self.at, "the string has no closing backtick"))?;
        self.at += len + 2;
        Ok(Token::Text(body.as_bytes()[..len].to_vec()))
    }

    /// A string in double quotes, with Go's escapes.
    fn quoted(&mut self) -> Result<Token<'a>, Error> {
        let start = self.at;
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = memchr::memchr3(b'"', b'\\', b'\n', rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Token::Text(out));
                }
                Some(b'\\') => self.escape(&mut out)?,
                _ => return Err(self.error(start, "the string has no closing quote on its line")),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = self.at;
        let letter = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        match letter {
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'v') => out.push(11),
            Some(quoted @ (b'\\' | b'"')) => out.push(quoted),
            Some(b'x') => out.push(self.byte(start, 2, 16)?),
            Some(b'0'..=b'7') => {
                self.at -= 1;
                out.push(self.byte(start, 3, 8)?);
            }
            Some(b'u') => self.character(start, 4, out)?,
            Some(b'U') => self.character(start, 8, out)?,
            _ => return Err(self.error(start, "unknown escape in the string; a backslash itself is written \\\\")),
        }
        Ok(())
    }

    fn byte(&mut self, start: usize, digits: usize, radix: u32) -> Result<u8, Error> {
        let code = self.digits(start, digits, radix)?;
        u8::try_from(code).map_err(|_| self.error(start, "the escape does not fit a byte"))
    }

    fn character(&mut self, start: usize, digits: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let code = self.digits(start, digits, 16)?;
        let c = char::from_u32(code).ok_or_else(|| self.error(start, "the escape names no character"))?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn digits(&mut self, start: usize, count: usize, radix: u32) -> Result<u32, Error> {
        let digits = self.text.get(self.at..self.at + count).filter(|d| d.chars().all(|c| c.is_digit(radix)));
        let code = digits.and_then(|d| u32::from_str_radix(d, radix).ok());
        self.at += count;
        code.ok_or_else(|| self.error(start, format!("the escape needs {count} digits of base {radix}")))
    }
}
