//! The words of the command line, and which stores they choose.

use crate::peer::{Peer, Task};
use crate::{peers, remote};
use anyhow::{Result, ensure};
use clap::Parser;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  haystore-compare access.log
  haystore-compare --quick --html report.html 'logs/*.log.gz'
  haystore-compare --only haystore,parquet,sqlite --json app.ndjson
  haystore-compare --loki http://127.0.0.1:3100 --data-dir /var/lib/loki app.log";

/// Measures your own logs in Haystore and in other stores, side by side.
///
/// Exit codes: 0 done; 1 a store failed, or gave back other lines than it should; 2 nothing could begin; 130 interrupted.
#[derive(Debug, Clone, Parser)]
#[command(name = "haystore-compare", version, after_help = EXAMPLES)]
pub struct Args {
    /// Log files or globs; gzip and zstd are read as what they hold
    #[arg(required = true, value_name = "FILE|GLOB")]
    pub files: Vec<String>,
    /// Only stores whose names begin with one of these
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Not the stores whose names begin with one of these
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Leave out zstd -19 --long=27, which takes longer than all the rest
    #[arg(long)]
    pub quick: bool,
    /// Also look for this string; may be given again
    #[arg(long = "needle", value_name = "TEXT")]
    pub needles: Vec<String>,
    /// How often each needle is looked for; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..1000))]
    pub repeat: u32,
    /// Keep the stores in this folder, which must not exist
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Where the temporary folder is made [default: the system's place]
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub temp: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Also write a page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A Loki server
    #[arg(long, value_name = "URL")]
    pub loki: Option<String>,
    /// The folder where that Loki keeps its data, to be measured
    #[arg(long, value_name = "DIR", requires = "loki")]
    pub data_dir: Option<PathBuf>,
    /// An Elasticsearch server
    #[arg(long, value_name = "URL")]
    pub elasticsearch: Option<String>,
    /// An OpenSearch server
    #[arg(long, value_name = "URL")]
    pub opensearch: Option<String>,
    /// A ClickHouse server's HTTP interface
    #[arg(long, value_name = "URL")]
    pub clickhouse: Option<String>,
    /// A VictoriaLogs server
    #[arg(long, value_name = "URL")]
    pub victorialogs: Option<String>,
}

impl Args {
    /// Whether the store `name` is wanted.
    fn wants(&self, name: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|start| !start.is_empty() && name.starts_with(start.as_str()));
        (self.only.is_empty() || named(&self.only)) && !named(&self.skip) && !(self.quick && name == peers::SLOWEST)
    }

    /// The stores to measure, built-in ones first.
    ///
    /// # Errors
    /// An address that is none; no store left.
    pub fn peers(&self, task: &Task) -> Result<Vec<Box<dyn Peer>>> {
        let mut all = peers::built_in(task);
        all.extend(remote::given(self, task)?);
        all.retain(|peer| self.wants(peer.name()));
        ensure!(!all.is_empty(), "no store is left to measure; the built-in ones are {}", peers::NAMES.join(", "));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_chosen_by_their_beginning() {
        let wants =
            |words: &[&str], name: &str| Args::try_parse_from(["haystore-compare", "x.log"].iter().chain(words)).unwrap().wants(name);
        assert!(wants(&[], "gzip") && wants(&[], peers::SLOWEST));
        assert!(!wants(&["--quick"], peers::SLOWEST));
        assert!(wants(&["--only", "hay,zstd"], "haystore") && wants(&["--only", "hay,zstd"], "zstd-3"));
        assert!(!wants(&["--only", "hay,zstd"], "gzip") && !wants(&["--skip", "gz"], "gzip"));
        assert!(Args::try_parse_from(["haystore-compare", "--data-dir", "d", "x"]).is_err(), "only with Loki");
    }
}
