//! What scans and searches cost, counted in reads of the object store.

use super::{Direction, Ground, Options, ScanRequest, SearchRequest, Store};
use crate::disk::SimDisk;
use crate::manifest::SystemEnvironment;
use crate::objects::{Counting, MemoryObjects};
use crate::query::{LineFilter, Query};
use crate::record::{Batch, Format, Labels, Metadata, Tenant};
use std::sync::Arc;
use std::time::Duration;

const GROUP_BYTES: usize = 64 << 10;

async fn store() -> (Store, Arc<Counting>) {
    let objects = Arc::new(Counting::new(Arc::new(MemoryObjects::new())));
    let ground = Ground { objects: objects.clone(), disk: Arc::new(SimDisk::new()), environment: Arc::new(SystemEnvironment) };
    let options = Options {
        wal: Some("/wal".into()),
        flush_age: Duration::from_secs(3600),
        compact_every: Duration::from_secs(3600),
        group_bytes: GROUP_BYTES,
        ..Options::default()
    };
    (Store::open_on(ground, options).await.unwrap(), objects)
}

/// Records of `streams` streams in turn, with lines of 100 bytes, each with its number.
fn records(rows: std::ops::Range<u32>, streams: u32) -> Batch {
    let mut batch = Batch::new();
    for row in rows {
        let labels = Labels::new([("stream", (row % streams).to_string())]);
        let line = format!("{row:08} {}", "x".repeat(91));
        batch.push_record(i64::from(row), &labels, line.as_bytes(), &Metadata::default(), &Format::Text).unwrap();
    }
    batch
}

async fn numbers(store: &Store, tenant: &Tenant) -> Vec<u32> {
    let request = ScanRequest { query: Query::default(), range: i64::MIN..=i64::MAX, after: None };
    let mut scan = store.scan(tenant, request).await.unwrap();
    let mut found = Vec::new();
    while let Some(batch) = scan.next().await.unwrap() {
        found.extend(batch.iter().map(|r| std::str::from_utf8(&r.line[..8]).unwrap().parse::<u32>().unwrap()));
    }
    found
}

#[tokio::test]
async fn a_scan_reads_each_row_group_once_and_each_footer_once() {
    for streams in [1, 7] {
        let (store, objects) = store().await;
        let tenant = Tenant::default();
        store.append(&tenant, records(0..5000, streams)).await.unwrap();
        store.flush().await.unwrap();
        let groups = 5000 * 100 / GROUP_BYTES as u64 + 1;
        let before = objects.counts().ranges;
        assert_eq!(numbers(&store, &tenant).await, (0..5000).collect::<Vec<_>>());
        assert_eq!(objects.counts().ranges - before, groups + 1, "{streams} streams");
        let before = objects.counts().ranges;
        assert_eq!(numbers(&store, &tenant).await.len(), 5000);
        assert_eq!(objects.counts().ranges - before, groups, "footers are kept");
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn the_last_records_are_found_without_reading_all() {
    let (store, objects) = store().await;
    let tenant = Tenant::default();
    store.append(&tenant, records(0..20_000, 1)).await.unwrap();
    store.flush().await.unwrap();
    let query = Query { filters: vec![LineFilter::Contains(b"x".to_vec())], ..Query::default() };
    let request = SearchRequest { query, range: i64::MIN..=i64::MAX, limit: 5, direction: Direction::Backward, after: None };
    let found = store.search(&tenant, request).await.unwrap();
    let lines: Vec<&[u8]> = (0..5).map(|i| &found.records.line(i)[..8]).collect();
    assert_eq!(lines, [b"00019999", b"00019998", b"00019997", b"00019996", b"00019995"]);
    // The group of the last records, and those that are opened ahead of need.
    let most = 1 + 1 + store.shared.options.threads as u64;
    assert!(objects.counts().ranges <= most, "{} reads", objects.counts().ranges);
    store.close().await.unwrap();
}

#[test]
fn memory_limits_add_up_to_what_was_given() {
    for memory in [64 << 20, 512 << 20, 8 << 30] {
        for threads in [1, 2, 16, 128] {
            let options = Options { threads, ..Options::default() }.within(memory);
            let encoding = options.encoders * options.group_bytes * super::ENCODE_FACTOR;
            let compaction = options.compacted_group_bytes * super::ENCODE_FACTOR + options.segment_bytes_max;
            let all = options.memtable_bytes_max + encoding + compaction + options.query_bytes_max;
            assert!(all <= memory / 16 * 11, "{memory} {threads}: {all}");
            assert!(options.flush_bytes * 2 <= options.memtable_bytes_max && options.encoders >= 1);
        }
    }
}
