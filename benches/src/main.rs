//! `haystore-bench`: measurements that anyone can repeat. One program, a subcommand for each.
//!
//! What holds: a figure is printed with everything that shaped it (corpus, size, seed); nothing is printed that was not
//! measured in this run; what is measured runs in a process of its own, so that its memory is its own.

mod end_to_end;
mod many;
mod results;
mod server;

use clap::{Parser, Subcommand};
use haystore_bench::{child, input, process};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p haystore-bench -- end-to-end
  cargo run --release -p haystore-bench -- end-to-end --kind elb --mb 600 --step file --step slow-scan
  cargo run --release -p haystore-bench -- end-to-end --kind elb --file access.csv --json";

/// Measures Haystore.
#[derive(Debug, Parser)]
#[command(name = "haystore-bench", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ingest, search, scan and compact corpora, by file and over HTTP: sizes, speeds, CPU seconds, memory
    EndToEnd(end_to_end::Args),
    /// The part of `end-to-end` that appends many streams through the library
    #[command(hide = true)]
    Append(many::AppendArgs),
}

fn main() -> ExitCode {
    // As `haystore-bench haystore …` this program is `haystore`: what is measured is the code built with it.
    if std::env::args_os().nth(1).is_some_and(|word| word == child::HAYSTORE) {
        return haystore_server::cli::main_of(std::env::args_os().skip(1));
    }
    let done = match Cli::parse().command {
        Command::EndToEnd(args) => end_to_end::run(&args),
        Command::Append(args) => many::append(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
