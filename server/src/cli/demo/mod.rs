//! `haystore demo`: makes logs, ingests them, finds a needle, pulls everything back, proves that nothing changed.
//!
//! What holds: nothing is deleted that the demo did not make; memory does not grow with `--mb`.

pub mod check;
mod expected;

use super::args::{DemoArgs, InputFormat, Timestamps};
use super::ingest::{self, Settings, Source};
use super::seam::ReadOptions;
use super::sizes::{Compressor, compressed_bytes};
use super::table::Table;
use super::terminal::{self, Interrupt};
use super::units::{rate, ratio, size};
use super::{Outcome, open};
use crate::corpus::{Amount, Kind, generate};
use anyhow::{Context, Result, bail};
use haystore::{Labels, Store, Tenant};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The corpora's seed.
const SEED: u64 = 1;
/// 2014-01-01T00:00:00Z: syslog lines have no year; seen from here, theirs is 2013.
const NOW_NS: i64 = 1_388_534_400_000_000_000;

/// What was measured for one kind.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    kind: Kind,
    raw_bytes: u64,
    gzip_bytes: u64,
    zstd_bytes: u64,
    stored_bytes: u64,
    ingest_seconds: f64,
    scan_seconds: f64,
    needle_ms: f64,
}

/// The demo's folder; its parts go when it is dropped, unless kept.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    existed: bool,
    keep: bool,
}

impl Folder {
    fn make(path: &Path, keep: bool) -> Result<Self> {
        let existed = path.exists();
        if existed && fs::read_dir(path).with_context(|| format!("{}", path.display()))?.next().is_some() {
            bail!("{} is not empty; name another folder with --dir, or remove it", path.display());
        }
        fs::create_dir_all(path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Folder { path: path.to_path_buf(), existed, keep })
    }

    fn log(&self, kind: Kind) -> PathBuf {
        self.path.join(format!("{kind}.log"))
    }

    fn store(&self) -> PathBuf {
        self.path.join("store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        // What cannot be removed stays; there is nobody to tell any more.
        for kind in Kind::ALL {
            let _ = fs::remove_file(self.log(kind));
        }
        let _ = fs::remove_dir_all(self.store());
        if !self.existed {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Those of the folder and of the store. A difference is an [`Outcome`].
pub async fn run(args: DemoArgs, interrupt: &Interrupt) -> Result<Outcome> {
    let folder = Folder::make(&args.dir, args.keep)?;
    let store = Store::open(&folder.store().to_string_lossy(), open::threads(args.threads)).await?;
    let tenant = Tenant::default();
    let bytes = args.mb * 1_000_000 / Kind::ALL.len() as u64;
    let (mut rows, mut equal) = (Vec::new(), true);
    for kind in Kind::ALL {
        let Some(row) = one_kind(&folder, &store, &tenant, kind, bytes, &args, interrupt).await? else {
            return Ok(Outcome::Interrupted);
        };
        equal &= row.1;
        rows.push(row.0);
    }
    store.close().await?;
    terminal::print(&render(&rows, folder_bytes(&folder.store()), terminal::stdout_colours()))?;
    if args.keep {
        let store = folder.store();
        terminal::say(
            "",
            format_args!("\nkept: try  haystore search --store {} '{{kind=\"app\"}} |= \"ERROR\"' --limit 3", store.display()),
        );
    }
    Ok(if equal { Outcome::Done } else { Outcome::Damage })
}

/// Everything for one kind: measurements, and whether all was equal. `None` when interrupted.
async fn one_kind(
    folder: &Folder,
    store: &Store,
    tenant: &Tenant,
    kind: Kind,
    bytes: u64,
    args: &DemoArgs,
    interrupt: &Interrupt,
) -> Result<Option<(Row, bool)>> {
    let path = folder.log(kind);
    let made = {
        let path = path.clone();
        tokio::task::spawn_blocking(move || write_corpus(kind, bytes, &path)).await??
    };
    let begin = Instant::now();
    let source = Source { path: Some(path.clone()), bytes: made };
    let bar = terminal::progress(made, &format!("ingesting {kind}"));
    let summary = ingest::ingest(store, settings(tenant, kind, args), vec![source], &bar, interrupt).await?;
    bar.finish_and_clear();
    if summary.interrupted {
        return Ok(None);
    }
    if summary.failed > 0 {
        bail!("the {kind} logs could not be ingested");
    }
    store.flush().await?;
    let ingest_seconds = begin.elapsed().as_secs_f64();

    let needle = check::needle(store, tenant, kind, &path).await?;
    let Some(scan) = interrupt.or(check::speed(store, tenant, kind)).await else { return Ok(None) };
    let scan_seconds = scan?;
    let Some(differs) = interrupt.or(check::compare(store, tenant, kind, Amount::Bytes(bytes), SEED)).await else { return Ok(None) };
    let mut equal = true;
    match differs? {
        None => terminal::say("", format_args!("{kind}: {} came back, equal to the input byte for byte", size(made))),
        Some(difference) => {
            terminal::say("error", format_args!("{kind}: {difference}"));
            equal = false;
        }
    }
    if let Some(difference) = &needle.difference {
        terminal::say("error", format_args!("{kind}: {difference}"));
        equal = false;
    }
    let sizes = tokio::task::spawn_blocking(move || -> Result<(u64, u64)> {
        let gzip = compressed_bytes(&mut File::open(&path)?, Compressor::Gzip(6))?;
        Ok((gzip, compressed_bytes(&mut File::open(&path)?, Compressor::Zstd(3))?))
    });
    let (gzip_bytes, zstd_bytes) = sizes.await??;
    let row = Row {
        kind,
        raw_bytes: made,
        gzip_bytes,
        zstd_bytes,
        stored_bytes: summary.stored_bytes,
        ingest_seconds,
        scan_seconds,
        needle_ms: needle.milliseconds,
    };
    Ok(Some((row, equal)))
}

fn write_corpus(kind: Kind, bytes: u64, path: &Path) -> Result<u64> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(cannot)?);
    let made = generate(kind, Amount::Bytes(bytes), SEED, &mut file).with_context(cannot)?;
    file.flush().with_context(cannot)?;
    Ok(made.bytes)
}

fn settings(tenant: &Tenant, kind: Kind, args: &DemoArgs) -> Settings {
    let read = ReadOptions {
        format: InputFormat::Auto,
        labels: Labels::new([("kind", kind.name())]),
        timestamps: Timestamps::Auto,
        time_field: (kind == Kind::App).then(|| "_ts".to_string()),
        line_bytes_max: haystore::Options::default().line_bytes_max,
        batch_bytes_max: usize::MAX,
        now_ns: NOW_NS,
    };
    let threads = args.threads.map_or_else(|| std::thread::available_parallelism().map_or(2, usize::from), usize::from);
    Settings { tenant: tenant.clone(), read, filename_label: false, threads }
}

/// Bytes of all files below `folder`.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { folder_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}

fn render(rows: &[Row], folder_bytes: u64, bold: bool) -> String {
    let mut table = Table::new(["kind", "raw", "gzip -6", "zstd -3", "stored", "ratio", "ingest MB/s", "scan MB/s", "needle ms"]);
    for row in rows {
        table.row([
            row.kind.to_string(),
            size(row.raw_bytes),
            size(row.gzip_bytes),
            size(row.zstd_bytes),
            size(row.stored_bytes),
            ratio(row.raw_bytes, row.stored_bytes),
            format!("{:.0}", rate(row.raw_bytes, row.ingest_seconds)),
            format!("{:.0}", rate(row.raw_bytes, row.scan_seconds)),
            format!("{:.1}", row.needle_ms),
        ]);
    }
    let sum = |f: fn(&Row) -> u64| rows.iter().map(f).sum::<u64>();
    let seconds = |f: fn(&Row) -> f64| rows.iter().map(f).sum::<f64>();
    let (raw, stored) = (sum(|r| r.raw_bytes), sum(|r| r.stored_bytes));
    table.row([
        "all".to_string(),
        size(raw),
        size(sum(|r| r.gzip_bytes)),
        size(sum(|r| r.zstd_bytes)),
        size(stored),
        ratio(raw, stored),
        format!("{:.0}", rate(raw, seconds(|r| r.ingest_seconds))),
        format!("{:.0}", rate(raw, seconds(|r| r.scan_seconds))),
        String::new(),
    ]);
    format!("\n{}\nThe store's folder, everything counted: {}\n", table.render(bold), size(folder_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_kind_and_one_for_all() {
        let row = |kind| Row {
            kind,
            raw_bytes: 34_000_000,
            gzip_bytes: 5_500_000,
            zstd_bytes: 5_400_000,
            stored_bytes: 3_400_000,
            ingest_seconds: 0.5,
            scan_seconds: 0.1,
            needle_ms: 2.34,
        };
        let text = render(&[row(Kind::Elb), row(Kind::App)], 7_000_000, false);
        assert!(text.contains("elb   34.0 MB   5.5 MB   5.4 MB  3.4 MB  10.0x           68        340        2.3"), "{text}");
        assert!(text.contains("all   68.0 MB  11.0 MB"), "{text}");
        assert!(text.ends_with("everything counted: 7.0 MB\n"), "{text}");
    }

    #[test]
    fn a_folder_in_use_is_left_alone() {
        let path = std::env::temp_dir().join(format!("haystore-demo-{}", std::process::id()));
        drop(Folder::make(&path, false).unwrap());
        assert!(!path.exists());
        fs::create_dir_all(&path).unwrap();
        drop(Folder::make(&path, false).unwrap());
        assert!(path.exists(), "it was there before");
        fs::write(path.join("precious"), "x").unwrap();
        assert!(Folder::make(&path, false).is_err());
        fs::remove_dir_all(&path).unwrap();
    }
}
