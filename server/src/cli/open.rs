//! Opens the store that the arguments name.

use super::args::{ServeArgs, StoreArgs, TenantArgs};
use anyhow::{Context, Result, bail};
use haystore::{Options, Store, Tenant};
use std::path::PathBuf;

/// The store's options without a WAL: for reading and batch jobs.
pub fn options(args: &StoreArgs) -> Options {
    threads(args.threads).within(args.memory)
}

/// The default options with this number of threads.
pub fn threads(threads: Option<u16>) -> Options {
    let mut options = Options::default();
    options.threads = threads.map_or(options.threads, usize::from);
    options.within(Options::MEMORY)
}

/// Opens the store.
///
/// # Errors
/// Those of the store, with its name.
pub async fn open(args: &StoreArgs, options: Options) -> Result<Store> {
    Store::open(&args.store, options).await.with_context(|| format!("cannot open the store {}", args.store))
}

/// Opens a store that is there already: a mistyped name is an error, not a new and empty store.
///
/// # Errors
/// Those of [`open`]; a folder that holds no store.
pub async fn open_existing(args: &StoreArgs, options: Options) -> Result<Store> {
    // Written by the first ingest, or the first start of a server.
    if local_folder(&args.store).is_some_and(|folder| !folder.join("manifest").is_dir()) {
        bail!("there is no store at {}; `haystore ingest` or `haystore serve` makes one, --store names another", args.store);
    }
    open(args, options).await
}

/// Opens the store with its WAL, as `serve` needs it.
///
/// # Errors
/// Those of the store, with its name.
pub async fn open_for_serving(args: &ServeArgs) -> Result<Store> {
    let wal = args.wal.clone().unwrap_or_else(|| default_wal(&args.store.store));
    let derived = options(&args.store);
    let options = Options {
        wal: Some(wal),
        flush_bytes: args.flush_bytes.unwrap_or(derived.flush_bytes),
        flush_age: args.flush_age,
        compact_every: args.compact_every.max(std::time::Duration::from_millis(10)),
        refresh_every: args.refresh_every.max(std::time::Duration::from_millis(10)),
        grace: args.grace.grace,
        orphan_age: args.grace.orphan_age,
        memtable_bytes_max: args.memtable_bytes_max.unwrap_or(derived.memtable_bytes_max),
        line_bytes_max: args.line.line_bytes_max,
        query_bytes_max: args.query.query_bytes_max.unwrap_or(derived.query_bytes_max),
        ..derived
    };
    open(&args.store, options).await
}

/// The tenant.
///
/// # Errors
/// What a tenant's name may be.
pub fn tenant(args: &TenantArgs) -> Result<Tenant> {
    Ok(Tenant::new(&args.tenant)?)
}

/// The WAL's folder when none is given: inside a local store's folder, beside the working folder for all others.
fn default_wal(store: &str) -> PathBuf {
    local_folder(store).map_or_else(|| PathBuf::from("./haystore-wal"), |folder| folder.join("wal"))
}

/// The folder of a store that is one.
fn local_folder(store: &str) -> Option<PathBuf> {
    match store.split_once("://") {
        None => Some(PathBuf::from(store)),
        Some(("file", path)) => Some(PathBuf::from(path)),
        Some(_) => None,
    }
}

/// The current time, nanoseconds since the epoch.
pub fn now_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wal_lies_in_local_stores() {
        for (store, wal) in [
            ("./data", "./data/wal"),
            ("file:///var/logs", "/var/logs/wal"),
            ("s3://bucket/prefix", "./haystore-wal"),
            ("memory://", "./haystore-wal"),
        ] {
            assert_eq!(default_wal(store), PathBuf::from(wal), "{store}");
        }
    }
}
