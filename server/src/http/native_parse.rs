//! A native body's records, batch by batch: parsing on a thread of its own, a batch ahead of the store.

use super::body::IngestBody;
use super::problem::Problem;
use super::state::App;
use crate::ingest::{Parser, ReadOptions, Report, Step};
use haystore::Batch;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Starts to unpack and parse `body`. The batches come in order, then the channel closes and the report is ready.
/// The body's share of the budget is given back when parsing ends; at most two batches are in memory beside it.
pub async fn start(
    app: &App,
    body: IngestBody,
    options: ReadOptions,
) -> Result<(mpsc::Receiver<Batch>, JoinHandle<Result<Report, Problem>>), Problem> {
    let turn = app.parser_turn().await?;
    let (sender, receiver) = mpsc::channel(1);
    let app = app.clone();
    let parsing = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let (bytes, _grant) = body.unpack(&app)?;
        let mut parser = Parser::new(options);
        let mut at = 0;
        loop {
            let mut batch = Batch::new();
            let (used, step) = parser.parse(&bytes[at..], true, &mut batch)?;
            at += used;
            // A closed channel means that the store refused a batch: nothing behind it may be kept.
            if !batch.is_empty() && sender.blocking_send(batch).is_err() || step == Step::More {
                return Ok(parser.report());
            }
        }
    });
    Ok((receiver, parsing))
}
