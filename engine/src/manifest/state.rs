//! What is live at one version: segments, writers, jobs, garbage. A snapshot that never changes.
//!
//! Holds: every part of `segments` has its entry in `tenants`, and no other entry is there; no segment is without parts;
//! no key is both live and garbage. States come only from [`State::default`] (version 0), from a checkpoint, and from
//! applying a delta. This module must not know bytes or the object store.

use super::map::Map;
use crate::record::Tenant;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A segment's name: random, never used twice.
pub type SegmentId = u128;

/// A live segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Its name.
    pub id: SegmentId,
    /// The key of its object; at most [`super::KEY_BYTES_MAX`] bytes.
    pub key: String,
    /// The size of its object.
    pub bytes: u64,
    /// How often its records have been compacted.
    pub level: u8,
    /// The smallest `order` of the segments it was made from; its own for a fresh segment.
    pub order_min: u64,
    /// The rank among segments of one tenant: records with equal (timestamp, stream) come in ascending `order`.
    /// 0 for a fresh segment in a [`super::Delta`]: the commit then gives it `version << 16 | place in the delta`.
    /// A compaction's output gets the largest of its inputs'.
    pub order: u64,
    /// The parts that are live, by ascending tenant.
    pub parts: Vec<TenantPart>,
}

impl SegmentMeta {
    /// The part of `tenant`.
    pub fn part(&self, tenant: &Tenant) -> Option<&TenantPart> {
        self.parts.binary_search_by(|part| part.tenant.cmp(tenant)).ok().and_then(|at| self.parts.get(at))
    }
}

/// One tenant's records in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantPart {
    /// Whose they are.
    pub tenant: Tenant,
    /// How many records.
    pub rows: u64,
    /// The bytes of their lines.
    pub line_bytes: u64,
    /// How many row groups hold them.
    pub row_groups: u32,
    /// The earliest timestamp.
    pub timestamp_min: i64,
    /// The latest timestamp.
    pub timestamp_max: i64,
}

/// What a look-up by tenant and time finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePart {
    /// The segment, with all its live parts.
    pub segment: Arc<SegmentMeta>,
    /// The tenant's part of it.
    pub part: TenantPart,
}

/// A process that writes a WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// The version of the commit that registered it last; only commits that name it are accepted.
    pub epoch: u64,
    /// All WAL batches with a smaller sequence number are published.
    pub wal_position: u64,
}

/// A batch ingest that skips the WAL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEntry {
    /// The version of the commit that began it, or took it over, last.
    pub epoch: u64,
    /// What its owner said last; empty before that.
    pub state: Arc<[u8]>,
    /// The time of the commit that touched it last, ns.
    pub updated_ns: i64,
}

/// The manifest at one version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(super) version: u64,
    pub(super) commit_id: u128,
    pub(super) time_ns: i64,
    pub(super) segments: Map<SegmentId, Arc<SegmentMeta>>,
    /// tenant → (timestamp_min, segment) → timestamp_max
    pub(super) tenants: Map<Tenant, Map<(i64, SegmentId), i64>>,
    pub(super) writers: Map<u128, Writer>,
    pub(super) jobs: Map<(Tenant, String), JobEntry>,
    pub(super) garbage: Map<String, i64>,
}

impl State {
    /// How many commits led here; 0 for a store without any.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// The id of the last commit.
    pub fn commit_id(&self) -> u128 {
        self.commit_id
    }
    /// The time of the last commit, ns.
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }
    /// How many segments are live.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }
    /// All live segments, by id.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<SegmentMeta>> {
        self.segments.iter().map(|(_, segment)| segment)
    }
    /// The live segment `id`.
    pub fn segment(&self, id: SegmentId) -> Option<&Arc<SegmentMeta>> {
        self.segments.get(&id)
    }
    /// All tenants with a live part.
    pub fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.iter().map(|(tenant, _)| tenant)
    }
    /// The parts of `tenant` that may hold records with timestamps in `range`, by ascending (timestamp_min, segment id).
    pub fn parts(&self, tenant: &Tenant, range: &RangeInclusive<i64>) -> Vec<LivePart> {
        let Some(index) = self.tenants.get(tenant) else { return Vec::new() };
        let live = |id: &SegmentId| {
            let segment = self.segments.get(id)?;
            Some(LivePart { part: segment.part(tenant)?.clone(), segment: Arc::clone(segment) })
        };
        index
            .iter()
            .take_while(|((timestamp_min, _), _)| timestamp_min <= range.end())
            .filter(|(_, timestamp_max)| *timestamp_max >= range.start())
            .filter_map(|((_, id), _)| live(id))
            .collect()
    }
    /// The writer `id`.
    pub fn writer(&self, id: u128) -> Option<Writer> {
        self.writers.get(&id).copied()
    }
    /// All writers, by id.
    pub fn writers(&self) -> impl Iterator<Item = (u128, Writer)> {
        self.writers.iter().map(|(id, writer)| (*id, *writer))
    }
    /// The job `key` of `tenant`.
    pub fn job(&self, tenant: &Tenant, key: &str) -> Option<&JobEntry> {
        self.jobs.get(&(tenant.clone(), key.to_string()))
    }
    /// All jobs, by tenant and key.
    pub fn jobs(&self) -> impl Iterator<Item = (&Tenant, &str, &JobEntry)> {
        self.jobs.iter().map(|((tenant, key), job)| (tenant, key.as_str(), job))
    }
    /// Keys of objects that nothing refers to any more, and since when (ns).
    pub fn garbage(&self) -> impl Iterator<Item = (&str, i64)> {
        self.garbage.iter().map(|(key, since_ns)| (key.as_str(), *since_ns))
    }
    /// Since when (ns) the object `key` is garbage.
    pub fn garbage_since_ns(&self, key: &str) -> Option<i64> {
        self.garbage.get(&key.to_string()).copied()
    }

    /// Enters `segment`, whose id is new.
    pub(super) fn link(&mut self, segment: SegmentMeta) {
        for part in &segment.parts {
            // Taken out, not cloned: the second segment of a commit then changes in place what the first has copied.
            let mut index = self.tenants.remove(&part.tenant).unwrap_or_default();
            index.insert((part.timestamp_min, segment.id), part.timestamp_max);
            self.tenants.insert(part.tenant.clone(), index);
        }
        self.segments.insert(segment.id, Arc::new(segment));
    }

    /// Removes the part of `tenant` from segment `id`; the segment becomes garbage with its last part. `None` when there is no such part.
    pub(super) fn unlink(&mut self, id: SegmentId, tenant: &Tenant, now_ns: i64) -> Option<()> {
        let segment = Arc::clone(self.segments.get(&id)?);
        let gone = segment.part(tenant)?;
        let mut index = self.tenants.remove(tenant).unwrap_or_default();
        index.remove(&(gone.timestamp_min, id));
        if !index.is_empty() {
            self.tenants.insert(tenant.clone(), index);
        }
        if segment.parts.len() == 1 {
            self.segments.remove(&id);
            self.garbage.insert(segment.key.clone(), now_ns);
        } else {
            let mut rest = SegmentMeta::clone(&segment);
            rest.parts.retain(|part| part.tenant != *tenant);
            self.segments.insert(id, Arc::new(rest));
        }
        Some(())
    }
}
