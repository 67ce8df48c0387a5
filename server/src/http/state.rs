//! What all requests share: the store, the limits in force, the counters.

use super::config::ServeConfig;
use super::metrics::Metrics;
use super::problem::Problem;
use axum::http::HeaderMap;
use haystore::{Batch, Error, Store, Tenant};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The header that names the tenant.
pub const TENANT_HEADER: &str = "x-scope-orgid";

/// Shared by all requests; cloning is cheap.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// The inside of [`App`].
pub struct Shared {
    pub store: Store,
    pub config: ServeConfig,
    pub metrics: Metrics,
    /// Bytes of ingest bodies, in [`BUDGET_UNIT_BYTES`].
    pub ingest_budget: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    scans: Arc<Semaphore>,
}

/// The unit of the ingest budget.
pub const BUDGET_UNIT_BYTES: usize = 1024;

impl std::ops::Deref for App {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    /// The state of one server.
    pub fn new(store: Store, config: ServeConfig) -> Self {
        let permits = |n: usize| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)));
        App(Arc::new(Shared {
            store,
            metrics: Metrics::default(),
            ingest_budget: permits(config.ingest_bytes_max / BUDGET_UNIT_BYTES),
            parsers: permits(config.parsers_max),
            searches: permits(config.searches_max),
            scans: permits(config.scans_max),
            config,
        }))
    }

    /// A parser's turn; hold it while a body is unpacked and parsed. The wait is bounded by the ingest budget, not by time.
    pub async fn parser_turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = self.parsers.clone().acquire_owned().await;
        turn.map_err(|_| Problem::from(Error::internal("the parsers' semaphore is closed")))
    }

    /// A search's turn; hold it until the answer is sent.
    pub async fn search_turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.turn(&self.searches, "searches").await
    }

    /// A scan's turn; hold it until the answer is sent.
    pub async fn scan_turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.turn(&self.scans, "scans").await
    }

    /// Stores records; while the store is busy writing out what it has, waits as long as for a turn.
    ///
    /// # Errors
    /// Those of [`Store::append`].
    pub async fn append(&self, tenant: &Tenant, batch: Batch) -> haystore::Result<()> {
        self.store.wait_for_room(batch.memory_bytes(), self.config.queue_wait_max).await;
        self.store.append(tenant, batch).await
    }

    async fn turn(&self, semaphore: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, Problem> {
        match tokio::time::timeout(self.config.queue_wait_max, semaphore.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Problem::too_many(format!("too many {what} at once; none ended within {:?}", self.config.queue_wait_max))),
        }
    }
}

/// The tenant that the request's header names, or the default.
pub fn tenant(headers: &HeaderMap) -> Result<Tenant, Problem> {
    match headers.get(TENANT_HEADER) {
        None => Ok(Tenant::default()),
        Some(value) => {
            let name = value.to_str().map_err(|_| Problem::bad("the header X-Scope-OrgID is not ASCII"))?;
            Ok(Tenant::new(name)?)
        }
    }
}

/// Now, in nanoseconds since the Unix epoch.
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
