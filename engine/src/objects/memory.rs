//! Objects in memory, for tests and for stores that need not last.

use super::{Created, ObjectMeta, Objects, check_key, slice_ranges};
use crate::error::{Error, ErrorKind, Result};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Objects in memory.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    objects: Mutex<BTreeMap<String, (Bytes, SystemTime)>>,
}

impl MemoryObjects {
    /// A store without objects.
    pub fn new() -> Self {
        Self::default()
    }

    fn hold(&self) -> MutexGuard<'_, BTreeMap<String, (Bytes, SystemTime)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, what: &str, key: &str) -> Result<Bytes> {
        check_key(key)?;
        let found = self.hold().get(key).map(|(bytes, _)| bytes.clone());
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{what} {key} in memory: no such object")))
    }
}

#[async_trait]
impl Objects for MemoryObjects {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        check_key(key)?;
        self.hold().insert(key.to_string(), (bytes, SystemTime::now()));
        Ok(())
    }

    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        check_key(key)?;
        let mut objects = self.hold();
        if objects.contains_key(key) {
            return Ok(Created::Exists);
        }
        objects.insert(key.to_string(), (bytes, SystemTime::now()));
        Ok(Created::Done)
    }

    async fn get(&self, key: &str) -> Result<Bytes> {
        self.find("get", key)
    }

    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        slice_ranges(key, &self.find("get ranges of", key)?, ranges)
    }

    async fn size(&self, key: &str) -> Result<u64> {
        Ok(self.find("size of", key)?.len() as u64)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let objects = self.hold();
        let from = objects.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        let matching = from.take_while(|(key, _)| key.starts_with(prefix));
        Ok(matching
            .map(|(key, (bytes, modified))| ObjectMeta { key: key.clone(), size: bytes.len() as u64, modified: *modified })
            .collect())
    }

    async fn delete(&self, key: &str) -> Result<()> {
        check_key(key)?;
        self.hold().remove(key);
        Ok(())
    }

    fn name(&self) -> String {
        "memory".to_string()
    }
}
