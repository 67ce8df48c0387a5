//! The store: append, search, scan, over one object store and one WAL.

mod api;
pub use api::*;

use crate::error::{Error, Result};
use crate::query::{LabelMatcher, Query};
use crate::record::{Batch, Labels, Tenant};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

/// A log store. Cloning is cheap; clones are one store.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tenants: Mutex<HashMap<Tenant, Vec<Arc<Batch>>>>,
    jobs: Mutex<HashMap<String, Vec<u8>>>,
}

impl Store {
    /// Opens the store at `url` (a folder, `file://`, `memory://`, `s3://bucket/prefix`).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Fenced`] when another process owns the WAL; io errors.
    pub async fn open(_url: &str, _options: Options) -> Result<Store> {
        Ok(Store { shared: Arc::default() })
    }

    /// Appends records; returns when they are durable and searchable.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Busy`] when the memtables are full; nothing was kept.
    pub async fn append(&self, tenant: &Tenant, batch: Batch) -> Result<()> {
        if !batch.is_empty() {
            self.lock()?.entry(tenant.clone()).or_default().push(Arc::new(batch));
        }
        Ok(())
    }

    /// The first `limit` records that match, in order.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] past a named limit; corrupt or missing objects.
    pub async fn search(&self, tenant: &Tenant, request: SearchRequest) -> Result<SearchResult> {
        let all = self.collect(tenant, &request.query, &request.range)?;
        let mut order: Vec<usize> = (0..all.len()).collect();
        if request.direction == Direction::Backward {
            order.reverse();
        }
        let mut records = Batch::new();
        let mut position = Position::default();
        let mut next = None;
        for row in order {
            let record = all.get(row);
            let cursor = position.advance(record.timestamp, record.labels);
            if request.after.as_ref().is_some_and(|after| !after.is_before(&cursor, request.direction)) {
                continue;
            }
            if records.len() == request.limit {
                next = position.previous();
                break;
            }
            records.push_ref(record)?;
        }
        Ok(SearchResult { records, next, ..SearchResult::default() })
    }

    /// Every record that matches, in order, as a stream of batches.
    ///
    /// # Errors
    /// As [`Store::search`].
    pub async fn scan(&self, tenant: &Tenant, request: ScanRequest) -> Result<Scan> {
        Ok(Scan { batch: Some(self.collect(tenant, &request.query, &request.range)?) })
    }

    /// The label sets of the streams that match any of `selectors` (each a list of matchers that all must hold; no selectors: all) and have records in `range`; sorted.
    ///
    /// # Errors
    /// As [`Store::search`].
    pub async fn series(&self, tenant: &Tenant, selectors: &[Vec<LabelMatcher>], range: RangeInclusive<i64>) -> Result<Vec<Labels>> {
        let all = self.collect(tenant, &Query::default(), &range)?;
        let found: BTreeSet<&Labels> = all
            .iter()
            .map(|r| r.labels)
            .filter(|l| selectors.is_empty() || selectors.iter().any(|s| s.iter().all(|m| m.matches(l))))
            .collect();
        Ok(found.into_iter().cloned().collect())
    }

    /// Writes the memtables out as segments and publishes them.
    ///
    /// # Errors
    /// Io errors; what could not be written stays in the WAL.
    pub async fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Begins, or resumes, the batch job `key` of `tenant`.
    ///
    /// # Errors
    /// Io errors.
    pub async fn job(&self, tenant: &Tenant, key: &str) -> Result<Job> {
        let jobs = self.shared.jobs.lock().map_err(|_| Error::internal("a lock is poisoned"))?;
        Ok(Job {
            store: self.clone(),
            tenant: tenant.clone(),
            key: key.to_string(),
            state: jobs.get(key).cloned(),
            report: JobReport::default(),
        })
    }

    /// Flushes, stops background work, gives the WAL free.
    ///
    /// # Errors
    /// Io errors; what could not be flushed stays in the WAL.
    pub async fn close(&self) -> Result<()> {
        self.flush().await
    }

    fn lock(&self) -> Result<std::sync::MutexGuard<'_, HashMap<Tenant, Vec<Arc<Batch>>>>> {
        self.shared.tenants.lock().map_err(|_| Error::internal("a lock is poisoned"))
    }

    fn collect(&self, tenant: &Tenant, query: &Query, range: &RangeInclusive<i64>) -> Result<Batch> {
        let batches = self.lock()?.get(tenant).cloned().unwrap_or_default();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for (b, batch) in batches.iter().enumerate() {
            let fits =
                |r: crate::RecordRef<'_>| range.contains(&r.timestamp) && query.matches_stream(r.labels) && query.matches_line(r.line);
            rows.extend((0..batch.len()).filter(|&r| fits(batch.get(r))).map(|r| (b, r)));
        }
        rows.sort_by(|x, y| {
            let (a, b) = (batches[x.0].get(x.1), batches[y.0].get(y.1));
            a.timestamp.cmp(&b.timestamp).then_with(|| a.labels.cmp(b.labels)).then(Ordering::Equal)
        });
        let mut out = Batch::new();
        for (b, r) in rows {
            out.push_ref(batches[b].get(r))?;
        }
        Ok(out)
    }
}

/// A running scan.
#[derive(Debug)]
pub struct Scan {
    batch: Option<Batch>,
}

impl Scan {
    /// The next records, in order; `None` at the end.
    ///
    /// # Errors
    /// As [`Store::search`]. After an error the scan is over.
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.batch.take().filter(|b| !b.is_empty()))
    }

    /// Where a new scan must begin to go on after the records returned so far; `None` before the first.
    pub fn cursor(&self) -> Option<&Cursor> {
        None
    }
}

/// A batch ingest that skips the WAL: records go straight to segments, and are published together
/// with the caller's position, so that a job that died goes on where its last checkpoint was.
#[derive(Debug)]
pub struct Job {
    store: Store,
    tenant: Tenant,
    key: String,
    state: Option<Vec<u8>>,
    report: JobReport,
}

impl Job {
    /// The caller's state at the last checkpoint; `None` when the job is new.
    pub fn state(&self) -> Option<&[u8]> {
        self.state.as_deref()
    }

    /// Adds records, in order. `state` is what [`Job::state`] shall give after a restart once these records, and all before, are published.
    ///
    /// # Errors
    /// Io errors, also of earlier calls. What was not published is written again by the resumed job.
    pub async fn write(&mut self, batch: Batch, state: Vec<u8>) -> Result<()> {
        self.report.records += batch.len() as u64;
        self.report.line_bytes += batch.line_bytes() as u64;
        self.store.append(&self.tenant, batch).await?;
        self.state = Some(state);
        Ok(())
    }

    /// Publishes what is left and ends the job; its key is free again.
    ///
    /// # Errors
    /// Io errors.
    pub async fn finish(self) -> Result<JobReport> {
        let mut jobs = self.store.shared.jobs.lock().map_err(|_| Error::internal("a lock is poisoned"))?;
        jobs.remove(&self.key);
        Ok(self.report)
    }
}
