//! SQLite: a full-text table (FTS5), by words or by runs of three characters.

use super::tree_bytes;
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::{Context, Result};
use rusqlite::Connection;
use std::fs;
use std::path::PathBuf;

/// Lines of a transaction.
const TRANSACTION_LINES: u64 = 100_000;

/// What FTS5 cuts lines into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokenizer {
    /// `unicode61`: words, in lower case, without diacritics.
    Words,
    /// `trigram`: every three characters in a row.
    Trigrams,
}

/// A database in a folder.
#[derive(Debug)]
pub struct Sqlite {
    task: Task,
    tokenizer: Tokenizer,
    opened: Option<Connection>,
}

impl Sqlite {
    /// Not written yet.
    pub fn new(task: &Task, tokenizer: Tokenizer) -> Self {
        Sqlite { task: task.clone(), tokenizer, opened: None }
    }

    fn folder(&self) -> PathBuf {
        self.task.folder.join(self.name())
    }

    fn opened(&self) -> Result<&Connection> {
        self.opened.as_ref().context("the database is not open")
    }
}

/// Hands the first column of what `sql` finds to `take`.
fn rows(database: &Connection, sql: &str, parameters: impl rusqlite::Params, take: Take<'_>) -> Result<()> {
    let mut statement = database.prepare(sql)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        take(row.get_ref(0)?.as_bytes()?)?;
    }
    Ok(())
}

impl Peer for Sqlite {
    fn name(&self) -> &'static str {
        match self.tokenizer {
            Tokenizer::Words => "sqlite-fts5",
            Tokenizer::Trigrams => "sqlite-trigram",
        }
    }

    fn keeps(&self) -> Keeps {
        let (substring, token, how) = match self.tokenizer {
            Tokenizer::Words => (Way::No, Way::Index, "FTS5, tokenizer unicode61; asked for the needle's words in a row"),
            Tokenizer::Trigrams => (Way::Index, Way::Index, "FTS5, tokenizer trigram, case kept; asked for the needle"),
        };
        Keeps { bytes: Bytes::Utf8, order: Order::Files, substring, token, fields: "no", how }
    }

    fn ingest(&mut self) -> Result<()> {
        fs::create_dir_all(self.folder())?;
        let database = Connection::open(self.folder().join("logs.sqlite"))?;
        let tokenizer = match self.tokenizer {
            Tokenizer::Words => "unicode61",
            Tokenizer::Trigrams => "trigram case_sensitive 1",
        };
        database.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
        database.execute_batch(&format!("CREATE VIRTUAL TABLE logs USING fts5(line, tokenize = '{tokenizer}'); BEGIN;"))?;
        let mut insert = database.prepare("INSERT INTO logs (line) VALUES (?1)")?;
        let mut lines = 0;
        self.task.logs.lines(&mut |line| {
            insert.execute([&*String::from_utf8_lossy(line)])?;
            lines += 1;
            if lines % TRANSACTION_LINES == 0 {
                database.execute_batch("COMMIT; BEGIN;")?;
            }
            Ok(())
        })?;
        drop(insert);
        database.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);")?;
        self.opened = Some(database);
        Ok(())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        tree_bytes(&self.folder()).map(Some)
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        if self.tokenizer == Tokenizer::Trigrams && needle.text.chars().count() < 3 {
            return rows(self.opened()?, "SELECT line FROM logs WHERE instr(line, ?1) > 0 ORDER BY rowid", [&needle.text], take);
        }
        // Quoted, the needle is a phrase of FTS5: no operators inside.
        let phrase = format!("\"{}\"", needle.text.replace('"', "\"\""));
        rows(self.opened()?, "SELECT line FROM logs WHERE logs MATCH ?1 ORDER BY rowid", [phrase], take)
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        rows(self.opened()?, "SELECT line FROM logs ORDER BY rowid", [], take)
    }
}
