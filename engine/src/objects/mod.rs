//! The object store as the engine sees it: named, immutable-by-convention byte strings.

use crate::error::Result;
use async_trait::async_trait;
use bytes::Bytes;
use std::fmt::Debug;
use std::ops::Range;
use std::time::SystemTime;

/// What a put-if-absent did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The bytes are stored.
    Done,
    /// An object of that key was there already; perhaps one's own, when an earlier reply was lost.
    Exists,
}

/// An object, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// The object's key.
    pub key: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written, by the store's clock.
    pub modified: SystemTime,
}

/// An object store.
#[async_trait]
pub trait Objects: Send + Sync + Debug {
    /// Stores `bytes` under `key`, whatever was there.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()>;
    /// Stores `bytes` under `key` unless the key is taken. May answer [`Created::Exists`] for one's own bytes (lost reply); may fail after having stored.
    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created>;
    /// The whole object.
    async fn get(&self, key: &str) -> Result<Bytes>;
    /// The bytes of `ranges`, in their order.
    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;
    /// The object's size in bytes.
    async fn size(&self, key: &str) -> Result<u64>;
    /// All objects whose key begins with `prefix`.
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>>;
    /// Removes the object; absent is fine.
    async fn delete(&self, key: &str) -> Result<()>;
}
