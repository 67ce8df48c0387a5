//! Power cuts at random moments, with writers, flushes, compactions and a job at work. WAL and objects lie on one simulated disk
//! that forgets what was not synced.

use haystore::disk::SimDisk;
use haystore::{Options, Store, Tenant};
use haystore_tests::check::everything;
use haystore_tests::ledger::Ledger;
use haystore_tests::random::Random;
use haystore_tests::rounds::{for_seeds, run};
use haystore_tests::world::{World, quiet_options};
use std::sync::Arc;
use std::time::Duration;

const JOB_PIECES: u8 = 12;

struct Scene {
    world: World,
    ledger: Arc<Ledger>,
    random: Random,
    tenant: Tenant,
    /// Batches of the job, in order.
    job: Arc<Vec<(u64, haystore::Batch)>>,
    job_tenant: Tenant,
    job_ledger: Ledger,
    job_done: bool,
}

fn options() -> Options {
    Options {
        flush_bytes: 24 << 10,
        flush_age: Duration::from_millis(30),
        compact_every: Duration::from_millis(10),
        grace: Duration::ZERO,
        ..quiet_options()
    }
}

impl Scene {
    fn new(disk: SimDisk, seed: u64) -> Scene {
        let job_ledger = Ledger::default();
        Scene {
            world: World::on_disk(seed, disk, options()),
            ledger: Arc::default(),
            random: Random::new(seed),
            tenant: Tenant::default(),
            job: Arc::new((0..JOB_PIECES).map(|_| job_ledger.batch(20)).collect()),
            job_tenant: Tenant::new("job").unwrap(),
            job_ledger,
            job_done: false,
        }
    }

    /// Lives until the power goes after a random number of disk calls.
    async fn life(&mut self) {
        let store = self.world.open().await;
        let mut tasks = Vec::new();
        for writer in 0..3 {
            tasks.push(tokio::spawn(write(store.clone(), self.tenant.clone(), self.ledger.clone(), 1 + writer * 7)));
        }
        tasks.push(tokio::spawn(tidy(store.clone())));
        let job = tokio::spawn(job(store.clone(), self.job_tenant.clone(), self.job.clone()));
        let until = self.world.disk.calls() + 20 + self.random.below(500) as u64;
        while self.world.disk.calls() < until {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        self.world.crash();
        drop(store);
        for task in tasks {
            task.await.unwrap();
        }
        self.job_done |= job.await.unwrap();
    }

    /// What the next process finds.
    async fn check(&mut self) -> Result<(), String> {
        let quiet = World { options: quiet_options(), ..self.world.clone() };
        let store = quiet.try_open().await.map_err(|e| format!("does not open: {e}"))?;
        let read = |e: haystore::Error| format!("can't be read: {e}");
        self.ledger.check(&everything(&store, &self.tenant).await.map_err(read)?)?;
        let found = everything(&store, &self.job_tenant).await.map_err(read)?;
        let verified = store.verify(|_, _| {}).await.map_err(read)?;
        if !verified.damage.is_empty() {
            return Err(format!("damage: {:?}", verified.damage));
        }
        if self.job_done {
            self.job.iter().for_each(|(number, _)| self.job_ledger.keep(*number));
        }
        self.job_ledger.check_growing(&found)?;
        self.world.crash();
        Ok(())
    }

    async fn rounds(&mut self, lives: usize) -> Result<(), String> {
        for life in 0..lives {
            self.life().await;
            self.check().await.map_err(|e| format!("after life {life}: {e}"))?;
        }
        Ok(())
    }
}

/// Appends until the disk is gone.
async fn write(store: Store, tenant: Tenant, ledger: Arc<Ledger>, rows: usize) {
    for n in 0.. {
        let (number, batch) = if (n + rows) % 120 == 9 { ledger.large_batch() } else { ledger.batch(1 + (rows + n) % 17) };
        match store.append(&tenant, batch).await {
            Ok(()) => ledger.keep(number),
            Err(e) if e.kind() == haystore::ErrorKind::Busy => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(_) => return,
        }
    }
}

/// Flushes and compacts until the disk is gone.
async fn tidy(store: Store) {
    while store.flush().await.is_ok() && store.compact().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Goes on with the job; true when it was finished.
async fn job(store: Store, tenant: Tenant, pieces: Arc<Vec<(u64, haystore::Batch)>>) -> bool {
    let work = async {
        let mut job = store.job(&tenant, "the job").await?;
        let done = job.state().map_or(0, |s| usize::from(s[0]));
        if done == pieces.len() {
            return Ok(());
        }
        for (index, (_, piece)) in pieces.iter().enumerate().skip(done) {
            job.write(piece.clone(), vec![index as u8 + 1]).await?;
            job.checkpoint().await?;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        // It is not finished, so that its state stays for the lives to come.
        Ok::<_, haystore::Error>(())
    };
    work.await.is_ok()
}

#[test]
fn power_cuts_lose_and_double_nothing() {
    for_seeds(10, |seed| async move {
        let disk = if seed.is_multiple_of(3) { SimDisk::new() } else { SimDisk::seeded(seed) };
        Scene::new(disk, seed).rounds(6).await.unwrap();
    });
}

/// The canary: when syncs do nothing, the same test must notice. If this fails, the test above proves nothing.
#[test]
fn a_disk_whose_syncs_lie_is_noticed() {
    run(async {
        let disk = SimDisk::new();
        let mut scene = Scene::new(disk.clone(), 1);
        scene.rounds(1).await.unwrap();
        scene.world.disk.ignore_syncs();
        let noticed = scene.rounds(3).await.unwrap_err();
        println!("noticed: {noticed}");
    });
}

/// The second canary: objects are safe, only the WAL's syncs lie; then the loss itself must be what is noticed.
#[test]
fn acknowledged_records_that_a_lying_wal_lost_are_noticed() {
    run(async {
        let mut world = World { disk: SimDisk::new(), ..World::in_memory(1, quiet_options()) };
        let (ledger, tenant) = (Ledger::default(), Tenant::default());
        let store = world.open().await;
        world.disk.ignore_syncs();
        let (number, batch) = ledger.batch(10);
        store.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        ledger.check(&everything(&store, &tenant).await.unwrap()).unwrap();
        world.crash();
        drop(store);
        let found = everything(&world.open().await, &tenant).await.unwrap();
        let noticed = ledger.check(&found);
        assert_eq!(noticed, Err(format!("batch {number} was acknowledged and is lost")));
    });
}
