//! The pool of encoding work: blocking threads, but only so many at once.

use crate::error::{Error, Result};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Runs CPU work off the async threads.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    places: Arc<Semaphore>,
    threads: usize,
}

impl Pool {
    /// A pool of `threads` places.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        Pool { places: Arc::new(Semaphore::new(threads)), threads }
    }

    /// Its places.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` once there is a place.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let place = self.places.clone().acquire_owned().await.map_err(|_| Error::internal("the pool is closed"))?;
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        task.await.map_err(|e| Error::internal(format!("encoding work ended early: {e}")))?
    }
}
