//! `haystore du`, `verify`, `compact`.

use super::args::{CompactArgs, DuArgs, VerifyArgs};
use super::terminal::{self, Interrupt};
use super::{Outcome, open, seam};
use anyhow::Result;

/// Prints where the bytes are.
///
/// # Errors
/// Those of the store.
pub async fn du(args: DuArgs) -> Result<Outcome> {
    let store = open::open_existing(&args.store, open::options(&args.store)).await?;
    let usage = seam::usage(&store).await?;
    terminal::print(&usage.render(args.segments, args.columns, terminal::stdout_colours()))?;
    Ok(Outcome::Done)
}

/// Reads everything again and prints what is damaged.
///
/// # Errors
/// Those of the store; damage is an [`Outcome`].
pub async fn verify(args: VerifyArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let store = open::open_existing(&args.store, open::options(&args.store)).await?;
    let bar = terminal::progress(0, "verifying");
    let Some(verified) = interrupt.or(seam::verify(&store, &bar)).await else { return Ok(Outcome::Interrupted) };
    bar.finish_and_clear();
    let verified = verified?;
    for damage in &verified.damage {
        terminal::say("damage", damage);
    }
    terminal::print(&verified.render())?;
    Ok(if verified.damage.is_empty() { Outcome::Done } else { Outcome::Damage })
}

/// Merges small segments.
///
/// # Errors
/// Those of the store.
pub async fn compact(args: CompactArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let options = haystore::Options { grace: args.grace.grace, orphan_age: args.grace.orphan_age, ..open::options(&args.store) };
    let store = open::open_existing(&args.store, options).await?;
    let Some(compacted) = interrupt.or(seam::compact(&store)).await else { return Ok(Outcome::Interrupted) };
    terminal::print(&compacted?.render())?;
    store.close().await?;
    Ok(Outcome::Done)
}
