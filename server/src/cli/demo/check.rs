//! The demo's proofs: a needle against a plain search of the file, a scan against the corpus made once more.

use super::expected::Expected;
use crate::corpus::{Amount, Kind};
use anyhow::{Context, Result};
use haystore::query::{LabelMatcher, LabelTest, LineFilter, Query};
use haystore::{Direction, ScanRequest, SearchRequest, Store, Tenant};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

/// What a needle search gave.
#[derive(Debug)]
pub struct Needle {
    /// The first search: nothing of it was read before.
    pub milliseconds: f64,
    /// How it differs from the plain search of the file.
    pub difference: Option<String>,
}

/// Finds an id from the middle of the file at `path`, whose records have the label `kind`.
///
/// # Errors
/// Those of the file and of the store; a file without an id.
pub async fn needle(store: &Store, tenant: &Tenant, kind: Kind, path: &Path) -> Result<Needle> {
    let file = path.to_path_buf();
    let (id, mut wanted) = tokio::task::spawn_blocking(move || -> Result<_> {
        let id = pick(kind, &file)?.context("the logs are too small to hold an id; take a larger --mb")?;
        let found = lines_with(&id, &file)?;
        Ok((id, found))
    })
    .await??;
    let mut query = of(kind);
    query.filters.push(LineFilter::Contains(id.clone()));
    let request = SearchRequest { query, range: i64::MIN..=i64::MAX, limit: 10_000, direction: Direction::Forward, after: None };
    let begin = Instant::now();
    let found = store.search(tenant, request).await?;
    let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
    let mut lines: Vec<Vec<u8>> = found.records.iter().map(|r| r.line.to_vec()).collect();
    wanted.sort();
    lines.sort();
    let difference = (lines != wanted).then(|| {
        let id = String::from_utf8_lossy(&id);
        format!("{id:?} was found in {} lines, a plain search of the file finds {}", lines.len(), wanted.len())
    });
    Ok(Needle { milliseconds, difference })
}

/// Seconds that a scan of everything of a kind takes.
///
/// # Errors
/// Those of the store.
pub async fn speed(store: &Store, tenant: &Tenant, kind: Kind) -> Result<f64> {
    let begin = Instant::now();
    let mut scan = store.scan(tenant, everything(kind)).await?;
    while scan.next().await?.is_some() {}
    Ok(begin.elapsed().as_secs_f64())
}

/// Scans everything of a kind and compares line by line; says where the first difference is.
///
/// # Errors
/// Those of the store.
pub async fn compare(store: &Store, tenant: &Tenant, kind: Kind, amount: Amount, seed: u64) -> Result<Option<String>> {
    let mut expected = Expected::new(kind, amount, seed);
    let mut scan = store.scan(tenant, everything(kind)).await?;
    let mut line = 0u64;
    while let Some(batch) = scan.next().await? {
        for record in batch.iter() {
            line += 1;
            if expected.next_line()?.as_deref() != Some(record.line) {
                return Ok(Some(format!("the scan differs from the input in line {line}")));
            }
        }
    }
    Ok(expected.next_line()?.map(|_| format!("the scan ended behind line {line}, the input goes on")))
}

fn of(kind: Kind) -> Query {
    let matcher = LabelMatcher { name: "kind".into(), test: LabelTest::Eq(kind.name().into()) };
    Query { matchers: vec![matcher], filters: Vec::new() }
}

fn everything(kind: Kind) -> ScanRequest {
    ScanRequest { query: of(kind), range: i64::MIN..=i64::MAX, after: None }
}

/// The first id in the second half of the file, else in the first.
fn pick(kind: Kind, path: &Path) -> Result<Option<Vec<u8>>> {
    let half = std::fs::metadata(path)?.len() / 2;
    let (mut at, mut last) = (0, None);
    for line in BufReader::with_capacity(1 << 18, File::open(path)?).split(b'\n') {
        let line = line?;
        at += line.len() as u64 + 1;
        if let Some(id) = id_in(kind, &line) {
            last = Some(id.to_vec());
            if at > half {
                break;
            }
        }
    }
    Ok(last)
}

/// A value of `line` that no other line has.
fn id_in(kind: Kind, line: &[u8]) -> Option<&[u8]> {
    let (before, bytes) = match kind {
        Kind::Elb => (&b"&s="[..], 16),
        Kind::App => (&b"\"_id\":\""[..], 15),
        Kind::Syslog => (&b"RSA SHA256:"[..], 10),
    };
    let from = memchr::memmem::find(line, before)? + before.len();
    line.get(from..from + bytes)
}

/// The lines of the file that hold `id`: the plain search.
fn lines_with(id: &[u8], path: &Path) -> Result<Vec<Vec<u8>>> {
    let finder = memchr::memmem::Finder::new(id);
    let mut found = Vec::new();
    for line in BufReader::with_capacity(1 << 18, File::open(path)?).split(b'\n') {
        let line = line?;
        if finder.find(&line).is_some() {
            found.push(line);
        }
    }
    Ok(found)
}
