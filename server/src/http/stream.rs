//! Answers that are made while they are sent.
//!
//! A producer task fills pieces; a bounded channel holds a few of them; the connection takes them at its client's pace.
//! What holds: an answer ends cleanly only when its producer said so. A producer that fails, or is lost, breaks the
//! connection, so that no client takes a part for the whole. When the client is gone the producer learns it at its
//! next piece, or by [`Sender::gone`]; when the client reads nothing for the stall time, it counts as gone.

use axum::body::Body;
use axum::http::HeaderMap;
use bytes::Bytes;
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// A producer's buffer is sent when it has so many bytes.
pub const PIECE_BYTES: usize = 64 << 10;
/// Longer buffers (one very long line) are sent in pieces of at most this.
const PIECE_BYTES_MAX: usize = 128 << 10;

/// A new answer's two ends.
pub fn channel(pieces_max: usize, stall_max: Duration) -> (Sender, Body) {
    let (sender, receiver) = mpsc::channel(pieces_max.max(1));
    (Sender { sender, stall_max }, Body::new(Streamed { receiver, ended: false }))
}

enum Piece {
    Data(Bytes),
    End(Option<HeaderMap>),
}

/// The client does not read any more.
#[derive(Debug, Clone, Copy)]
pub struct Gone;

/// The producer's end.
pub struct Sender {
    sender: mpsc::Sender<Piece>,
    stall_max: Duration,
}

impl Sender {
    /// Sends what `buffer` holds, when it holds enough for a piece, and empties it.
    pub async fn offer(&self, buffer: &mut Vec<u8>) -> Result<(), Gone> {
        if buffer.len() < PIECE_BYTES { Ok(()) } else { self.send(buffer).await }
    }

    /// Sends what `buffer` holds and empties it.
    pub async fn send(&self, buffer: &mut Vec<u8>) -> Result<(), Gone> {
        let mut bytes = Bytes::from(std::mem::replace(buffer, Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4)));
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES_MAX));
            self.put(Piece::Data(piece)).await?;
        }
        Ok(())
    }

    /// Ends the answer, cleanly.
    pub async fn end(self, trailers: Option<HeaderMap>) -> Result<(), Gone> {
        self.put(Piece::End(trailers)).await
    }

    /// Returns when the client is gone.
    pub async fn gone(&self) {
        self.sender.closed().await;
    }

    async fn put(&self, piece: Piece) -> Result<(), Gone> {
        self.sender.send_timeout(piece, self.stall_max).await.map_err(|_| Gone)
    }
}

/// The connection's end.
struct Streamed {
    receiver: mpsc::Receiver<Piece>,
    ended: bool,
}

/// What breaks the connection.
#[derive(Debug)]
struct Aborted;

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer could not be completed")
    }
}

impl std::error::Error for Aborted {}

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(self.receiver.poll_recv(context));
        Poll::Ready(match piece {
            Some(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Piece::End(trailers)) => {
                self.ended = true;
                trailers.map(|t| Ok(Frame::trailers(t)))
            }
            None => {
                self.ended = true;
                Some(Err(Box::new(Aborted)))
            }
        })
    }
}
