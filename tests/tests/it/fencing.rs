//! Two processes and one WAL, or one name: the second is refused, or the first is fenced; no record is lost or doubled.

use haystore::{ErrorKind, Options, Tenant};
use haystore_tests::check::everything;
use haystore_tests::ledger::Ledger;
use haystore_tests::rounds::{for_seeds, run};
use haystore_tests::world::{World, copy_of, quiet_options};
use std::time::Duration;

#[test]
fn a_second_process_on_the_same_wal_is_refused() {
    run(async {
        let world = World::in_memory(1, quiet_options());
        let (first, ledger, tenant) = (world.open().await, Ledger::default(), Tenant::default());
        let error = world.try_open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced);
        assert!(error.message().contains("/wal") && error.message().contains("another process"), "{error}");
        // The refused one took nothing away from the first.
        let (number, batch) = ledger.batch(5);
        first.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        first.flush().await.unwrap();
        ledger.check(&everything(&world.open_reader().await.unwrap(), &tenant).await.unwrap()).unwrap();
    });
}

/// The old process lives on without its disk, as one that was cut off does, and has records in memory that the new one recovered.
#[test]
fn an_old_process_is_fenced_and_publishes_nothing() {
    run(async {
        let mut world = World::in_memory(1, quiet_options());
        let (old, ledger, tenant) = (world.open().await, Ledger::default(), Tenant::default());
        let (number, batch) = ledger.batch(5);
        old.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        world.crash();
        let new = world.open().await;
        assert_eq!(old.flush().await.unwrap_err().kind(), ErrorKind::Fenced);
        let (_, batch) = ledger.batch(5);
        assert_eq!(old.append(&tenant, batch).await.unwrap_err().kind(), ErrorKind::Fenced);
        let (number, batch) = ledger.batch(5);
        new.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        ledger.check(&everything(&new, &tenant).await.unwrap()).unwrap();
        new.flush().await.unwrap();
        new.compact().await.unwrap();
        assert_eq!(old.flush().await.unwrap_err().kind(), ErrorKind::Fenced);
        old.refresh().await.unwrap();
        for store in [&old, &new, &world.open_reader().await.unwrap()] {
            ledger.check(&everything(store, &tenant).await.unwrap()).unwrap();
        }
    });
}

/// The old process flushes just while the new one takes over: the records come from one or the other, never from both.
#[test]
fn a_flush_that_races_with_a_takeover_publishes_once() {
    for_seeds(40, |seed| async move {
        let options = Options { compact_every: Duration::from_millis(1), grace: Duration::ZERO, ..quiet_options() };
        let mut world = World::in_memory(seed, options);
        let (old, ledger, tenant) = (world.open().await, Ledger::default(), Tenant::default());
        for _ in 0..4 {
            let (number, batch) = ledger.batch(6);
            old.append(&tenant, batch).await.unwrap();
            ledger.keep(number);
        }
        world.crash();
        let flush = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(seed * 37 % 1500)).await;
            old.flush().await
        });
        let new = world.open().await;
        ledger.check_growing(&everything(&new, &tenant).await.unwrap()).unwrap();
        let flushed = flush.await.unwrap();
        assert!(flushed.as_ref().err().is_none_or(|e| matches!(e.kind(), ErrorKind::Fenced | ErrorKind::Io)), "{flushed:?}");
        new.flush().await.unwrap();
        ledger.check(&everything(&new, &tenant).await.unwrap()).unwrap();
    });
}

/// A copied WAL folder has the name of the original: the one opened later fences the other, which stops acknowledging once it knows.
#[test]
fn a_copied_wal_fences_the_original() {
    run(async {
        let world = World::in_memory(1, quiet_options());
        let (original, tenant) = (world.open().await, Tenant::default());
        let disk = copy_of(&world.disk);
        let copy = World { disk, ..world.clone() }.open().await;
        let ledger = Ledger::default();
        let (number, batch) = ledger.batch(5);
        copy.append(&tenant, batch).await.unwrap();
        ledger.keep(number);
        copy.flush().await.unwrap();
        original.refresh().await.unwrap();
        let (_, batch) = ledger.batch(5);
        assert_eq!(original.append(&tenant, batch).await.unwrap_err().kind(), ErrorKind::Fenced);
        ledger.check(&everything(&copy, &tenant).await.unwrap()).unwrap();
        ledger.check(&everything(&original, &tenant).await.unwrap()).unwrap();
    });
}
