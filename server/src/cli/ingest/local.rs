//! Files into a store: each file a job, read by a thread, written by a task, a short queue between them.
//!
//! What holds: at most [`QUEUE_PIECES`] pieces of a file wait in memory, at most [`FILES_AT_ONCE_MAX`] files are open;
//! a job resumes exactly behind its last checkpoint.

use super::saved::{Fit, Head, Saved};
use super::{Source, Summary};
use crate::cli::args::{InputFormat, Timestamps};
use crate::cli::seam::{ReadOptions, Records, Tally};
use crate::cli::terminal::{self, Interrupt};
use anyhow::{Context, Result};
use futures_util::StreamExt;
use haystore::{Batch, Job, Labels, Store, Tenant};
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Pieces (of about 4 MB) between the thread that reads a file and the task that writes it.
const QUEUE_PIECES: usize = 2;
/// Files that are ingested at the same time.
const FILES_AT_ONCE_MAX: usize = 4;

/// What is the same for all files.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose records.
    pub tenant: Tenant,
    /// How they are read; the labels of every file.
    pub read: ReadOptions,
    /// Whether a file's records get the label `filename`.
    pub filename_label: bool,
    /// Threads to use.
    pub threads: usize,
}

impl Settings {
    /// How `source` is read.
    pub(super) fn read_options(&self, source: &Source) -> ReadOptions {
        let mut read = self.read.clone();
        if self.filename_label && source.path.is_some() {
            let named = ("filename".to_string(), source.name());
            let given = read.labels.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            read.labels = Labels::new(std::iter::once(named).chain(given));
        }
        read
    }

    /// The key of the job that ingests `source`: the file's place and everything that shapes its records.
    fn job_key(&self, source: &Source) -> String {
        let Some(path) = &source.path else {
            return format!("stdin:{}:{}", std::process::id(), self.read.now_ns);
        };
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let read = self.read_options(source);
        let format = match read.format {
            InputFormat::Auto => "auto",
            InputFormat::Lines => "lines",
            InputFormat::Ndjson => "ndjson",
            InputFormat::Csv => "csv",
        };
        let timestamps = match read.timestamps {
            Timestamps::Auto => "auto",
            Timestamps::None => "none",
        };
        let words = format!("{format}|{timestamps}|{}|{:?}|{}", read.line_bytes_max, read.time_field, read.labels);
        let mut crc = flate2::Crc::new();
        crc.update(words.as_bytes());
        format!("file:{}:{:08x}", place.to_string_lossy(), crc.sum())
    }
}

/// Puts `sources` into `store`. A file that fails is told on standard error and counted; the others go on.
///
/// # Errors
/// None of a single file's.
pub async fn ingest(store: &Store, settings: Settings, sources: Vec<Source>, bar: &ProgressBar, interrupt: &Interrupt) -> Result<Summary> {
    // Without the label `filename` files share a stream, whose order is that of the arguments.
    let at_once = if settings.filename_label { settings.threads.clamp(1, FILES_AT_ONCE_MAX) } else { 1 };
    let settings = Arc::new(settings);
    let mut running = futures_util::stream::iter(sources)
        .map(|source| {
            let (store, settings, bar, interrupt) = (store.clone(), settings.clone(), bar.clone(), interrupt.clone());
            async move {
                let name = source.name();
                (name, tokio::spawn(ingest_one(store, settings, source, bar, interrupt)).await)
            }
        })
        .buffer_unordered(at_once);
    let mut summary = Summary::default();
    while let Some((name, done)) = running.next().await {
        match done.map_err(anyhow::Error::new).and_then(|r| r) {
            Ok(one) => summary.add(one),
            Err(error) => {
                bar.suspend(|| terminal::say("error", format_args!("{name}: {error:#}")));
                summary.failed += 1;
            }
        }
    }
    Ok(summary)
}

async fn ingest_one(store: Store, settings: Arc<Settings>, source: Source, bar: ProgressBar, interrupt: Interrupt) -> Result<Summary> {
    if interrupt.raised() {
        return Ok(Summary { interrupted: true, ..Summary::default() });
    }
    let mut job = store.job(&settings.tenant, &settings.job_key(&source)).await?;
    let (input, head, state) = begin(&source, &job, &bar)?;
    let read_bytes = Arc::new(AtomicU64::new(0));
    let input = Box::new(Counted { inner: input, bytes: read_bytes.clone(), bar });
    let (sender, mut pieces) = mpsc::channel::<(Batch, Vec<u8>)>(QUEUE_PIECES);
    let options = settings.read_options(&source);
    let reader = tokio::task::spawn_blocking(move || -> Result<Tally> {
        let mut records = Records::open(input, &options, state.as_deref())?;
        while let Some(piece) = records.next_piece()? {
            let saved = Saved { head, read_bytes: read_bytes.load(Ordering::Relaxed), reader: piece.state };
            if sender.blocking_send((piece.batch, saved.to_bytes())).is_err() {
                break;
            }
        }
        Ok(records.tally())
    });
    while let Some(Some((batch, state))) = interrupt.or(pieces.recv()).await {
        job.write(batch, state).await?;
    }
    drop(pieces);
    if interrupt.raised() {
        return Ok(Summary { interrupted: true, ..Summary::default() });
    }
    let tally = reader.await??;
    let report = job.finish().await?;
    Ok(Summary {
        files: 1,
        records: report.records,
        raw_bytes: report.line_bytes + report.records,
        stored_bytes: report.stored_bytes,
        tally,
        ..Summary::default()
    })
}

/// An open input, its head, and the state of the reader that goes on.
type Begun = (Box<dyn Read + Send>, Head, Option<Vec<u8>>);

/// Opens the source; with the reader's state when the job goes on.
fn begin(source: &Source, job: &Job, bar: &ProgressBar) -> Result<Begun> {
    let Some(path) = source.path.as_ref().filter(|p| p.is_file()) else {
        return Ok((source.open()?, Head::EMPTY, None));
    };
    let mut file = File::open(path).context("cannot open it")?;
    if let Some(saved) = job.state().map(Saved::from_bytes).transpose()? {
        match saved.fit(&mut file)? {
            Fit::Same => {
                bar.suspend(|| terminal::say("resumed", format_args!("{}: goes on at byte {}", path.display(), saved.read_bytes)));
                return Ok((Box::new(file), saved.head, Some(saved.reader)));
            }
            Fit::Other => bar.suspend(|| {
                let path = path.display();
                terminal::say("warning", format_args!("{path}: another file than the one whose ingest did not end; begins anew"));
            }),
        }
    }
    let head = Head::read(&mut file)?;
    Ok((Box::new(file), head, None))
}

/// Counts the bytes that pass, and moves the bar.
struct Counted {
    inner: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
    bar: ProgressBar,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(out)? as u64;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bar.inc(bytes);
        Ok(bytes as usize)
    }
}
