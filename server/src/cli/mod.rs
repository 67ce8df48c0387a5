//! The command line: words in, calls of the store or of a server, text out.
//!
//! | file | what |
//! |---|---|
//! | `args` | the words: subcommands, options, help |
//! | `ingest`, `read`, `upkeep`, `serve`, `demo` | a subcommand each, or a few alike |
//! | `client` | the same work done by a server, over HTTP |
//! | `seam` | where the neighbours are called |
//! | `terminal`, `table`, `report`, `units` | what people see |
//!
//! What holds: records go to standard output and nothing else does; messages go to standard error; the exit code is one
//! of [`args`]' list. This module must not know bytes at rest.

pub mod args;
pub mod client;
pub mod demo;
pub mod ingest;
mod inspect;
pub mod open;
pub mod read;
pub mod report;
pub mod seam;
mod serve;
pub mod sizes;
pub mod table;
pub mod terminal;
pub mod units;
mod upkeep;

use args::{Cli, Command};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;
use terminal::{INTERRUPTED, Interrupt, OutputClosed};

/// How a command ended, apart from errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was done.
    Done,
    /// Damage or a difference was found, and told.
    Damage,
    /// A search found nothing.
    Nothing,
    /// The user stopped it.
    Interrupted,
}

impl Outcome {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Damage => 1,
            Outcome::Nothing => 3,
            Outcome::Interrupted => INTERRUPTED,
        }
    }
}

/// The whole program: arguments from the process, exit code to it.
pub fn main() -> ExitCode {
    crate::arenas::limit();
    main_of(std::env::args_os())
}

/// As [`main`], with arguments given; the first is the program's name.
pub fn main_of(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let cli = Cli::parse_from(arguments);
    match run(cli.command) {
        Ok(outcome) => outcome.code().into(),
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say("error", format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    init_tracing(matches!(command, Command::Serve(_)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        // `serve` ends on signals in its own way.
        if let Command::Serve(args) = command {
            return serve::run(args).await;
        }
        let interrupt = Interrupt::listen();
        match command {
            Command::Serve(_) => Ok(Outcome::Done),
            Command::Ingest(args) => ingest::run(args, &interrupt).await,
            Command::Search(args) => read::search(args, &interrupt).await,
            Command::Scan(args) => read::scan(args, &interrupt).await,
            Command::Du(args) => upkeep::du(args).await,
            Command::Verify(args) => upkeep::verify(args, &interrupt).await,
            Command::Compact(args) => upkeep::compact(args, &interrupt).await,
            Command::Inspect(args) => inspect::run(&args),
            Command::Demo(args) => demo::run(args, &interrupt).await,
        }
    });
    // A thread that still waits for input must not hold up the end.
    runtime.shutdown_background();
    outcome
}

fn init_tracing(serving: bool) {
    use std::io::IsTerminal;
    let fallback = if serving { "info" } else { "warn" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("HAYSTORE_LOG").unwrap_or_else(|_| fallback.into());
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // Fails only when the embedding program has set its own; then that one stays.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).try_init();
}
