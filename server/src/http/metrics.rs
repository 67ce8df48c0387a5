//! Counters of this process, and their Prometheus text.
//!
//! What holds: label values come from fixed sets (routes, protocols, status codes), so the registry cannot grow with traffic.

use haystore::Store;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The protocols that records come in by.
#[derive(Debug, Clone, Copy)]
pub enum Protocol {
    Native,
    LokiJson,
    LokiProtobuf,
}

const PROTOCOLS: [&str; 3] = ["native", "loki_json", "loki_protobuf"];

/// Counters of one protocol.
#[derive(Debug, Default)]
pub struct IngestCounters {
    accepted: AtomicU64,
    rejected: AtomicU64,
    line_bytes: AtomicU64,
    body_bytes: AtomicU64,
}

/// All counters.
#[derive(Debug, Default)]
pub struct Metrics {
    ingest: [IngestCounters; 3],
    requests: Mutex<BTreeMap<(&'static str, u16), Requests>>,
    in_flight: AtomicI64,
    connections: AtomicI64,
    scans: AtomicI64,
    searches: AtomicI64,
    scan_ends: [AtomicU64; 3],
    scan_records: AtomicU64,
    scan_line_bytes: AtomicU64,
    search_records: AtomicU64,
}

#[derive(Debug, Default)]
struct Requests {
    count: u64,
    time: Duration,
}

/// How a scan ended.
#[derive(Debug, Clone, Copy)]
pub enum ScanEnd {
    Complete,
    ClientGone,
    Failed,
}

const SCAN_ENDS: [&str; 3] = ["complete", "client_gone", "failed"];

/// Something that goes on; it counts until dropped.
pub struct Ongoing<'a>(&'a AtomicI64);

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn begin(gauge: &AtomicI64) -> Ongoing<'_> {
    gauge.fetch_add(1, Relaxed);
    Ongoing(gauge)
}

impl Metrics {
    /// Counts an ingest request's outcome.
    pub fn ingested(&self, protocol: Protocol, accepted: u64, rejected: u64, line_bytes: u64, body_bytes: u64) {
        let counters = &self.ingest[protocol as usize];
        counters.accepted.fetch_add(accepted, Relaxed);
        counters.rejected.fetch_add(rejected, Relaxed);
        counters.line_bytes.fetch_add(line_bytes, Relaxed);
        counters.body_bytes.fetch_add(body_bytes, Relaxed);
    }

    /// Counts an answered request.
    pub fn request(&self, route: &'static str, status: u16, took: Duration) {
        if let Ok(mut requests) = self.requests.lock() {
            let entry = requests.entry((route, status)).or_default();
            entry.count += 1;
            entry.time += took;
        }
    }

    /// A request is being handled.
    pub fn in_flight(&self) -> Ongoing<'_> {
        begin(&self.in_flight)
    }
    /// A connection is open.
    pub fn connection(&self) -> Ongoing<'_> {
        begin(&self.connections)
    }
    /// A scan runs.
    pub fn scan(&self) -> Ongoing<'_> {
        begin(&self.scans)
    }
    /// A search runs or sends its answer.
    pub fn search(&self) -> Ongoing<'_> {
        begin(&self.searches)
    }

    /// Counts what a scan sent.
    pub fn scan_sent(&self, records: u64, line_bytes: u64) {
        self.scan_records.fetch_add(records, Relaxed);
        self.scan_line_bytes.fetch_add(line_bytes, Relaxed);
    }
    /// Counts a scan's end.
    pub fn scan_ended(&self, end: ScanEnd) {
        self.scan_ends[end as usize].fetch_add(1, Relaxed);
    }
    /// Counts the records of a search's answer.
    pub fn search_found(&self, records: u64) {
        self.search_records.fetch_add(records, Relaxed);
    }

    /// Everything in the Prometheus text format.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(4096);
        type Pick = fn(&IngestCounters) -> &AtomicU64;
        let ingest: [(&str, &str, Pick); 4] = [
            ("haystore_ingest_records_accepted_total", "Records kept.", |c| &c.accepted),
            ("haystore_ingest_records_rejected_total", "Records refused one by one; their senders were told.", |c| &c.rejected),
            ("haystore_ingest_line_bytes_total", "Bytes of the lines of the records kept.", |c| &c.line_bytes),
            ("haystore_ingest_body_bytes_total", "Bytes of request bodies as received.", |c| &c.body_bytes),
        ];
        for (name, help, pick) in ingest {
            head(&mut out, name, help, "counter");
            for (protocol, counters) in PROTOCOLS.iter().zip(&self.ingest) {
                let _ = writeln!(out, "{name}{{protocol=\"{protocol}\"}} {}", pick(counters).load(Relaxed));
            }
        }
        self.requests_text(&mut out);
        for (name, help, gauge) in [
            ("haystore_http_requests_in_flight", "Requests being handled.", &self.in_flight),
            ("haystore_http_connections", "Open connections.", &self.connections),
            ("haystore_searches_running", "Searches that run or send their answer.", &self.searches),
            ("haystore_scans_running", "Scans that run.", &self.scans),
        ] {
            head(&mut out, name, help, "gauge");
            let _ = writeln!(out, "{name} {}", gauge.load(Relaxed));
        }
        for (name, help, counter) in [
            ("haystore_scan_records_total", "Records sent by scans.", &self.scan_records),
            ("haystore_scan_line_bytes_total", "Bytes of lines sent by scans.", &self.scan_line_bytes),
            ("haystore_search_records_total", "Records found by searches.", &self.search_records),
        ] {
            head(&mut out, name, help, "counter");
            let _ = writeln!(out, "{name} {}", counter.load(Relaxed));
        }
        head(&mut out, "haystore_scans_total", "Scans by how they ended.", "counter");
        for (end, count) in SCAN_ENDS.iter().zip(&self.scan_ends) {
            let _ = writeln!(out, "haystore_scans_total{{end=\"{end}\"}} {}", count.load(Relaxed));
        }
        out
    }

    fn requests_text(&self, out: &mut String) {
        let Ok(requests) = self.requests.lock() else { return };
        head(out, "haystore_http_requests_total", "Requests answered, by route and status code.", "counter");
        for ((route, status), r) in requests.iter() {
            let _ = writeln!(out, "haystore_http_requests_total{{route=\"{route}\",code=\"{status}\"}} {}", r.count);
        }
        head(out, "haystore_http_request_seconds_total", "Time to the head of the answer, by route and status code.", "counter");
        for ((route, status), r) in requests.iter() {
            let _ = writeln!(out, "haystore_http_request_seconds_total{{route=\"{route}\",code=\"{status}\"}} {:.6}", r.time.as_secs_f64());
        }
    }
}

/// What the store says of itself, in the Prometheus text format.
pub fn store_text(out: &mut String, store: &Store) {
    let deleted = store.deleted();
    head(out, "haystore_objects_deleted_total", "Segments deleted: replaced by merges, or uploaded but never published.", "counter");
    let _ = writeln!(out, "haystore_objects_deleted_total{{why=\"replaced\"}} {}", deleted.replaced);
    let _ = writeln!(out, "haystore_objects_deleted_total{{why=\"orphan\"}} {}", deleted.orphans);
    if let Some(recovery) = store.recovery() {
        let mut gauge = |name: &str, help: &str, value: u64| {
            head(out, name, help, "gauge");
            let _ = writeln!(out, "{name} {value}");
        };
        let damaged = recovery.damaged.iter().map(|damage| damage.bytes).sum();
        let files = recovery.set_aside.iter().map(|aside| aside.files).sum();
        let bytes = recovery.set_aside.iter().map(|aside| aside.bytes).sum();
        gauge("haystore_wal_damages", "Places in the WAL that could not be read at the start.", recovery.damaged.len() as u64);
        gauge("haystore_wal_damaged_bytes", "Bytes of the WAL that could not be read at the start.", damaged);
        gauge("haystore_wal_set_aside_files", "WAL files of other versions or writers, set aside at this start or earlier.", files);
        gauge("haystore_wal_set_aside_bytes", "Bytes of those files: records that are not in the store.", bytes);
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
