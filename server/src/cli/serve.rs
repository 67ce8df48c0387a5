//! `haystore serve`: opens the store with its WAL and hands it to the HTTP server.

use super::Outcome;
use super::args::ServeArgs;
use super::{open, seam, terminal};

/// Runs until told to stop.
///
/// # Errors
/// Those of the store and of the listener.
pub async fn run(args: ServeArgs) -> anyhow::Result<Outcome> {
    let store = open::open_for_serving(&args).await?;
    let listening = |address| {
        terminal::say("", format_args!("haystore {} serves {} on http://{address}", env!("CARGO_PKG_VERSION"), args.store.store));
    };
    seam::serve(store, &args, listening).await?;
    Ok(Outcome::Done)
}
