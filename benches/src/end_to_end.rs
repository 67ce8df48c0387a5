//! `end-to-end`: corpora in, needles and everything out, by file and over HTTP, each step in a process of its own.

use crate::child::Child;
use crate::input::{self, Sum};
use crate::many;
use crate::process::Used;
use crate::results::{Needles, Results, Row};
use crate::server::Server;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use haystore::{Labels, Tenant};
use haystore_server::cli::sizes::{Compressor, compressed_bytes};
use haystore_server::cli::{terminal, units};
use haystore_server::corpus::{Amount, Kind, generate};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Corpus {
    /// Load balancer access logs, CSV
    Elb,
    /// Application logs, nested JSON
    App,
    /// RFC 3164 messages
    Syslog,
    /// 100,000 streams of 100 tenants over 10 days, 5 % late
    Many,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// Ingest a file (many streams: append through the library), find needles, scan
    File,
    /// Compact what `file` stored, find needles, scan
    Compact,
    /// Scan what `file` stored over HTTP to a client that reads slowly
    SlowScan,
    /// Push through Loki's API as JSON, find needles, scan
    Loki,
    /// Ingest through the native HTTP API
    Native,
    /// gzip and zstd of the file
    Compressors,
}

/// The subcommand's words.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The corpus [default: all of them]
    #[arg(long, value_enum)]
    kind: Option<Corpus>,
    /// Take this file instead of the built-in corpus of --kind
    #[arg(long, value_name = "PATH", requires = "kind")]
    file: Option<PathBuf>,
    /// What to measure; may be given again [default: all]
    #[arg(long = "step", value_enum)]
    steps: Vec<Step>,
    /// Megabytes of each corpus
    #[arg(long, value_name = "N", default_value_t = 100)]
    mb: u64,
    /// The corpora's seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What --memory is given to haystore
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = units::parse_size)]
    memory: usize,
    /// Megabytes a second that the slow client reads
    #[arg(long, value_name = "N", default_value_t = 20.0)]
    slow: f64,
    /// Leave out zstd -19, which takes longer than all the rest
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder for corpora and stores; made and removed
    #[arg(long, value_name = "DIR", default_value = "./haystore-bench-data")]
    dir: PathBuf,
}

/// Needles looked for, of each sort.
const NEEDLES: u64 = 5;

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
    let mut results = Results::default();
    for corpus in args.kind.map_or_else(|| Corpus::value_variants().to_vec(), |one| vec![one]) {
        eprintln!("{corpus:?}: {} MB, seed {}, --memory {}", args.mb, args.seed, units::size(args.memory as u64));
        let mut bench = Bench { args, folder: &folder.0, results: &mut results, corpus: "many" };
        match corpus {
            Corpus::Elb => bench.text(Kind::Elb)?,
            Corpus::App => bench.text(Kind::App)?,
            Corpus::Syslog => bench.text(Kind::Syslog)?,
            Corpus::Many => bench.many()?,
        }
    }
    terminal::print(&if args.json { format!("{:#}\n", results.json()) } else { results.table() })
}

struct Bench<'a> {
    args: &'a Args,
    folder: &'a Path,
    results: &'a mut Results,
    corpus: &'static str,
}

impl Bench<'_> {
    fn wants(&self, step: Step) -> bool {
        self.args.steps.is_empty() || self.args.steps.contains(&step)
    }

    fn row(&mut self, step: &'static str, raw_bytes: u64, used: Used, store: Option<&Path>) {
        eprintln!("  {step}: {:.2} CPU s, peak {}", used.cpu, units::size(used.peak_rss));
        self.results.rows.push(Row { corpus: self.corpus, step, raw_bytes, used, stored_bytes: store.map(folder_bytes) });
    }

    fn memory(&self) -> [String; 2] {
        ["--memory".into(), self.args.memory.to_string()]
    }

    fn server(&self, store: &Path) -> Result<Server> {
        Server::start(store, &self.memory())
    }

    fn text(&mut self, kind: Kind) -> Result<()> {
        self.corpus = kind.name();
        let made = self.folder.join(format!("{kind}.log"));
        let path = self.args.file.clone().unwrap_or_else(|| made.clone());
        if self.args.file.is_none() {
            let mut file = BufWriter::new(File::create(&made)?);
            generate(kind, Amount::Bytes(self.args.mb * 1_000_000), self.args.seed, &mut file)?;
            file.flush()?;
        }
        let sum = Sum::of(File::open(&path)?)?;
        let needles = input::needles(&path, NEEDLES)?;
        let store = self.folder.join(format!("{kind}-file"));
        if self.wants(Step::File) || self.wants(Step::Compact) || self.wants(Step::SlowScan) {
            let mut words: Vec<String> =
                ["ingest", "--store", &store.to_string_lossy(), &path.to_string_lossy()].map(String::from).to_vec();
            words.extend(self.memory());
            let used = Child::haystore(words, Stdio::null())?.end()?;
            self.row("file ingest", sum.bytes, used, Some(&store));
        }
        if self.wants(Step::File) {
            self.scan("scan", &store, sum)?;
            self.needles("fresh", &store, &needles)?;
        }
        if self.wants(Step::SlowScan) {
            self.slow_scan(&store, sum)?;
        }
        if self.wants(Step::Compact) {
            let words = ["compact", "--store", &store.to_string_lossy()].map(String::from);
            let used = Child::haystore(words.into_iter().chain(self.memory()), Stdio::null())?.end()?;
            self.row("compact", sum.bytes, used, None);
            self.scan("scan, compacted", &store, sum)?;
            self.needles("compacted", &store, &needles)?;
        }
        if self.wants(Step::Loki) {
            self.loki(kind, &path, sum, &needles)?;
        }
        if self.wants(Step::Native) {
            self.native(kind, &path, sum)?;
        }
        if self.wants(Step::Compressors) {
            let mut sizes = Vec::new();
            for compressor in [Compressor::Gzip(6), Compressor::Zstd(3), Compressor::Zstd(19)] {
                let skip = self.args.quick && compressor == Compressor::Zstd(19);
                sizes.push(if skip { None } else { Some(compressed_bytes(&mut File::open(&path)?, compressor)?) });
            }
            self.results.compressed.push((self.corpus, sum.bytes, sizes));
        }
        for folder in ["file", "loki", "native"] {
            let _ = fs::remove_dir_all(self.folder.join(format!("{kind}-{folder}")));
        }
        Ok(())
    }

    fn scan(&mut self, step: &'static str, store: &Path, sum: Sum) -> Result<()> {
        let words = ["scan", "--store", &store.to_string_lossy()].map(String::from);
        let mut child = Child::haystore(words.into_iter().chain(self.memory()), Stdio::piped())?;
        let output = child.output()?;
        let reading = std::thread::spawn(move || Sum::of(output));
        let used = child.end()?;
        let found = reading.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
        ensure!(found == sum, "{}: {sum:?} went in, {found:?} came out", self.corpus);
        self.row(step, sum.bytes, used, None);
        Ok(())
    }

    fn slow_scan(&mut self, store: &Path, sum: Sum) -> Result<()> {
        let server = self.server(store)?;
        let found = server.scan(&Tenant::default(), Some(self.args.slow * 1e6))?;
        ensure!(found == sum, "{}: {sum:?} went in, {found:?} came out", self.corpus);
        let used = server.stop()?;
        self.row("HTTP scan, slow client", sum.bytes, used, None);
        Ok(())
    }

    fn needles(&mut self, state: &'static str, store: &Path, needles: &[String]) -> Result<()> {
        let server = self.server(store)?;
        let tenant = Tenant::default();
        let there: Vec<(Tenant, String)> = needles.iter().map(|n| (tenant.clone(), n.clone())).collect();
        self.search(&server, state, &there)?;
        server.stop().map(|_| ())
    }

    fn search(&mut self, server: &Server, state: &'static str, needles: &[(Tenant, String)]) -> Result<()> {
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        for (tenant, needle) in needles {
            let (milliseconds, found) = server.search(tenant, needle)?;
            ensure!(found > 0, "{}: {needle:?} was not found", self.corpus);
            present.push(milliseconds);
            missing.push(server.search(tenant, &input::absent(needle))?.0);
        }
        self.results.needles.push(Needles { corpus: self.corpus, state, present_ms: median(present), absent_ms: median(missing) });
        Ok(())
    }

    fn loki(&mut self, kind: Kind, path: &Path, sum: Sum, needles: &[String]) -> Result<()> {
        let store = self.folder.join(format!("{kind}-loki"));
        let mut server = self.server(&store)?;
        let mut records = input::records(path, Labels::new([("kind", kind.name())]))?;
        let mut body = Vec::new();
        while let Some(piece) = records.next_piece()? {
            server.push(&Tenant::default(), &piece.batch, &mut body)?;
        }
        let refused = server.refused;
        let used = server.stop()?;
        if refused > 0 {
            eprintln!("  the server was busy {refused} times");
        }
        self.row("Loki push, JSON", sum.bytes, used, Some(&store));
        self.scan("scan, pushed", &store, sum)?;
        self.needles("pushed", &store, needles)
    }

    fn native(&mut self, kind: Kind, path: &Path, sum: Sum) -> Result<()> {
        const BODY_BYTES: usize = 4_000_000;
        let store = self.folder.join(format!("{kind}-native"));
        let mut server = self.server(&store)?;
        let format = match kind {
            Kind::Elb => "csv",
            Kind::App => "ndjson",
            Kind::Syslog => "lines",
        };
        let query = format!("format={format}&label=kind%3D{kind}");
        let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut body = Vec::new();
        loop {
            let more = input.read_until(b'\n', &mut body)? > 0;
            if body.len() >= BODY_BYTES || (!more && !body.is_empty()) {
                server.ingest(&query, &body)?;
                body.clear();
            }
            if !more {
                break;
            }
        }
        let used = server.stop()?;
        self.row("native HTTP ingest", sum.bytes, used, Some(&store));
        self.scan("scan, sent", &store, sum)
    }

    fn many(&mut self) -> Result<()> {
        let (bytes, seed) = (self.args.mb * 1_000_000, self.args.seed);
        let (sums, needle) = many::expected(many::config(bytes, seed))?;
        let raw_bytes = sums.values().map(|s| s.bytes).sum();
        let store = self.folder.join("many-file");
        if self.wants(Step::File) || self.wants(Step::Compact) {
            let used = many::append_apart(&store, bytes, seed, self.args.memory)?;
            self.row("append", raw_bytes, used, Some(&store));
            self.many_scan("HTTP scan", "fresh", &store, &sums, &needle)?;
        }
        if self.wants(Step::Compact) {
            let words = ["compact", "--store", &store.to_string_lossy()].map(String::from);
            let used = Child::haystore(words.into_iter().chain(self.memory()), Stdio::null())?.end()?;
            self.row("compact", raw_bytes, used, None);
            self.many_scan("HTTP scan, compacted", "compacted", &store, &sums, &needle)?;
        }
        if self.wants(Step::Loki) {
            let store = self.folder.join("many-loki");
            let mut server = self.server(&store)?;
            many::push(&mut server, many::config(bytes, seed))?;
            let used = server.stop()?;
            self.row("Loki push, JSON", raw_bytes, used, Some(&store));
            self.many_scan("HTTP scan, pushed", "pushed", &store, &sums, &needle)?;
        }
        Ok(())
    }

    fn many_scan(&mut self, step: &'static str, state: &'static str, store: &Path, sums: &many::Sums, needle: &many::Needle) -> Result<()> {
        let server = self.server(store)?;
        self.search(&server, state, std::slice::from_ref(needle))?;
        many::scan(&server, sums)?;
        let used = server.stop()?;
        self.row(step, sums.values().map(|s| s.bytes).sum(), used, None);
        Ok(())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Bytes of all files below `folder`.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { folder_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}
