//! A commit's change, and what it makes of a state.
//!
//! [`apply`] is pure and is the only judge: the committer asks it before it writes, every reader asks it again while it
//! replays, and both get the same answer. What it refuses is never stored. This module must not know bytes or the object store.

use super::state::{JobEntry, SegmentId, SegmentMeta, State, TenantPart, Writer};
use super::{JOB_STATE_BYTES_MAX, KEY_BYTES_MAX, ORDER_SHIFT};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Tenant;

/// A change to the manifest: all of it happens, or nothing. Carried out in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// Writers that come, go on and leave.
    pub writers: Vec<WriterChange>,
    /// Jobs that begin, go on and end.
    pub jobs: Vec<JobChange>,
    /// Parts that are live no longer. A segment without parts becomes garbage.
    pub removed: Vec<(SegmentId, Tenant)>,
    /// Segments that become live, in arrival order of their records.
    pub added: Vec<SegmentMeta>,
    /// Keys of garbage that has been deleted.
    pub garbage_dropped: Vec<String>,
}

/// A change to a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriterChange {
    /// A process takes the name `id`; its epoch is the version of this commit. Who had it before is fenced.
    Register {
        /// The writer.
        id: u128,
    },
    /// The holder of `epoch` has published all WAL batches before `wal_position`.
    Advance {
        /// The writer.
        id: u128,
        /// The epoch its registration gave.
        epoch: u64,
        /// Never less than before.
        wal_position: u64,
    },
    /// The holder of `epoch` leaves for good, with an empty WAL.
    Forget {
        /// The writer.
        id: u128,
        /// The epoch its registration gave.
        epoch: u64,
    },
}

/// A change to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobChange {
    /// Begins the job, or takes it over with its state; its epoch is the version of this commit. Who had it before is fenced.
    Begin {
        /// The tenant.
        tenant: Tenant,
        /// The job's name within the tenant; at most [`KEY_BYTES_MAX`] bytes.
        key: String,
    },
    /// The holder of `epoch` goes on.
    Update {
        /// The tenant.
        tenant: Tenant,
        /// The job's name.
        key: String,
        /// The epoch its beginning gave.
        epoch: u64,
        /// Where it is; at most [`JOB_STATE_BYTES_MAX`] bytes.
        state: Vec<u8>,
    },
    /// The holder of `epoch` is done; the name is free again.
    Finish {
        /// The tenant.
        tenant: Tenant,
        /// The job's name.
        key: String,
        /// The epoch its beginning gave.
        epoch: u64,
    },
}

impl Delta {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.writers.is_empty()
            && self.jobs.is_empty()
            && self.removed.is_empty()
            && self.added.is_empty()
            && self.garbage_dropped.is_empty()
    }
}

/// A delta with its place in history: what a delta object holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The version it makes.
    pub(crate) version: u64,
    /// Tells one's own commit from another's.
    pub(crate) commit_id: u128,
    /// The commit id of the version before; 0 before the first.
    pub(crate) parent_id: u128,
    /// The committer's clock.
    pub(crate) time_ns: i64,
    /// The change.
    pub(crate) delta: Delta,
}

impl Record {
    /// `delta` as the version after `state`: fresh segments get their order, parts are sorted.
    pub(crate) fn new(state: &State, mut delta: Delta, commit_id: u128, time_ns: i64) -> Result<Self> {
        let version = state.version + 1;
        for (place, segment) in delta.added.iter_mut().enumerate() {
            if segment.order == 0 {
                let place = u16::try_from(place).map_err(|_| Error::limit("manifest: more than 65536 segments in one commit"))?;
                segment.order = version << ORDER_SHIFT | u64::from(place);
                segment.order_min = segment.order;
            }
            segment.parts.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        }
        Ok(Record { version, commit_id, parent_id: state.commit_id, time_ns, delta })
    }
}

/// The state after `record`, or why it may not happen: [`ErrorKind::Fenced`] for an old epoch, [`ErrorKind::Busy`] when
/// another commit took away what this one builds on (plan anew), [`ErrorKind::Invalid`] or [`ErrorKind::Limit`] for nonsense.
pub(crate) fn apply(state: &State, record: &Record) -> Result<State> {
    if record.version != state.version + 1 || record.parent_id != state.commit_id {
        return Err(Error::invalid(format!("version {} does not follow version {}", record.version, state.version)));
    }
    let mut next = State { version: record.version, commit_id: record.commit_id, time_ns: record.time_ns, ..state.clone() };
    let delta = &record.delta;
    for change in &delta.writers {
        change_writer(&mut next, change)?;
    }
    for change in &delta.jobs {
        change_job(&mut next, change, record.time_ns)?;
    }
    for (id, tenant) in &delta.removed {
        let gone = || Error::busy(format!("segment {id:032x} has no live part of tenant {tenant}"));
        next.unlink(*id, tenant, record.time_ns).ok_or_else(gone)?;
    }
    for segment in &delta.added {
        check_segment(&next, segment)?;
        next.link(segment.clone());
    }
    for key in &delta.garbage_dropped {
        next.garbage.remove(key).ok_or_else(|| Error::busy(format!("{key} is not garbage")))?;
    }
    Ok(next)
}

fn change_writer(state: &mut State, change: &WriterChange) -> Result<()> {
    let held = |state: &State, id: u128, epoch: u64| match state.writers.get(&id) {
        Some(writer) if writer.epoch == epoch => Ok(*writer),
        Some(writer) => Err(fenced(format!("writer {id:032x}: epoch {epoch} ended, epoch {} began", writer.epoch))),
        None => Err(fenced(format!("writer {id:032x} is not registered"))),
    };
    match *change {
        WriterChange::Register { id } => {
            let wal_position = state.writers.get(&id).map_or(0, |writer| writer.wal_position);
            state.writers.insert(id, Writer { epoch: state.version, wal_position });
        }
        WriterChange::Advance { id, epoch, wal_position } => {
            let writer = held(state, id, epoch)?;
            if wal_position < writer.wal_position {
                return Err(Error::invalid(format!("writer {id:032x}: WAL position {wal_position} is before {}", writer.wal_position)));
            }
            state.writers.insert(id, Writer { epoch, wal_position });
        }
        WriterChange::Forget { id, epoch } => {
            held(state, id, epoch)?;
            state.writers.remove(&id);
        }
    }
    Ok(())
}

fn change_job(state: &mut State, change: &JobChange, now_ns: i64) -> Result<()> {
    let held = |state: &State, tenant: &Tenant, key: &str, epoch: u64| match state.job(tenant, key) {
        Some(job) if job.epoch == epoch => Ok(()),
        Some(job) => Err(fenced(format!("job {key:?}: epoch {epoch} ended, epoch {} began", job.epoch))),
        None => Err(fenced(format!("job {key:?} is not begun"))),
    };
    match change {
        JobChange::Begin { tenant, key } => {
            check_key("job", key)?;
            let kept = state.job(tenant, key).map(|job| job.state.clone()).unwrap_or_default();
            state.jobs.insert((tenant.clone(), key.clone()), JobEntry { epoch: state.version, state: kept, updated_ns: now_ns });
        }
        JobChange::Update { tenant, key, epoch, state: said } => {
            held(state, tenant, key, *epoch)?;
            if said.len() > JOB_STATE_BYTES_MAX {
                return Err(Error::limit(format!("job {key:?}: a state of {} bytes, limit {JOB_STATE_BYTES_MAX}", said.len())));
            }
            let entry = JobEntry { epoch: *epoch, state: said.as_slice().into(), updated_ns: now_ns };
            state.jobs.insert((tenant.clone(), key.clone()), entry);
        }
        JobChange::Finish { tenant, key, epoch } => {
            held(state, tenant, key, *epoch)?;
            state.jobs.remove(&(tenant.clone(), key.clone()));
        }
    }
    Ok(())
}

/// Whether `segment` may become live in `state`, whose version is already the new one.
fn check_segment(state: &State, segment: &SegmentMeta) -> Result<()> {
    check_key("segment", &segment.key)?;
    if state.segments.get(&segment.id).is_some() {
        return Err(Error::busy(format!("segment {:032x} is live already", segment.id)));
    }
    if state.garbage.get(&segment.key).is_some() {
        return Err(Error::busy(format!("{} is garbage and its key is never used again", segment.key)));
    }
    check_shape(segment, state.version)
}

/// What holds for a segment whatever else is live.
pub(crate) fn check_shape(segment: &SegmentMeta, version: u64) -> Result<()> {
    let wrong = |what: &str| Err(Error::invalid(format!("segment {:032x}: {what}", segment.id)));
    if segment.order_min < 1 << ORDER_SHIFT || segment.order_min > segment.order || segment.order >> ORDER_SHIFT > version {
        return wrong("its order is impossible");
    }
    if segment.parts.is_empty() {
        return wrong("no parts");
    }
    if !segment.parts.is_sorted_by(|a, b| a.tenant < b.tenant) {
        return wrong("a tenant has two parts");
    }
    if segment.parts.iter().any(|part: &TenantPart| part.timestamp_min > part.timestamp_max) {
        return wrong("a part ends before it begins");
    }
    Ok(())
}

pub(crate) fn check_key(what: &str, key: &str) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(Error::invalid(format!("{what} key of {} bytes: from 1 to {KEY_BYTES_MAX}", key.len())));
    }
    Ok(())
}

fn fenced(message: String) -> Error {
    Error::new(ErrorKind::Fenced, message)
}
