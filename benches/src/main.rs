//! `haystore-bench`: measurements that anyone can repeat. One program, a subcommand for each.
//!
//! What holds: a figure is printed with everything that shaped it (corpus, size, seed); nothing is printed that was not
//! measured in this run.

mod end_to_end;
mod many;
mod process;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p haystore-bench -- end-to-end
  cargo run --release -p haystore-bench -- end-to-end --kind elb --mb 600 --quick";

/// Measures Haystore.
#[derive(Debug, Parser)]
#[command(name = "haystore-bench", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ingest, search and scan built-in corpora: sizes, speeds, CPU seconds, memory
    EndToEnd(end_to_end::Args),
}

fn main() -> ExitCode {
    let Command::EndToEnd(args) = Cli::parse().command;
    match end_to_end::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
