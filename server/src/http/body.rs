//! Reading request bodies: size limits, the bytes budget of ingest, stalled senders.
//!
//! What holds: not a byte of an ingest body is kept that the budget did not grant first, and the grant lives as long as
//! what was read, unpacked or parsed from it.

use super::decode::decode_body;
use super::problem::Problem;
use super::state::{App, BUDGET_UNIT_BYTES};
use crate::ingest::BodyError;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Reads a small body: a form, parameters.
pub async fn read_small(body: Body, bytes_max: usize, stall_max: Duration) -> Result<Bytes, Problem> {
    let mut grant = None;
    read(body, bytes_max, stall_max, &mut |_| Ok(()), &mut grant).await
}

/// An ingest request's body as received, with its share of the budget.
pub struct IngestBody {
    /// The bytes as received.
    pub bytes: Bytes,
    /// The value of Content-Encoding, lower case.
    pub encoding: String,
    budget: Budget,
}

/// Reads an ingest body; 413 past `body_bytes_max`, 429 past the budget.
pub async fn read_ingest(app: &App, headers: &HeaderMap, body: Body) -> Result<IngestBody, Problem> {
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or("").trim().to_ascii_lowercase();
    let mut budget = Budget { all: app.ingest_budget.clone(), mine: None, ceiling: app.config.ingest_bytes_max };
    let expected = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
    let mut hint = expected;
    let bytes = read(body, app.config.body_bytes_max, app.config.stall_max, &mut |len| budget.grow(len), &mut hint).await?;
    Ok(IngestBody { bytes, encoding, budget })
}

/// How much of the budget a request needs for each byte of its unpacked body: the body, and the records made of it.
const PARSE_FACTOR: usize = 2;

impl IngestBody {
    /// Unpacks the body. CPU work: call it off the async threads, and keep the answer's grant until the records are stored.
    pub fn unpack(mut self, app: &App) -> Result<(Bytes, Grant), Problem> {
        let packed = self.bytes.len();
        let bytes_max = app.config.body_bytes_max;
        if matches!(self.encoding.as_str(), "" | "identity") {
            self.budget.grow(packed * PARSE_FACTOR)?;
            return Ok((self.bytes, Grant(self.budget)));
        }
        // Most logs shrink by less than 16; what shrinks more is unpacked again under the full limit.
        let guess = packed.saturating_mul(16).saturating_add(1 << 16).min(bytes_max);
        self.budget.grow(packed + guess * PARSE_FACTOR)?;
        let mut unpacked = decode_body(&self.encoding, &self.bytes, guess);
        if guess < bytes_max && matches!(unpacked, Err(BodyError::TooLarge(_))) {
            self.budget.grow(packed + bytes_max * PARSE_FACTOR)?;
            unpacked = decode_body(&self.encoding, &self.bytes, bytes_max);
        }
        Ok((unpacked?.map_or(self.bytes, Bytes::from), Grant(self.budget)))
    }
}

impl IngestBody {
    /// Unpacks a body that is a snappy block inside its encoding: gives the block, with the budget for what it unpacks to.
    pub fn unpack_block(self, app: &App) -> Result<(Bytes, Grant), Problem> {
        let (block, Grant(mut budget)) = self.unpack(app)?;
        // The block says how long its content is; more than that is never written.
        let len = snap::raw::decompress_len(&block).unwrap_or(0).min(app.config.body_bytes_max);
        budget.grow(block.len() + len * PARSE_FACTOR)?;
        Ok((block, Grant(budget)))
    }
}

/// A request's share of the ingest budget; given back when dropped.
pub struct Grant(Budget);

impl Grant {
    /// Makes the share cover `bytes`: what parsing really made.
    pub fn cover(&mut self, bytes: usize) -> Result<(), Problem> {
        self.0.grow(bytes)
    }
}

struct Budget {
    all: Arc<Semaphore>,
    mine: Option<OwnedSemaphorePermit>,
    ceiling: usize,
}

impl Budget {
    /// Makes the share at least `bytes`, or fails with 429. One request alone may always have all of it.
    fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let units = bytes.min(self.ceiling / BUDGET_UNIT_BYTES * BUDGET_UNIT_BYTES).div_ceil(BUDGET_UNIT_BYTES);
        let have = self.mine.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if units <= have {
            return Ok(());
        }
        let more = u32::try_from(units - have).unwrap_or(u32::MAX);
        let Ok(permit) = self.all.clone().try_acquire_many_owned(more) else {
            return Err(Problem::too_many("the ingest requests in flight use all of their memory budget; send again later"));
        };
        match &mut self.mine {
            Some(mine) => mine.merge(permit),
            None => self.mine = Some(permit),
        }
        Ok(())
    }
}

async fn read(
    body: Body,
    bytes_max: usize,
    stall_max: Duration,
    grant: &mut (dyn FnMut(usize) -> Result<(), Problem> + Send),
    expected: &mut Option<usize>,
) -> Result<Bytes, Problem> {
    let too_large = || Problem::too_large(format!("the body has more than {bytes_max} bytes"));
    let mut room = 0;
    if let Some(len) = expected.take() {
        if len > bytes_max {
            return Err(too_large());
        }
        grant(len)?;
        room = len;
    }
    let mut stream = body.into_data_stream();
    let mut all = BytesMut::new();
    loop {
        let piece = match tokio::time::timeout(stall_max, stream.next()).await {
            Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body stopped arriving")),
            Ok(None) => return Ok(all.freeze()),
            Ok(Some(Err(e))) => return Err(Problem::bad(format!("the body ended early: {e}"))),
            Ok(Some(Ok(piece))) => piece,
        };
        let len = all.len() + piece.len();
        if len > bytes_max {
            return Err(too_large());
        }
        if len > room {
            room = (len * 2).min(bytes_max);
            grant(room)?;
        }
        if all.is_empty() && room > 0 {
            // Not more than what has begun to come: a length is a claim until then.
            all.reserve(room.min(1 << 20));
        }
        all.extend_from_slice(&piece);
    }
}
