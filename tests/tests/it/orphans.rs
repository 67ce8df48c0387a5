//! Segments that were uploaded but never published: they go once they are old, and nothing else goes with them.

use async_trait::async_trait;
use bytes::Bytes;
use haystore::objects::{Created, MemoryObjects, ObjectMeta, Objects};
use haystore::{Compacted, Error, ErrorKind, Options, Result, Store, Tenant};
use haystore_tests::check::everything;
use haystore_tests::ledger::Ledger;
use haystore_tests::rounds::run;
use haystore_tests::world::{TestEnvironment, World, quiet_options};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HOUR: Duration = Duration::from_secs(3600);

/// What happens before a call.
enum Act {
    Nothing,
    Refuse,
    Pass(Arc<TestEnvironment>, Duration),
    Flush(Store),
}

type Plan = Box<dyn FnMut(&str, &str) -> Act + Send>;

/// Objects in memory with a plan.
struct Planned {
    inner: MemoryObjects,
    plan: Mutex<Plan>,
    /// Keys of all puts.
    puts: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Planned {
    fn new() -> Arc<Planned> {
        Arc::new(Planned { inner: MemoryObjects::new(), plan: Mutex::new(Box::new(|_, _| Act::Nothing)), puts: Mutex::default() })
    }

    fn plan(&self, plan: impl FnMut(&str, &str) -> Act + Send + 'static) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }

    async fn before(&self, operation: &str, key: &str) -> Result<()> {
        let act = (self.plan.lock().unwrap())(operation, key);
        match act {
            Act::Nothing => {}
            Act::Refuse => return Err(Error::new(ErrorKind::Denied, format!("{operation} {key}: refused"))),
            Act::Pass(environment, time) => environment.advance(time),
            Act::Flush(store) => store.flush().await?,
        }
        Ok(())
    }

    /// Keys under `segments/`.
    async fn segments(&self) -> BTreeSet<String> {
        self.inner.list("segments/").await.unwrap().into_iter().map(|object| object.key).collect()
    }
}

#[async_trait]
impl Objects for Planned {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.before("put", key).await?;
        self.puts.lock().unwrap().push(key.to_string());
        self.inner.put(key, bytes).await
    }
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        self.before("create", key).await?;
        self.inner.create(key, bytes).await
    }
    async fn get(&self, key: &str) -> Result<Bytes> {
        self.inner.get(key).await
    }
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(key, ranges).await
    }
    async fn size(&self, key: &str) -> Result<u64> {
        self.inner.size(key).await
    }
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        self.before("list", prefix).await?;
        self.inner.list(prefix).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }
    fn name(&self) -> String {
        "planned".to_string()
    }
}

struct Scene {
    objects: Arc<Planned>,
    world: World,
    ledger: Ledger,
}

impl Scene {
    /// A store whose replaced objects stay for long.
    fn new(options: Options) -> Scene {
        let objects = Planned::new();
        let options = Options { grace: 1_000_000 * HOUR, ..options };
        Scene { world: World::with_objects(3, objects.clone(), options), objects, ledger: Ledger::default() }
    }

    async fn append(&self, store: &Store) {
        store.append(&Tenant::default(), self.ledger.batch(20).1).await.unwrap();
    }

    /// A job whose segment is uploaded, but whose commit is refused: the key of its segment.
    async fn orphan(&self, store: &Store) -> String {
        let before = self.objects.segments().await;
        let mut job = store.job(&Tenant::default(), "refused").await.unwrap();
        job.write(self.ledger.batch(20).1, vec![1]).await.unwrap();
        self.objects.plan(|operation, _| if operation == "create" { Act::Refuse } else { Act::Nothing });
        assert_eq!(job.finish().await.unwrap_err().kind(), ErrorKind::Denied);
        self.objects.plan(|_, _| Act::Nothing);
        let after = self.objects.segments().await;
        let mut new = after.difference(&before);
        let key = new.next().unwrap().clone();
        assert_eq!(new.next(), None);
        key
    }

    /// Sets the clock, which runs behind that of the objects, to `time` from now.
    fn set_clock(&self, time: Duration) {
        use haystore::manifest::Environment;
        let wanted = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + time;
        let now = Duration::from_nanos(self.world.environment.now_ns().unsigned_abs());
        self.world.environment.advance(wanted - now);
    }
}

#[test]
fn what_was_never_published_goes_once_it_is_old_and_nothing_else() {
    run(async {
        let scene = Scene::new(quiet_options());
        let store = scene.world.open().await;
        for _ in 0..3 {
            scene.append(&store).await;
            store.flush().await.unwrap();
        }
        store.compact().await.unwrap();
        scene.append(&store).await;
        store.flush().await.unwrap();
        let orphan = scene.orphan(&store).await;
        scene.objects.put("segments/notes.txt", Bytes::from_static(b"somebody's")).await.unwrap();
        let (keys, records) = (scene.objects.segments().await, everything(&store, &Tenant::default()).await.unwrap());
        for hours in [0, 23] {
            scene.set_clock(hours * HOUR);
            assert_eq!(store.compact().await.unwrap().orphans, 0, "{hours} h");
            assert!(scene.objects.segments().await.is_superset(&keys), "{hours} h");
        }
        let keys = scene.objects.segments().await;
        scene.set_clock(25 * HOUR);
        let done = store.compact().await.unwrap();
        assert_eq!(done, Compacted { orphans: 1, ..Compacted::default() });
        assert_eq!((store.deleted().orphans, store.deleted().replaced), (1, 0));
        let left = scene.objects.segments().await;
        assert_eq!(keys.difference(&left).collect::<Vec<_>>(), [&orphan]);
        assert_eq!(everything(&store, &Tenant::default()).await.unwrap(), records);
        assert_eq!(store.verify(|_, _| {}).await.unwrap().damage, Vec::<String>::new());
    });
}

#[test]
fn the_age_has_a_least_and_background_work_finds_orphans_too() {
    run(async {
        let scene = Scene::new(Options { orphan_age: Duration::ZERO, compact_every: Duration::from_millis(5), ..quiet_options() });
        let reader = scene.world.open_reader().await.unwrap();
        let orphan = scene.orphan(&reader).await;
        scene.set_clock(11 * HOUR);
        assert_eq!(reader.compact().await.unwrap().orphans, 0);
        scene.set_clock(13 * HOUR);
        let store = scene.world.open().await;
        for _ in 0..1000 {
            if !scene.objects.segments().await.contains(&orphan) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!scene.objects.segments().await.contains(&orphan));
        assert_eq!(reader.deleted().orphans + store.deleted().orphans, 1);
    });
}

#[test]
fn what_another_process_publishes_while_orphans_are_listed_stays() {
    run(async {
        let scene = Scene::new(quiet_options());
        let store = scene.world.open().await;
        let sweeper = scene.world.open_reader().await.unwrap();
        scene.append(&store).await;
        scene.set_clock(25 * HOUR);
        // By the clock, whatever is uploaded now is old at once; only the manifest tells.
        let mut flushing = Some(store.clone());
        scene.objects.plan(move |operation, key| match (operation, key) {
            ("list", "segments/") => flushing.take().map_or(Act::Nothing, Act::Flush),
            _ => Act::Nothing,
        });
        let before = scene.objects.segments().await;
        assert_eq!(sweeper.compact().await.unwrap().orphans, 0);
        assert_eq!(scene.objects.segments().await.len(), before.len() + 1, "it was published and stays");
        assert_eq!(everything(&store, &Tenant::default()).await.unwrap().len(), 20);
    });
}

#[test]
fn an_upload_that_took_too_long_is_not_published_but_made_anew() {
    run(async {
        let scene = Scene::new(quiet_options());
        let store = scene.world.open().await;
        let environment = scene.world.environment.clone();
        let slow = |puts: usize| {
            let (environment, mut left) = (environment.clone(), puts);
            scene.objects.plan(move |operation, key| {
                if operation == "put" && key.starts_with("segments/") && left > 0 {
                    left -= 1;
                    return Act::Pass(environment.clone(), 7 * HOUR);
                }
                Act::Nothing
            });
        };
        for _ in 0..2 {
            scene.append(&store).await;
            slow(1);
            assert_eq!(store.flush().await.unwrap_err().kind(), ErrorKind::Busy);
            store.flush().await.unwrap();
        }
        let mut job = store.job(&Tenant::default(), "slow").await.unwrap();
        job.write(scene.ledger.batch(20).1, vec![1]).await.unwrap();
        slow(1);
        assert_eq!(job.finish().await.unwrap_err().kind(), ErrorKind::Busy);
        // A merge uploads what it has written once more.
        scene.objects.puts.lock().unwrap().clear();
        slow(1);
        assert_eq!(store.compact().await.unwrap().written, 1);
        let puts: Vec<String> = scene.objects.puts.lock().unwrap().iter().filter(|k| k.starts_with("segments/")).cloned().collect();
        assert!(puts.len() == 2 && puts[0] == puts[1], "{puts:?}");
        assert_eq!(everything(&store, &Tenant::default()).await.unwrap().len(), 40);
    });
}
