//! Tests of the manifest: codec, replay, commits under faults, history.

mod bytes;
mod commits;
mod history;
mod model;
mod scale;
mod store;

use super::*;
use crate::record::Tenant;
use std::future::Future;

/// Runs `future` on a runtime of one thread.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).unwrap()
}

fn part(name: &str, timestamp_min: i64, timestamp_max: i64) -> TenantPart {
    TenantPart { tenant: tenant(name), rows: 1000, line_bytes: 120_000, row_groups: 1, timestamp_min, timestamp_max }
}

fn fresh(id: SegmentId, parts: Vec<TenantPart>) -> SegmentMeta {
    SegmentMeta { id, key: format!("segments/{id:032x}"), bytes: 40_000, level: 0, order_min: 0, order: 0, parts }
}

fn adding(segments: Vec<SegmentMeta>) -> Delta {
    Delta { added: segments, ..Delta::default() }
}
