//! Tantivy: an index of words, the lines stored beside it.

use super::tree_bytes;
use crate::peer::{Bytes, Keeps, Needle, Order, Peer, Take, Task, Way};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use tantivy::collector::DocSetCollector;
use tantivy::query::{EmptyQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, STORED, Schema, TEXT, Value};
use tantivy::{Index, IndexReader, TantivyDocument, Term};

/// What the writer may hold in memory, in bytes.
const WRITER_BYTES: usize = 128 << 20;
/// Blocks of stored lines that a reader keeps unpacked.
const CACHED_BLOCKS: usize = 16;

/// An index in a folder.
pub struct Tantivy {
    task: Task,
    folder: PathBuf,
    opened: Option<(IndexReader, Field)>,
}

impl Tantivy {
    /// Not written yet.
    pub fn new(task: &Task) -> Self {
        Tantivy { folder: task.folder.join("tantivy"), task: task.clone(), opened: None }
    }

    fn opened(&self) -> Result<&(IndexReader, Field)> {
        self.opened.as_ref().context("the index is not open")
    }
}

/// The words of `text`, as the index cuts it, must stand together.
fn query(index: &Index, field: Field, text: &str) -> Result<Box<dyn Query>> {
    let mut terms = Vec::new();
    index.tokenizer_for_field(field)?.token_stream(text).process(&mut |token| {
        terms.push(Term::from_field_text(field, &token.text));
    });
    Ok(match terms.len() {
        0 => Box::new(EmptyQuery),
        1 => Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::Basic)),
        _ => Box::new(PhraseQuery::new(terms)),
    })
}

impl Peer for Tantivy {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn keeps(&self) -> Keeps {
        let how = "one text field, stored (lz4) and indexed with positions, words in lower case; asked for the needle's words in a row";
        Keeps { bytes: Bytes::Utf8, order: Order::None, substring: Way::No, token: Way::Index, fields: "no", how }
    }

    fn ingest(&mut self) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut schema = Schema::builder();
        let field = schema.add_text_field("line", TEXT | STORED);
        let index = Index::create_in_dir(&self.folder, schema.build())?;
        let mut writer = index.writer::<TantivyDocument>(WRITER_BYTES)?;
        self.task.logs.lines(&mut |line| {
            let mut document = TantivyDocument::default();
            document.add_text(field, String::from_utf8_lossy(line));
            writer.add_document(document)?;
            Ok(())
        })?;
        writer.commit()?;
        writer.wait_merging_threads()?;
        self.opened = Some((index.reader()?, field));
        Ok(())
    }

    fn stored_bytes(&mut self) -> Result<Option<u64>> {
        tree_bytes(&self.folder).map(Some)
    }

    fn find(&mut self, needle: &Needle, take: Take<'_>) -> Result<()> {
        let (reader, field) = self.opened()?;
        let searcher = reader.searcher();
        let query = query(searcher.index(), *field, &needle.text)?;
        for address in searcher.search(&*query, &DocSetCollector)? {
            let document: TantivyDocument = searcher.doc(address)?;
            take(line_of(&document, *field).as_bytes())?;
        }
        Ok(())
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<()> {
        let (reader, field) = self.opened()?;
        for segment in reader.searcher().segment_readers() {
            let store = segment.get_store_reader(CACHED_BLOCKS)?;
            for document in store.iter::<TantivyDocument>(segment.alive_bitset()) {
                take(line_of(&document?, *field).as_bytes())?;
            }
        }
        Ok(())
    }
}

fn line_of(document: &TantivyDocument, field: Field) -> &str {
    document.get_first(field).and_then(|value| value.as_str()).unwrap_or_default()
}
