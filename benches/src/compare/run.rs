//! Measures one store after the other, and compares every answer with the plain scan.

use crate::args::Args;
use crate::logs::Logs;
use crate::peer::{Needle, Peer, Task};
use crate::report::{Found, Full, Report, Step, Store, page, table};
use crate::survey::{Survey, survey};
use anyhow::{Context, Result, ensure};
use haystore_bench::input::Sum;
use haystore_server::cli::{terminal, units};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Seconds after which a needle is not looked for again.
const REPEAT_SECONDS: f64 = 5.0;

/// Runs the comparison; whether every store gave back what it should.
///
/// # Errors
/// Those of the files, of the folder, of what is written. What a store fails with is in the report.
pub fn all(args: &Args) -> Result<bool> {
    let logs = Logs::open(&args.files)?;
    let run = format!("{:08x}", (logs.now_ns.unsigned_abs() / 1000) & 0xffff_ffff);
    let mut task = Task { logs, times: None, folder: PathBuf::new(), run };
    // A mistyped name or address is told before anything is made or read.
    args.peers(&task)?;
    let folder = Folder::new(args)?;
    task.folder = folder.path().to_path_buf();
    if cfg!(debug_assertions) {
        terminal::say("warning", "built without --release: the times mean nothing");
    }
    terminal::say("", "looking at the logs");
    let survey = survey(&mut task.logs, &args.needles)?;
    task.times = survey.has_times.then_some(survey.times);
    let names = task.logs.sources.iter().map(|s| s.name()).collect();
    let mut report = Report { files: names, survey, stores: Vec::new() };
    for peer in args.peers(&task)? {
        report.stores.push(one(args, peer, &task.folder, &report.survey)?);
    }
    if let Some(path) = &args.html {
        fs::write(path, page(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    terminal::print(&if args.json { format!("{:#}\n", report.json()) } else { table(&report, terminal::stdout_colours()) })?;
    Ok(report.stores.iter().all(Store::is_sound))
}

/// Measures a store, and removes it unless it shall be kept.
fn one(args: &Args, mut peer: Box<dyn Peer>, folder: &Path, survey: &Survey) -> Result<Store> {
    terminal::say("", format_args!("{} …", peer.name()));
    let own = folder.join(peer.name());
    let mut store = measure(&mut *peer, survey, args.repeat);
    if args.keep.is_some() {
        return Ok(store);
    }
    if let Err(error) = peer.remove() {
        store.errors.push(format!("cannot remove what was loaded: {error:#}"));
    }
    drop(peer);
    if own.exists() {
        fs::remove_dir_all(&own).with_context(|| format!("cannot remove {}", own.display()))?;
    }
    Ok(store)
}

/// Removes `folder` and ends the process when the user interrupts it.
fn remove_when_interrupted(folder: PathBuf) {
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async { terminal::Interrupt::listen().wait().await });
        // What is being written just now may come back once.
        let _ = fs::remove_dir_all(&folder).or_else(|_| fs::remove_dir_all(&folder));
        std::process::exit(i32::from(terminal::INTERRUPTED));
    });
}

/// Where the stores live.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn new(args: &Args) -> Result<Folder> {
        let Some(path) = &args.keep else {
            let mut builder = tempfile::Builder::new();
            builder.prefix("haystore-compare-");
            let made = args.temp.as_ref().map_or_else(|| builder.tempdir(), |dir| builder.tempdir_in(dir));
            let made = made.context("cannot make a temporary folder")?;
            remove_when_interrupted(made.path().to_path_buf());
            return Ok(Folder::Temporary(made));
        };
        ensure!(!path.exists(), "{} exists; name another folder with --keep, or remove it", path.display());
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder::Kept(path.clone()))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Kept(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }
}

/// CPU seconds of all threads of this process so far.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What `work` takes; its CPU time only when it `is_here`, in this process.
fn timed<T>(is_here: bool, work: impl FnOnce() -> Result<T>) -> Result<(Step, T)> {
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let done = work()?;
    Ok((Step { wall_s: begin.elapsed().as_secs_f64(), cpu_s: is_here.then(|| cpu_seconds() - cpu) }, done))
}

/// Everything about one store; what fails is told in it.
fn measure(peer: &mut dyn Peer, survey: &Survey, repeat: u32) -> Store {
    let mut store = Store::new(peer.name(), peer.keeps());
    if let Err(error) = fill(peer, survey, repeat, &mut store) {
        terminal::say("error", format_args!("{}: {error:#}", peer.name()));
        store.errors.push(format!("{error:#}"));
    }
    store
}

fn fill(peer: &mut dyn Peer, survey: &Survey, repeat: u32, store: &mut Store) -> Result<()> {
    let is_here = peer.is_here();
    store.ingest = Some(timed(is_here, || peer.ingest()).context("ingest")?.0);
    store.stored_bytes = peer.stored_bytes().context("size")?;
    for needle in &survey.needles {
        let found = find(peer, needle, repeat).with_context(|| format!("search for {:?}", needle.text))?;
        store.needles.push(found);
    }
    let (mut sum, mut crc) = (Sum::default(), crc32fast::Hasher::new());
    let mut take = |line: &[u8]| {
        sum.add(line);
        crc.update(line);
        crc.update(b"\n");
        Ok(())
    };
    let step = timed(is_here, || peer.read_all(&mut take)).context("full read")?.0;
    let (is_same, in_order) = (sum == survey.sum, crc.finalize() == survey.crc);
    store.full = Some(Full { step, lines: sum.lines, wanted: survey.sum.lines, is_same, in_order: is_same && in_order });
    let speed = units::rate(survey.sum.bytes, step.wall_s);
    let stored = store.stored_bytes.map_or_else(|| "unknown size".into(), units::size);
    terminal::say("", format_args!("  {stored}; everything read at {speed:.0} MB/s"));
    Ok(())
}

/// Looks for `needle`, `repeat` times or until that takes too long; the median.
fn find(peer: &mut dyn Peer, needle: &Needle, repeat: u32) -> Result<Found> {
    let finder = memchr::memmem::Finder::new(&needle.text);
    let begin = Instant::now();
    let mut times = Vec::new();
    let mut found = Found { needle: needle.clone(), ms: 0.0, lines: 0, others: 0 };
    for _ in 0..repeat {
        (found.lines, found.others) = (0, 0);
        let begin_one = Instant::now();
        peer.find(needle, &mut |line| {
            let counts = if finder.find(line).is_some() { &mut found.lines } else { &mut found.others };
            *counts += 1;
            Ok(())
        })?;
        times.push(begin_one.elapsed().as_secs_f64() * 1e3);
        if begin.elapsed().as_secs_f64() > REPEAT_SECONDS {
            break;
        }
    }
    found.ms = crate::report::median(&times).unwrap_or_default();
    Ok(found)
}
