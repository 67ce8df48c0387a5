//! What this API's texts mean: queries and times, read by the engine.

use haystore::query::{LabelMatcher, Query, logql};
use haystore::{Error, Result};

/// Reads a native query: LogQL, or a bare string that lines must hold; nothing finds everything.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] with line and column.
pub fn native_query(text: &str) -> Result<Query> {
    if text.is_empty() { Ok(Query::default()) } else { logql::parse(text) }
}

/// Reads a selector, `{name="value", …}`.
///
/// # Errors
/// [`haystore::ErrorKind::Invalid`] with line and column; also when there is more than a selector.
pub fn selector(text: &str) -> Result<Vec<LabelMatcher>> {
    let query = logql::parse_strict(text)?;
    if query.filters.is_empty() { Ok(query.matchers) } else { Err(Error::invalid(format!("{text:?} is more than a selector"))) }
}
