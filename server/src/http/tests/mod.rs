//! Every route, over a real socket.

mod client;
mod ingest;
mod limits;
mod loki;
mod scan;
mod search;

use super::{ServeConfig, serve_until};
use client::{Answer, request};
use haystore::{Batch, Format, Labels, Metadata, Options, Store, Tenant};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server on a store of its own in memory.
pub struct Server {
    pub address: SocketAddr,
    pub store: Store,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<anyhow::Result<()>>,
    _wal: Folder,
}

/// A folder that goes away with the test.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    pub async fn start() -> Self {
        Self::with(ServeConfig::default()).await
    }

    pub async fn with(config: ServeConfig) -> Self {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let wal = std::env::temp_dir().join(format!("haystore-http-{}-{number}", std::process::id()));
        let options = Options { wal: Some(wal.clone()), ..Options::default() };
        let store = Store::open("memory://", options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        let running = tokio::spawn(serve_until(listener, store.clone(), config, stopped));
        Server { address, store, stop: Some(stop), running, _wal: Folder(wal) }
    }

    /// Appends records of one stream, without HTTP.
    pub async fn fill(&self, labels: &[(&str, &str)], records: impl IntoIterator<Item = (i64, &[u8])>) {
        let mut batch = Batch::new();
        let labels = Labels::new(labels.iter().copied());
        for (timestamp, line) in records {
            batch.push_record(timestamp, &labels, line, &Metadata::default(), &Format::Text).unwrap();
        }
        self.store.append(&Tenant::default(), batch).await.unwrap();
    }

    pub async fn get(&self, path: &str) -> Answer {
        request(self.address, "GET", path, &[], b"").await
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        request(self.address, "POST", path, headers, body).await
    }

    /// Stops the server as a signal does.
    pub async fn stop(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        bounded(&mut self.running).await.unwrap().unwrap();
    }
}

/// Nothing here may hang.
pub async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.unwrap()
}

/// Waits until `/metrics` has the line `wanted`.
pub async fn metric(server: &Server, wanted: &str) {
    for _ in 0..300 {
        if server.get("/metrics").await.text().lines().any(|line| line == wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no {wanted:?} in\n{}", server.get("/metrics").await.text());
}

/// `text` as a URL's query value.
pub fn quoted(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test]
async fn health_and_unknown_paths() {
    let server = Server::start().await;
    assert_eq!(server.get("/ready").await.text(), "ready\n");
    assert_eq!(server.get("/loki/api/v1/status/buildinfo").await.json()["version"], "3.0.0");
    assert_eq!(server.get("/nope").await.status, 404);
    assert_eq!(server.get("/nope").await.json()["status"], "error");
    assert_eq!(server.get("/api/v1/ingest").await.status, 405);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("haystore_http_requests_total{route=\"ready\",code=\"200\"} 1"), "{metrics}");
    assert!(metrics.contains("haystore_http_requests_total{route=\"other\",code=\"404\"} 2"), "{metrics}");
    server.stop().await;
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let server = Server::start().await;
    let tenant = |name| [("X-Scope-OrgID", name)];
    let ingest = "/api/v1/ingest?format=lines&timestamps=none";
    assert_eq!(server.post(ingest, &tenant("a"), b"of a\n").await.status, 200);
    assert_eq!(server.post(ingest, &tenant("b"), b"of b\n").await.status, 200);
    for (name, expected) in [("a", "of a\n"), ("b", "of b\n"), ("c", "")] {
        assert_eq!(server.post("/api/v1/search?output=raw", &tenant(name), b"").await.text(), expected);
        assert_eq!(server.post("/api/v1/scan", &tenant(name), b"").await.text(), expected);
    }
    assert_eq!(server.get("/api/v1/scan").await.text(), "");
    for bad in ["", "a|b", "..", "a/b", "\u{e9}"] {
        for path in [ingest, "/api/v1/search", "/api/v1/scan", "/loki/api/v1/labels", "/loki/api/v1/query_range?query=%7B%7D"] {
            assert_eq!(server.post(path, &tenant(bad), b"").await.status, 400, "{bad:?} {path}");
        }
        assert_eq!(
            server.post("/loki/api/v1/push", &[("X-Scope-OrgID", bad), ("Content-Type", "application/json")], b"{}").await.status,
            400
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn stopping_finishes_what_is_in_flight() {
    let server = Server::start().await;
    let mut slow = client::Connection::open(server.address).await;
    slow.send(b"POST /api/v1/ingest?format=lines HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhal").await;
    metric(&server, "haystore_http_requests_in_flight 2").await;
    let (address, store) = (server.address, server.store.clone());
    let stopping = tokio::spawn(server.stop());
    // The port is given up at once, while the request goes on.
    for _ in 0..300 {
        if tokio::net::TcpStream::connect(address).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    slow.send(b"f done").await;
    assert_eq!(slow.answer().await.status, 200);
    stopping.await.unwrap();
    drop(store);
}
