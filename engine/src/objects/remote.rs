//! Objects in a bucket, or in anything else the `object_store` crate reaches.
//!
//! What holds: create is the store's own conditional put; large objects go up in parts; near ranges are fetched
//! together, far ones at once. Nothing is retried here: see [`super::Retrying`] and the crate's own retries.

use super::{Created, ObjectMeta, Objects, check_key, range_error, split_prefix};
use crate::error::{Error, ErrorKind, Result};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::ops::Range;
use std::sync::Arc;

/// Objects larger than this go up in parts.
const SINGLE_PUT_BYTES_MAX: usize = 64 << 20;
/// Bytes of a part.
const PART_BYTES: usize = 16 << 20;
/// Parts under way at once.
const PARTS_MAX: usize = 4;
/// Ranges closer than this are fetched as one.
const GAP_BYTES_MAX: u64 = 256 << 10;

/// Objects in a bucket.
#[derive(Debug, Clone)]
pub struct RemoteObjects {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    name: String,
}

impl RemoteObjects {
    /// Objects of `store` whose paths begin with `prefix` (empty for all), called `name` in messages.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the prefix is no path.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str, name: impl Into<String>) -> Result<Self> {
        let prefix = prefix.trim_matches('/').to_string();
        Path::parse(&prefix).map_err(|e| Error::invalid(format!("prefix {prefix:?}: {e}")))?;
        Ok(RemoteObjects { store, prefix, name: name.into() })
    }

    fn path(&self, key: &str) -> Result<Path> {
        check_key(key)?;
        self.join(key)
    }

    fn join(&self, key: &str) -> Result<Path> {
        let slash = if self.prefix.is_empty() || key.is_empty() { "" } else { "/" };
        Path::parse(format!("{}{slash}{key}", self.prefix)).map_err(|e| Error::invalid(format!("object key {key:?}: {e}")))
    }

    fn error(&self, what: &str, key: &str, cause: &object_store::Error) -> Error {
        let kind = error_kind(cause);
        let help = if kind == ErrorKind::Denied { ": check address, credentials and rights" } else { "" };
        Error::new(kind, format!("{what} {key} in {}: {cause}{help}", self.name))
    }

    /// As [`RemoteObjects::error`], for calls that need no object: what was not found is the bucket.
    fn bucket_error(&self, what: &str, key: &str, cause: &object_store::Error) -> Error {
        if error_kind(cause) != ErrorKind::NotFound {
            return self.error(what, key, cause);
        }
        Error::new(ErrorKind::Denied, format!("{what} {key} in {}: there is no such bucket: make it, or name another: {cause}", self.name))
    }

    async fn put_parts(&self, path: &Path, mut bytes: Bytes) -> object_store::Result<()> {
        let mut upload = self.store.put_multipart(path).await?;
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            parts.push(bytes.split_to(bytes.len().min(PART_BYTES)));
        }
        let sent: Vec<_> = parts.into_iter().map(|part| upload.put_part(PutPayload::from(part))).collect();
        let sent: object_store::Result<()> = futures_util::stream::iter(sent).buffer_unordered(PARTS_MAX).try_collect().await;
        let result = match sent {
            Ok(()) => upload.complete().await.map(|_| ()),
            Err(e) => Err(e),
        };
        if result.is_err() {
            // Best effort: parts that stay are the bucket's to expire.
            let _ = upload.abort().await;
        }
        result
    }

    async fn get_range(&self, path: &Path, key: &str, range: Range<u64>) -> Result<Bytes> {
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let answer = self.store.get_opts(path, options).await.map_err(|e| self.error("get ranges of", key, &e))?;
        let size = answer.meta.size;
        let bytes = answer.bytes().await.map_err(|e| self.error("get ranges of", key, &e))?;
        if bytes.len() as u64 == range.end - range.start { Ok(bytes) } else { Err(range_error(key, &range, size)) }
    }
}

/// Kinds by what a caller can do: no answer, throttling and server errors pass by themselves, client errors don't.
fn error_kind(error: &object_store::Error) -> ErrorKind {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => ErrorKind::NotFound,
        E::InvalidPath { .. } => ErrorKind::Invalid,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => ErrorKind::Denied,
        E::Generic { source, .. } => match status_in(source.as_ref()) {
            Some(400 | 401 | 403 | 404 | 405) => ErrorKind::Denied,
            Some(status) if (400..500).contains(&status) && status != 408 && status != 429 => ErrorKind::Io,
            _ => ErrorKind::Busy,
        },
        _ => ErrorKind::Io,
    }
}

/// The HTTP status that an error or one of its causes tells of.
fn status_in(error: &(dyn std::error::Error + 'static)) -> Option<u16> {
    let mut at = Some(error);
    while let Some(error) = at {
        let text = error.to_string();
        if let Some((_, rest)) = text.split_once("status code: ") {
            return rest.get(..3)?.parse().ok();
        }
        at = error.source();
    }
    None
}

#[async_trait]
impl Objects for RemoteObjects {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(key)?;
        let result = if bytes.len() > SINGLE_PUT_BYTES_MAX {
            self.put_parts(&path, bytes).await
        } else {
            self.store.put(&path, PutPayload::from(bytes)).await.map(|_| ())
        };
        result.map_err(|e| self.bucket_error("put", key, &e))
    }

    async fn create(&self, key: &str, bytes: Bytes) -> Result<Created> {
        let path = self.path(key)?;
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&path, PutPayload::from(bytes), options).await {
            Ok(_) => Ok(Created::Done),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(Created::Exists),
            Err(e) => Err(self.bucket_error("create", key, &e)),
        }
    }

    async fn get(&self, key: &str) -> Result<Bytes> {
        let path = self.path(key)?;
        let answer = self.store.get(&path).await.map_err(|e| self.error("get", key, &e))?;
        answer.bytes().await.map_err(|e| self.error("get", key, &e))
    }

    async fn get_ranges(&self, key: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.path(key)?;
        if let Some(range) = ranges.iter().find(|r| r.start > r.end) {
            return Err(range_error(key, range, 0));
        }
        let full: Vec<Range<u64>> = ranges.iter().filter(|r| !r.is_empty()).cloned().collect();
        let fetch = |range| self.get_range(&path, key, range);
        let mut pieces = object_store::coalesce_ranges(&full, fetch, GAP_BYTES_MAX).await?.into_iter();
        Ok(ranges.iter().map(|r| if r.is_empty() { Bytes::new() } else { pieces.next().unwrap_or_default() }).collect())
    }

    async fn size(&self, key: &str) -> Result<u64> {
        let path = self.path(key)?;
        Ok(self.store.head(&path).await.map_err(|e| self.error("size of", key, &e))?.size)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let folder = self.join(split_prefix(prefix)?.0)?;
        let found: Vec<_> = self.store.list(Some(&folder)).try_collect().await.map_err(|e| self.bucket_error("list", prefix, &e))?;
        let object = |meta: object_store::ObjectMeta| {
            let path = meta.location.as_ref();
            let key = if self.prefix.is_empty() { path } else { path.strip_prefix(&self.prefix)?.strip_prefix('/')? };
            let matches = key.starts_with(prefix);
            matches.then(|| ObjectMeta { key: key.to_string(), size: meta.size, modified: meta.last_modified.into() })
        };
        let mut out: Vec<ObjectMeta> = found.into_iter().filter_map(object).collect();
        out.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(out)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match self.store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.error("delete", key, &e)),
        }
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_status() {
        let generic = |text: &str| object_store::Error::Generic { store: "S3", source: text.to_string().into() };
        assert_eq!(error_kind(&generic("Server returned non-2xx status code: 503 Service Unavailable: SlowDown")), ErrorKind::Busy);
        assert_eq!(error_kind(&generic("Server returned non-2xx status code: 429 Too Many Requests")), ErrorKind::Busy);
        assert_eq!(error_kind(&generic("Server returned non-2xx status code: 400 Bad Request")), ErrorKind::Denied);
        assert_eq!(error_kind(&generic("Server returned non-2xx status code: 409 Conflict")), ErrorKind::Io);
        assert_eq!(error_kind(&generic("connection refused")), ErrorKind::Busy);
    }
}
