//! Where the command line touches its neighbours: one thin function each. Everything else in `cli` goes through here.

mod answer;
mod records;

pub use crate::ingest::whole_csv_records;
pub use answer::push_record;
pub use haystore::query::logql::parse as query;
pub use haystore::query::time::parse as time;
pub use records::{CsvLook, Look, ReadOptions, Records, Tally, decoded, look};

use super::args::ServeArgs;
use crate::{ServeConfig, http};
use haystore::Store;
use std::net::SocketAddr;

/// Serves `store` until the process is told to stop; `listening` learns where.
///
/// # Errors
/// When the address is taken; those of the store.
pub async fn serve(store: Store, args: &ServeArgs, listening: impl FnOnce(SocketAddr)) -> anyhow::Result<()> {
    let config = ServeConfig { listen: args.listen, line_bytes_max: args.line.line_bytes_max, ..ServeConfig::default() };
    let config = config.within(args.store.memory);
    http::serve(store, config, listening).await
}
