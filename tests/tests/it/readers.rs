//! Readers while the store changes under them.

use haystore::disk::SimDisk;
use haystore::query::Query;
use haystore::store::QUERIES_MAX;
use haystore::{ErrorKind, Labels, Options, ScanRequest, Store, Tenant};
use haystore_tests::check::{ALWAYS, assert_same, everything, search_all};
use haystore_tests::ledger::Ledger;
use haystore_tests::random::{Random, START_NS};
use haystore_tests::record::{Rec, batch_of, records_of};
use haystore_tests::rounds::{factor, run};
use haystore_tests::world::{World, quiet_options};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const GRACE: Duration = Duration::from_secs(100);

/// A store of many small segments, whose lines are long enough that a scan can't read ahead to its end.
async fn store_of_small_segments(world: &World, tenant: &Tenant) -> (Store, Vec<Rec>) {
    let (store, mut random, mut all) = (world.open().await, Random::new(5), Vec::new());
    for segment in 0..12 {
        let rows = (0..60).map(|row| {
            let labels = random.labels();
            Rec::plain(START_NS + segment * 1_000_000 + row, &labels, random.bytes(12_000))
        });
        let records: Vec<Rec> = rows.collect();
        store.append(tenant, batch_of(&records)).await.unwrap();
        store.flush().await.unwrap();
        all.extend(records);
    }
    (store, all)
}

#[test]
fn a_scan_outlives_compaction_within_the_grace_period() {
    run(async {
        let options = Options { grace: GRACE, query_bytes_max: 2 << 20, threads: 1, ..quiet_options() };
        let (world, tenant) = (World::in_memory(1, options), Tenant::default());
        let (store, expected) = store_of_small_segments(&world, &tenant).await;
        let request = || ScanRequest { query: Query::default(), range: ALWAYS, after: None };
        let (mut early, mut late) = (store.scan(&tenant, request()).await.unwrap(), store.scan(&tenant, request()).await.unwrap());
        let (mut found, _) = (records_of(&early.next().await.unwrap().unwrap()), late.next().await.unwrap());

        let compacted = store.compact().await.unwrap();
        assert!(compacted.replaced >= 12 && compacted.deleted == 0, "{compacted:?}");
        world.environment.advance(GRACE / 2);
        assert_eq!(store.compact().await.unwrap().deleted, 0);
        while let Some(batch) = early.next().await.unwrap() {
            found.extend(records_of(&batch));
        }
        assert_same("a scan during compaction", &found, &expected);

        // Past the grace period the replaced objects go: a scan from before may fail, naming one, but gives nothing wrong.
        world.environment.advance(GRACE);
        assert!(store.compact().await.unwrap().deleted >= 12);
        let error = loop {
            match late.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the scan read objects that are gone"),
                Err(e) => break e,
            }
        };
        assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("segments/level0/"), "{error}");
        assert_same("a scan after compaction", &everything(&store, &tenant).await.unwrap(), &expected);
        assert_same("a new process", &everything(&world.open_reader().await.unwrap(), &tenant).await.unwrap(), &expected);
    });
}

/// Clients that don't read hold a thread each. Past the limit queries are refused, and nothing else waits for them.
#[test]
fn many_scans_that_nobody_reads_stop_nothing_but_queries() {
    run(async {
        let options = Options { query_bytes_max: 2 << 20, threads: 1, ..quiet_options() };
        let (world, tenant) = (World::in_memory(1, options), Tenant::default());
        let (store, expected) = store_of_small_segments(&world, &tenant).await;
        let request = || ScanRequest { query: Query::default(), range: ALWAYS, after: None };
        let mut scans = Vec::new();
        let refused = loop {
            match store.scan(&tenant, request()).await {
                Ok(scan) => scans.push(scan),
                Err(e) => break e,
            }
        };
        assert_eq!((scans.len(), refused.kind()), (QUERIES_MAX, ErrorKind::Busy), "{refused}");
        assert_eq!(store.search(&tenant, search_all(Query::default())).await.unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(store.series(&tenant, &[], ALWAYS).await.unwrap_err().kind(), ErrorKind::Busy);
        let more = Rec::plain(i64::MAX, &Labels::default(), "more");
        store.append(&tenant, batch_of(std::slice::from_ref(&more))).await.unwrap();
        store.flush().await.unwrap();
        store.compact().await.unwrap();
        let mut first = scans.swap_remove(0);
        let mut found = Vec::new();
        while let Some(batch) = first.next().await.unwrap() {
            found.extend(records_of(&batch));
        }
        assert_same("a scan among many", &found, &expected);
        drop(scans);
        let everything = [&expected[..], &[more]].concat();
        for _ in 0..500 {
            match store.search(&tenant, search_all(Query::default())).await {
                Err(e) if e.kind() == ErrorKind::Busy => tokio::time::sleep(Duration::from_millis(20)).await,
                found => return assert_same("a search afterwards", &records_of(&found.unwrap().records), &everything),
            }
        }
        panic!("dropped scans keep their places");
    });
}

/// Each acknowledged record is visible exactly once at every instant, in this process.
#[test]
fn every_search_under_load_sees_each_record_once() {
    run(async {
        let options = Options {
            flush_bytes: 40 << 10,
            flush_age: Duration::from_millis(20),
            compact_every: Duration::from_millis(20),
            grace: GRACE,
            ..quiet_options()
        };
        let (world, tenant, ledger) = (World::in_memory(1, options), Tenant::default(), Arc::new(Ledger::default()));
        let (store, stop) = (world.open().await, Arc::new(AtomicBool::new(false)));
        let mut tasks = Vec::new();
        for writer in 0..2 {
            tasks.push(tokio::spawn(write(store.clone(), tenant.clone(), ledger.clone(), stop.clone(), writer)));
        }
        tasks.push(tokio::spawn(tidy(store.clone(), stop.clone())));
        let (ends, mut before, mut searches) = (Instant::now() + Duration::from_secs(5) * factor() as u32, 0, 0_usize);
        while Instant::now() < ends {
            let kept = ledger.kept_records();
            let found = store.search(&tenant, search_all(Query::needle("row="))).await.unwrap().records.len();
            let tried = ledger.tried_records();
            assert!(found >= kept, "{kept} records were acknowledged before a search that found {found}");
            assert!(found <= tried, "{tried} records were sent before the end of a search that found {found}");
            assert!(found >= before, "{before} records were found before, now {found}");
            (before, searches) = (found, searches + 1);
            if searches.is_multiple_of(8) {
                let kept_before = ledger.kept();
                ledger.check_under_load(&kept_before, &everything(&store, &tenant).await.unwrap()).unwrap();
            }
        }
        stop.store(true, SeqCst);
        for task in tasks {
            task.await.unwrap();
        }
        println!("{searches} searches, {before} records, {:?}", store.usage_totals());
        ledger.check(&everything(&store, &tenant).await.unwrap()).unwrap();
        store.close().await.unwrap();
        ledger.check(&everything(&world.open_reader().await.unwrap(), &tenant).await.unwrap()).unwrap();
    });
}

/// Three processes, each with a WAL of its own, write to and compact one store; a fourth only reads.
#[test]
fn several_processes_share_a_store() {
    run(async {
        let options = Options { flush_bytes: 10 << 10, flush_age: Duration::from_millis(20), grace: GRACE, ..quiet_options() };
        let (shared, tenant, ledger) = (World::in_memory(9, options), Tenant::default(), Arc::new(Ledger::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (mut stores, mut tasks) = (Vec::new(), Vec::new());
        for writer in 0..3 {
            let store = World { disk: SimDisk::seeded(writer), ..shared.clone() }.open().await;
            tasks.push(tokio::spawn(write(store.clone(), tenant.clone(), ledger.clone(), stop.clone(), writer as usize)));
            tasks.push(tokio::spawn(tidy(store.clone(), stop.clone())));
            stores.push(store);
        }
        let (reader, mut before) = (shared.open_reader().await.unwrap(), 0);
        let ends = Instant::now() + Duration::from_secs(3) * factor() as u32;
        while Instant::now() < ends {
            reader.refresh().await.unwrap();
            let found = everything(&reader, &tenant).await.unwrap();
            ledger.check_under_load(&BTreeSet::new(), &found).unwrap();
            assert!(found.len() >= before, "{before} records were found before, now {}", found.len());
            before = found.len();
        }
        stop.store(true, SeqCst);
        for task in tasks {
            task.await.unwrap();
        }
        for store in &stores {
            store.close().await.unwrap();
        }
        reader.refresh().await.unwrap();
        println!("{before} records, {:?}", reader.usage_totals());
        ledger.check(&everything(&reader, &tenant).await.unwrap()).unwrap();
        assert_eq!(reader.verify(|_, _| {}).await.unwrap().damage, Vec::<String>::new());
    });
}

/// What is compacted and deleted while everything is checked is no damage.
#[test]
fn a_check_of_everything_is_not_fooled_by_compaction() {
    run(async {
        let options = Options { flush_bytes: 10 << 10, grace: Duration::ZERO, ..quiet_options() };
        let (world, tenant, ledger) = (World::in_memory(1, options), Tenant::default(), Arc::new(Ledger::default()));
        let (store, stop) = (world.open().await, Arc::new(AtomicBool::new(false)));
        let tasks = [
            tokio::spawn(write(store.clone(), tenant.clone(), ledger.clone(), stop.clone(), 0)),
            tokio::spawn(tidy(store.clone(), stop.clone())),
        ];
        let ends = Instant::now() + Duration::from_secs(2) * factor() as u32;
        while Instant::now() < ends {
            assert_eq!(store.verify(|_, _| {}).await.unwrap().damage, Vec::<String>::new());
        }
        stop.store(true, SeqCst);
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn write(store: Store, tenant: Tenant, ledger: Arc<Ledger>, stop: Arc<AtomicBool>, writer: usize) {
    for n in 0.. {
        if stop.load(SeqCst) {
            return;
        }
        let (number, batch) = ledger.batch(1 + (n * 3 + writer) % 20);
        store.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn tidy(store: Store, stop: Arc<AtomicBool>) {
    while !stop.load(SeqCst) {
        store.flush().await.unwrap();
        match store.compact().await {
            Err(e) if e.kind() == ErrorKind::Busy => {}
            other => drop(other.unwrap()),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
