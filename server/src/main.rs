//! The binary `haystore`.

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use haystore::{Options, Store};
use haystore_server::{ServeConfig, serve};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Haystore: a log store.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve HTTP.
    Serve {
        /// Where segments live.
        #[arg(long, default_value = "./haystore-data")]
        store: String,
        /// The address to listen on.
        #[arg(long, default_value = "127.0.0.1:7171")]
        listen: SocketAddr,
        /// The folder of the WAL.
        #[arg(long, default_value = "./haystore-wal")]
        wal: PathBuf,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match Arguments::parse().command {
        Command::Serve { store, listen, wal } => {
            let options = Options { wal: Some(wal), ..Options::default() };
            let store = Store::open(&store, options).await.context("the store does not open")?;
            serve(store, ServeConfig { listen, ..ServeConfig::default() }).await
        }
    }
}
