//! Objects as files under a folder.
//!
//! What holds: an object's bytes and its name are synced before a call answers; a reader sees a whole object or none.
//! Bytes are written to a file in `.tmp` first, then renamed (put) or linked (create) into place.

use super::{Created, ObjectMeta, Objects, check_key, split_prefix};
use crate::disk::{Disk, disk_error};
use crate::error::{Error, ErrorKind, Result};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The folder of unfinished files.
const TMP_DIR: &str = ".tmp";
/// Unfinished files of this age are left over from a crash; younger ones may belong to another process.
const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);

/// Objects as files under a folder.
#[derive(Debug, Clone)]
pub struct LocalObjects {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// Tells this opener's unfinished files from another's.
    opener: u64,
    next_tmp: AtomicU64,
    /// Folders known to be durable.
    known_dirs: Mutex<HashSet<PathBuf>>,
}

impl LocalObjects {
    /// Opens the folder `root`, makes it when absent, and removes what crashed processes left unfinished. Blocks.
    ///
    /// # Errors
    /// When the folder can't be made or read.
    pub fn open(disk: Arc<dyn Disk>, root: &Path) -> Result<Self> {
        Self::open_at_age(disk, root, LEFTOVER_AGE)
    }

    pub(super) fn open_at_age(disk: Arc<dyn Disk>, root: &Path, leftover_age: Duration) -> Result<Self> {
        let tmp = root.join(TMP_DIR);
        disk.create_dir_all(&tmp).map_err(|e| disk_error("make folder", &tmp, &e))?;
        let now = SystemTime::now();
        for entry in disk.list(&tmp).map_err(|e| disk_error("list", &tmp, &e))? {
            let old = now.duration_since(entry.modified).is_ok_and(|age| age >= leftover_age);
            if old && !entry.is_dir {
                // Best effort: a file that stays now goes next time.
                let _ = disk.remove(&tmp.join(&entry.name));
            }
        }
        let opener = getrandom::u64().map_err(|e| Error::io("random number", e))?;
        let inner = Inner { disk, root: root.to_path_buf(), opener, next_tmp: AtomicU64::new(0), known_dirs: Mutex::default() };
        Ok(LocalObjects { inner: Arc::new(inner) })
    }

    /// Runs `work`, which blocks, on a thread where that does no harm.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T> + Send + 'static) -> Result<T> {
        let inner = self.inner.clone();
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(result) => result,
            Err(e) => Err(Error::internal(format!("file task: {e}"))),
        }
    }
}

impl Inner {
    fn path(&self, key: &str) -> Result<PathBuf> {
        check_key(key)?;
        Ok(self.root.join(key))
    }

    /// Makes the folder of `path` durable; the answer is the folder.
    fn make_dir<'a>(&self, path: &'a Path) -> Result<&'a Path> {
        let dir = path.parent().unwrap_or(path);
        let known = || self.known_dirs.lock().unwrap_or_else(PoisonError::into_inner);
        if !known().contains(dir) {
            self.disk.create_dir_all(dir).map_err(|e| disk_error("make folder", dir, &e))?;
            known().insert(dir.to_path_buf());
        }
        Ok(dir)
    }

    /// Writes `bytes` to a new unfinished file and lets `publish` give it its name.
    fn write(&self, bytes: &[u8], publish: impl FnOnce(&Path) -> Result<Created>) -> Result<Created> {
        let n = self.next_tmp.fetch_add(1, Ordering::Relaxed);
        let tmp = self.root.join(TMP_DIR).join(format!("{:016x}-{n}", self.opener));
        let written = self.disk.write_new(&tmp, bytes).map_err(|e| disk_error("write", &tmp, &e));
        let result = written.and_then(|()| publish(&tmp));
        // After a rename there is nothing to remove; what can't be removed is cleaned up at a later open.
        let _ = self.disk.remove(&tmp);
        result
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(key)?;
        let dir = self.make_dir(&path)?;
        let renamed = |tmp: &Path| {
            self.disk.rename(tmp, &path).map_err(|e| disk_error("put", &path, &e))?;
            self.disk.sync_dir(dir).map_err(|e| disk_error("sync folder", dir, &e))?;
            Ok(Created::Done)
        };
        self.write(bytes, renamed).map(|_| ())
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created> {
        let path = self.path(key)?;
        let dir = self.make_dir(&path)?;
        // Also an object that exists gets its name synced: who made it may have died before doing so.
        let sync = || self.disk.sync_dir(dir).map_err(|e| disk_error("sync folder", dir, &e));
        if self.disk.len(&path).is_ok() {
            return sync().map(|()| Created::Exists);
        }
        let linked = |tmp: &Path| {
            let created = match self.disk.hard_link(tmp, &path) {
                Ok(()) => Created::Done,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Created::Exists,
                Err(e) => return Err(disk_error("create", &path, &e)),
            };
            sync().map(|()| created)
        };
        self.write(bytes, linked)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let (folder, _) = split_prefix(prefix)?;
        let mut out = Vec::new();
        let mut folders = vec![folder.to_string()];
        while let Some(folder) = folders.pop() {
            let dir = self.root.join(&folder);
            let entries = match self.disk.list(&dir) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(|e| disk_error("list", &dir, &e))?,
            };
            for entry in entries {
                let key = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
                if entry.is_dir {
                    let may_match = key.starts_with(prefix) || prefix.starts_with(&key);
                    if may_match && check_key(&key).is_ok() {
                        folders.push(key);
                    }
                } else if key.starts_with(prefix) && check_key(&key).is_ok() {
                    out.push(ObjectMeta { key, size: entry.len, modified: entry.modified });
                }
            }
        }
        out.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(out)
    }

    fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.path(key)?;
        match self.disk.read_ranges(&path, ranges) {
            Ok(pieces) => Ok(pieces.into_iter().map(Bytes::from).collect()),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                let size = self.disk.len(&path).unwrap_or(0);
                Err(Error::new(ErrorKind::Corrupt, format!("get ranges of {}: damaged at byte {size}: it ends here; {e}", path.display())))
            }
            Err(e) => Err(disk_error("get ranges of", &path, &e)),
        }
    }

    fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match self.disk.remove(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|e| disk_error("delete", &path, &e))?,
        }
        let dir = path.parent().unwrap_or(&self.root);
        self.disk.sync_dir(dir).map_err(|e| disk_error("sync folder", dir, &e))
    }
}

#[async_trait]
impl Objects for LocalObjects {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let key = key.to_string();
        self.run(move |inner| inner.put(&key, &bytes)).await
    }

    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        let key = key.to_string();
        self.run(move |inner| inner.create(&key, &bytes)).await
    }

    async fn get(&self, key: &str) -> Result<Bytes> {
        let path = self.inner.path(key)?;
        self.run(move |inner| inner.disk.read(&path).map(Bytes::from).map_err(|e| disk_error("get", &path, &e))).await
    }

    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (key, ranges) = (key.to_string(), ranges.to_vec());
        self.run(move |inner| inner.get_ranges(&key, &ranges)).await
    }

    async fn size(&self, key: &str) -> Result<u64> {
        let path = self.inner.path(key)?;
        self.run(move |inner| inner.disk.len(&path).map_err(|e| disk_error("size of", &path, &e))).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let prefix = prefix.to_string();
        self.run(move |inner| inner.list(&prefix)).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let key = key.to_string();
        self.run(move |inner| inner.delete(&key)).await
    }

    fn name(&self) -> String {
        self.inner.root.display().to_string()
    }
}
