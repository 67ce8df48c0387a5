//! Random operations against the model. Everything that the store answers must be what the model answers.

use haystore::objects::{FaultPlan, Faulty, MemoryObjects, RetryPolicy, Retrying};
use haystore::{Options, Store, Tenant};
use haystore_tests::check::{check_resumed_scan, check_scan, check_search, check_series};
use haystore_tests::model::Model;
use haystore_tests::random::Random;
use haystore_tests::record::{Rec, batch_of};
use haystore_tests::rounds::for_seeds;
use haystore_tests::world::{World, quiet_options};
use std::sync::Arc;
use std::time::Duration;

/// A store and what must be in it.
pub struct Play {
    world: World,
    store: Store,
    model: Model,
    random: Random,
    /// Whether the store flushes and compacts when it likes: then jobs keep to a tenant of their own, for their place among appends is open.
    restless: bool,
    jobs: u64,
}

impl Play {
    /// Begins with an empty store.
    pub async fn new(world: World, seed: u64, restless: bool) -> Play {
        let store = world.open().await;
        Play { world, store, model: Model::default(), random: Random::new(seed), restless, jobs: 0 }
    }

    /// Does `steps` random things and checks after each few.
    pub async fn steps(&mut self, steps: usize) {
        for step in 0..steps {
            match self.random.below(16) {
                0..=6 => self.append().await,
                7..=8 => self.flush().await,
                9 if self.random.once_in(4) => drop(self.store.compact_again().await.unwrap()),
                9 => drop(self.store.compact().await.unwrap()),
                10..=11 => self.job().await,
                12 => self.reopen().await,
                13 => self.crash().await,
                _ => self.world.environment.advance(Duration::from_secs(200)),
            }
            if step % 4 == 3 {
                self.check().await;
            }
        }
        for state in ["flush", "compact", "reopen"] {
            match state {
                "flush" => self.flush().await,
                "compact" => drop(self.store.compact().await.unwrap()),
                _ => self.reopen().await,
            }
            self.check().await;
        }
        let verified = self.store.verify(|_, _| {}).await.unwrap();
        assert_eq!(verified.damage, Vec::<String>::new());
        let rows: usize = ["a", "b", "team-(c)", "jobs"].iter().map(|t| self.model.all(&Tenant::new(t).unwrap()).len()).sum();
        assert_eq!(verified.records, rows as u64, "verify counts every record once");
    }

    async fn append(&mut self) {
        let tenant = self.random.tenant();
        let records = self.random.records(60);
        self.store.append(&tenant, batch_of(&records)).await.unwrap();
        self.model.append(&tenant, records);
    }

    async fn flush(&mut self) {
        self.store.flush().await.unwrap();
        self.model.flush();
    }

    /// A job in a few writes; it may be left half-way and be resumed, once or more.
    async fn job(&mut self) {
        let tenant = if self.restless { Tenant::new("jobs").unwrap() } else { self.random.tenant() };
        self.jobs += 1;
        let key = format!("file-{}", self.jobs);
        let pieces: Vec<Vec<Rec>> = (0..1 + self.random.below(4)).map(|_| self.random.records(40)).collect();
        loop {
            let mut job = self.store.job(&tenant, &key).await.unwrap();
            let done = job.state().map_or(0, |s| usize::from(s[0]));
            let mut waiting = Vec::new();
            for (index, piece) in pieces.iter().enumerate().skip(done) {
                job.write(batch_of(piece), vec![index as u8 + 1]).await.unwrap();
                waiting.extend(piece.clone());
                if self.random.once_in(3) {
                    job.checkpoint().await.unwrap();
                    self.model.publish(&tenant, std::mem::take(&mut waiting));
                }
            }
            if self.random.once_in(3) {
                // Abandoned: what was not published must not be found.
                drop(job);
                check_scan(&self.store, &self.model, &tenant).await;
                continue;
            }
            let report = job.finish().await.unwrap();
            assert_eq!(report.records, pieces[done..].iter().map(|p| p.len() as u64).sum::<u64>());
            self.model.publish(&tenant, waiting);
            return;
        }
    }

    async fn reopen(&mut self) {
        if self.random.once_in(2) {
            self.store.close().await.unwrap();
            self.model.flush();
        }
        self.exchange().await;
    }

    async fn crash(&mut self) {
        self.world.crash();
        self.exchange().await;
    }

    async fn exchange(&mut self) {
        let reader = self.world.open_reader().await.unwrap();
        drop(std::mem::replace(&mut self.store, reader));
        self.store = self.world.open().await;
    }

    async fn check(&mut self) {
        for tenant in ["a", "b", "team-(c)", "jobs"].map(|t| Tenant::new(t).unwrap()) {
            check_scan(&self.store, &self.model, &tenant).await;
            for _ in 0..3 {
                check_search(&self.store, &self.model, &tenant, &mut self.random).await;
            }
            check_resumed_scan(&self.store, &self.model, &tenant, &mut self.random).await;
            check_series(&self.store, &self.model, &tenant, &mut self.random).await;
        }
    }
}

/// Nothing happens unless asked for: order among jobs and appends is exact too.
pub fn quiet() -> Options {
    Options { query_bytes_max: 192 << 10, grace: Duration::from_secs(100), ..quiet_options() }
}

/// Flushes every few batches and compacts all the time.
pub fn restless() -> Options {
    Options { flush_bytes: 30 << 10, flush_age: Duration::from_millis(20), compact_every: Duration::from_millis(15), ..quiet() }
}

/// Objects that fail, lose replies and are late, behind the retries that a bucket gets too.
#[test]
fn a_store_on_faulty_objects_answers_as_the_model_does() {
    for_seeds(6, |seed| async move {
        let plan = FaultPlan {
            seed,
            error_before_per_mille: 60,
            error_after_per_mille: 60,
            delay_per_mille: 10,
            delay_max: Duration::from_millis(2),
        };
        let faulty = Arc::new(Faulty::new(Arc::new(MemoryObjects::new()), plan));
        let policy = RetryPolicy { tries_max: 12, pause_min: Duration::from_micros(100), pause_max: Duration::from_millis(2) };
        let objects = Arc::new(Retrying::new(faulty, policy));
        Play::new(World::with_objects(seed, objects, restless()), seed, true).await.steps(30).await;
    });
}

#[test]
fn a_quiet_store_answers_as_the_model_does() {
    for_seeds(12, |seed| async move {
        Play::new(World::in_memory(seed, quiet()), seed, false).await.steps(40).await;
    });
}

#[test]
fn a_store_that_flushes_and_compacts_by_itself_answers_as_the_model_does() {
    for_seeds(12, |seed| async move {
        Play::new(World::in_memory(seed, restless()), seed, true).await.steps(40).await;
    });
}
