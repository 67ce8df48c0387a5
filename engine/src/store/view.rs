//! Read views, and the way from a manifest entry to an open row group.

use super::Shared;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{SegmentMeta, State};
use crate::objects::Objects;
use crate::query::scan::{GroupRef, GroupSource};
use crate::record::{Batch, Tenant};
use crate::segment::{FOOTER_READ_BYTES, Footer, RowGroup, read_footer};
use futures_util::{StreamExt, TryStreamExt};
use hashbrown::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// Footers kept in memory, in row groups.
const CACHED_GROUPS_MAX: usize = 200_000;
/// Footers read at once.
const FOOTER_READS_MAX: usize = 16;

/// One moment of the store: a manifest version and the memtables that it does not cover.
#[derive(Debug)]
pub(crate) struct View {
    pub state: Arc<State>,
    pub memtables: Vec<Arc<Batch>>,
}

impl Shared {
    /// The current view of a tenant. Memtables first: what is dropped from them afterwards is in the state that is read then.
    pub(crate) fn view(&self, tenant: &Tenant) -> View {
        let memtables = self.memtables.of(tenant);
        let state = self.manifest.state();
        let published = self.writer.get().and_then(|w| state.writer(w.id)).map_or(0, |w| w.wal_position);
        let memtables = memtables.into_iter().filter(|(sequence, _)| *sequence >= published).map(|(_, batch)| batch).collect();
        View { state, memtables }
    }

    /// The row groups of `tenant` that may have records in `range`.
    pub(crate) async fn groups(&self, state: &State, tenant: &Tenant, range: &RangeInclusive<i64>) -> Result<Vec<GroupRef>> {
        let parts = state.parts(tenant, range);
        let read = |part: crate::manifest::LivePart| async move {
            let footer = self.footers.get(&part.segment.key, part.segment.bytes).await?;
            Ok::<_, Error>((part, footer))
        };
        let found: Vec<_> = futures_util::stream::iter(parts.into_iter().map(read)).buffered(FOOTER_READS_MAX).try_collect().await?;
        let mut groups = Vec::new();
        for (part, footer) in found {
            let key: Arc<str> = part.segment.key.as_str().into();
            for (index, info) in footer.groups.iter().enumerate().filter(|(_, g)| g.tenant == *tenant) {
                if info.meta.times.start() <= range.end() && info.meta.times.end() >= range.start() {
                    groups.push(GroupRef { key: key.clone(), order: (part.segment.order, index as u32), info: info.clone() });
                }
            }
        }
        Ok(groups)
    }

    /// The footer of a live segment.
    pub(crate) async fn footers(&self, segment: &SegmentMeta) -> Result<Arc<Footer>> {
        self.footers.get(&segment.key, segment.bytes).await
    }

    /// Opens row groups for this store's queries.
    pub(crate) fn source(&self) -> Arc<ObjectSource> {
        Arc::new(ObjectSource {
            objects: self.objects.clone(),
            handle: Handle::current(),
            bytes_read: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        })
    }
}

/// The footers of segments, read once.
#[derive(Debug)]
pub(crate) struct Footers {
    objects: Arc<dyn Objects>,
    cache: Mutex<(HashMap<String, Arc<Footer>>, usize)>,
}

impl Footers {
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Footers { objects, cache: Mutex::default() }
    }

    /// The footer of the segment `key` of `bytes` bytes.
    pub async fn get(&self, key: &str, bytes: u64) -> Result<Arc<Footer>> {
        if let Some(footer) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).0.get(key) {
            return Ok(footer.clone());
        }
        let footer = Arc::new(fetch_footer(&*self.objects, key, bytes).await?);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.1 + footer.groups.len() > CACHED_GROUPS_MAX {
            *cache = Default::default();
        }
        cache.1 += footer.groups.len();
        cache.0.insert(key.to_string(), footer.clone());
        Ok(footer)
    }
}

/// Reads the footer of a segment: one request, or two when it is large.
pub(crate) async fn fetch_footer(objects: &dyn Objects, key: &str, bytes: u64) -> Result<Footer> {
    let mut wanted = FOOTER_READ_BYTES;
    loop {
        let start = bytes.saturating_sub(wanted);
        let tail = one_range(objects, key, start..bytes).await?;
        match read_footer(key, bytes, &tail)? {
            Ok(footer) => return Ok(footer),
            Err(needed) => wanted = needed,
        }
    }
}

/// Reads one range of an object that the manifest says is there.
pub(crate) async fn one_range(objects: &dyn Objects, key: &str, range: std::ops::Range<u64>) -> Result<bytes::Bytes> {
    let length = range.end - range.start;
    let read = objects.get_ranges(key, std::slice::from_ref(&range)).await;
    let bytes = read.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::corrupt(key, range.start, "the object is missing"),
        _ => e,
    })?;
    let bytes = bytes.into_iter().next().unwrap_or_default();
    if bytes.len() as u64 == length {
        Ok(bytes)
    } else {
        Err(Error::corrupt(key, range.start, "the object is shorter than the manifest says"))
    }
}

/// Row groups out of the object store.
#[derive(Debug)]
pub(crate) struct ObjectSource {
    objects: Arc<dyn Objects>,
    handle: Handle,
    pub bytes_read: AtomicU64,
    pub requests: AtomicU64,
}

impl GroupSource for ObjectSource {
    fn open(&self, group: &GroupRef) -> Result<RowGroup> {
        let bytes = self.handle.block_on(one_range(&*self.objects, &group.key, group.info.range()))?;
        self.bytes_read.fetch_add(bytes.len() as u64, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        RowGroup::open(&group.info.meta, group.info.source(&group.key, bytes))
    }
}
