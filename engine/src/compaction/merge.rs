//! One merge: records stream out of the inputs in order and into new segments, then one commit swaps them.

use super::Compacted;
use super::plan::Task;
use crate::column::encode::Effort;
use crate::error::{Error, Result};
use crate::manifest::{Delta, SegmentId, SegmentMeta};
use crate::objects::Objects;
use crate::query::Query;
use crate::query::scan::{GroupRef, Merge, Wanted};
use crate::record::{Batch, Tenant};
use crate::segment::{Cut, SegmentWriter, encode_row_group};
use crate::store::{Direction, Shared, UPLOAD_AGE_MAX, flush, publish};
use std::sync::Arc;
use tokio::runtime::Handle;

const DAY_NS: i64 = 86_400_000_000_000;
/// pco's level.
const PCO_LEVEL: u8 = 8;

pub(super) async fn run(shared: &Arc<Shared>, tenant: &Tenant, task: Task, done: &mut Compacted) -> Result<()> {
    let mut groups = Vec::new();
    for part in &task.inputs {
        let footer = shared.footers(&part.segment).await?;
        let key: Arc<str> = part.segment.key.as_str().into();
        let of_tenant = footer.groups.iter().enumerate().filter(|(_, g)| g.tenant == *tenant);
        groups.extend(of_tenant.map(|(i, info)| GroupRef { key: key.clone(), order: (part.segment.order, i as u32), info: info.clone() }));
    }
    let rows: u64 = groups.iter().map(|g| u64::from(g.info.meta.rows)).sum();
    let wanted = Wanted {
        query: Arc::new(Query::default()),
        range: i64::MIN..=i64::MAX,
        direction: Direction::Forward,
        after: None,
        bytes_max: shared.options.query_bytes_max / 2,
        ahead: 0,
        rows_max: usize::MAX,
    };
    let merge = Merge { wanted, groups, memtables: Vec::new(), source: shared.source(), handle: Handle::current() };
    let output = Output::new(shared, tenant.clone(), task.level);
    let written = tokio::task::spawn_blocking(move || write_all(merge, output)).await;
    let written = written.map_err(|e| Error::internal(format!("a merge ended early: {e}")))??;
    let (mut added, began_ns) = renew(shared, written).await?;
    let rows_written: u64 = added.iter().flat_map(|s| &s.parts).map(|p| p.rows).sum();
    if rows_written != rows {
        return Err(Error::internal(format!("a merge of {rows} records gave {rows_written}; nothing was replaced")));
    }
    rank(&mut added, &task);
    done.replaced += task.inputs.len() as u64;
    done.written += added.len() as u64;
    done.line_bytes += task.inputs.iter().map(|p| p.part.line_bytes).sum::<u64>();
    done.stored_bytes += added.iter().map(|s| s.bytes).sum::<u64>();
    commit(shared, tenant, &task, added, began_ns).await
}

/// Uploads again what was uploaded so long ago that it could not be published; the segments, and when the oldest upload began.
async fn renew(shared: &Shared, written: Vec<(SegmentMeta, i64)>) -> Result<(Vec<SegmentMeta>, i64)> {
    let mut added = Vec::with_capacity(written.len());
    let mut oldest_ns = i64::MAX;
    for (segment, mut began_ns) in written {
        if shared.upload_age(began_ns) >= UPLOAD_AGE_MAX / 2 {
            let bytes = shared.objects.get(&segment.key).await?;
            began_ns = shared.environment.now_ns();
            shared.objects.put(&segment.key, bytes).await?;
        }
        oldest_ns = oldest_ns.min(began_ns);
        added.push(segment);
    }
    Ok((added, oldest_ns))
}

/// Gives the outputs, which ascend in time, ranks within those of the inputs.
fn rank(added: &mut [SegmentMeta], task: &Task) {
    let order = task.inputs.iter().map(|p| p.segment.order).max().unwrap_or(0);
    let order_min = task.inputs.iter().map(|p| p.segment.order_min).min().unwrap_or(0);
    let count = added.len() as u64;
    for (index, segment) in (0..).zip(added) {
        segment.order = order.saturating_sub(count - 1 - index).max(order_min);
        segment.order_min = order_min;
    }
}

async fn commit(shared: &Shared, tenant: &Tenant, task: &Task, added: Vec<SegmentMeta>, began_ns: i64) -> Result<()> {
    let removed: Vec<(SegmentId, Tenant)> = task.inputs.iter().map(|p| (p.segment.id, tenant.clone())).collect();
    let swap = |state: &crate::manifest::State| {
        if added.iter().any(|s| state.segment(s.id).is_some()) {
            return Ok(Delta::default());
        }
        shared.check_upload(began_ns)?;
        Ok(Delta { removed: removed.clone(), added: added.clone(), ..Delta::default() })
    };
    shared.manifest.commit(swap).await.map(|_| ())
}

fn write_all(merge: Merge, mut output: Output) -> Result<Vec<(SegmentMeta, i64)>> {
    let mut failed = None;
    merge.run(&mut |batch, _| match output.take(batch) {
        Ok(()) => true,
        Err(error) => {
            failed = Some(error);
            false
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => output.finish(),
    }
}

/// Collects records, in order, into row groups and segments. Blocks.
struct Output {
    shared: Arc<Shared>,
    objects: Arc<dyn Objects>,
    handle: Handle,
    tenant: Tenant,
    level: u8,
    waiting: Vec<Arc<Batch>>,
    waiting_bytes: usize,
    day: Option<i64>,
    last: i64,
    segment: SegmentWriter,
    /// The segments, and when the upload of each began, ns.
    written: Vec<(SegmentMeta, i64)>,
}

impl Output {
    fn new(shared: &Arc<Shared>, tenant: Tenant, level: u8) -> Self {
        Output {
            shared: shared.clone(),
            objects: shared.objects.clone(),
            handle: Handle::current(),
            tenant,
            level,
            waiting: Vec::new(),
            waiting_bytes: 0,
            day: None,
            last: i64::MIN,
            segment: SegmentWriter::default(),
            written: Vec::new(),
        }
    }

    fn take(&mut self, batch: Batch) -> Result<()> {
        let times = batch.timestamps();
        let day = |t: i64| t.div_euclid(DAY_NS);
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Ok(()) };
        if day(first) == day(last) {
            return self.take_of_day(batch);
        }
        let mut part = Batch::new();
        for record in batch.iter() {
            if part.timestamps().last().is_some_and(|&t| day(t) != day(record.timestamp)) {
                self.take_of_day(std::mem::take(&mut part))?;
            }
            part.push_ref(record)?;
        }
        self.take_of_day(part)
    }

    fn take_of_day(&mut self, batch: Batch) -> Result<()> {
        let (Some(&first), Some(&last)) = (batch.timestamps().first(), batch.timestamps().last()) else { return Ok(()) };
        let day = first.div_euclid(DAY_NS);
        if self.day.is_some_and(|d| d != day) {
            self.close_group()?;
            self.close_segment()?;
        }
        if self.waiting_bytes >= self.shared.options.compacted_group_bytes {
            self.close_group()?;
            // Records of one timestamp stay in one segment, so that segments never need each other's order.
            if self.segment.len() >= self.shared.options.segment_bytes_max && first != self.last {
                self.close_segment()?;
            }
        }
        self.day = Some(day);
        self.last = last;
        self.waiting_bytes += batch.line_bytes() + batch.len() * 16;
        self.waiting.push(Arc::new(batch));
        Ok(())
    }

    fn close_group(&mut self) -> Result<()> {
        self.waiting_bytes = 0;
        let mut cut = Cut::new(std::mem::take(&mut self.waiting), self.shared.options.compacted_group_bytes * 2);
        let groups = cut.len();
        for group in 0..groups {
            let rows = cut.rows(group);
            if group + 1 == groups {
                // The rows are copies: the records need not be held while they are encoded.
                cut.clear();
            }
            // In one of the pool's places, so that flushes and merges together encode no more at once than memory was set aside for.
            let gear = self.shared.options.gear;
            let effort = Effort { zstd: gear.level.clamp(1, 19), pco: PCO_LEVEL, same: true, archive: gear.archive };
            let encoded = self.shared.pool.run(move || {
                let mut bytes = Vec::new();
                encode_row_group(&rows, effort, &mut bytes).map(|meta| (meta, bytes))
            });
            let (meta, bytes) = self.handle.block_on(encoded)?;
            self.segment.add_encoded(&self.tenant, meta, &bytes);
        }
        Ok(())
    }

    fn close_segment(&mut self) -> Result<()> {
        let segment = std::mem::take(&mut self.segment);
        if segment.is_empty() {
            return Ok(());
        }
        let (bytes, footer) = segment.finish()?;
        let id = flush::new_id(&self.shared);
        let key = format!("segments/tenant={}/day={}/{id:032x}.haystore", self.tenant, self.day.unwrap_or(0));
        let meta = publish::meta_of(id, key, self.level, bytes.len() as u64, &footer)?;
        let began_ns = self.shared.environment.now_ns();
        self.handle.block_on(self.objects.put(&meta.key, bytes.into()))?;
        self.written.push((meta, began_ns));
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<(SegmentMeta, i64)>> {
        self.close_group()?;
        self.close_segment()?;
        Ok(self.written)
    }
}
