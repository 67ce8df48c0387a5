//! The ground of a simulated store: its disk, its objects, its clock.

use async_trait::async_trait;
use haystore::disk::{Disk, SimDisk};
use haystore::manifest::Environment;
use haystore::objects::{LocalObjects, MemoryObjects, Objects};
use haystore::{ErrorKind, Ground, Options, Result, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// A clock that goes only when told to; dice from a seed; no waiting.
#[derive(Debug)]
pub struct TestEnvironment {
    now_ns: AtomicI64,
    random: AtomicU64,
}

impl TestEnvironment {
    /// Begins in 2024.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(TestEnvironment { now_ns: AtomicI64::new(crate::random::START_NS), random: AtomicU64::new(seed << 20) })
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.now_ns.fetch_add(time.as_nanos() as i64, SeqCst);
    }
}

#[async_trait]
impl Environment for TestEnvironment {
    fn now_ns(&self) -> i64 {
        self.now_ns.load(SeqCst)
    }
    fn random(&self) -> u64 {
        haystore::disk::Dice::new(self.random.fetch_add(1, SeqCst)).roll()
    }
    async fn sleep(&self, time: Duration) {
        // Long waits are cut short, but other tasks get their turn.
        tokio::time::sleep(time.min(Duration::from_millis(1))).await;
    }
}

/// A store's surroundings, which outlive its processes.
#[derive(Debug, Clone)]
pub struct World {
    /// The disk of the WAL, as the present process sees it.
    pub disk: SimDisk,
    /// Objects, as the present process sees them.
    pub objects: Arc<dyn Objects>,
    /// Clock and dice.
    pub environment: Arc<TestEnvironment>,
    /// How stores are opened.
    pub options: Options,
    /// Whether the objects lie on the disk.
    pub on_disk: bool,
}

/// Options that make much happen with little data; background work stays away.
pub fn quiet_options() -> Options {
    Options {
        wal: Some("/wal".into()),
        flush_bytes: usize::MAX,
        flush_age: Duration::from_secs(3600),
        compact_every: Duration::from_secs(3600),
        threads: 2,
        ..Options::default()
    }
}

impl World {
    /// The WAL on a simulated disk, objects in memory.
    pub fn in_memory(seed: u64, options: Options) -> World {
        Self::with_objects(seed, Arc::new(MemoryObjects::new()), options)
    }

    /// The WAL on a simulated disk, objects elsewhere.
    pub fn with_objects(seed: u64, objects: Arc<dyn Objects>, options: Options) -> World {
        World { disk: SimDisk::seeded(seed), objects, environment: TestEnvironment::new(seed), options, on_disk: false }
    }

    /// WAL and objects on one disk.
    pub fn on_disk(seed: u64, disk: SimDisk, options: Options) -> World {
        let objects = local(&disk).unwrap();
        World { disk, objects, environment: TestEnvironment::new(seed), options, on_disk: true }
    }

    /// What a store is opened on.
    pub fn ground(&self) -> Ground {
        Ground { objects: self.objects.clone(), disk: Arc::new(self.disk.clone()), environment: self.environment.clone() }
    }

    /// Opens a store; fails as it fails.
    ///
    /// # Errors
    /// As [`Store::open_on`].
    pub async fn try_open(&self) -> Result<Store> {
        Store::open_on(self.ground(), self.options.clone()).await
    }

    /// Opens a store; waits a little for the store before it to let go of the WAL.
    pub async fn open(&self) -> Store {
        for _ in 0..3000 {
            match self.try_open().await {
                Err(e) if e.kind() == ErrorKind::Fenced => tokio::time::sleep(Duration::from_millis(10)).await,
                other => return other.unwrap(),
            }
        }
        panic!("the WAL is still held")
    }

    /// Opens a store for reading only.
    pub async fn open_reader(&self) -> Result<Store> {
        Store::open_on(self.ground(), Options { wal: None, ..self.options.clone() }).await
    }

    /// Cuts the power of the disk, and of the objects if they lie on it.
    pub fn crash(&mut self) {
        self.disk = self.disk.crash();
        if self.on_disk {
            self.objects = local(&self.disk).unwrap();
        }
    }
}

/// Objects in a folder of the disk.
///
/// # Errors
/// As [`LocalObjects::open`].
pub fn local(disk: &SimDisk) -> Result<Arc<dyn Objects>> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Ok(Arc::new(LocalObjects::open(disk, Path::new("/objects"))?))
}

/// Another disk with the same WAL folder, all of it durable.
pub fn copy_of(disk: &SimDisk) -> SimDisk {
    let (copy, dir) = (SimDisk::new(), Path::new("/wal"));
    copy.create_dir_all(dir).unwrap();
    for entry in disk.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        copy.write_new(&path, &disk.read(&path).unwrap()).unwrap();
    }
    copy.sync_dir(dir).unwrap();
    copy
}
