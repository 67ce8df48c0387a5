//! The Nth call fails, for N = 1, 2, …: every call of a whole life of a store, on the disk and on the objects, before and after it did its work.

use haystore::disk::SimDisk;
use haystore::objects::{FaultPlan, Faulty, MemoryObjects};
use haystore::{Error, ErrorKind, JobReport, Options, Result, Store, Tenant};
use haystore_tests::check::everything;
use haystore_tests::ledger::Ledger;
use haystore_tests::rounds::{factor, run};
use haystore_tests::world::{World, quiet_options};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tries of one step; all but the first few come after the fault.
const TRIES_MAX: usize = 8;
/// Failures after which a lasting fault is mended.
const FAILURES_MEND: u64 = 3;

struct Script {
    world: World,
    faulty: Option<Arc<Faulty>>,
    ledger: Ledger,
    job_ledger: Ledger,
    tenant: Tenant,
    job_tenant: Tenant,
    failures: u64,
}

fn options() -> Options {
    Options { grace: Duration::ZERO, ..quiet_options() }
}

impl Script {
    fn on_disk(disk: SimDisk) -> Script {
        Self::new(World::on_disk(1, disk, options()), None)
    }

    fn on_objects() -> Script {
        let faulty = Arc::new(Faulty::new(Arc::new(MemoryObjects::new()), FaultPlan::default()));
        Self::new(World::with_objects(1, faulty.clone(), options()), Some(faulty))
    }

    fn new(world: World, faulty: Option<Arc<Faulty>>) -> Script {
        let (tenant, job_tenant) = (Tenant::default(), Tenant::new("job").unwrap());
        Script { world, faulty, ledger: Ledger::default(), job_ledger: Ledger::default(), tenant, job_tenant, failures: 0 }
    }

    /// Calls so far.
    fn calls(&self) -> u64 {
        self.faulty.as_ref().map_or_else(|| self.world.disk.calls(), |f| f.calls())
    }

    /// Commits so much that the script passes the manifest's next checkpoint.
    async fn prepare(&mut self) {
        let store = self.open().await;
        for n in 0..50 {
            store.job(&Tenant::new("filler").unwrap(), &n.to_string()).await.unwrap();
        }
    }

    /// A life with everything in it.
    async fn play(&mut self) {
        let store = self.open().await;
        for _ in 0..3 {
            self.append(&store).await;
            self.append(&store).await;
            self.flush(&store).await;
        }
        self.append(&store).await;
        self.job(&store).await;
        self.append(&store).await;
        self.compact(&store).await;
        self.append(&store).await;
        self.flush(&store).await;
        self.compact(&store).await;
        self.append(&store).await;
        self.check(&store).await;
        drop(store);
        let store = self.open().await;
        self.check(&store).await;
        self.append(&store).await;
        drop(store);
        self.world.disk.heal();
        self.world.crash();
        let store = self.open().await;
        self.check(&store).await;
        self.append(&store).await;
        self.flush(&store).await;
        self.check(&store).await;
        let verified = self.retry("verify", || store.verify(|_, _| {})).await;
        assert_eq!(verified.damage, Vec::<String>::new());
    }

    fn failed(&mut self, what: &str, error: &Error) {
        assert!(matches!(error.kind(), ErrorKind::Busy | ErrorKind::Io), "{what} failed as {:?}: {error}", error.kind());
        self.failures += 1;
        if self.failures >= FAILURES_MEND {
            self.world.disk.heal();
            self.faulty.iter().for_each(|f| f.heal());
        }
    }

    async fn retry<T, F: Future<Output = Result<T>>>(&mut self, what: &str, step: impl Fn() -> F) -> T {
        for _ in 0..TRIES_MAX {
            match step().await {
                Ok(done) => return done,
                Err(e) => self.failed(what, &e),
            }
        }
        panic!("{what} does not succeed after {TRIES_MAX} tries")
    }

    /// A failed opening must leave the WAL free for the next at once; a dropped store may take a moment.
    async fn open(&mut self) -> Store {
        let mut held = 0;
        loop {
            let failures = self.failures;
            match self.world.try_open().await {
                Ok(store) => return store,
                Err(e) if e.kind() == ErrorKind::Fenced && held < 6000 => {
                    assert_eq!(failures, self.failures, "a failed opening holds the WAL");
                    held += 1;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(e) => {
                    self.failed("open", &e);
                    let again = self.world.try_open().await.err();
                    assert!(again.as_ref().is_none_or(|e| e.kind() != ErrorKind::Fenced), "after {e}: {again:?}");
                }
            }
        }
    }

    async fn append(&mut self, store: &Store) {
        for _ in 0..TRIES_MAX {
            let (number, batch) = self.ledger.batch(7);
            match store.append(&self.tenant, batch).await {
                Ok(()) => return self.ledger.keep(number),
                Err(e) => self.failed("append", &e),
            }
        }
        panic!("append does not succeed after {TRIES_MAX} tries")
    }

    async fn flush(&mut self, store: &Store) {
        self.retry("flush", || store.flush()).await;
    }

    async fn compact(&mut self, store: &Store) {
        self.retry("compact", || store.compact()).await;
    }

    /// A job in pieces; after a failure it is taken up where it stood.
    async fn job(&mut self, store: &Store) {
        let pieces: Vec<_> = (0..4).map(|_| self.job_ledger.batch(5)).collect();
        let tenant = self.job_tenant.clone();
        let finishing = Cell::new(false);
        let work = || async {
            // A finished job leaves no trace: who does not know whether the last commit happened looks before he begins anew.
            if finishing.get() {
                store.refresh().await?;
                if everything(store, &tenant).await?.len() == 20 {
                    return Ok(JobReport::default());
                }
            }
            let mut job = store.job(&tenant, "the job").await?;
            let done = job.state().map_or(0, |s| usize::from(s[0]));
            for (index, (_, piece)) in pieces.iter().enumerate().skip(done) {
                job.write(piece.clone(), vec![index as u8 + 1]).await?;
                if index % 2 == 0 && job.checkpoint().await.is_err() {
                    // Who goes on with a job that failed must not be believed.
                    job.checkpoint().await?;
                }
            }
            finishing.set(true);
            job.finish().await
        };
        self.retry("job", work).await;
        pieces.iter().for_each(|(number, _)| self.job_ledger.keep(*number));
    }

    async fn check(&mut self, store: &Store) {
        let tenant = self.tenant.clone();
        let found = self.retry("scan", || everything(store, &tenant)).await;
        self.ledger.check_growing(&found).unwrap();
        let tenant = self.job_tenant.clone();
        let found = self.retry("scan of the job", || everything(store, &tenant)).await;
        self.job_ledger.check(&found).unwrap();
    }
}

/// Plays the script once for each call it makes. `arm` asks for the fault at the Nth call.
async fn for_each_call(name: &str, new: impl Fn(u64) -> Script, arm: impl Fn(&Script, u64), step: u64) {
    let mut whole = new(0);
    whole.prepare().await;
    let before = whole.calls();
    whole.play().await;
    let checkpoints = whole.world.objects.list("manifest/").await.unwrap();
    assert!(checkpoints.iter().any(|o| o.key.ends_with(".checkpoint")), "the script passes a checkpoint");
    let calls = whole.calls() - before;
    println!("{name}: {calls} calls");
    let mut hit = 0;
    for n in (1..=calls).step_by(step.max(1) as usize) {
        println!("{name}: call {n}");
        let mut script = new(n);
        script.prepare().await;
        arm(&script, n);
        script.play().await;
        hit += u64::from(script.failures > 0);
    }
    // The rest hit what may fail: tidying up, and calls that are repeated inside.
    assert!(hit * 4 >= calls / step.max(1), "{hit} of {calls} faults were felt");
}

#[test]
fn each_disk_call_fails_once() {
    run(for_each_call("disk", |n| Script::on_disk(SimDisk::seeded(n)), |s, n| s.world.disk.fail_at(n), 1));
}

#[test]
fn each_disk_call_begins_a_time_of_failures() {
    let step = if factor() > 1 { 1 } else { 2 };
    run(for_each_call("disk, lasting", |_| Script::on_disk(SimDisk::new()), |s, n| s.world.disk.fail_from(n), step));
}

#[test]
fn each_object_call_fails_before_it_did_its_work() {
    run(for_each_call("objects", |_| Script::on_objects(), |s, n| s.faulty.as_ref().unwrap().fail_at(n), 1));
}

#[test]
fn each_object_call_loses_its_reply() {
    run(for_each_call("lost replies", |_| Script::on_objects(), |s, n| s.faulty.as_ref().unwrap().lose_reply_at(n), 1));
}

#[test]
fn each_object_call_begins_a_time_of_failures() {
    run(for_each_call("objects, lasting", |_| Script::on_objects(), |s, n| s.faulty.as_ref().unwrap().fail_from(n), 1));
}

/// Recovery that flushes on its way meets the fault in the middle; the WAL is free for the next opening at once.
#[test]
fn an_opening_that_fails_in_recovery_lets_go_of_the_wal() {
    run(async {
        let script = Script::on_objects();
        let store = script.world.open().await;
        for _ in 0..40 {
            let (number, batch) = script.ledger.batch(200);
            store.append(&script.tenant, batch).await.unwrap();
            script.ledger.keep(number);
        }
        drop(store);
        drop(script.world.open().await);
        let options = Options { flush_bytes: 20 << 10, ..options() };
        let eager = World { options, ..script.world.clone() };
        let mut failed = 0;
        for n in 1..40 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            script.faulty.as_ref().unwrap().fail_from(n);
            let error = eager.try_open().await.err();
            script.faulty.as_ref().unwrap().heal();
            failed += usize::from(error.is_some());
            let store = script.world.try_open().await.unwrap_or_else(|e| panic!("call {n}: after {error:?}: {e}"));
            script.ledger.check(&everything(&store, &script.tenant).await.unwrap()).unwrap();
        }
        assert!(failed > 5, "{failed} openings failed");
    });
}

/// Nobody calls anything: the store alone finds its way back when the objects do.
#[test]
fn a_store_recovers_by_itself_when_the_objects_come_back() {
    run(async {
        let faulty = Arc::new(Faulty::new(Arc::new(MemoryObjects::new()), FaultPlan::default()));
        let options = Options { flush_bytes: 4 << 10, flush_age: Duration::from_millis(50), memtable_bytes_max: 64 << 10, ..options() };
        let world = World::with_objects(1, faulty.clone(), options);
        let (store, ledger, tenant) = (world.open().await, Ledger::default(), Tenant::default());
        faulty.fail_from(1);
        let mut refused = 0;
        while refused < 5 {
            let (number, batch) = ledger.batch(10);
            match store.append(&tenant, batch).await {
                Ok(()) => ledger.keep(number),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Busy, "{e}");
                    refused += 1;
                }
            }
        }
        ledger.check(&everything(&store, &tenant).await.unwrap()).unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
        faulty.heal();
        let healed = Instant::now();
        while store.unflushed_bytes().0 > 0 {
            assert!(healed.elapsed() < Duration::from_secs(60), "{} bytes are still not flushed", store.unflushed_bytes().0);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (number, batch) = ledger.batch(10);
        store.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        ledger.check(&everything(&store, &tenant).await.unwrap()).unwrap();
    });
}
