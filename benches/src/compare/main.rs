//! `haystore-compare`: the user's own logs in Haystore and in other stores, side by side, in one run.
//!
//! | file | what |
//! |---|---|
//! | `args` | the words |
//! | `logs` | files to lines, the same for every store |
//! | `survey` | one look before: how many lines, which needles, how often each is there |
//! | `peer` | what a store must do to be compared |
//! | `peers` | the stores built in |
//! | `remote` | servers, by address, over their own HTTP API |
//! | `run` | one store measured and verified |
//! | `report` | table, JSON, HTML |
//!
//! What holds: a figure is printed only when it was measured in this run; every store gets the same lines; every answer is compared
//! with a plain scan of the files; no more than a row group or a body of lines is in memory at a time.

mod args;
mod logs;
mod peer;
mod peers;
mod remote;
mod report;
mod run;
mod survey;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run::all(&args::Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
