//! Haystore itself: ingested as `haystore ingest` does it, and compacted where asked.

use super::tree_bytes;
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::{Context, Result, bail};
use haystore::query::Query;
use haystore::{Options, ScanRequest, Store, Tenant};
use haystore_server::cli::ingest::{Settings, ingest};
use haystore_server::cli::terminal::{Interrupt, progress};
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A store in a folder.
pub struct Haystore {
    task: Task,
    is_compacted: bool,
    opened: Option<(Runtime, Store)>,
}

impl Haystore {
    /// Not written yet.
    pub fn new(task: &Task, is_compacted: bool) -> Self {
        Haystore { task: task.clone(), is_compacted, opened: None }
    }

    fn folder(&self) -> PathBuf {
        self.task.folder.join(self.name())
    }

    fn opened(&self) -> Result<&(Runtime, Store)> {
        self.opened.as_ref().context("the store is not open")
    }

    /// Hands what `query` finds to `take`, as a stream: nothing needs to fit in memory.
    fn scan(&self, query: Query, take: Take<'_>) -> Result<()> {
        let (runtime, store) = self.opened()?;
        let request = ScanRequest { query, range: i64::MIN..=i64::MAX, after: None };
        runtime.block_on(async {
            let mut scan = store.scan(&Tenant::default(), request).await?;
            while let Some(batch) = scan.next().await? {
                (0..batch.len()).try_for_each(|row| take(batch.line(row)))?;
            }
            Ok(())
        })
    }

    async fn fill(&self, store: &Store, threads: usize) -> Result<()> {
        let read = self.task.logs.options(haystore::Labels::default());
        let settings = Settings { tenant: Tenant::default(), read, filename_label: true, threads };
        let bar = progress(0, self.name());
        let done = ingest(store, settings, self.task.logs.sources.clone(), &bar, &Interrupt::default()).await;
        bar.finish_and_clear();
        let done = done?;
        if done.failed > 0 || done.tally.rejected > 0 {
            bail!("{} files failed, {} lines were refused", done.failed, done.tally.rejected);
        }
        if self.is_compacted {
            store.compact().await?;
        }
        Ok(())
    }
}

impl Peer for Haystore {
    fn name(&self) -> &'static str {
        if self.is_compacted { "haystore-compacted" } else { "haystore" }
    }

    fn keeps(&self) -> Keeps {
        let how = if self.is_compacted {
            "haystore ingest, then haystore compact (both in the ingest figures), --grace 0"
        } else {
            "haystore ingest with its defaults"
        };
        Keeps { bytes: Bytes::Exact, order: Order::Time, substring: Way::Index, token: Way::Index, fields: "time, labels", how }
    }

    fn ingest(&mut self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let options = Options { grace: Duration::ZERO, ..Options::default() };
        let threads = options.threads;
        let store = runtime.block_on(async {
            let store = Store::open(&self.folder().to_string_lossy(), options).await?;
            self.fill(&store, threads).await?;
            anyhow::Ok(store)
        })?;
        self.opened = Some((runtime, store));
        Ok(())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        tree_bytes(&self.folder()).map(Some)
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        self.scan(Query::needle(needle.text.as_str()), take)
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        self.scan(Query::default(), take)
    }
}
