//! Asking the store everything, and comparing with the model.

use crate::model::Model;
use crate::random::Random;
use crate::record::{Rec, records_of};
use haystore::query::Query;
use haystore::{Cursor, Direction, Result, ScanRequest, SearchRequest, Store, Tenant};
use std::ops::RangeInclusive;

/// All of time.
pub const ALWAYS: RangeInclusive<i64> = i64::MIN..=i64::MAX;

/// A search for everything that `query` finds.
pub fn search_all(query: Query) -> SearchRequest {
    SearchRequest { query, range: ALWAYS, limit: usize::MAX, direction: Direction::Forward, after: None }
}

/// A scan of what matches.
///
/// # Errors
/// Those of the store.
pub async fn scan(store: &Store, tenant: &Tenant, query: Query, range: RangeInclusive<i64>) -> Result<Vec<Rec>> {
    let mut scan = store.scan(tenant, ScanRequest { query, range, after: None }).await?;
    let mut out = Vec::new();
    while let Some(batch) = scan.next().await? {
        out.extend(records_of(&batch));
    }
    Ok(out)
}

/// Everything of a tenant.
///
/// # Errors
/// Those of the store.
pub async fn everything(store: &Store, tenant: &Tenant) -> Result<Vec<Rec>> {
    scan(store, tenant, Query::default(), ALWAYS).await
}

/// Panics at the first difference, with what lies around it.
pub fn assert_same(what: &str, found: &[Rec], expected: &[Rec]) {
    if found == expected {
        return;
    }
    let at = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(found.len().min(expected.len()));
    let around = |records: &[Rec]| {
        let shown = records.iter().enumerate().skip(at.saturating_sub(2)).take(5);
        shown.map(|(i, r)| format!("  {i}: {r:?}\n")).collect::<String>()
    };
    panic!(
        "{what}: {} records found, {} expected, the first difference is at {at}\nfound:\n{}expected:\n{}",
        found.len(),
        expected.len(),
        around(found),
        around(expected)
    );
}

/// Compares a scan of everything.
pub async fn check_scan(store: &Store, model: &Model, tenant: &Tenant) {
    assert_same(&format!("scan of {tenant}"), &everything(store, tenant).await.unwrap(), &model.all(tenant));
}

/// Compares a random scan, stopped and resumed at a random place.
pub async fn check_resumed_scan(store: &Store, model: &Model, tenant: &Tenant, random: &mut Random) {
    let (query, range) = (random.query(&model.all(tenant)), random.range());
    let expected = model.find(tenant, &query, &range);
    let request = |after: Option<Cursor>| ScanRequest { query: query.clone(), range: range.clone(), after };
    let mut found = Vec::new();
    let mut scan = store.scan(tenant, request(None)).await.unwrap();
    while let Some(batch) = scan.next().await.unwrap() {
        found.extend(records_of(&batch));
        if random.once_in(2) {
            let cursor = scan.cursor().map(|c| Cursor::from_text(&c.to_text()).unwrap());
            scan = store.scan(tenant, request(cursor)).await.unwrap();
        }
    }
    assert_same(&format!("scan of {tenant}: {query} in {range:?}"), &found, &expected);
}

/// Compares a random search, page by page.
pub async fn check_search(store: &Store, model: &Model, tenant: &Tenant, random: &mut Random) {
    let (query, range) = (random.query(&model.all(tenant)), random.range());
    let direction = random.pick(&[Direction::Forward, Direction::Backward]);
    let mut expected = model.find(tenant, &query, &range);
    if direction == Direction::Backward {
        expected.reverse();
    }
    let least = 1 + expected.len() / 20;
    let page = if random.once_in(3) { expected.len().max(1) } else { least + random.below(2 * least) };
    let found = search_in_pages(store, tenant, &query, &range, direction, page).await.unwrap();
    assert_same(&format!("search of {tenant}: {query} in {range:?}, {direction:?}, {page} a page"), &found, &expected);
}

/// A search in pages of `page` records, each going on behind the one before.
///
/// # Errors
/// Those of the store.
pub async fn search_in_pages(
    store: &Store,
    tenant: &Tenant,
    query: &Query,
    range: &RangeInclusive<i64>,
    direction: Direction,
    page: usize,
) -> Result<Vec<Rec>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let request = SearchRequest { query: query.clone(), range: range.clone(), limit: page, direction, after };
        let result = store.search(tenant, request).await?;
        found.extend(records_of(&result.records));
        let Some(next) = result.next else { return Ok(found) };
        assert_eq!(result.records.len(), page, "a page that is not the last is full");
        after = Some(Cursor::from_text(&next.to_text()).unwrap());
    }
}

/// Compares the streams that a random selector finds.
pub async fn check_series(store: &Store, model: &Model, tenant: &Tenant, random: &mut Random) {
    let selectors: Vec<Vec<_>> = (0..random.below(3)).map(|_| (0..random.below(3)).map(|_| random.matcher()).collect()).collect();
    let range = random.range();
    let found = store.series(tenant, &selectors, range.clone()).await.unwrap();
    assert_eq!(found, model.series(tenant, &selectors, &range), "series of {tenant}: {selectors:?} in {range:?}");
}
