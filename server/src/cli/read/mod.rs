//! `haystore search` and `haystore scan`, in a store or through a server.

mod remote;

use crate::cli::args::{Order, Output, ReadArgs, ScanArgs, SearchArgs};
use crate::cli::terminal::{self, Interrupt, OutputClosed, Stdout};
use crate::cli::units::{of, size};
use crate::cli::{Outcome, open, seam};
use anyhow::{Context, Result, bail};
use haystore::{Batch, Cursor, Direction, Options, ScanRequest, SearchRequest, Store};
use std::ops::RangeInclusive;

/// Finds the first records.
///
/// # Errors
/// A query or time that is none; those of the store or server.
pub async fn search(args: SearchArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let request = SearchRequest {
        query: seam::query(&args.query).context("the query")?,
        range: range(&args.read)?,
        limit: args.limit,
        direction: match args.direction {
            Order::Forward => Direction::Forward,
            Order::Backward => Direction::Backward,
        },
        after: cursor(&args.read)?,
    };
    if args.read.server.is_some() {
        let query = remote_query(&args.query, &args.read, &request.range);
        return remote::search(args, query, interrupt).await;
    }
    let tenant = open::tenant(&args.read.tenant)?;
    let store = open_store(&args.read).await?;
    let Some(found) = interrupt.or(store.search(&tenant, request)).await else {
        return Ok(Outcome::Interrupted);
    };
    let found = found?;
    let mut out = Stdout::new();
    write_batch(&mut out, args.read.output, &found.records)?;
    out.flush()?;
    if let Some(next) = found.next {
        terminal::say("", format_args!("more may follow; go on with --after {}", next.to_text()));
    }
    Ok(if found.records.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// Writes everything.
///
/// # Errors
/// As [`search`].
pub async fn scan(args: ScanArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let request =
        ScanRequest { query: seam::query(&args.query).context("the query")?, range: range(&args.read)?, after: cursor(&args.read)? };
    if args.read.server.is_some() {
        let query = remote_query(&args.query, &args.read, &request.range);
        return remote::scan(args, query, interrupt).await;
    }
    let store = open_store(&args.read).await?;
    let mut out = Stdout::new();
    let mut progress = Progress { after: request.after.clone(), ..Progress::default() };
    let ended = pull(&store, &args, request, &mut out, &mut progress, interrupt).await;
    if ended.as_ref().is_err_and(|e| e.is::<OutputClosed>()) {
        return ended;
    }
    progress.tell();
    ended
}

/// How far a scan has come.
#[derive(Debug, Default)]
struct Progress {
    records: u64,
    bytes: u64,
    after: Option<Cursor>,
}

impl Progress {
    fn tell(&self) {
        let cursor = self.after.as_ref().map_or_else(String::new, |c| format!("; cursor {}", c.to_text()));
        terminal::say("", format_args!("{}, {}{cursor}", of(self.records, "record"), size(self.bytes)));
    }
}

async fn pull(
    store: &Store,
    args: &ScanArgs,
    request: ScanRequest,
    out: &mut Stdout,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let mut scan = store.scan(&open::tenant(&args.read.tenant)?, request).await?;
    loop {
        match interrupt.or(scan.next()).await {
            None => return Ok(Outcome::Interrupted),
            Some(Ok(None)) => return Ok(Outcome::Done),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(Some(batch))) => {
                write_batch(out, args.read.output, &batch)?;
                // The cursor may be told only when what lies before it was handed over.
                out.flush()?;
                progress.records += batch.len() as u64;
                progress.bytes += (batch.line_bytes() + batch.len()) as u64;
                progress.after = scan.cursor().cloned().or_else(|| progress.after.take());
            }
        }
    }
}

fn write_batch(out: &mut Stdout, output: Output, batch: &Batch) -> Result<()> {
    for record in batch.iter() {
        seam::push_record(out.buffer(), output, record)?;
        out.settle()?;
    }
    Ok(())
}

async fn open_store(args: &ReadArgs) -> Result<Store> {
    let derived = open::options(&args.store);
    let query_bytes_max = args.limit.query_bytes_max.unwrap_or(derived.query_bytes_max);
    open::open_existing(&args.store, Options { query_bytes_max, ..derived }).await
}

fn range(args: &ReadArgs) -> Result<RangeInclusive<i64>> {
    let now = open::now_ns();
    let time = |text: &Option<String>, name: &str, fallback: i64| -> Result<i64> {
        text.as_deref().map_or(Ok(fallback), |t| seam::time(t, now).with_context(|| format!("--{name}")))
    };
    let from = time(&args.from, "from", i64::MIN)?;
    if args.to.is_none() {
        return Ok(from..=i64::MAX);
    }
    let to = time(&args.to, "to", i64::MAX)?;
    if from >= to {
        bail!("--to does not lie behind --from: nothing can match");
    }
    Ok(from..=to - 1)
}

fn cursor(args: &ReadArgs) -> Result<Option<Cursor>> {
    args.after.as_deref().map(Cursor::from_text).transpose().context("--after")
}

/// Times go as nanoseconds, so that `now` is ours and means one instant.
fn remote_query(text: &str, args: &ReadArgs, range: &RangeInclusive<i64>) -> Vec<(&'static str, String)> {
    let mut query = vec![("query", text.to_string())];
    query.extend(args.from.is_some().then(|| ("from", range.start().to_string())));
    // The server's `to` is not included, as ours.
    query.extend(args.to.is_some().then(|| ("to", (range.end() + 1).to_string())));
    query.extend(args.after.iter().map(|after| ("after", after.clone())));
    query
}
