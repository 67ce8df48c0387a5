//! The many-streams corpus as an input: batches for the store, text for the compressors, a needle.

use anyhow::{Context, Result};
use haystore::query::{LineFilter, Query};
use haystore::{Batch, Direction, ErrorKind, Options, ScanRequest, SearchRequest, Store, Tenant};
use haystore_server::corpus::many::{Config, Many};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a line, about; to turn a size into a count.
const LINE_BYTES: u64 = 127;

/// The corpus of about `bytes`.
pub fn config(bytes: u64, seed: u64) -> Config {
    Config { records: (bytes / LINE_BYTES).max(1), seed, ..Config::default() }
}

/// The corpus' lines as text.
pub struct Text {
    batches: Many,
    piece: Vec<u8>,
    read: usize,
}

impl Text {
    /// The text of `config`'s corpus.
    pub fn new(config: Config) -> Result<Self> {
        Ok(Text { batches: Many::new(config)?, piece: Vec::new(), read: 0 })
    }
}

impl Read for Text {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            let Some(next) = self.batches.next() else { return Ok(0) };
            let (_, batch) = next.map_err(io::Error::other)?;
            self.read = 0;
            self.piece.clear();
            for record in batch.iter() {
                self.piece.extend_from_slice(record.line);
                self.piece.push(b'\n');
            }
        }
        let bytes = out.len().min(self.piece.len() - self.read);
        out[..bytes].copy_from_slice(&self.piece[self.read..self.read + bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

/// What went in.
#[derive(Debug, Default)]
pub struct Ingested {
    /// Bytes of the lines, a newline each.
    pub raw_bytes: u64,
    /// Whose records.
    pub tenants: BTreeSet<Tenant>,
    /// A tenant and a part of one of its lines that no other line has.
    pub needle: Option<(Tenant, Vec<u8>)>,
}

/// The store's options: with a WAL, as a server has one.
pub fn options(folder: &Path) -> Options {
    Options { wal: Some(folder.join("wal")), ..Options::default() }
}

/// Appends everything as a server would, and flushes.
pub async fn ingest(store: &Store, config: Config) -> Result<Ingested> {
    let mut done = Ingested::default();
    let mut records = 0;
    for item in Many::new(config)? {
        let (tenant, batch) = item?;
        done.raw_bytes += (batch.line_bytes() + batch.len()) as u64;
        records += batch.len() as u64;
        if done.needle.is_none() && records >= config.records / 2 {
            // The last 32 bytes of a line are its trace id.
            let line = batch.line(batch.len() / 2);
            done.needle = Some((tenant.clone(), line[line.len().saturating_sub(32)..].to_vec()));
        }
        append(store, &tenant, batch).await?;
        done.tenants.insert(tenant);
    }
    store.flush().await?;
    Ok(done)
}

async fn append(store: &Store, tenant: &Tenant, batch: Batch) -> Result<()> {
    loop {
        match store.append(tenant, batch.clone()).await {
            Err(e) if e.kind() == ErrorKind::Busy => std::thread::sleep(Duration::from_millis(5)),
            done => return Ok(done?),
        }
    }
}

/// Scans all tenants; returns the bytes of the lines, a newline each.
pub async fn scan(store: &Store, tenants: &BTreeSet<Tenant>) -> Result<u64> {
    let mut bytes = 0;
    for tenant in tenants {
        let request = ScanRequest { query: Query::default(), range: i64::MIN..=i64::MAX, after: None };
        let mut scan = store.scan(tenant, request).await?;
        while let Some(batch) = scan.next().await? {
            bytes += (batch.line_bytes() + batch.len()) as u64;
        }
    }
    Ok(bytes)
}

/// Milliseconds that finding the needle takes.
pub async fn needle(store: &Store, needle: Option<(Tenant, Vec<u8>)>) -> Result<f64> {
    let (tenant, id) = needle.context("the corpus is too small to hold a needle")?;
    let query = Query { filters: vec![LineFilter::Contains(id)], ..Query::default() };
    let request = SearchRequest { query, range: i64::MIN..=i64::MAX, limit: 10, direction: Direction::Forward, after: None };
    let begin = Instant::now();
    let found = store.search(&tenant, request).await?;
    anyhow::ensure!(found.records.len() == 1, "the needle was found {} times", found.records.len());
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}
