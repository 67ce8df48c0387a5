//! Commits: many committers over a store that loses replies, epochs, and a store whose Nth call fails.

use super::store::{Fate, Faulty, World};
use super::*;
use crate::error::{ErrorKind, Result};
use crate::objects::Objects;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

async fn manifest(store: &Arc<Faulty>, world: &Arc<World>) -> Result<Manifest> {
    let options = Options { checkpoint_every: 8, ..Options::default() };
    Manifest::open_with(Arc::clone(store) as Arc<dyn Objects>, Arc::clone(world) as Arc<dyn Environment>, options).await
}

/// Publishes segment `id`, whatever it takes, as a flush would: an unknown outcome is tried again, and its own work recognised.
async fn publish(manifest: &Manifest, id: u128) -> u32 {
    for tries in 0..1000 {
        let build = |state: &State| {
            let done = state.segment(id).is_some();
            Ok(if done { Delta::default() } else { adding(vec![fresh(id, vec![part("a", 0, 1), part("b", 2, 3)])]) })
        };
        match manifest.commit(build).await {
            Ok(state) => {
                assert!(state.segment(id).is_some());
                return tries;
            }
            Err(e) => assert!(matches!(e.kind(), ErrorKind::Busy | ErrorKind::Io), "{e}"),
        }
    }
    panic!("segment {id} was never published");
}

/// Whether the store holds versions 1 to n without a gap, and each of `wanted` once.
async fn is_exact(store: &Arc<Faulty>, world: &Arc<World>, wanted: BTreeSet<u128>) {
    store.plan(|_, _| (Fate::Works, 0));
    let state = manifest(store, world).await.unwrap().state();
    let versions: Vec<u64> = store.keys().iter().filter_map(|key| version_of(key, ".delta")).collect();
    assert!(versions.iter().copied().eq(1..=state.version()), "versions are not dense: {versions:?}");
    let mut added = Vec::new();
    for version in versions {
        let key = delta_key(version);
        added.extend(codec::decode_delta(&key, &store.bytes(&key), version).unwrap().delta.added.iter().map(|s| s.id));
    }
    assert_eq!(added.len(), wanted.len(), "something was published twice or not at all");
    assert_eq!(added.into_iter().collect::<BTreeSet<_>>(), wanted);
    assert!(state.segments().map(|s| s.id).eq(wanted));
}

#[test]
fn a_store_that_refuses_is_asked_once_and_a_later_commit_works() {
    run(async {
        let world = World::new(1);
        let store = Faulty::new(&world);
        let manifest = manifest(&store, &world).await.unwrap();
        store.plan(|operation, _| (if operation == "create" { Fate::Denied } else { Fate::Works }, 0));
        let (calls, then_ns) = (store.calls.load(Ordering::SeqCst), world.now_ns());
        let error = manifest.register_writer(7).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Denied && error.message().contains("no permission"), "{error}");
        assert_eq!((store.calls.load(Ordering::SeqCst) - calls, world.now_ns()), (1, then_ns), "tried again, or waited");
        store.plan(|_, _| (Fate::Works, 0));
        assert_eq!(manifest.register_writer(7).await.unwrap().epoch, 1);
    });
}

fn storm(seed: u64, percent: u64, attempts_max: u32) -> u64 {
    run(async {
        let world = World::new(seed);
        let store = Faulty::new(&world);
        let dice = Arc::clone(&world);
        store.plan(move |_, _| {
            let roll = dice.roll();
            let yields = if roll.is_multiple_of(7) { (roll >> 32) as u32 % 20 } else { 0 };
            match roll >> 8 & 0xff_ffff {
                r if r % 100 < percent / 2 => (Fate::FailsBefore, yields),
                r if r % 100 < percent => (Fate::FailsAfter, yields),
                _ => (Fate::Works, yields),
            }
        });
        let unknown = AtomicU64::new(0);
        let committers = (0..8u128).map(|committer| {
            let (store, world, unknown) = (&store, &world, &unknown);
            async move {
                let options = Options { checkpoint_every: 8, attempts_max, ..Options::default() };
                let open = || Manifest::open_with(Arc::clone(store) as Arc<dyn Objects>, Arc::clone(world) as _, options.clone());
                let mut opened = open().await;
                while opened.is_err() {
                    opened = open().await;
                }
                let manifest = opened.unwrap();
                for i in 0..25 {
                    unknown.fetch_add(u64::from(publish(&manifest, committer << 64 | i).await), Ordering::Relaxed);
                }
            }
        });
        join_all(committers).await;
        let wanted = (0..8u128).flat_map(|committer| (0..25).map(move |i| committer << 64 | i)).collect();
        is_exact(&store, &world, wanted).await;
        unknown.into_inner()
    })
}

#[test]
fn eight_committers_over_a_store_that_loses_replies_publish_everything_once() {
    for seed in 0..6 {
        println!("seed {seed}");
        storm(seed, 30, 7);
    }
}

#[test]
fn unknown_outcomes_reach_the_caller_and_are_found_out() {
    let unknown: u64 = (100..105).map(|seed| storm(seed, 40, 1)).sum();
    assert!(unknown > 50, "the storm was too mild to test anything: {unknown}");
}

/// Every create stores and then fails, so the second try is told that its own bytes exist; nothing here recognises its work but the commit id.
#[test]
fn a_lost_reply_to_a_commit_is_known_by_its_id() {
    for read_fails_too in [false, true] {
        run(async {
            let world = World::new(1);
            let store = Faulty::new(&world);
            let manifest = manifest(&store, &world).await.unwrap();
            let mut creates = 0;
            store.plan(move |operation, _| {
                creates += u32::from(operation == "create");
                let fails = operation == "create" && creates % 2 == 1 || read_fails_too && operation == "get" && creates % 2 == 1;
                (if fails { Fate::FailsAfter } else { Fate::Works }, 0)
            });
            let first = manifest.register_writer(3).await.unwrap();
            assert_eq!((first.epoch, manifest.state().version()), (1, 1));
            store.plan(|_, _| (Fate::Works, 0));
            assert_eq!(manifest.register_writer(3).await.unwrap().epoch, 2);
        });
    }
}

#[test]
fn committers_of_one_process_queue_up() {
    run(async {
        let world = World::new(1);
        let store = Faulty::new(&world);
        store.plan(|_, _| (Fate::Works, 3));
        let manifest = manifest(&store, &world).await.unwrap();
        join_all((0..40).map(|id| publish(&manifest, id))).await;
        assert_eq!(manifest.state().version(), 40);
        is_exact(&store, &world, (0..40).collect()).await;
    });
}

#[test]
fn a_dropped_commit_is_found_out_by_the_next() {
    run(async {
        let world = World::new(1);
        let store = Faulty::new(&world);
        let manifest = manifest(&store, &world).await.unwrap();
        for yields in 0..6 {
            store.plan(move |operation, _| (Fate::Works, if operation == "create" { 1 } else { yields }));
            let id = u128::from(yields);
            // Both run until the first is done: the commit is dropped wherever it then is.
            let commit = Box::pin(publish(&manifest, id));
            let pause = Box::pin(async {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
            });
            futures_util::future::select(commit, pause).await;
        }
        store.plan(|_, _| (Fate::Works, 0));
        for id in 0..6 {
            publish(&manifest, id).await;
        }
        is_exact(&store, &world, (0..6).collect()).await;
    });
}

#[test]
fn an_old_epoch_is_fenced_in_its_own_process_and_in_another() {
    run(async {
        let world = World::new(1);
        let store = Faulty::new(&world);
        let (old, new) = (manifest(&store, &world).await.unwrap(), manifest(&store, &world).await.unwrap());
        let advance = |epoch, wal_position| {
            move |_: &State| Ok(Delta { writers: vec![WriterChange::Advance { id: 9, epoch, wal_position }], ..Delta::default() })
        };
        let first = old.register_writer(9).await.unwrap();
        old.commit(advance(first.epoch, 17)).await.unwrap();
        let second = new.register_writer(9).await.unwrap();
        assert!(second.epoch > first.epoch);
        assert_eq!(second.wal_position, 17);
        assert_eq!(old.commit(advance(first.epoch, 18)).await.unwrap_err().kind(), ErrorKind::Fenced);
        assert_eq!(new.commit(advance(first.epoch, 18)).await.unwrap_err().kind(), ErrorKind::Fenced);
        new.commit(advance(second.epoch, 18)).await.unwrap();
        let forget = |_: &State| Ok(Delta { writers: vec![WriterChange::Forget { id: 9, epoch: second.epoch }], ..Delta::default() });
        new.commit(forget).await.unwrap();
        let third = old.register_writer(9).await.unwrap();
        assert!(third.epoch > second.epoch, "a forgotten name must not bring an epoch back");
        assert_eq!(new.commit(advance(second.epoch, 19)).await.unwrap_err().kind(), ErrorKind::Fenced);
    });
}

#[test]
fn a_job_is_taken_over_with_its_state() {
    run(async {
        let world = World::new(1);
        let store = Faulty::new(&world);
        let (old, new) = (manifest(&store, &world).await.unwrap(), manifest(&store, &world).await.unwrap());
        let a = tenant("a");
        let update = |epoch, id: u128, said: &'static [u8]| {
            let a = a.clone();
            move |_: &State| {
                let change = JobChange::Update { tenant: a.clone(), key: "f".into(), epoch, state: said.to_vec() };
                Ok(Delta { jobs: vec![change], ..adding(vec![fresh(id, vec![part("a", 0, 1)])]) })
            }
        };
        let finish = |epoch| {
            let a = a.clone();
            move |_: &State| Ok(Delta { jobs: vec![JobChange::Finish { tenant: a.clone(), key: "f".into(), epoch }], ..Delta::default() })
        };
        let first = old.begin_job(&a, "f").await.unwrap();
        assert!(first.state.is_empty());
        old.commit(update(first.epoch, 1, b"half")).await.unwrap();
        let second = new.begin_job(&a, "f").await.unwrap();
        assert_eq!(&*second.state, b"half");
        assert_eq!(old.commit(update(first.epoch, 2, b"mine")).await.unwrap_err().kind(), ErrorKind::Fenced);
        new.commit(update(second.epoch, 3, b"all")).await.unwrap();
        new.commit(finish(second.epoch)).await.unwrap();
        let third = new.begin_job(&a, "f").await.unwrap();
        assert!(third.state.is_empty() && third.epoch > second.epoch);
        assert_eq!(old.commit(finish(first.epoch)).await.unwrap_err().kind(), ErrorKind::Fenced);
        let state = old.refresh().await.unwrap();
        assert!(state.segment(1).is_some() && state.segment(2).is_none() && state.segment(3).is_some());
    });
}

#[test]
fn of_two_compactions_of_the_same_parts_one_wins() {
    run(async {
        let world = World::new(1);
        let store = Faulty::new(&world);
        let (x, y) = (manifest(&store, &world).await.unwrap(), manifest(&store, &world).await.unwrap());
        publish(&x, 1).await;
        y.refresh().await.unwrap();
        let compact = |name: &'static str, id: u128| {
            move |state: &State| {
                let input = state.segment(1).map_or(1 << 16, |s| s.order);
                let out = SegmentMeta { level: 1, order: input, order_min: input, ..fresh(id, vec![part(name, 0, 1)]) };
                Ok(Delta { removed: vec![(1, tenant(name))], ..adding(vec![out]) })
            }
        };
        let state = x.commit(compact("a", 10)).await.unwrap();
        assert_eq!(state.parts(&tenant("b"), &(i64::MIN..=i64::MAX))[0].segment.id, 1, "the other tenant's part stays");
        assert_eq!(state.garbage().count(), 0);
        assert_eq!(y.commit(compact("a", 11)).await.unwrap_err().kind(), ErrorKind::Busy);
        let state = y.commit(compact("b", 12)).await.unwrap();
        assert!(state.segment(1).is_none());
        let key = fresh(1, Vec::new()).key;
        assert!(state.garbage_since_ns(&key).is_some());
        let drop_it = |_: &State| Ok(Delta { garbage_dropped: vec![key.clone()], ..Delta::default() });
        assert_eq!(x.commit(drop_it).await.unwrap().garbage().count(), 0);
    });
}

/// A life in short: open, publish, register, refresh, checkpoint, prune, open again. Every step is tried until it works.
async fn life(store: &Arc<Faulty>, world: &Arc<World>) {
    for round in 0..2u128 {
        let mut opened = manifest(store, world).await;
        while opened.is_err() {
            opened = manifest(store, world).await;
        }
        let manifest = opened.unwrap();
        for i in 0..10 {
            publish(&manifest, round * 100 + i).await;
        }
        while manifest.register_writer(3).await.is_err() {}
        while manifest.refresh().await.is_err() {}
        while manifest.checkpoint().await.is_err() {}
        while manifest.prune().await.is_err() {}
    }
}

#[test]
fn whichever_call_fails_nothing_is_lost_or_doubled() {
    let wanted: BTreeSet<u128> = (0..10).chain(100..110).collect();
    for fate in [Fate::FailsBefore, Fate::FailsAfter] {
        for length in [1, 3, 9] {
            let mut nth = 1;
            loop {
                let calls = run(async {
                    let world = World::new(nth);
                    let store = Faulty::new(&world);
                    let mut call = 0;
                    store.plan(move |_, _| {
                        call += 1;
                        (if (nth..nth + length).contains(&call) { fate } else { Fate::Works }, 0)
                    });
                    life(&store, &world).await;
                    let calls = store.calls.load(Ordering::SeqCst);
                    is_exact(&store, &world, wanted.clone()).await;
                    calls
                });
                if nth > calls {
                    break;
                }
                nth += 1;
            }
            assert!(nth > 40, "only {nth} calls were failed");
        }
    }
}
