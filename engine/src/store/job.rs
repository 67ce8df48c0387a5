//! Batch jobs: records straight to segments, published together with the caller's position.

use super::api::JobReport;
use super::publish::{self, LEVEL0_EFFORT};
use super::{Shared, flush};
use crate::error::{Error, Result};
use crate::manifest::{Delta, JobChange, SegmentMeta};
use crate::record::{Batch, Tenant};
use crate::segment::{Cut, RowGroupMeta, SegmentWriter};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinHandle;

type Encoding = JoinHandle<Result<Vec<(RowGroupMeta, Vec<u8>)>>>;

/// A batch ingest that skips the WAL: records go straight to segments, and are published together
/// with the caller's position, so that a job that died goes on where its last checkpoint was.
///
/// Memory: the records of one row group, those of as many as are encoded at once, and the encoded bytes of one segment.
#[derive(Debug)]
pub struct Job {
    shared: Arc<Shared>,
    tenant: Tenant,
    key: String,
    epoch: u64,
    resumed: Option<Vec<u8>>,
    /// Records not yet being encoded.
    waiting: Vec<Arc<Batch>>,
    waiting_bytes: usize,
    /// Row groups being encoded, in order.
    encoding: VecDeque<Encoding>,
    segment: SegmentWriter,
    segment_line_bytes: usize,
    state: Vec<u8>,
    report: JobReport,
    /// Set while a call runs, and for good when it fails or is given up half-way: records may be missing then, so no later state may be published.
    broken: Option<Error>,
}

impl Job {
    pub(super) async fn begin(shared: &Arc<Shared>, tenant: &Tenant, key: &str) -> Result<Job> {
        let entry = shared.manifest.begin_job(tenant, key).await?;
        Ok(Job {
            shared: shared.clone(),
            tenant: tenant.clone(),
            key: key.to_string(),
            epoch: entry.epoch,
            resumed: (!entry.state.is_empty()).then(|| entry.state.to_vec()),
            waiting: Vec::new(),
            waiting_bytes: 0,
            encoding: VecDeque::new(),
            segment: SegmentWriter::default(),
            segment_line_bytes: 0,
            state: Vec::new(),
            report: JobReport::default(),
            broken: None,
        })
    }

    /// The caller's state at the last checkpoint; `None` when the job is new.
    pub fn state(&self) -> Option<&[u8]> {
        self.resumed.as_deref()
    }

    /// Adds records, in order. `state`, not empty, is what [`Job::state`] shall give after a restart once these records, and all before, are published.
    ///
    /// # Errors
    /// Io errors, also of earlier calls: after one the job does nothing more. What was not published is written again by the job begun anew.
    pub async fn write(&mut self, batch: Batch, state: Vec<u8>) -> Result<()> {
        self.enter()?;
        let done = self.take(batch, state).await;
        self.leave(done)
    }

    /// Publishes what was written so far.
    ///
    /// # Errors
    /// As [`Job::write`]; [`crate::ErrorKind::Fenced`] when another process took the job over.
    pub async fn checkpoint(&mut self) -> Result<()> {
        self.enter()?;
        let done = self.publish_state().await;
        self.leave(done)
    }

    /// Publishes what is left and ends the job; its key is free again.
    ///
    /// # Errors
    /// As [`Job::checkpoint`].
    pub async fn finish(mut self) -> Result<JobReport> {
        self.enter()?;
        let change = JobChange::Finish { tenant: self.tenant.clone(), key: self.key.clone(), epoch: self.epoch };
        self.publish(change).await?;
        Ok(self.report)
    }

    fn enter(&mut self) -> Result<()> {
        match &self.broken {
            Some(error) => Err(error.clone()),
            None => {
                self.broken = Some(Error::busy(format!("job {:?}: a call was given up half-way: begin the job anew", self.key)));
                Ok(())
            }
        }
    }

    fn leave(&mut self, done: Result<()>) -> Result<()> {
        self.broken = done.as_ref().err().map(|e| e.clone().at(format_args!("job {:?} failed earlier, begin it anew", self.key)));
        done
    }

    async fn take(&mut self, batch: Batch, state: Vec<u8>) -> Result<()> {
        self.report.records += batch.len() as u64;
        self.report.line_bytes += batch.line_bytes() as u64;
        self.segment_line_bytes += batch.line_bytes();
        self.waiting_bytes += batch.line_bytes() + batch.len() * 16;
        if !batch.is_empty() {
            self.waiting.push(Arc::new(batch));
        }
        self.state = state;
        if self.waiting_bytes >= self.shared.options.group_bytes {
            self.encode_waiting().await?;
        }
        if self.segment_line_bytes >= self.shared.options.checkpoint_bytes || self.segment.len() >= self.shared.options.segment_bytes_max {
            self.publish_state().await?;
        }
        Ok(())
    }

    async fn publish_state(&mut self) -> Result<()> {
        let change = JobChange::Update { tenant: self.tenant.clone(), key: self.key.clone(), epoch: self.epoch, state: self.state.clone() };
        self.publish(change).await
    }

    async fn encode_waiting(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        while self.encoding.len() >= self.shared.pool.threads() {
            self.take_encoded().await?;
        }
        let (pool, group_bytes) = (self.shared.pool.clone(), self.shared.options.group_bytes);
        self.encoding.push_back(tokio::spawn(async move {
            let cut = pool.run(move || Ok(Cut::new(batches, group_bytes * 2))).await?;
            publish::encode_groups(&pool, cut, LEVEL0_EFFORT).await
        }));
        Ok(())
    }

    async fn take_encoded(&mut self) -> Result<()> {
        if let Some(encoding) = self.encoding.pop_front() {
            let groups = encoding.await.map_err(|e| Error::internal(format!("encoding ended early: {e}")))??;
            for (meta, bytes) in groups {
                self.segment.add_encoded(&self.tenant, meta, &bytes);
            }
        }
        Ok(())
    }

    async fn publish(&mut self, change: JobChange) -> Result<()> {
        if !self.waiting.is_empty() {
            self.encode_waiting().await?;
        }
        while !self.encoding.is_empty() {
            self.take_encoded().await?;
        }
        let mut added = Vec::new();
        let began_ns = self.shared.environment.now_ns();
        let segment = std::mem::take(&mut self.segment);
        self.segment_line_bytes = 0;
        if !segment.is_empty() {
            let (bytes, footer) = segment.finish()?;
            let id = flush::new_id(&self.shared);
            let key = format!("segments/level0/{id:032x}.haystore");
            let meta = publish::meta_of(id, key, 0, bytes.len() as u64, &footer)?;
            self.report.stored_bytes += meta.bytes;
            self.shared.objects.put(&meta.key, bytes.into()).await?;
            added.push(meta);
        }
        self.commit(change, added, began_ns).await
    }

    async fn commit(&self, change: JobChange, added: Vec<SegmentMeta>, began_ns: i64) -> Result<()> {
        let commit = self.shared.manifest.commit(|state| {
            // An answer may have been lost: what is there already is not published again.
            let known = !added.is_empty() && added.iter().all(|s| state.segment(s.id).is_some());
            let ended = added.is_empty() && matches!(change, JobChange::Finish { .. }) && state.job(&self.tenant, &self.key).is_none();
            if known || ended {
                return Ok(Delta::default());
            }
            self.shared.check_upload(began_ns)?;
            Ok(Delta { jobs: vec![change.clone()], added: added.clone(), ..Delta::default() })
        });
        commit.await.map(|_| ())
    }
}
