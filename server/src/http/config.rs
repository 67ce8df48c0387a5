//! How the server is run: where it listens, and the named limit of every queue, buffer and request.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Configuration of [`crate::serve`]. The defaults suit a machine with 1 GB to spare.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Most bytes of one request's body, also after decompression. Past it: 413.
    pub body_bytes_max: usize,
    /// Most entries of one Loki push. Past it: 413.
    pub request_records_max: usize,
    /// Longest line of a record, in bytes. Past it: a per-record error.
    pub line_bytes_max: usize,
    /// Bytes that all ingest requests together may hold while they are read, unpacked and parsed. Past it: 429.
    pub ingest_bytes_max: usize,
    /// Bodies that are unpacked and parsed at once; others wait.
    pub parsers_max: usize,
    /// Searches that run or send their answer at once. Past it a request waits, at most [`ServeConfig::queue_wait_max`], then 429.
    pub searches_max: usize,
    /// Scans that run at once; queued as searches are.
    pub scans_max: usize,
    /// How long a request waits for its turn.
    pub queue_wait_max: Duration,
    /// Pieces of an answer (64 KiB to 128 KiB each) that wait for a slow client before the search or scan pauses.
    pub answer_pieces_max: usize,
    /// How long a client may neither read nor send before its request is ended.
    pub stall_max: Duration,
    /// Largest `limit` of one search or Loki query. Past it: 400.
    pub search_records_max: usize,
    /// Most bytes of a query with its parameters. Past it: 413.
    pub query_bytes_max: usize,
    /// Connections at once; more wait in the operating system's queue.
    pub connections_max: usize,
    /// How long requests in flight may go on after the signal to stop.
    pub shutdown_wait_max: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        ServeConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7171)),
            body_bytes_max: 64 << 20,
            request_records_max: 1_000_000,
            line_bytes_max: 16 << 20,
            ingest_bytes_max: 96 << 20,
            parsers_max: 4,
            searches_max: 32,
            scans_max: 8,
            queue_wait_max: Duration::from_secs(10),
            answer_pieces_max: 4,
            stall_max: Duration::from_secs(60),
            search_records_max: 100_000,
            query_bytes_max: 1 << 20,
            connections_max: 1024,
            shutdown_wait_max: Duration::from_secs(20),
        }
    }
}

impl ServeConfig {
    /// Sets the limits of ingest for a process of `memory` bytes: its requests get 3 of 16 parts.
    #[must_use]
    pub fn within(self, memory: usize) -> Self {
        let ingest_bytes_max = memory / 16 * 3;
        ServeConfig { ingest_bytes_max, body_bytes_max: self.body_bytes_max.min(ingest_bytes_max / 2), ..self }
    }
}
