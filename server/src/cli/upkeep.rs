//! `haystore du`, `verify`, `compact`.

use super::args::{CompactArgs, DuArgs, VerifyArgs};
use super::terminal::{self, Interrupt};
use super::{Outcome, open, report};
use anyhow::Result;
use haystore::{Gear, Options};

/// zstd's level for archives.
const ARCHIVE_LEVEL: i32 = 19;

/// Prints where the bytes are.
///
/// # Errors
/// Those of the store.
pub async fn du(args: DuArgs) -> Result<Outcome> {
    let store = open::open_existing(&args.store, open::options(&args.store)).await?;
    let usage = store.usage().await?;
    terminal::print(&report::usage(&usage, args.segments, args.columns, terminal::stdout_colours()))?;
    Ok(Outcome::Done)
}

/// Reads everything again and prints what is damaged.
///
/// # Errors
/// Those of the store; damage is an [`Outcome`].
pub async fn verify(args: VerifyArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let store = open::open_existing(&args.store, open::options(&args.store)).await?;
    let bar = terminal::progress(0, "verifying");
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let Some(verified) = interrupt.or(store.verify(progress)).await else { return Ok(Outcome::Interrupted) };
    bar.finish_and_clear();
    let verified = verified?;
    for damage in &verified.damage {
        terminal::say("damage", damage);
    }
    terminal::print(&report::verified(&verified))?;
    Ok(if verified.damage.is_empty() { Outcome::Done } else { Outcome::Damage })
}

/// Merges small segments, and deletes what is no longer needed.
///
/// # Errors
/// Those of the store.
pub async fn compact(args: CompactArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let again = args.level.is_some() || args.archive;
    let level = args.level.unwrap_or(if args.archive { ARCHIVE_LEVEL } else { Gear::default().level });
    let gear = Gear { level, archive: args.archive };
    let options = Options {
        grace: args.grace.grace,
        orphan_age: args.grace.orphan_age,
        gear,
        ..open::options(&args.store).to_compact(args.store.memory)
    };
    let store = open::open_existing(&args.store, options).await?;
    let work = async { if again { store.compact_again().await } else { store.compact().await } };
    let Some(compacted) = interrupt.or(work).await else { return Ok(Outcome::Interrupted) };
    terminal::print(&report::compacted(&compacted?))?;
    store.close().await?;
    Ok(Outcome::Done)
}
