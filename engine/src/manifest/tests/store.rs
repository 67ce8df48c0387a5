//! An object store in memory that fails, forgets to answer and dawdles on demand, and an environment that a test owns.

use super::super::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{Created, ObjectMeta, Objects};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    Works,
    FailsBefore,
    FailsAfter,
    Denied,
}

type Plan = Box<dyn FnMut(&str, &str) -> (Fate, u32) + Send>;

/// The clock's hand and the dice, shared by all processes of a test.
#[derive(Debug)]
pub struct World {
    now_ns: AtomicI64,
    dice: AtomicU64,
}

impl World {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(World { now_ns: AtomicI64::new(1_700_000_000_000_000_000), dice: AtomicU64::new(seed) })
    }
    pub fn pass(&self, time: Duration) {
        self.now_ns.fetch_add(i64::try_from(time.as_nanos()).unwrap(), Ordering::SeqCst);
    }
    pub fn roll(&self) -> u64 {
        let mut x = self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

#[async_trait]
impl Environment for World {
    fn now_ns(&self) -> i64 {
        self.now_ns.load(Ordering::SeqCst)
    }
    fn random(&self) -> u64 {
        self.roll()
    }
    async fn sleep(&self, time: Duration) {
        self.pass(time);
        tokio::task::yield_now().await;
    }
}

/// The store.
pub struct Faulty {
    world: Arc<World>,
    pub objects: Mutex<BTreeMap<String, (Bytes, SystemTime)>>,
    plan: Mutex<Plan>,
    pub calls: AtomicU64,
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.objects.lock().unwrap().keys())
    }
}

impl Faulty {
    pub fn new(world: &Arc<World>) -> Arc<Self> {
        let plan: Plan = Box::new(|_, _| (Fate::Works, 0));
        Arc::new(Faulty { world: Arc::clone(world), objects: Mutex::default(), plan: Mutex::new(plan), calls: AtomicU64::new(0) })
    }
    /// From now on `plan` says for each (operation, key) what happens, and how often the call yields first.
    pub fn plan(&self, plan: impl FnMut(&str, &str) -> (Fate, u32) + Send + 'static) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }
    pub fn keys(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }
    pub fn bytes(&self, key: &str) -> Bytes {
        self.objects.lock().unwrap()[key].0.clone()
    }
    pub fn overwrite(&self, key: &str, bytes: Vec<u8>) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(self.world.now_ns()).unwrap());
        self.objects.lock().unwrap().insert(key.to_string(), (bytes.into(), now));
    }
    pub fn remove(&self, key: &str) {
        self.objects.lock().unwrap().remove(key);
    }
    async fn call<T>(&self, operation: &str, key: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let (fate, yields) = (self.plan.lock().unwrap())(operation, key);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        let lost = || Error::io(format!("{operation} {key}"), "the line went dead");
        match fate {
            Fate::FailsBefore => Err(lost()),
            Fate::FailsAfter => work().and_then(|_| Err(lost())),
            Fate::Denied => Err(Error::new(ErrorKind::Denied, format!("{operation} {key}: no permission"))),
            Fate::Works => work(),
        }
    }
}

#[async_trait]
impl Objects for Faulty {
    fn name(&self) -> String {
        "faulty".to_string()
    }
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.call("put", key, || {
            self.overwrite(key, bytes.to_vec());
            Ok(())
        })
        .await
    }
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        let create = || {
            if self.objects.lock().unwrap().contains_key(key) {
                return Ok(Created::Exists);
            }
            self.overwrite(key, bytes.to_vec());
            Ok(Created::Done)
        };
        self.call("create", key, create).await
    }
    async fn get(&self, key: &str) -> Result<Bytes> {
        let absent = || Error::new(ErrorKind::NotFound, format!("{key}: absent"));
        self.call("get", key, || self.objects.lock().unwrap().get(key).map(|o| o.0.clone()).ok_or_else(absent)).await
    }
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let whole = self.get(key).await?;
        let place = |at: u64| usize::try_from(at).unwrap();
        Ok(ranges.iter().map(|r| whole.slice(place(r.start)..place(r.end))).collect())
    }
    async fn size(&self, key: &str) -> Result<u64> {
        Ok(self.get(key).await?.len() as u64)
    }
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let list = || {
            let objects = self.objects.lock().unwrap();
            let under = objects.iter().filter(|(key, _)| key.starts_with(prefix));
            Ok(under.map(|(key, o)| ObjectMeta { key: key.clone(), size: o.0.len() as u64, modified: o.1 }).collect())
        };
        self.call("list", prefix, list).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.call("delete", key, || {
            self.remove(key);
            Ok(())
        })
        .await
    }
}
