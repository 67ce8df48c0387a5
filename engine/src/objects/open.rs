//! From a URL to a store of objects.

use super::{LocalObjects, MemoryObjects, Objects};
use crate::disk::Disk;
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens the store that `url` names: a folder's path, `file://` with an absolute path, `memory://` (a new, empty store
/// each time), or `s3://bucket/prefix` (cargo feature `s3`; keys, region and endpoint from the usual `AWS_*` variables).
/// Blocks while it looks at a folder.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] for a URL of no known kind; else what opening gave.
pub fn open_objects(url: &str, disk: Arc<dyn Disk>) -> Result<Arc<dyn Objects>> {
    match url.split_once("://") {
        None if url.is_empty() => Err(Error::invalid("store URL is empty")),
        None => Ok(Arc::new(LocalObjects::open(disk, &PathBuf::from(url))?)),
        Some(("file", path)) => Ok(Arc::new(LocalObjects::open(disk, &file_path(url, path)?)?)),
        Some(("memory", _)) => Ok(Arc::new(MemoryObjects::new())),
        Some(("s3" | "s3a", rest)) => open_s3(url, rest),
        Some((scheme, _)) => {
            Err(Error::invalid(format!("store URL {url}: unknown kind {scheme}; known are a folder's path, file, memory and s3")))
        }
    }
}

/// The path of a `file://` URL, percent codes decoded.
fn file_path(url: &str, path: &str) -> Result<PathBuf> {
    let path = path.strip_prefix("localhost").unwrap_or(path);
    if !path.starts_with('/') {
        return Err(Error::invalid(format!("store URL {url}: a file URL has an absolute path, as in file:///var/lib/haystore")));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let code = tail.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
            bytes.push(code.ok_or_else(|| Error::invalid(format!("store URL {url}: bad percent code")))?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
        }
    }
    let path = String::from_utf8(bytes).map_err(|e| Error::invalid(format!("store URL {url}: {e}")))?;
    Ok(PathBuf::from(path))
}

#[cfg(not(feature = "s3"))]
fn open_s3(url: &str, _rest: &str) -> Result<Arc<dyn Objects>> {
    Err(Error::invalid(format!("store URL {url}: this program was built without S3; build it with --features s3")))
}

#[cfg(feature = "s3")]
fn open_s3(url: &str, rest: &str) -> Result<Arc<dyn Objects>> {
    use super::{RemoteObjects, RetryPolicy, Retrying};
    use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(Error::invalid(format!("store URL {url}: no bucket")));
    }
    let allow_http = std::env::var("AWS_ALLOW_HTTP").is_ok_and(|v| !matches!(v.as_str(), "" | "0" | "false"));
    let store = AmazonS3Builder::from_env()
        .with_url(format!("s3://{bucket}"))
        .with_allow_http(allow_http)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .build()
        .map_err(|e| Error::invalid(format!("store URL {url}: {e}")))?;
    let remote = RemoteObjects::new(Arc::new(store), prefix, url)?;
    Ok(Arc::new(Retrying::new(Arc::new(remote), RetryPolicy::default())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn urls_name_stores() {
        let open = |url: &str| open_objects(url, Arc::new(SimDisk::new()));
        assert_eq!(open("some/folder").unwrap().name(), "some/folder");
        assert_eq!(open("file:///a%20b/c").unwrap().name(), "/a b/c");
        assert_eq!(open("memory://").unwrap().name(), "memory");
        for bad in ["", "ftp://x", "file://relative", "file:///%zz", "file:///%f", "s3://"] {
            assert_eq!(open(bad).unwrap_err().kind(), crate::ErrorKind::Invalid, "{bad}");
        }
        #[cfg(not(feature = "s3"))]
        assert!(open("s3://bucket").unwrap_err().message().contains("--features s3"));
    }
}
