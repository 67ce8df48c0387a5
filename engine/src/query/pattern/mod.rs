//! A regex with RE2's syntax and meaning, over bytes.
//!
//! Holds: matching takes time linear in the text. The text is read as RE2 reads it: as characters, where each byte that
//! is no part of valid UTF-8 counts as one U+FFFD; so `.` steps over a broken byte, `^.$` matches a broken byte alone, and
//! the literals around it are still found. In line patterns `.` does not match a newline (`(?s)` makes it), in
//! label patterns it does. This module must not know where the pattern stands in a query.

mod literal;
mod re2;

pub(super) use literal::Literals;

use crate::error::{Error, Result};
use regex_syntax::hir::{Class, Hir, HirKind};
use std::sync::Arc;

/// A compiled regex. Cloning is cheap; clone it for each thread that matches much.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: Arc<str>,
    whole: bool,
    regex: regex::bytes::Regex,
    hir: Arc<Hir>,
    /// Every text that matches holds one of these.
    required: Option<Arc<Literals>>,
    /// Whether the pattern can step over a U+FFFD, so that broken bytes matter.
    replacement: bool,
}

/// Two patterns are equal when they were written alike for the same use.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.whole == other.whole && self.source == other.source
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// The most memory a compiled pattern may take, in bytes, unless said otherwise.
    pub const BYTES_MAX: usize = 16 << 20;

    /// A pattern that may match anywhere in a line; `.` does not match a newline.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when `source` is no regex; [`crate::ErrorKind::Limit`] when it would grow past [`Pattern::BYTES_MAX`].
    pub fn line(source: &str) -> Result<Self> {
        Self::line_within(source, Self::BYTES_MAX)
    }

    /// A pattern that must match all of a label's value; `.` matches a newline.
    ///
    /// # Errors
    /// As [`Pattern::line`].
    pub fn label(source: &str) -> Result<Self> {
        Self::label_within(source, Self::BYTES_MAX)
    }

    pub(super) fn line_within(source: &str, bytes_max: usize) -> Result<Self> {
        Self::compile(source, false, bytes_max)
    }

    pub(super) fn label_within(source: &str, bytes_max: usize) -> Result<Self> {
        Self::compile(source, true, bytes_max)
    }

    fn compile(source: &str, whole: bool, bytes_max: usize) -> Result<Self> {
        let invalid = |what: &dyn std::fmt::Display| Error::invalid(format!("invalid regex: {what}"));
        let translated = re2::translate(source).map_err(|what| invalid(&what))?;
        // Parsed alone first, so that `a)(b` can't slip out of the anchors.
        let hir = regex_syntax::ParserBuilder::new().utf8(false).dot_matches_new_line(whole).build().parse(&translated);
        let hir = hir.map_err(|e| match e {
            regex_syntax::Error::Parse(e) => invalid(e.kind()),
            regex_syntax::Error::Translate(e) => invalid(e.kind()),
            _ => invalid(&"not understood"),
        })?;
        let anchored = if whole { format!(r"\A(?:{translated})\z") } else { translated };
        let regex = regex::bytes::RegexBuilder::new(&anchored).dot_matches_new_line(whole).size_limit(bytes_max).build();
        let regex = regex.map_err(|e| match e {
            regex::Error::CompiledTooBig(_) => Error::limit(format!("the regex grows past {bytes_max} bytes")),
            _ => invalid(&e.to_string().replace('\n', " ")),
        })?;
        let required = if whole { None } else { literal::required(&hir).map(Arc::new) };
        let replacement = mentions_replacement(&hir, usize::MAX);
        Ok(Pattern { source: source.into(), whole, regex, hir: Arc::new(hir), required, replacement })
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern must match the whole text.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The pattern's tree, without the anchors of a label pattern.
    pub fn hir(&self) -> &Hir {
        &self.hir
    }

    /// Literals of which every matching text holds at least one, when there are such.
    pub(super) fn required(&self) -> Option<&Arc<Literals>> {
        self.required.as_ref()
    }

    /// Whether the pattern matches `text`.
    pub fn is_match(&self, text: &[u8]) -> bool {
        if self.required.as_ref().is_some_and(|literals| literals.find(text).is_none()) {
            return false;
        }
        self.is_match_unchecked(text)
    }

    /// As [`Pattern::is_match`], for a text known to hold a required literal.
    pub(super) fn is_match_unchecked(&self, text: &[u8]) -> bool {
        // A match in the raw bytes lies in a valid stretch, so it stands. Without one, broken bytes may still make one.
        self.regex.is_match(text)
            || self.replacement && std::str::from_utf8(text).is_err() && self.regex.is_match(replace_broken(text).as_bytes())
    }
}

/// `text` with each byte that is no part of valid UTF-8 replaced by one U+FFFD.
fn replace_broken(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for chunk in text.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}

/// Whether the tree has a literal, or a class of at most `class_max` characters, with U+FFFD in it.
fn mentions_replacement(hir: &Hir, class_max: usize) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => memchr::memmem::find(&literal.0, "\u{fffd}".as_bytes()).is_some(),
        HirKind::Class(Class::Unicode(class)) => {
            let has = class.iter().any(|range| (range.start()..=range.end()).contains(&char::REPLACEMENT_CHARACTER));
            has && class.iter().map(|range| range.len()).sum::<usize>() <= class_max
        }
        HirKind::Class(Class::Bytes(_)) => false,
        HirKind::Repetition(repetition) => mentions_replacement(&repetition.sub, class_max),
        HirKind::Capture(capture) => mentions_replacement(&capture.sub, class_max),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(|part| mentions_replacement(part, class_max)),
    }
}

#[cfg(test)]
mod tests;
