//! The command line's words: subcommands, options, defaults, help. No behaviour.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  haystore demo                                      see it work, on logs it makes itself
  haystore ingest --label app=shop 'logs/*.log.gz'   files into ./haystore-data
  haystore search 'request 5bc13f'                   find a needle
  haystore search '{app=\"shop\"} |= \"error\" != \"timeout\"' --from now-1h
  haystore scan --output ndjson '{app=\"shop\"}'       pull everything out
  haystore serve                                     take logs over HTTP, answer logcli and Grafana

Exit codes: 0 done; 1 an error, or damage found; 2 wrong usage; 3 search found nothing; 130 interrupted.
Messages go to stderr, records to stdout. HAYSTORE_LOG=debug shows what happens inside.";

/// A log store: logs go in, needles and everything come out, byte for byte.
#[derive(Debug, Parser)]
#[command(name = "haystore", version, after_help = EXAMPLES, propagate_version = true, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the store over HTTP: native API, Loki's push and query API, metrics.
    Serve(ServeArgs),
    /// Put files, or standard input, into the store.
    Ingest(IngestArgs),
    /// Find the first records that match a query.
    Search(SearchArgs),
    /// Write out every record that matches, oldest first.
    Scan(ScanArgs),
    /// Show where the store's bytes are: by segment, by column, by kind; against the raw logs.
    Du(DuArgs),
    /// Read everything again: checksums, decoding, counts. Exits with 1 when damage is found.
    Verify(VerifyArgs),
    /// Merge small segments into larger ones, by tenant and day.
    Compact(CompactArgs),
    /// Show what is in a segment file: row groups, and the templates of its lines with their counts.
    Inspect(InspectArgs),
    /// Make logs, ingest, search and scan them, prove that nothing changed, print a table.
    Demo(DemoArgs),
}

/// Which store, and how many threads work on it.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The store: a folder, or file://…, memory://, s3://bucket/prefix
    #[arg(long, value_name = "STORE", env = "HAYSTORE_STORE", default_value = "./haystore-data")]
    pub store: String,
    /// Threads that encode and decode [default: one a core]
    #[arg(long, value_name = "N", env = "HAYSTORE_THREADS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory of the process; every buffer's limit follows from it
    #[arg(long, value_name = "SIZE", env = "HAYSTORE_MEMORY", default_value = "512MiB", value_parser = parse_memory, help_heading = "Limits")]
    pub memory: usize,
}

/// Whose records.
#[derive(Debug, Clone, Args)]
pub struct TenantArgs {
    /// The tenant, as in the header X-Scope-OrgID
    #[arg(long, value_name = "NAME", env = "HAYSTORE_TENANT", default_value = haystore::Tenant::DEFAULT)]
    pub tenant: String,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  haystore serve
  haystore serve --store s3://logs/prod --wal /var/lib/haystore/wal --listen 0.0.0.0:7171
  logcli --addr http://127.0.0.1:7171 query '{app=\"shop\"} |= \"error\"'

Stops on SIGINT or SIGTERM: takes no new requests, ends the running ones, flushes.";

/// `haystore serve`
#[derive(Debug, Clone, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Address and port to listen on; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", env = "HAYSTORE_LISTEN", default_value = "127.0.0.1:7171", value_parser = parse_listen)]
    pub listen: SocketAddr,
    /// Folder of the write-ahead log, on a local disk [default: STORE/wal for a folder, else ./haystore-wal]
    #[arg(long, value_name = "DIR", env = "HAYSTORE_WAL")]
    pub wal: Option<PathBuf>,
    /// Write records in memory out at this size [default: 3/32 of --memory]
    #[arg(long, value_name = "SIZE", value_parser = super::units::parse_size, help_heading = "Limits")]
    pub flush_bytes: Option<usize>,
    /// Write records in memory out at this age
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::units::parse_duration, help_heading = "Limits")]
    pub flush_age: Duration,
    /// Refuse records (503) while this much is in memory [default: 3/16 of --memory]
    #[arg(long, value_name = "SIZE", value_parser = super::units::parse_size, help_heading = "Limits")]
    pub memtable_bytes_max: Option<usize>,
    /// How often small segments are looked for, to be merged
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::units::parse_duration, help_heading = "Limits")]
    pub compact_every: Duration,
    /// How often to look for what other processes put into the store
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::units::parse_duration, help_heading = "Limits")]
    pub refresh_every: Duration,
    #[command(flatten)]
    pub grace: Grace,
    #[command(flatten)]
    pub line: LineLimit,
    #[command(flatten)]
    pub query: QueryLimit,
}

/// How long objects stay that are no longer needed.
#[derive(Debug, Clone, Args)]
pub struct Grace {
    /// Delete objects that a merge replaced after this time: longer than any query runs
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = super::units::parse_duration, help_heading = "Limits")]
    pub grace: Duration,
    /// Delete segments that were uploaded but never published after this time, at least 12h
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = super::units::parse_duration, help_heading = "Limits")]
    pub orphan_age: Duration,
}

/// The longest line.
#[derive(Debug, Clone, Args)]
pub struct LineLimit {
    /// Longest line; a longer one is refused and counted, its neighbours are kept
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = super::units::parse_size, help_heading = "Limits")]
    pub line_bytes_max: usize,
}

/// Memory of a query.
#[derive(Debug, Clone, Args)]
pub struct QueryLimit {
    /// Memory that one query may take [default: 1/8 of --memory]
    #[arg(long, value_name = "SIZE", value_parser = super::units::parse_size, help_heading = "Limits")]
    pub query_bytes_max: Option<usize>,
}

/// How the input is taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// Look at the file: JSON lines, CSV with or without header, else lines
    Auto,
    /// Each line is a record
    Lines,
    /// Each line is a JSON value
    Ndjson,
    /// Separated values; quoted fields may hold newlines
    Csv,
}

/// Where timestamps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Timestamps {
    /// From the line; a line without one takes the previous record's
    Auto,
    /// One for the whole file, the moment of ingest: the order of the lines stays as it is
    None,
}

const INGEST_EXAMPLES: &str = "\
Examples:
  haystore ingest app.log
  haystore ingest --label app=shop --label env=prod 'logs/**/*.log.gz'
  haystore ingest --format csv --time-field time access.csv
  journalctl -o json | haystore ingest --format ndjson -
  haystore ingest --server http://127.0.0.1:7171 app.log

.gz and .zst are read as what they hold. A file is a job: when it was interrupted, the same command goes on
behind its last checkpoint, without doubles. A file that was ingested completely is ingested again when named again.
Lines are kept byte for byte. Format and timestamps never change a line.";

/// `haystore ingest`
#[derive(Debug, Clone, Args)]
#[command(after_help = INGEST_EXAMPLES)]
pub struct IngestArgs {
    /// Files, quoted globs (`**` for folders of any depth), or - for standard input
    #[arg(value_name = "FILE|GLOB|-", required = true)]
    pub inputs: Vec<String>,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub tenant: TenantArgs,
    /// Send to this server instead of writing to a store; wins over --store
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// What a record is, and how fields are read from it
    #[arg(long, value_enum, default_value_t = InputFormat::Auto)]
    pub format: InputFormat,
    /// A label of every record; may be given again
    #[arg(long = "label", value_name = "K=V", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// No label `filename`; files are then taken one after the other
    #[arg(long)]
    pub no_filename: bool,
    /// The JSON path or CSV column that holds the timestamp [default: found by looking]
    #[arg(long, value_name = "FIELD")]
    pub time_field: Option<String>,
    /// Where timestamps come from
    #[arg(long, value_enum, default_value_t = Timestamps::Auto)]
    pub timestamps: Timestamps,
    #[command(flatten)]
    pub line: LineLimit,
    /// Lines of so many bytes are read before an interrupted ingest has a place to go on from
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = super::units::parse_size, hide = true)]
    pub checkpoint_bytes: usize,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The lines, byte for byte, each with a newline
    Raw,
    /// JSON objects: timestamp, labels, line (or line_base64 when not UTF-8), metadata
    Ndjson,
}

/// The order of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Oldest first
    Forward,
    /// Newest first
    Backward,
}

/// What `search` and `scan` share.
#[derive(Debug, Clone, Args)]
pub struct ReadArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub tenant: TenantArgs,
    /// Ask this server instead of opening a store; wins over --store
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// First timestamp, included: RFC 3339, epoch in s/ms/µs/ns, now-1h [default: the oldest]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Where to stop: the first timestamp that is not included any more [default: behind the newest]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// How records are written
    #[arg(long, value_enum, default_value_t = Output::Raw)]
    pub output: Output,
    /// Go on behind this cursor, printed by an earlier run of the same query
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,
    #[command(flatten)]
    pub limit: QueryLimit,
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  haystore search 5bc13f9a                                  any line with these bytes
  haystore search '{app=\"shop\", env=~\"prod|stage\"} |= \"error\"'
  haystore search '{} |~ \"time(d )?out\"' --from now-24h --direction backward --limit 10
  haystore search 5bc13f9a --output ndjson --limit 1 | jq .labels

A query is LogQL's stream selector and line filters (|= != |~ !~); anything else is searched for as it is.
When the limit cut the answer, stderr says so and gives the cursor for --after.
Exits with 3 when nothing was found. A store opened by its folder shows what was flushed; ask the server for the newest.";

/// `haystore search`
#[derive(Debug, Clone, Args)]
#[command(after_help = SEARCH_EXAMPLES)]
pub struct SearchArgs {
    /// What to find
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    pub query: String,
    #[command(flatten)]
    pub read: ReadArgs,
    /// Most records
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_limit)]
    pub limit: usize,
    /// Which end to begin at
    #[arg(long, value_enum, default_value_t = Order::Forward)]
    pub direction: Order,
}

const SCAN_EXAMPLES: &str = "\
Examples:
  haystore scan > everything.log
  haystore scan --from 2024-03-01 --to 2024-04-01 --output ndjson '{app=\"shop\"}' | zstd > march.zst
  haystore scan --after 0163f2…                             go on where an earlier scan ended

Ends with a line on stderr: how many records and bytes, and the cursor behind the last record. An interrupted scan
prints it too; --after CURSOR goes on without a gap or a double.";

/// `haystore scan`
#[derive(Debug, Clone, Args)]
#[command(after_help = SCAN_EXAMPLES)]
pub struct ScanArgs {
    /// Which records; everything when left out
    #[arg(value_name = "QUERY", default_value = "{}", hide_default_value = true, allow_hyphen_values = true)]
    pub query: String,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// `haystore du`
#[derive(Debug, Clone, Args)]
pub struct DuArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// A line for each segment, too
    #[arg(long)]
    pub segments: bool,
    /// A line for each column, too
    #[arg(long)]
    pub columns: bool,
}

/// `haystore verify`
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub store: StoreArgs,
}

/// `haystore compact`
#[derive(Debug, Clone, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Also write all segments again with this level of zstd, 1 to 19: smaller and slower, reading stays as fast [default: 9, only what is merged]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=19))]
    pub level: Option<i32>,
    /// Also write all segments again as small as can be: level 19, and each row group that is smaller so as one zstd frame, which can only be
    /// read as a whole
    #[arg(long)]
    pub archive: bool,
    #[command(flatten)]
    pub grace: Grace,
}

/// `haystore inspect`
#[derive(Debug, Clone, Args)]
pub struct InspectArgs {
    /// A segment: a file that ends in .haystore, in the folder `segments` of a store
    #[arg(value_name = "SEGMENT")]
    pub segment: PathBuf,
    /// Templates shown of each row group, the most frequent ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// All row groups, not only the first three
    #[arg(long)]
    pub all: bool,
}

const DEMO_EXAMPLES: &str = "\
Makes load balancer logs (CSV), application logs (nested JSON) and syslog, a third each; ingests them into a new store;
finds one id in each and compares with a plain search of the file; scans everything and compares it with the input, byte for byte.
Exits with 1 when anything differs.";

/// `haystore demo`
#[derive(Debug, Clone, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// Megabytes of logs, all kinds together, at most 5000
    #[arg(long, value_name = "N", default_value_t = 102, value_parser = clap::value_parser!(u64).range(1..=5000))]
    pub mb: u64,
    /// Folder for the logs and the store; must not exist, or be empty
    #[arg(long, value_name = "DIR", default_value = "./haystore-demo")]
    pub dir: PathBuf,
    /// Leave the folder, to go on looking
    #[arg(long)]
    pub keep: bool,
    /// Threads that encode and decode [default: one a core]
    #[arg(long, value_name = "N", env = "HAYSTORE_THREADS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

fn parse_limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&limit| limit > 0).ok_or_else(|| "a limit is a number from 1".to_string())
}

/// An address and port; a host's name, or a port alone, on this machine.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let named = if text.parse::<u16>().is_ok() { format!("127.0.0.1:{text}") } else { text.to_string() };
    let wrong = || "an address is written like 127.0.0.1:7171, [::1]:7171 or localhost:7171".to_string();
    named.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(wrong)
}

/// Least memory: below it a row group of the least size does not fit.
const MEMORY_MIN: usize = 64 << 20;

fn parse_memory(text: &str) -> Result<usize, String> {
    let bytes = super::units::parse_size(text)?;
    if bytes < MEMORY_MIN { Err(format!("at least {} MiB are needed", MEMORY_MIN >> 20)) } else { Ok(bytes) }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a label is written name=value")?;
    let first_fits = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !first_fits || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err("a label's name has ASCII letters, digits and _, and does not begin with a digit".into());
    }
    Ok((name.to_string(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(words: &[&str]) -> Result<Command, clap::Error> {
        Cli::try_parse_from(std::iter::once("haystore").chain(words.iter().copied())).map(|c| c.command)
    }

    #[test]
    fn the_words_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn ingest_takes_files_labels_and_standard_input() {
        let parsed = parse(&["ingest", "--label", "app=a=b", "--label", "x_1=", "-", "b*.log"]).unwrap();
        let Command::Ingest(args) = parsed else { panic!("{parsed:?}") };
        assert_eq!(args.inputs, ["-", "b*.log"]);
        assert_eq!(args.labels, [("app".into(), "a=b".into()), ("x_1".into(), String::new())]);
        assert_eq!((args.format, args.timestamps), (InputFormat::Auto, Timestamps::Auto));
        assert_eq!(args.line.line_bytes_max, 16 << 20);
        for wrong in
            [&["ingest"][..], &["ingest", "--label", "1a=b", "-"], &["ingest", "--label", "ab", "-"], &["ingest", "--format", "x", "-"]]
        {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn search_and_scan_have_their_defaults() {
        let Command::Search(search) = parse(&["search", "-v odd", "--from", "now-1h", "--direction", "backward"]).unwrap() else {
            panic!()
        };
        assert_eq!((search.query.as_str(), search.limit, search.direction), ("-v odd", 1000, Order::Backward));
        assert_eq!(search.read.from.as_deref(), Some("now-1h"));
        assert_eq!(search.read.output, Output::Raw);
        let Command::Scan(scan) = parse(&["scan", "--output", "ndjson"]).unwrap() else { panic!() };
        assert_eq!((scan.query.as_str(), scan.read.output), ("{}", Output::Ndjson));
        assert_eq!(parse(&["search"]).unwrap_err().exit_code(), 2);
        assert_eq!(parse(&["scan", "--limit", "3"]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn serve_takes_sizes_with_units() {
        let Command::Serve(serve) = parse(&["serve", "--flush-bytes", "1.5MB", "--listen", "[::1]:80"]).unwrap() else { panic!() };
        assert_eq!((serve.flush_bytes, serve.listen.port(), serve.flush_age), (Some(1_500_000), 80, Duration::from_secs(30)));
        assert!(parse(&["serve", "--flush-bytes", "much"]).is_err());
        assert!(parse(&["serve", "--threads", "0"]).is_err());
        assert!(parse(&["search", "x", "--limit", "0"]).is_err());
        for (text, address) in [("8080", "127.0.0.1:8080"), ("0.0.0.0:1", "0.0.0.0:1"), ("[::]:0", "[::]:0")] {
            assert_eq!(parse_listen(text), Ok(address.parse().unwrap()));
        }
        assert_eq!(parse_listen("localhost:7").map(|a| (a.ip().is_loopback(), a.port())), Ok((true, 7)));
        for wrong in ["", "x", "127.0.0.1", "127.0.0.1:x", "99999", "no host:1"] {
            assert!(parse_listen(wrong).is_err(), "{wrong}");
        }
    }
}
