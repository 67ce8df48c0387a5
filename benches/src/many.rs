//! The many-streams corpus: appended through the library in a process of its own, or pushed to a server; a sum for each tenant.

use crate::child::Child;
use crate::input::Sum;
use crate::process::{Used, cpu_seconds, thread_cpu_seconds};
use crate::server::Server;
use anyhow::{Context, Result, ensure};
use haystore::{Batch, ErrorKind, Options, Store, Tenant};
use haystore_server::corpus::many::{Config, Many};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Bytes of a line, about; to turn a size into a count.
const LINE_BYTES: u64 = 127;

/// The corpus of about `bytes`.
pub fn config(bytes: u64, seed: u64) -> Config {
    Config { records: (bytes / LINE_BYTES).max(1), seed, ..Config::default() }
}

/// The lines of each tenant.
pub type Sums = BTreeMap<Tenant, Sum>;

/// A part of a line that no other line has, and whose it is.
pub type Needle = (Tenant, String);

/// What the corpus holds, and an id out of its middle.
pub fn expected(config: Config) -> Result<(Sums, Needle)> {
    let (mut sums, mut needle, mut records) = (Sums::new(), None, 0);
    for item in Many::new(config)? {
        let (tenant, batch) = item?;
        let sum = sums.entry(tenant.clone()).or_default();
        batch.iter().for_each(|record| sum.add(record.line));
        records += batch.len() as u64;
        if needle.is_none() && records >= config.records / 2 {
            // The last 32 bytes of a line are its trace id.
            let line = batch.line(batch.len() / 2);
            needle = Some((tenant, String::from_utf8_lossy(&line[line.len().saturating_sub(32)..]).into_owned()));
        }
    }
    Ok((sums, needle.context("the corpus is too small to hold a needle")?))
}

/// The hidden subcommand's words.
#[derive(Debug, clap::Args)]
pub struct AppendArgs {
    store: PathBuf,
    bytes: u64,
    seed: u64,
    memory: usize,
}

/// Appends the corpus to a new store, as an embedding program would, and prints the CPU seconds of the store's work.
///
/// # Errors
/// Those of the store.
pub fn append(args: &AppendArgs) -> Result<()> {
    let config = config(args.bytes, args.seed);
    // Making the corpus is not the store's work: it is measured by the clock of its thread and taken off.
    let own = || thread_cpu_seconds().unwrap_or(0.0);
    let mut making = 0.0;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let options = Options { wal: Some(args.store.join("wal")), ..Options::default() }.within(args.memory);
        let store = Store::open(&args.store.to_string_lossy(), options).await?;
        let mut items = Many::new(config)?;
        loop {
            let before = own();
            let Some(item) = items.next() else { break };
            making += own() - before;
            let (tenant, batch) = item?;
            append_one(&store, &tenant, batch).await?;
        }
        store.close().await?;
        anyhow::Ok(())
    })?;
    println!("{}", cpu_seconds("self").unwrap_or(0.0) - making);
    Ok(())
}

async fn append_one(store: &Store, tenant: &Tenant, batch: Batch) -> Result<()> {
    loop {
        match store.append(tenant, batch.clone()).await {
            Err(e) if e.kind() == ErrorKind::Busy => tokio::time::sleep(Duration::from_millis(20)).await,
            done => return Ok(done?),
        }
    }
}

/// Runs [`append`] in a process of its own.
pub fn append_apart(store: &Path, bytes: u64, seed: u64, memory: usize) -> Result<Used> {
    let words = ["append".into(), store.to_string_lossy().into_owned(), bytes.to_string(), seed.to_string(), memory.to_string()];
    let mut child = Child::own(words, Stdio::piped())?;
    let output = child.output()?;
    let mut used = child.end()?;
    let text = std::io::read_to_string(output)?;
    used.cpu = text.trim().parse().context("the appending process told no CPU seconds")?;
    Ok(used)
}

/// Pushes the corpus through Loki's API, each batch as its tenant.
pub fn push(server: &mut Server, config: Config) -> Result<()> {
    let mut body = Vec::new();
    for item in Many::new(config)? {
        let (tenant, batch) = item?;
        server.push(&tenant, &batch, &mut body)?;
    }
    Ok(())
}

/// Scans every tenant; all that went in must come out.
pub fn scan(server: &Server, sums: &Sums) -> Result<()> {
    for (tenant, sum) in sums {
        let found = server.scan(tenant, None)?;
        ensure!(found == *sum, "{tenant}: {sum:?} went in, {found:?} came out");
    }
    Ok(())
}
