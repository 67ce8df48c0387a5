//! The grammar: tokens to [`Query`].
//!
//! ```text
//! query    = selector { filter }
//! selector = "{" [ matcher { "," matcher } ] "}"
//! matcher  = ( name | string ) ( "=" | "!=" | "=~" | "!~" ) string
//! filter   = ( "|=" | "!=" | "|~" | "!~" ) string { "or" string }
//! ```

use super::REGEXES_MAX;
use super::lexer::{Lexer, Token};
use crate::error::{Error, ErrorKind, Result};
use crate::query::{LabelMatcher, LabelTest, LineFilter, Pattern, Query};

/// What stands between two queries.
const BINARY_NAMES: &[&str] = &["or", "and", "unless"];
const BINARY_SIGNS: &[&str] = &["+", "-", "*", "/", "%", "^", ">", "<", ">=", "<=", "=="];

pub(super) fn query(text: &str) -> Result<Query> {
    let mut parser = Parser::new(text)?;
    let matchers = parser.selector()?;
    let mut filters = Vec::new();
    while parser.token != Token::End {
        parser.filter(&mut filters)?;
    }
    Ok(Query { matchers, filters })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token to look at now, and where it begins.
    token: Token<'a>,
    at: usize,
    regexes: Regexes,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        Ok(Parser { lexer, token, at, regexes: Regexes::default() })
    }

    /// Goes on to the next token; gives back the one before.
    fn advance(&mut self) -> Result<Token<'a>> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn eat(&mut self, sign: &str) -> Result<bool> {
        let found = matches!(self.token, Token::Sign(s) if s == sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn error(&self, what: impl std::fmt::Display) -> Error {
        self.lexer.error(self.at, what)
    }

    fn expected(&self, what: &str) -> Error {
        self.error(format!("expected {what}, found {}", self.token.describe()))
    }

    fn selector(&mut self) -> Result<Vec<LabelMatcher>> {
        if !self.eat("{")? {
            return Err(match self.token {
                Token::Name(_) | Token::Number(_) | Token::Sign("(" | "+" | "-") => self.error("metric queries are not supported yet"),
                _ => self.expected("a stream selector such as {app=\"web\"}"),
            });
        }
        let mut matchers = Vec::new();
        if self.eat("}")? {
            return Ok(matchers);
        }
        loop {
            matchers.push(self.matcher()?);
            if self.eat("}")? {
                return Ok(matchers);
            }
            if !self.eat(",")? {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn matcher(&mut self) -> Result<LabelMatcher> {
        let name = match &self.token {
            Token::Name(name) => (*name).to_string(),
            Token::Text(bytes) => self.utf8(bytes)?.to_string(),
            _ => return Err(self.expected("a label's name")),
        };
        self.advance()?;
        let Token::Sign(operator @ ("=" | "!=" | "=~" | "!~")) = self.token else {
            return Err(self.expected("one of = != =~ !~"));
        };
        self.advance()?;
        let Token::Text(bytes) = &self.token else { return Err(self.expected("a quoted value")) };
        let value = self.utf8(bytes)?.to_string();
        let test = match operator {
            "=" => LabelTest::Eq(value),
            "!=" => LabelTest::Ne(value),
            "=~" => LabelTest::Match(self.regex(Pattern::label_within, &value)?),
            _ => LabelTest::NoMatch(self.regex(Pattern::label_within, &value)?),
        };
        self.advance()?;
        Ok(LabelMatcher { name, test })
    }

    /// One filter with its alternatives. `!= "a" or "b"` is neither, so it is two filters.
    fn filter(&mut self, filters: &mut Vec<LineFilter>) -> Result<()> {
        let Token::Sign(operator @ ("|=" | "!=" | "|~" | "!~")) = self.token else { return Err(self.not_a_filter()?) };
        self.advance()?;
        let mut needles = Vec::new();
        let mut patterns = Vec::new();
        loop {
            match &mut self.token {
                Token::Text(needle) if operator.ends_with('=') => needles.push(std::mem::take(needle)),
                Token::Text(bytes) => {
                    let bytes = std::mem::take(bytes);
                    let source = self.utf8(&bytes)?;
                    patterns.push(self.regex(Pattern::line_within, source)?);
                }
                Token::Name("ip") => return Err(self.error("ip() filters are not supported yet")),
                _ => return Err(self.expected("a quoted string")),
            }
            self.advance()?;
            if self.token != Token::Name("or") {
                break;
            }
            self.advance()?;
        }
        match operator {
            "|=" => filters.extend(one_or_any(needles, LineFilter::Contains, LineFilter::ContainsAny)),
            "!=" => filters.extend(needles.into_iter().map(LineFilter::ContainsNot)),
            "|~" => filters.extend(one_or_any(patterns, LineFilter::Match, LineFilter::MatchAny)),
            _ => filters.extend(patterns.into_iter().map(LineFilter::NoMatch)),
        }
        Ok(())
    }

    /// What to say of a token that begins no line filter.
    fn not_a_filter(&mut self) -> Result<Error> {
        let later = |parser: &Self, what: &str| parser.error(format!("{what} not supported yet"));
        Ok(match self.token {
            Token::Sign("|") => {
                let at = self.at;
                self.advance()?;
                match self.token {
                    Token::Name(name) => self.lexer.error(at, format!("`| {}` is not supported yet", &name[..name.len().min(60)])),
                    _ => self.expected("a stage's name after `|`"),
                }
            }
            Token::Sign("|>" | "!>") => later(self, "pattern line filters (|> and !>) are"),
            Token::Sign("[") => later(self, "ranges and metric queries are"),
            Token::Sign(sign) if BINARY_SIGNS.contains(&sign) => later(self, "binary operators are"),
            Token::Name(name) if BINARY_NAMES.contains(&name) => later(self, "binary operators are"),
            _ => self.expected("a line filter (|= != |~ !~)"),
        })
    }

    fn utf8<'b>(&self, bytes: &'b [u8]) -> Result<&'b str> {
        std::str::from_utf8(bytes).map_err(|_| self.error("the string is not UTF-8; only |= and != take any bytes"))
    }

    fn regex(&mut self, make: fn(&str, usize) -> Result<Pattern>, source: &str) -> Result<Pattern> {
        self.regexes.compile(make, source).map_err(|e| Error::new(e.kind(), self.error(e.message()).message()))
    }
}

fn one_or_any<T>(mut items: Vec<T>, one: fn(T) -> LineFilter, any: fn(Vec<T>) -> LineFilter) -> Option<LineFilter> {
    if items.len() > 1 { Some(any(items)) } else { items.pop().map(one) }
}

/// What the regexes of one query may cost: up to [`REGEXES_MAX`] small ones, or a few large ones.
#[derive(Default)]
struct Regexes {
    count: usize,
    bytes: usize,
}

impl Regexes {
    const SMALL_BYTES_MAX: usize = 256 << 10;
    const LARGE_BYTES_MAX: usize = 16 << 20;
    const ALL_BYTES_MAX: usize = 64 << 20;

    fn compile(&mut self, make: fn(&str, usize) -> Result<Pattern>, source: &str) -> Result<Pattern> {
        self.count += 1;
        if self.count > REGEXES_MAX {
            return Err(Error::limit(format!("more than {REGEXES_MAX} regexes in one query")));
        }
        let mut size = Self::SMALL_BYTES_MAX;
        let mut made = make(source, size);
        if made.as_ref().is_err_and(|e| e.kind() == ErrorKind::Limit) && self.bytes + Self::LARGE_BYTES_MAX <= Self::ALL_BYTES_MAX {
            size = Self::LARGE_BYTES_MAX;
            made = make(source, size);
        }
        self.bytes += size;
        made
    }
}
