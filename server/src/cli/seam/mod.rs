//! Where the command line touches its neighbours: one thin function each. Everything else in `cli` goes through here.

mod answer;
mod records;
mod upkeep;

pub use answer::push_record;
pub use records::{Look, ReadOptions, Records, Tally, decoded, look};
pub use upkeep::{compact, usage, verify};

use super::args::ServeArgs;
use haystore::query::{LineFilter, Query};
use haystore::{Error, Result, Store};

/// Reads a query.
///
/// # Errors
/// What is wrong with `text`.
pub fn query(text: &str) -> Result<Query> {
    let (selector, needle) = match text.trim_start().strip_prefix("{}") {
        Some(rest) => ("{}", rest.trim().strip_prefix("|=").map(|q| q.trim().trim_matches(['"', '`']))),
        None => (text, Some(text)),
    };
    match needle {
        _ if selector.trim_start().starts_with('{') && selector != "{}" => Err(Error::invalid("label matchers are not read yet")),
        Some("") | None => Ok(Query::default()),
        Some(needle) => Ok(Query { filters: vec![LineFilter::Contains(needle.as_bytes().to_vec())], ..Query::default() }),
    }
}

/// Reads a time.
///
/// # Errors
/// What is wrong with `text`.
pub fn time(text: &str, now_ns: i64) -> Result<i64> {
    if text == "now" {
        return Ok(now_ns);
    }
    text.parse().map_err(|_| Error::invalid(format!("{text:?} is no time in nanoseconds since 1970")))
}

/// Serves `store` until the process is told to stop.
///
/// # Errors
/// When the address is taken; those of the store.
pub async fn serve(_store: Store, _args: &ServeArgs) -> anyhow::Result<()> {
    anyhow::bail!("this build has no HTTP server")
}
