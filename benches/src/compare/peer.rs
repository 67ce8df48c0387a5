//! What a store must do to be compared, and what it says of itself.

use crate::logs::Logs;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::PathBuf;

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// An index, or what serves as one, rules out what cannot match.
    Index,
    /// Everything is read.
    Scan,
    /// Not at all.
    No,
}

impl Way {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Index => "index",
            Way::Scan => "scan",
            Way::No => "no",
        }
    }
}

/// The bytes of lines that a store gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// Those that went in.
    Exact,
    /// Those that went in when they are UTF-8.
    Utf8,
}

impl Bytes {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Bytes::Exact => "exact",
            Bytes::Utf8 => "if UTF-8",
        }
    }
}

/// The order in which a full read, as it is done here, gives lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// That of the files.
    Files,
    /// By time; lines of one time as they came in.
    Time,
    /// None.
    None,
}

impl Order {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Order::Files => "files",
            Order::Time => "time",
            Order::None => "none",
        }
    }
}

/// What a store keeps and can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    /// Bytes of lines.
    pub bytes: Bytes,
    /// Order of a full read.
    pub order: Order,
    /// Searches for any string inside a line.
    pub substring: Way,
    /// Searches for whole words.
    pub token: Way,
    /// Fields that it can be asked for, as it was loaded here.
    pub fields: &'static str,
    /// How it was loaded and asked.
    pub how: &'static str,
}

impl Keeps {
    /// Whether a search for a needle of this sort may, by the store's nature, give other lines than a plain scan: words are cut by
    /// its own rules.
    pub fn may_differ(&self, sort: Sort) -> bool {
        self.substring == Way::No || (sort == Sort::Token && self.substring == Way::Scan && self.token == Way::Index)
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({"bytes": self.bytes.name(), "order": self.order.name(), "substring": self.substring.name(), "token": self.token.name(),
            "fields": self.fields, "how": self.how})
    }
}

/// What a needle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A whole word of few lines.
    Token,
    /// The inside of such a word.
    Substring,
    /// Nowhere.
    Absent,
    /// Given by the user.
    Given,
}

impl Sort {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Sort; 4] = [Sort::Token, Sort::Substring, Sort::Absent, Sort::Given];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Token => "token",
            Sort::Substring => "substring",
            Sort::Absent => "absent",
            Sort::Given => "given",
        }
    }
}

/// A string to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    /// The string.
    pub text: String,
    /// What it is.
    pub sort: Sort,
    /// Lines that hold it, by a plain scan.
    pub lines: u64,
}

/// What every store is given.
#[derive(Debug, Clone)]
pub struct Task {
    /// The logs.
    pub logs: Logs,
    /// First and last time of a line, ns since the epoch; `None` when no line holds one.
    pub times: Option<(i64, i64)>,
    /// Stores live in folders below this one, named after them.
    pub folder: PathBuf,
    /// Tells this run's data from that of others, on servers.
    pub run: String,
}

/// Takes a line that a store gives back, without its newline.
pub type Take<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// A store that is compared. Calls come in the order of the methods; every call may fail with what the store says.
pub trait Peer {
    /// Its name: lower case, no blanks.
    fn name(&self) -> &'static str;

    /// What it keeps.
    fn keeps(&self) -> Keeps;

    /// Whether its work is done in this process, so that its CPU time is known.
    fn is_here(&self) -> bool {
        true
    }

    /// Takes all logs; when it returns they are stored and can be searched.
    ///
    /// # Errors
    /// Those of the logs and of the store.
    fn ingest(&mut self) -> Result<()>;

    /// Bytes at rest; `None` where nobody tells.
    ///
    /// # Errors
    /// Those of the store.
    fn stored_bytes(&mut self) -> Result<Option<u64>>;

    /// Hands the lines that hold `needle`, as far as the store can tell, to `take`.
    ///
    /// # Errors
    /// Those of the store and of `take`.
    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()>;

    /// Hands every line to `take`.
    ///
    /// # Errors
    /// Those of the store and of `take`.
    fn read_all(&mut self, take: Take<'_>) -> Result<()>;

    /// Removes what it made outside of its folder.
    ///
    /// # Errors
    /// Those of the store.
    fn remove(&mut self) -> Result<()> {
        Ok(())
    }
}
