//! Reading: search, scan, series.

use super::api::*;
use super::{QUERIES_MAX, Shared, Store};
use crate::error::{Error, Result};
use crate::query::LabelMatcher;
use crate::query::scan::{GroupRef, GroupSource, Merge, Wanted};
use crate::record::{Batch, Labels, Tenant};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Batches that wait for a slow reader of a scan.
const SCAN_QUEUE: usize = 2;

impl Store {
    /// The first `limit` records that match, in order.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] past a named limit, [`crate::ErrorKind::Busy`] when [`QUERIES_MAX`] queries run; corrupt or missing objects.
    pub async fn search(&self, tenant: &Tenant, request: SearchRequest) -> Result<SearchResult> {
        let shared = &self.shared;
        let place_to_run = shared.query_place()?;
        let (limit, after) = (request.limit, request.after.clone());
        let wanted = Wanted {
            query: Arc::new(request.query),
            range: request.range,
            direction: request.direction,
            after: request.after,
            bytes_max: shared.options.query_bytes_max,
            ahead: shared.options.threads.saturating_sub(1),
            rows_max: limit.saturating_add(1),
        };
        let view = shared.view(tenant);
        let groups = shared.groups(&view.state, tenant, &wanted.range).await?;
        let source = shared.source();
        let mut result = SearchResult::default();
        result.stats.segments = view.state.parts(tenant, &wanted.range).len() as u64;
        let merge = Merge { wanted, groups, memtables: view.memtables, source: source.clone(), handle: Handle::current() };
        let task = tokio::task::spawn_blocking(move || {
            let _place_to_run = place_to_run;
            let mut place = after;
            let mut failed = None;
            let spent = merge.run(&mut |batch, _| {
                for record in batch.iter() {
                    if result.records.len() == limit {
                        result.next = place.clone();
                        return false;
                    }
                    Cursor::step(&mut place, record.timestamp, record.labels);
                    if let Err(error) = result.records.push_ref(record) {
                        failed = Some(error);
                        return false;
                    }
                }
                true
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            result.stats.row_groups = spent.row_groups;
            result.stats.rows = spent.rows;
            result.stats.line_bytes = spent.line_bytes;
            result.stats.bytes_read = source.bytes_read.load(Relaxed);
            result.stats.requests = source.requests.load(Relaxed);
            Ok(result)
        });
        task.await.map_err(|e| Error::internal(format!("a search ended early: {e}")))?
    }

    /// Every record that matches, in order, as a stream of batches. Stops when the [`Scan`] is dropped.
    ///
    /// # Errors
    /// As [`Store::search`].
    pub async fn scan(&self, tenant: &Tenant, request: ScanRequest) -> Result<Scan> {
        let shared = &self.shared;
        let place = shared.query_place()?;
        let view = shared.view(tenant);
        let groups = shared.groups(&view.state, tenant, &request.range).await?;
        let cursor = request.after.clone();
        Ok(Scan { receiver: start(shared, place, groups, view.memtables, request), cursor })
    }

    /// The label sets of the streams that match any of `selectors` (each a list of matchers that all must hold; no selectors: all) and have records in `range`; sorted.
    ///
    /// # Errors
    /// As [`Store::search`].
    pub async fn series(&self, tenant: &Tenant, selectors: &[Vec<LabelMatcher>], range: RangeInclusive<i64>) -> Result<Vec<Labels>> {
        let place = self.shared.query_place()?;
        let view = self.shared.view(tenant);
        let groups = self.shared.groups(&view.state, tenant, &range).await?;
        let (source, selectors) = (self.shared.source(), selectors.to_vec());
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            let wanted = |l: &Labels| selectors.is_empty() || selectors.iter().any(|s| s.iter().all(|m| m.matches(l)));
            let mut found: BTreeSet<Labels> = BTreeSet::new();
            for batch in &view.memtables {
                let rows = batch.row_streams().iter().zip(batch.timestamps());
                let used: BTreeSet<u32> = rows.filter(|(_, t)| range.contains(t)).map(|(&s, _)| s).collect();
                found.extend(used.into_iter().map(|s| &batch.streams()[s as usize]).filter(|l| wanted(l)).cloned());
            }
            for group in &groups {
                found.extend(streams_of(&*source, group, &range)?.into_iter().filter(|l| wanted(l)));
            }
            Ok(found.into_iter().collect())
        });
        task.await.map_err(|e| Error::internal(format!("a query ended early: {e}")))?
    }
}

/// The streams of a row group that have records in `range`.
fn streams_of(source: &dyn GroupSource, group: &GroupRef, range: &RangeInclusive<i64>) -> Result<Vec<Labels>> {
    let mut opened = source.open(group)?;
    let (streams, ends) = opened.streams()?;
    let times = &group.info.meta.times;
    if range.contains(times.start()) && range.contains(times.end()) {
        return Ok(streams);
    }
    let mut timestamps = Vec::new();
    for row_range in 0..opened.ranges() {
        opened.timestamps(row_range, &mut timestamps)?;
    }
    let mut start = 0;
    let mut has_records = |end: u32| {
        let here = start..end as usize;
        start = end as usize;
        timestamps[here].iter().any(|t| range.contains(t))
    };
    Ok(streams.into_iter().zip(ends).filter(|(_, end)| has_records(*end)).map(|(labels, _)| labels).collect())
}

impl Shared {
    /// A place for a query to run, held while it does.
    fn query_place(&self) -> Result<OwnedSemaphorePermit> {
        let place = self.queries.clone().try_acquire_owned();
        place.map_err(|_| Error::busy(format!("{QUERIES_MAX} queries run already: try again soon")))
    }
}

fn start(
    shared: &Shared,
    place: OwnedSemaphorePermit,
    groups: Vec<GroupRef>,
    memtables: Vec<Arc<Batch>>,
    request: ScanRequest,
) -> mpsc::Receiver<Result<(Batch, Cursor)>> {
    let wanted = Wanted {
        query: Arc::new(request.query),
        range: request.range,
        direction: Direction::Forward,
        after: request.after,
        bytes_max: shared.options.query_bytes_max,
        ahead: shared.options.threads.saturating_sub(1),
        rows_max: usize::MAX,
    };
    let merge = Merge { wanted, groups, memtables, source: shared.source(), handle: Handle::current() };
    let (sender, receiver) = mpsc::channel(SCAN_QUEUE);
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let ended = merge.run(&mut |batch, cursor| sender.blocking_send(Ok((batch, cursor.clone()))).is_ok());
        if let Err(error) = ended {
            // Nobody listens when the scan was dropped.
            let _ = sender.blocking_send(Err(error));
        }
    });
    receiver
}

/// A running scan.
#[derive(Debug)]
pub struct Scan {
    receiver: mpsc::Receiver<Result<(Batch, Cursor)>>,
    cursor: Option<Cursor>,
}

impl Scan {
    /// The next records, in order; `None` at the end.
    ///
    /// # Errors
    /// As [`Store::search`]. After an error the scan is over.
    pub async fn next(&mut self) -> Result<Option<Batch>> {
        match self.receiver.recv().await {
            None => Ok(None),
            Some(Ok((batch, cursor))) => {
                self.cursor = Some(cursor);
                Ok(Some(batch))
            }
            Some(Err(error)) => {
                self.receiver.close();
                Err(error)
            }
        }
    }

    /// Where a new scan must begin to go on after the records returned so far; `None` before the first.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}
