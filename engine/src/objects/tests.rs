//! What every store does, and what crashes and failures leave.

use super::*;
use crate::disk::{Disk, SimDisk};
use crate::error::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn bytes(text: &str) -> Bytes {
    Bytes::from(text.to_string())
}

async fn check_store(store: &dyn Objects) {
    store.put("t/a/1", bytes("hello")).await.unwrap();
    store.put("t/a/1", bytes("hello world")).await.unwrap();
    assert_eq!(store.create("t/a/1", bytes("x")).await.unwrap(), Created::Exists);
    assert_eq!(store.create("t/a/2", bytes("two")).await.unwrap(), Created::Done);
    assert_eq!(store.get("t/a/1").await.unwrap(), "hello world");
    assert_eq!(store.get_ranges("t/a/1", &[6..11, 0..5, 3..3]).await.unwrap(), ["world", "hello", ""]);
    assert_eq!(store.get_ranges("t/a/1", &[]).await.unwrap(), [""; 0]);
    assert_eq!(store.get_ranges("t/a/1", &[0..1, 6..12]).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(store.size("t/a/1").await.unwrap(), 11);
    store.put("t/b/c/3", bytes("")).await.unwrap();
    store.put("top", bytes("x")).await.unwrap();
    let keys = async |prefix: &str| store.list(prefix).await.unwrap().into_iter().map(|m| m.key).collect::<Vec<_>>();
    assert_eq!(keys("").await, ["t/a/1", "t/a/2", "t/b/c/3", "top"]);
    assert_eq!(keys("t/a/").await, ["t/a/1", "t/a/2"]);
    assert_eq!(keys("t/a/2").await, ["t/a/2"]);
    assert_eq!(keys("t/b/").await, ["t/b/c/3"]);
    assert_eq!(keys("to").await, ["top"]);
    assert_eq!(keys("none/x").await, [""; 0]);
    assert_eq!(store.list("t/a/1").await.unwrap()[0].size, 11);
    for missing in ["t/none", "t/a/1/below", "none/a"] {
        let errors = [
            store.get(missing).await.unwrap_err(),
            store.get_ranges(missing, &[0..1, 5..6]).await.unwrap_err(),
            store.size(missing).await.unwrap_err(),
        ];
        for error in errors {
            assert!(missing.contains("below") || error.kind() == ErrorKind::NotFound, "{error}");
            assert!(error.message().contains(missing), "{error}");
        }
    }
    store.delete("t/a/1").await.unwrap();
    store.delete("t/a/1").await.unwrap();
    assert_eq!(store.get("t/a/1").await.unwrap_err().kind(), ErrorKind::NotFound);
    for bad in ["", "/", "a//b", "../a", "a/../b", "a/.", ".tmp/x", "a b", "a\\b", "a%2e", "é", "a\0"] {
        assert_eq!(store.put(bad, bytes("x")).await.unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
        assert_eq!(store.get(bad).await.unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
    }
}

fn local(disk: &SimDisk) -> LocalObjects {
    LocalObjects::open(Arc::new(disk.clone()), Path::new("/s")).unwrap()
}

fn remote(prefix: &str) -> RemoteObjects {
    RemoteObjects::new(Arc::new(object_store::memory::InMemory::new()), prefix, "bucket").unwrap()
}

#[test]
fn every_store_does_the_same() {
    block_on(async {
        check_store(&MemoryObjects::new()).await;
        check_store(&local(&SimDisk::new())).await;
        let temp = tempfile::tempdir().unwrap();
        check_store(&LocalObjects::open(Arc::new(crate::disk::RealDisk), &temp.path().join("deep/er")).unwrap()).await;
        check_store(&remote("")).await;
        check_store(&remote("some/prefix")).await;
    });
}

#[test]
fn large_objects_and_many_ranges_survive_a_remote_store() {
    block_on(async {
        let big: Bytes = (0..(65u32 << 20) / 4).flat_map(u32::to_le_bytes).collect();
        let store = remote("p");
        store.put("big", big.clone()).await.unwrap();
        assert!(store.get("big").await.unwrap() == big);
        let ranges: Vec<Range<u64>> = (0..50).map(|i| (i * 7919 * 131) % 60_000_000..(i * 7919 * 131) % 60_000_000 + 100 + i).collect();
        let pieces = store.get_ranges("big", &ranges).await.unwrap();
        for (range, piece) in ranges.iter().zip(pieces) {
            assert_eq!(piece, big.slice(range.start as usize..range.end as usize));
        }
    });
}

#[test]
fn what_a_local_store_answered_survives_a_crash() {
    for seed in 0..50 {
        block_on(async {
            let disk = SimDisk::seeded(seed);
            let store = local(&disk);
            store.put("a/b/put", bytes("1")).await.unwrap();
            assert_eq!(store.create("a/c/created", bytes("2")).await.unwrap(), Created::Done);
            store.put("a/b/put", bytes("3")).await.unwrap();
            store.put("gone", bytes("x")).await.unwrap();
            store.delete("gone").await.unwrap();
            let store = local(&disk.crash());
            assert_eq!(store.get("a/b/put").await.unwrap(), "3");
            assert_eq!(store.get("a/c/created").await.unwrap(), "2");
            assert_eq!(store.list("").await.unwrap().len(), 2);
        });
    }
}

#[test]
fn any_failing_call_leaves_a_whole_object_or_none() {
    for (seed, n) in (0..20).flat_map(|seed| (1..30).map(move |n| (seed, n))) {
        block_on(async {
            let disk = SimDisk::seeded(seed);
            let store = local(&disk);
            store.put("a/old", bytes("old")).await.unwrap();
            disk.fail_at(n);
            let put = store.put("a/old", bytes("new")).await;
            let create = store.create("b/c", bytes("created")).await;
            let delete = store.delete("a/old").await;
            disk.heal();
            let next = local(&disk.crash());
            match next.get("a/old").await {
                Ok(found) => assert!(delete.is_err() && (found == "new" || (found == "old" && put.is_err())), "seed {seed} call {n}"),
                Err(e) => assert!(e.kind() == ErrorKind::NotFound, "seed {seed} call {n}: {e}"),
            }
            match next.get("b/c").await {
                Ok(found) => assert_eq!(found, "created"),
                Err(_) => assert!(create.is_err(), "seed {seed} call {n}"),
            }
            next.list("").await.unwrap();
        });
    }
}

#[test]
fn two_creators_have_one_winner() {
    let temp = tempfile::tempdir().unwrap();
    let open = || LocalObjects::open(Arc::new(crate::disk::RealDisk), temp.path()).unwrap();
    let stores = [open(), open(), open(), open()];
    for round in 0..20 {
        let key = format!("m/{round}");
        let done: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                stores.iter().map(|store| scope.spawn(|| block_on(store.create(&key, bytes("x"))).unwrap() == Created::Done)).collect();
            threads.into_iter().map(|t| usize::from(t.join().unwrap())).sum()
        });
        assert_eq!(done, 1);
    }
}

#[test]
fn leftovers_go_when_old() {
    let disk = SimDisk::new();
    local(&disk);
    disk.write_new(Path::new("/s/.tmp/left"), b"x").unwrap();
    local(&disk);
    assert_eq!(disk.list(Path::new("/s/.tmp")).unwrap().len(), 1, "young ones may belong to another process");
    LocalObjects::open_at_age(Arc::new(disk.clone()), Path::new("/s"), Duration::ZERO).unwrap();
    assert_eq!(disk.list(Path::new("/s/.tmp")).unwrap().len(), 0);
    assert_eq!(block_on(local(&disk).list("")).unwrap().len(), 0);
}

#[test]
fn busy_answers_are_tried_again_and_lost_replies_show_as_exists() {
    block_on(async {
        let faulty = Arc::new(Faulty::new(Arc::new(MemoryObjects::new()), FaultPlan::default()));
        let policy = RetryPolicy { tries_max: 3, pause_min: Duration::from_millis(1), pause_max: Duration::from_millis(4) };
        let store = Retrying::new(faulty.clone(), policy);
        faulty.fail_at(1);
        assert_eq!(store.create("k", bytes("mine")).await.unwrap(), Created::Done);
        faulty.lose_reply_at(1);
        assert_eq!(store.create("l", bytes("mine")).await.unwrap(), Created::Exists);
        assert_eq!(store.get("l").await.unwrap(), "mine");
        let before = faulty.calls();
        faulty.fail_from(1);
        let error = store.get("k").await.unwrap_err();
        assert_eq!((error.kind(), faulty.calls() - before), (ErrorKind::Busy, 3));
        assert!(error.message().contains("3 tries") && error.message().contains('k'), "{error}");
        faulty.heal();
        let before = faulty.calls();
        assert_eq!(store.get("none").await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(faulty.calls() - before, 1, "what isn't there is not asked for again");
    });
}

#[test]
fn faults_follow_their_seed() {
    let run = |seed| {
        block_on(async {
            let plan = FaultPlan {
                seed,
                error_before_per_mille: 200,
                error_after_per_mille: 200,
                delay_per_mille: 50,
                delay_max: Duration::from_micros(50),
            };
            let store = Faulty::new(Arc::new(MemoryObjects::new()), plan);
            let mut answers = Vec::new();
            for i in 0..200 {
                answers.push((store.put(&format!("k{i}"), bytes("x")).await.is_ok(), store.inner_has(&format!("k{i}")).await));
            }
            answers
        })
    };
    let answers = run(7);
    assert_eq!(answers, run(7));
    assert_ne!(answers, run(8));
    for case in [(true, true), (false, true), (false, false)] {
        assert!(answers.contains(&case), "{case:?}");
    }
    assert!(!answers.contains(&(true, false)));
}

impl Faulty {
    async fn inner_has(&self, key: &str) -> bool {
        self.inner().get(key).await.is_ok()
    }
}

#[test]
fn calls_are_counted() {
    block_on(async {
        let store = Counting::new(Arc::new(MemoryObjects::new()));
        store.put("a", bytes("12345")).await.unwrap();
        store.get_ranges("a", &[0..1, 2..4]).await.unwrap();
        store.get("b").await.unwrap_err();
        let counts = store.counts();
        assert_eq!(counts.put, VerbCounts { requests: 1, bytes: 5, errors: 0 });
        assert_eq!(counts.get_ranges, VerbCounts { requests: 1, bytes: 3, errors: 0 });
        assert_eq!(counts.get, VerbCounts { requests: 1, bytes: 0, errors: 1 });
        assert_eq!(counts.ranges, 2);
    });
}
