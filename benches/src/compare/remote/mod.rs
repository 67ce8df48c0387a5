//! Servers, by address: the same lines over their own HTTP API, the same needles, everything back.
//!
//! Their CPU time is not known here; their wall time has the way over HTTP in it. What is loaded carries this run's name, so that
//! nothing else on the server is touched.

mod clickhouse;
mod elastic;
#[cfg(test)]
mod fake;
mod http;
mod loki;
mod victorialogs;

use crate::args::Args;
use crate::peer::{Peer, Task};
use anyhow::Result;
use haystore::Labels;
use haystore_server::answer::json::push_string;
use http::Server;

/// Renders a line and its time, ns since the epoch, as a row of a body.
type Render<'a> = &'a dyn Fn(&mut Vec<u8>, i64, &[u8]);

/// The servers that `args` name.
///
/// # Errors
/// An address that is none.
pub fn given(args: &Args, task: &Task) -> Result<Vec<Box<dyn Peer>>> {
    let mut all: Vec<Box<dyn Peer>> = Vec::new();
    if let Some(url) = &args.loki {
        all.push(Box::new(loki::Loki::new(task, Server::new(url)?, args.data_dir.clone())));
    }
    if let Some(url) = &args.elasticsearch {
        all.push(Box::new(elastic::Elastic::new(task, Server::new(url)?, "elasticsearch")));
    }
    if let Some(url) = &args.opensearch {
        all.push(Box::new(elastic::Elastic::new(task, Server::new(url)?, "opensearch")));
    }
    if let Some(url) = &args.clickhouse {
        all.push(Box::new(clickhouse::ClickHouse::new(task, Server::new(url)?)));
    }
    if let Some(url) = &args.victorialogs {
        all.push(Box::new(victorialogs::VictoriaLogs::new(task, Server::new(url)?)));
    }
    Ok(all)
}

/// Sends all lines, rendered and put back to back, in bodies of about `body_bytes`. Where no line holds a time, each gets its own.
///
/// # Errors
/// Those of the logs and of `send`.
fn load(task: &Task, body_bytes: usize, render: Render<'_>, send: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (mut body, mut rows) = (Vec::new(), 0);
    task.logs.records(&Labels::default(), &mut |batch| {
        for (row, &time) in batch.timestamps().iter().enumerate() {
            let time = if task.times.is_some() { time } else { task.logs.now_ns + rows };
            rows += 1;
            render(&mut body, time, batch.line(row));
            if body.len() >= body_bytes {
                send(&body)?;
                body.clear();
            }
        }
        Ok(())
    })?;
    if body.is_empty() { Ok(()) } else { send(&body) }
}

/// Appends `line` as a JSON string; what is not UTF-8 is replaced.
fn push_text(out: &mut Vec<u8>, line: &[u8]) {
    push_string(out, &String::from_utf8_lossy(line));
}
