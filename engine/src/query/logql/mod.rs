//! LogQL: text to [`Query`].
//!
//! What is understood now: stream selectors and chained line filters; the rest of the language is told apart and refused
//! with its line and column. Time and memory are linear in the text: nothing nests, and there are named limits.
//! This module must not know how a query is run.

mod lexer;
mod parser;

use super::Query;
use crate::error::{Error, Result};

/// The longest query, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// The most regexes in one query.
pub const REGEXES_MAX: usize = 256;

/// Parses `text`: LogQL when it begins with `{` (after white space), else a bare needle: all of `text`,
/// verbatim, is the string that lines must hold.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] with line and column; [`crate::ErrorKind::Limit`] past a limit.
pub fn parse(text: &str) -> Result<Query> {
    if text.trim_start().starts_with('{') { parse_strict(text) } else { check_size(text).map(|()| Query::needle(text)) }
}

/// Parses `text` as LogQL, never as a bare needle: what a metric query or a misspelt selector reaches is an error.
///
/// # Errors
/// As [`parse`].
pub fn parse_strict(text: &str) -> Result<Query> {
    check_size(text)?;
    parser::query(text)
}

fn check_size(text: &str) -> Result<()> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::limit(format!("the query has {} bytes; the limit is {TEXT_BYTES_MAX}", text.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
