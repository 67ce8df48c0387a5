//! `haystore ingest`: files and standard input into a store, or to a server.

mod files;
mod local;
mod remote;
mod saved;

pub use files::{Source, expand};
pub use local::{Settings, ingest};

use super::args::{IngestArgs, Timestamps};
use super::seam::{ReadOptions, Tally};
use super::terminal::{self, Interrupt};
use super::units::{count, of, rate, ratio, size};
use super::{Outcome, open};
use anyhow::{Result, bail};
use std::time::Instant;

/// What an ingest did, all files together.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Files that went in completely.
    pub files: u64,
    /// Records.
    pub records: u64,
    /// Bytes of their lines, a newline each.
    pub raw_bytes: u64,
    /// Bytes of the segments written; 0 when a server took the records.
    pub stored_bytes: u64,
    /// Lines out of the ordinary.
    pub tally: Tally,
    /// Files that failed; each was told.
    pub failed: u64,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

impl Summary {
    fn add(&mut self, other: Summary) {
        self.files += other.files;
        self.records += other.records;
        self.raw_bytes += other.raw_bytes;
        self.stored_bytes += other.stored_bytes;
        self.tally.odd += other.tally.odd;
        self.tally.rejected += other.tally.rejected;
        self.tally.reasons.extend(other.tally.reasons);
        self.failed += other.failed;
        self.interrupted |= other.interrupted;
    }

    /// One line that says it all.
    pub fn render(&self, seconds: f64) -> String {
        let mut out = format!(
            "{}, {}, {} raw in {seconds:.1} s ({:.1} MB/s)",
            of(self.files, "file"),
            of(self.records, "record"),
            size(self.raw_bytes),
            rate(self.raw_bytes, seconds)
        );
        if self.stored_bytes > 0 {
            out += &format!("; stored {} ({})", size(self.stored_bytes), ratio(self.raw_bytes, self.stored_bytes));
        }
        if self.tally.odd > 0 {
            out += &format!("; {} lines of another format, kept as text", count(self.tally.odd));
        }
        if self.tally.rejected > 0 {
            out += &format!("; {} REJECTED", count(self.tally.rejected));
        }
        out
    }
}

/// How many reasons for rejected lines are told.
const REASONS_TOLD: usize = 5;

/// Runs the subcommand.
///
/// # Errors
/// When a file failed, or nothing could begin.
pub async fn run(args: IngestArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let sources = expand(&args.inputs)?;
    let bar = terminal::progress(sources.iter().map(|s| s.bytes).sum(), "ingesting");
    let begin = Instant::now();
    let settings = settings(&args)?;
    let summary = if let Some(url) = &args.server {
        let (url, bar, interrupt) = (url.clone(), bar.clone(), interrupt.clone());
        tokio::task::spawn_blocking(move || remote::ingest(&url, &settings, sources, &bar, &interrupt)).await??
    } else {
        let options = haystore::Options {
            line_bytes_max: args.line.line_bytes_max,
            checkpoint_bytes: args.checkpoint_bytes,
            ..open::options(&args.store)
        };
        let store = open::open(&args.store, options).await?;
        let summary = ingest(&store, settings, sources, &bar, interrupt).await?;
        store.close().await?;
        summary
    };
    bar.finish_and_clear();
    for reason in summary.tally.reasons.iter().take(REASONS_TOLD) {
        terminal::say("rejected", reason);
    }
    terminal::say("", summary.render(begin.elapsed().as_secs_f64()));
    if summary.interrupted {
        terminal::say("interrupted", "the same command goes on behind the last checkpoint (standard input and --server begin again)");
        return Ok(Outcome::Interrupted);
    }
    if summary.failed > 0 {
        bail!("{} of {} files failed", summary.failed, summary.failed + summary.files);
    }
    Ok(Outcome::Done)
}

fn settings(args: &IngestArgs) -> Result<Settings> {
    let threads = args.store.threads.map_or_else(|| std::thread::available_parallelism().map_or(2, usize::from), usize::from);
    let read = ReadOptions {
        format: args.format,
        labels: haystore::Labels::new(args.labels.clone()),
        timestamps: args.timestamps,
        time_field: args.time_field.clone(),
        line_bytes_max: args.line.line_bytes_max,
        batch_bytes_max: args.checkpoint_bytes,
        now_ns: open::now_ns(),
    };
    if args.timestamps == Timestamps::None && args.time_field.is_some() {
        bail!("--time-field has no meaning with --timestamps none");
    }
    Ok(Settings { tenant: open::tenant(&args.tenant)?, read, filename_label: !args.no_filename, threads })
}
