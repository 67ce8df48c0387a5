//! `end-to-end`: a corpus in, a needle and everything out, with what each step used.

use crate::many;
use crate::process::{Span, Used};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use haystore::{Labels, Options, Store, Tenant};
use haystore_server::cli::args::{InputFormat, Timestamps};
use haystore_server::cli::demo::check;
use haystore_server::cli::ingest::{self, Settings, Source};
use haystore_server::cli::seam::ReadOptions;
use haystore_server::cli::sizes::{Compressor, compressed_bytes};
use haystore_server::cli::table::Table;
use haystore_server::cli::terminal::{self, Interrupt};
use haystore_server::cli::units::{ratio, size};
use haystore_server::corpus::{Amount, Kind, generate};
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// A corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Corpus {
    /// Load balancer access logs, CSV
    Elb,
    /// Application logs, nested JSON
    App,
    /// RFC 3164 messages
    Syslog,
    /// 100,000 streams of 100 tenants over 10 days, 5 % late; appended through the WAL
    Many,
}

/// The subcommand's words.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The corpus [default: all of them]
    #[arg(long, value_enum)]
    kind: Option<Corpus>,
    /// Megabytes of each corpus
    #[arg(long, value_name = "N", default_value_t = 100)]
    mb: u64,
    /// The corpora's seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave out zstd -19, which takes longer than all the rest
    #[arg(long)]
    quick: bool,
    /// Folder for corpora and stores; made and removed
    #[arg(long, value_name = "DIR", default_value = "./haystore-bench-data")]
    dir: PathBuf,
}

/// What was measured.
struct Row {
    name: &'static str,
    raw_bytes: u64,
    stored_bytes: u64,
    ingest: Used,
    scan: Used,
    needle_ms: f64,
    compressed: Vec<Option<u64>>,
}

/// Removes the folder at the end, also of a failed run.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays; the next run says so.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Those of the folder and of the store; a result that is not what went in.
pub fn run(args: &Args) -> Result<()> {
    ensure!(!args.dir.exists(), "{} exists; name another folder with --dir, or remove it", args.dir.display());
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    let folder = Folder(args.dir.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for corpus in args.kind.map_or_else(|| Corpus::value_variants().to_vec(), |one| vec![one]) {
        eprintln!("{corpus:?}: {} MB, seed {}", args.mb, args.seed);
        rows.push(match corpus {
            Corpus::Elb => runtime.block_on(text(&folder.0, Kind::Elb, args))?,
            Corpus::App => runtime.block_on(text(&folder.0, Kind::App, args))?,
            Corpus::Syslog => runtime.block_on(text(&folder.0, Kind::Syslog, args))?,
            Corpus::Many => runtime.block_on(streams(&folder.0, args))?,
        });
    }
    terminal::print(&render(&rows))
}

async fn text(folder: &Path, kind: Kind, args: &Args) -> Result<Row> {
    let path = folder.join(format!("{kind}.log"));
    let mut file = BufWriter::new(File::create(&path)?);
    let raw_bytes = generate(kind, Amount::Bytes(args.mb * 1_000_000), args.seed, &mut file)?.bytes;
    file.flush()?;
    let store_folder = folder.join(kind.name());
    let store = Store::open(&store_folder.to_string_lossy(), Options::default()).await?;
    let tenant = Tenant::default();
    let source = Source { path: Some(path.clone()), bytes: raw_bytes };
    let span = Span::begin();
    let bar = terminal::progress(raw_bytes, kind.name());
    let summary = ingest::ingest(&store, settings(&tenant, kind), vec![source], &bar, &Interrupt::default()).await?;
    bar.finish_and_clear();
    ensure!(summary.failed == 0, "the {kind} corpus could not be ingested");
    store.flush().await?;
    let ingest = span.end();
    let needle = check::needle(&store, &tenant, kind, &path).await?;
    ensure!(needle.difference.is_none(), "{kind}: {}", needle.difference.unwrap_or_default());
    let span = Span::begin();
    check::speed(&store, &tenant, kind).await?;
    let scan = span.end();
    store.close().await?;
    let compressed = compressed(args.quick, || Ok(File::open(&path)?))?;
    Ok(Row {
        name: kind.name(),
        raw_bytes,
        stored_bytes: folder_bytes(&store_folder),
        ingest,
        scan,
        needle_ms: needle.milliseconds,
        compressed,
    })
}

async fn streams(folder: &Path, args: &Args) -> Result<Row> {
    let config = many::config(args.mb * 1_000_000, args.seed);
    let store_folder = folder.join("many");
    let store = Store::open(&store_folder.to_string_lossy(), many::options(folder)).await?;
    // Making the corpus is not the store's work: it is measured alone and taken off.
    let span = Span::begin();
    std::io::copy(&mut many::Text::new(config)?, &mut std::io::sink())?;
    let making = span.end();
    let span = Span::begin();
    let done = many::ingest(&store, config).await?;
    let mut ingest = span.end();
    ingest.wall = (ingest.wall - making.wall).max(0.0);
    ingest.cpu = ingest.cpu.zip(making.cpu).map(|(all, making)| (all - making).max(0.0));
    let needle_ms = many::needle(&store, done.needle).await?;
    let span = Span::begin();
    let scanned = many::scan(&store, &done.tenants).await?;
    let scan = span.end();
    ensure!(scanned == done.raw_bytes, "{} bytes went in, {scanned} came out", done.raw_bytes);
    store.close().await?;
    let compressed = compressed(args.quick, || many::Text::new(config))?;
    Ok(Row { name: "many", raw_bytes: done.raw_bytes, stored_bytes: folder_bytes(&store_folder), ingest, scan, needle_ms, compressed })
}

fn settings(tenant: &Tenant, kind: Kind) -> Settings {
    let read = ReadOptions {
        format: InputFormat::Auto,
        labels: Labels::new([("kind", kind.name())]),
        timestamps: Timestamps::Auto,
        time_field: None,
        line_bytes_max: Options::default().line_bytes_max,
        now_ns: haystore_server::cli::open::now_ns(),
    };
    Settings { tenant: tenant.clone(), read, filename_label: false, threads: Options::default().threads }
}

/// Sizes under gzip -6, zstd -3 and zstd -19.
fn compressed<R: Read>(quick: bool, input: impl Fn() -> Result<R>) -> Result<Vec<Option<u64>>> {
    let mut sizes = Vec::new();
    for compressor in [Compressor::Gzip(6), Compressor::Zstd(3), Compressor::Zstd(19)] {
        let skip = quick && compressor == Compressor::Zstd(19);
        sizes.push(if skip { None } else { Some(compressed_bytes(&mut input()?, compressor)?) });
    }
    Ok(sizes)
}

/// Bytes of all files below `folder`.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { folder_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}

fn render(rows: &[Row]) -> String {
    let mut sizes = Table::new(["corpus", "raw", "gzip -6", "zstd -3", "zstd -19", "stored", "ratio"]);
    let mut work = Table::new([
        "corpus",
        "ingest s",
        "ingest CPU s",
        "MB per CPU s",
        "peak RSS",
        "scan s",
        "scan CPU s",
        "MB per CPU s",
        "peak RSS",
        "needle ms",
    ]);
    let optional = |n: Option<u64>| n.map_or_else(|| "n/a".into(), size);
    let cpu = |used: &Used| used.cpu.map_or_else(|| "n/a".into(), |s| format!("{s:.2}"));
    for row in rows {
        let mut cells = vec![row.name.to_string(), size(row.raw_bytes)];
        cells.extend(row.compressed.iter().map(|&n| optional(n)));
        cells.extend([size(row.stored_bytes), ratio(row.raw_bytes, row.stored_bytes)]);
        sizes.row(cells);
        let mut cells = vec![row.name.to_string()];
        for used in [&row.ingest, &row.scan] {
            cells.extend([format!("{:.2}", used.wall), cpu(used), used.per_cpu_second(row.raw_bytes), optional(used.peak_rss)]);
        }
        cells.push(format!("{:.1}", row.needle_ms));
        work.row(cells);
    }
    format!("{}\n{}", sizes.render(false), work.render(false))
}
