//! Checkpoints, hints, pruning, and those who slept through it.

use super::store::{Faulty, World};
use super::*;
use crate::error::ErrorKind;
use crate::objects::Objects;
use std::sync::Arc;

const HOUR: Duration = Duration::from_secs(3600);

async fn open(store: &Arc<Faulty>, world: &Arc<World>) -> crate::error::Result<Manifest> {
    let options = Options { checkpoint_every: 8, ..Options::default() };
    Manifest::open_with(Arc::clone(store) as Arc<dyn Objects>, Arc::clone(world) as Arc<dyn Environment>, options).await
}

async fn add(manifest: &Manifest, ids: std::ops::Range<u128>) {
    for id in ids {
        manifest.commit(|_| Ok(adding(vec![fresh(id, vec![part("a", 0, 1)])]))).await.unwrap();
    }
}

fn start(seed: u64) -> (Arc<World>, Arc<Faulty>) {
    let world = World::new(seed);
    let store = Faulty::new(&world);
    (world, store)
}

#[test]
fn opening_reads_the_hint_the_checkpoint_and_the_deltas_after_it() {
    run(async {
        let (world, store) = start(1);
        let manifest = open(&store, &world).await.unwrap();
        add(&manifest, 0..20).await;
        let kept: Vec<u64> = store.keys().iter().filter_map(|key| version_of(key, ".checkpoint")).collect();
        assert_eq!(kept, [8, 16]);
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        store.plan(move |operation, key| {
            log.lock().unwrap().push(format!("{operation} {key}"));
            (super::store::Fate::Works, 0)
        });
        assert!(*open(&store, &world).await.unwrap().state() == *manifest.state());
        let asked = asked.lock().unwrap();
        assert!(asked.iter().all(|call| !call.starts_with("list")), "{asked:?}");
        assert!(asked.len() <= 12, "{asked:?}");
    });
}

#[test]
fn a_stale_lost_or_damaged_hint_changes_nothing() {
    run(async {
        let (world, store) = start(1);
        let manifest = open(&store, &world).await.unwrap();
        add(&manifest, 0..30).await;
        let good = store.bytes(HINT).to_vec();
        let hints = [
            codec::encode_hint(8),
            codec::encode_hint(4),
            codec::encode_hint(u64::MAX),
            codec::encode_hint(0),
            b"junk".to_vec(),
            Vec::new(),
        ];
        let flips = (0..good.len()).map(|at| {
            let mut hint = good.clone();
            hint[at] ^= 0x40;
            hint
        });
        for hint in hints.into_iter().chain(flips) {
            store.overwrite(HINT, hint);
            assert!(*open(&store, &world).await.unwrap().state() == *manifest.state());
        }
        store.remove(HINT);
        assert!(*open(&store, &world).await.unwrap().state() == *manifest.state());
    });
}

#[test]
fn damage_in_the_store_is_an_error_that_names_the_object() {
    run(async {
        let (world, store) = start(1);
        let manifest = open(&store, &world).await.unwrap();
        add(&manifest, 0..20).await;
        for key in [checkpoint_key(16), delta_key(17), delta_key(20)] {
            let good = store.bytes(&key).to_vec();
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                store.overwrite(&key, bad);
                let error = open(&store, &world).await.unwrap_err();
                assert!(error.kind() == ErrorKind::Corrupt && error.message().starts_with(&key), "{error}");
            }
            store.overwrite(&key, good);
        }
        store.remove(HINT);
        store.remove(&delta_key(18));
        let error = open(&store, &world).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.message().starts_with(&delta_key(18)), "{error}");
    });
}

#[test]
fn a_delta_of_another_history_is_refused() {
    run(async {
        let ((world, store), (other_world, other)) = (start(1), start(2));
        add(&open(&store, &world).await.unwrap(), 0..3).await;
        add(&open(&other, &other_world).await.unwrap(), 0..3).await;
        store.overwrite(&delta_key(3), other.bytes(&delta_key(3)).to_vec());
        assert_eq!(open(&store, &world).await.unwrap_err().kind(), ErrorKind::Corrupt);
    });
}

#[test]
fn pruning_waits_for_the_grace_period_and_keeps_two_checkpoints() {
    run(async {
        let (world, store) = start(1);
        let manifest = open(&store, &world).await.unwrap();
        add(&manifest, 0..26).await;
        assert_eq!(manifest.prune().await.unwrap(), 0);
        world.pass(2 * HOUR);
        assert_eq!(manifest.prune().await.unwrap(), 16, "checkpoint 8 and deltas 1 to 15");
        assert_eq!(manifest.prune().await.unwrap(), 0);
        let left: Vec<u64> = store.keys().iter().filter_map(|key| version_of(key, ".delta")).collect();
        assert!(left.into_iter().eq(16..=26));
        assert!(*open(&store, &world).await.unwrap().state() == *manifest.state());
        // The way out after damage to the newest checkpoint: take it and the hint away.
        store.remove(&checkpoint_key(24));
        store.remove(HINT);
        assert!(*open(&store, &world).await.unwrap().state() == *manifest.state());
    });
}

#[test]
fn pruning_stops_at_a_damaged_checkpoint() {
    run(async {
        let (world, store) = start(1);
        let manifest = open(&store, &world).await.unwrap();
        add(&manifest, 0..26).await;
        world.pass(2 * HOUR);
        let mut bad = store.bytes(&checkpoint_key(16)).to_vec();
        bad[50] ^= 1;
        store.overwrite(&checkpoint_key(16), bad);
        let before = store.keys().len();
        world.pass(2 * HOUR);
        assert_eq!(manifest.prune().await.unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(store.keys().len(), before);
    });
}

/// A reader and a committer that slept while the next version came and was removed: 'absent' must not be taken for 'newest'.
#[test]
fn sleepers_find_out_that_history_went_on() {
    for slept_at in [0, 3, 8, 12] {
        run(async {
            let (world, store) = start(slept_at);
            let busy = open(&store, &world).await.unwrap();
            add(&busy, 0..u128::from(slept_at)).await;
            let (reader, committer) = (open(&store, &world).await.unwrap(), open(&store, &world).await.unwrap());
            add(&busy, 100..140).await;
            world.pass(2 * HOUR);
            assert!(busy.prune().await.unwrap() > 0);
            assert!(!store.keys().contains(&delta_key(slept_at + 1)));
            assert!(*reader.refresh().await.unwrap() == *busy.state());
            add(&committer, 7000..7001).await;
            assert_eq!(committer.state().version(), busy.state().version() + 1);
            assert!(*busy.refresh().await.unwrap() == *committer.state());
        });
    }
}

/// The same in the middle of a create: it succeeds, in a place that had been taken and freed, and must not count.
#[test]
fn a_create_that_slept_through_a_pruning_does_not_count() {
    for slept_at in [0, 3, 8, 12] {
        run(async {
            let (world, store) = start(slept_at);
            let busy = open(&store, &world).await.unwrap();
            add(&busy, 0..u128::from(slept_at)).await;
            let committer = open(&store, &world).await.unwrap();
            add(&busy, 100..140).await;
            let (clock, objects) = (Arc::clone(&world), Arc::clone(&store));
            store.plan(move |operation, key| {
                if operation == "create" && key == delta_key(slept_at + 1) {
                    clock.pass(2 * HOUR);
                    let old = |key: &String| [".delta", ".checkpoint"].iter().filter_map(|e| version_of(key, e)).any(|v| v < 32);
                    objects.objects.lock().unwrap().retain(|key, _| !old(key));
                }
                (super::store::Fate::Works, 0)
            });
            let build = |state: &State| {
                Ok(if state.segment(7000).is_some() { Delta::default() } else { adding(vec![fresh(7000, vec![part("a", 0, 1)])]) })
            };
            assert_eq!(committer.commit(build).await.unwrap_err().kind(), ErrorKind::Busy);
            assert!(store.keys().contains(&delta_key(slept_at + 1)), "the stray");
            // The caller tries again, as it must; now its commit is at the true end, and everyone sees it.
            let state = committer.commit(build).await.unwrap();
            assert_eq!(state.version(), busy.state().version() + 1);
            assert!(*busy.refresh().await.unwrap() == *state);
            assert!(*open(&store, &world).await.unwrap().state() == *state);
            // The stray goes with the next pruning.
            assert!(busy.prune().await.unwrap() > 0 && !store.keys().contains(&delta_key(slept_at + 1)));
            store.plan(|_, _| (super::store::Fate::Works, 0));
        });
    }
}

#[test]
fn a_checkpoint_that_comes_back_after_its_removal_misleads_nobody() {
    run(async {
        let (world, store) = start(1);
        let busy = open(&store, &world).await.unwrap();
        add(&busy, 0..8).await;
        let late = store.bytes(&checkpoint_key(8)).to_vec();
        add(&busy, 8..40).await;
        world.pass(2 * HOUR);
        busy.prune().await.unwrap();
        store.overwrite(&checkpoint_key(8), late);
        store.overwrite(HINT, codec::encode_hint(8));
        assert!(*open(&store, &world).await.unwrap().state() == *busy.state());
    });
}
