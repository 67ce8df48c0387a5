//! Decoding columns: any row range of any column, out of the bytes of its row group.
//!
//! Every stored byte is checked against its checksum before it is decoded; whatever else is wrong is an error that
//! names the object and the row group's offset in it.

use super::assemble::Program;
use super::frames::Unpacker;
use super::plan::{Column, Escape, JSON_ESCAPES, Kind, List, Plan};
pub use super::values::{Numbers, Slice, Values};
use crate::encoding::out::Out;
use crate::encoding::print::Printer;
use crate::encoding::typed::Type;
use crate::encoding::{dictionary, integers, text};
use crate::error::{Error, Result};
use crate::wire::WireError;
use std::ops::Range;
use std::sync::Arc;

/// The bytes of one row group and where they come from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The row group's bytes, frames first.
    pub bytes: bytes::Bytes,
    /// The object's name, for errors.
    pub name: Arc<str>,
    /// The row group's offset in the object, for errors.
    pub offset: u64,
}

impl Source {
    /// An error about this row group.
    pub fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::corrupt(&self.name, self.offset, what)
    }
}

#[derive(Debug, Default)]
struct Cache {
    page: Option<(usize, Arc<Vec<u64>>)>,
    text: Option<(usize, Arc<Values>)>,
    range: Option<(usize, Slice)>,
}

/// Reads the columns of one row group. Keeps the current page of each column, so going through the ranges in order decodes each page once.
#[derive(Debug)]
pub struct Decoder {
    plan: Arc<Plan>,
    source: Source,
    dictionary_frames: Unpacker,
    data_frames: Unpacker,
    /// For each column the numbers of its pages' pieces.
    pieces: Vec<Vec<u32>>,
    /// For each dictionary the number of its first piece.
    dictionary_pieces: Vec<usize>,
    domain_pages: Vec<Vec<Range<usize>>>,
    caches: Vec<Cache>,
    entries: Vec<Option<Arc<Values>>>,
    programs: Vec<Option<Arc<Program>>>,
}

impl Decoder {
    /// Prepares a decoder.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when the plan does not fit itself.
    pub fn new(plan: Arc<Plan>, source: Source) -> Result<Self> {
        let dictionary_frames = Unpacker::new(&plan.dictionary_area, 0).map_err(|e| source.corrupt(e))?;
        let data_frames = Unpacker::new(&plan.data_area, dictionary_frames.stored_bytes()).map_err(|e| source.corrupt(e))?;
        let mut pieces = vec![Vec::new(); plan.columns.len()];
        for (piece, (_, column, _)) in plan.page_order().into_iter().enumerate() {
            pieces[column as usize].push(piece as u32);
        }
        let mut next = 0;
        let mut dictionary_pieces = Vec::with_capacity(plan.dictionaries.len());
        for dictionary in &plan.dictionaries {
            dictionary_pieces.push(next);
            next += dictionary.pages() * if dictionary.sets { 2 } else { 1 };
        }
        Ok(Decoder {
            dictionary_frames,
            data_frames,
            pieces,
            dictionary_pieces,
            domain_pages: plan.domains.iter().map(|d| d.pages()).collect(),
            caches: plan.columns.iter().map(|_| Cache::default()).collect(),
            entries: vec![None; plan.dictionaries.len()],
            programs: plan.columns.iter().map(|_| None).collect(),
            plan,
            source,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Where the bytes come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Bytes of dictionary frames and of data frames.
    pub fn stored_bytes(&self) -> (u64, u64) {
        (self.dictionary_frames.stored_bytes(), self.data_frames.stored_bytes())
    }

    /// Stored bytes of each data piece, in order; pieces that share a frame share its bytes.
    pub fn data_shares(&self) -> Vec<f64> {
        self.data_frames.shares()
    }

    /// The same for dictionary pieces: whether it is a page set, the class, the bytes.
    pub fn dictionary_shares(&self) -> Vec<(bool, &'static str, f64)> {
        let mut shares = self.dictionary_frames.shares().into_iter();
        let mut out = Vec::new();
        for layout in &self.plan.dictionaries {
            let class = layout.class.map_or("text", |c| c.name());
            for piece in 0..layout.pages() * if layout.sets { 2 } else { 1 } {
                out.push((layout.sets && piece % 2 == 1, class, shares.next().unwrap_or(0.0)));
            }
        }
        out
    }

    /// The values of `column` in `range`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn values(&mut self, column: u32, range: usize) -> Result<Slice> {
        let plan = self.plan.clone();
        let Column { domain, kind } = &plan.columns[column as usize];
        let here = plan.domains[*domain as usize].range(range);
        if let Some((cached, slice)) = &self.caches[column as usize].range
            && *cached == range
        {
            return Ok(slice.clone());
        }
        let slice = match kind {
            Kind::Constant(value) => Slice { values: Arc::new(Values::Constant(value.clone())), start: 0, len: here.len() },
            Kind::Same(other) => return self.values(*other, range),
            Kind::Text => return self.text_slice(column, range, here),
            Kind::Dictionary(dictionary) => return self.entry_slice(column, *dictionary, range, here),
            Kind::Number(type_) => {
                let numbers = self.numbers(column, range)?;
                self.print(column, *type_, &numbers)?
            }
            Kind::Escaped(child, escape) => {
                let plain = self.values(*child, range)?;
                let (mut out, mut ends) = self.buffers(column);
                for index in 0..plain.len() {
                    put_escaped(plain.get(index), *escape, &mut out);
                    ends.push(self.end_of(out.len())?);
                }
                Slice::whole(out.into_memory(), ends)
            }
            Kind::List(list) => self.join(column, list, range)?,
            Kind::Computed(computed) => {
                let numbers = self.numbers(column, range)?;
                self.print(column, computed.type_, &numbers)?
            }
            Kind::Shapes(_) => self.assemble(column, range)?,
            Kind::Mapped(mapping) => {
                let entries = self.entries(mapping.dictionary)?;
                let ids = self.numbers(column, range)?.raw().iter().map(|&id| id as u32).collect();
                Slice { values: Arc::new(Values::Entries { ids, entries }), start: 0, len: here.len() }
            }
        };
        self.caches[column as usize].range = Some((range, slice.clone()));
        Ok(slice)
    }

    /// The numbers of a column with pages of numbers (numbers, shape numbers, entry numbers), or one the same as such a column, in `range`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`]; also when the column has no numbers.
    pub fn numbers(&mut self, column: u32, range: usize) -> Result<Numbers> {
        let plan = self.plan.clone();
        let Column { domain, kind } = &plan.columns[column as usize];
        let here = plan.domains[*domain as usize].range(range);
        match kind {
            Kind::Same(other) => return self.numbers(*other, range),
            Kind::Number(_) | Kind::Shapes(_) | Kind::Dictionary(_) => {}
            Kind::Mapped(mapping) => {
                let keys = self.numbers(mapping.key, range)?;
                let chosen = keys.raw().iter().map(|&key| usize::try_from(key).ok().and_then(|key| mapping.table.get(key)).copied());
                let chosen: Option<Vec<u64>> = chosen.map(|entry| entry.map(u64::from)).collect();
                let page = Arc::new(chosen.ok_or_else(|| self.source.corrupt("no such dictionary entry"))?);
                return Ok(Numbers { range: 0..page.len(), page });
            }
            Kind::Computed(computed) => {
                let computed = *computed;
                let source = self.numbers(computed.source, range)?;
                let from = |stored: &u64| computed.number((stored ^ 1 << 63) as i64) as u64 ^ 1 << 63;
                let page: Vec<u64> = source.raw().iter().map(from).collect();
                return Ok(Numbers { range: 0..page.len(), page: Arc::new(page) });
            }
            _ => return Err(self.source.corrupt("a column that should hold numbers holds text")),
        }
        if here.is_empty() {
            return Ok(Numbers { page: Arc::new(Vec::new()), range: 0..0 });
        }
        let (page, page_start, page_len) = self.page_of(*domain, range)?;
        let numbers = match &self.caches[column as usize].page {
            Some((cached, numbers)) if *cached == page => numbers.clone(),
            _ => {
                let mut out = Vec::with_capacity(page_len);
                let (contents, bytes) = self.piece(column, page)?;
                integers::decode(&contents[bytes], page_len, &mut out).map_err(|e| self.damaged(e))?;
                let numbers = Arc::new(out);
                self.caches[column as usize].page = Some((page, numbers.clone()));
                numbers
            }
        };
        if numbers.len() != page_len {
            return Err(self.source.corrupt("a page of another length"));
        }
        Ok(Numbers { page: numbers, range: here.start - page_start..here.end - page_start })
    }

    /// All entries of a dictionary as text.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn entries(&mut self, dictionary: u32) -> Result<Arc<Values>> {
        if let Some(entries) = &self.entries[dictionary as usize] {
            return Ok(entries.clone());
        }
        let plan = self.plan.clone();
        let layout = &plan.dictionaries[dictionary as usize];
        let (mut data, mut ends) = (Vec::new(), Vec::new());
        for page in 0..layout.pages() {
            let piece = self.dictionary_pieces[dictionary as usize] + page * if layout.sets { 2 } else { 1 };
            let (contents, bytes) = self.dictionary_frames.piece(piece, &self.source.bytes, &self.source.name, self.source.offset)?;
            let (count, bytes_max) = (layout.page_len(page), layout.page_bytes_max as usize);
            match layout.class {
                None => dictionary::decode_text(&contents[bytes], count, bytes_max, &mut data, &mut ends),
                Some(class) => dictionary::decode_fixed(&contents[bytes], count, class, &mut data, &mut ends),
            }
            .map_err(|e| self.damaged(e))?;
        }
        if ends.len() != layout.entries as usize {
            return Err(self.source.corrupt("a dictionary of another length"));
        }
        let entries = Arc::new(Values::Text { data, ends });
        self.entries[dictionary as usize] = Some(entries.clone());
        Ok(entries)
    }

    /// The row ranges that may hold entry `entry` of a dictionary; `None` when that is not said.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn page_set(&mut self, dictionary: u32, entry: u32) -> Result<Option<Vec<u32>>> {
        let plan = self.plan.clone();
        let layout = &plan.dictionaries[dictionary as usize];
        if !layout.sets || entry >= layout.entries {
            return Ok(None);
        }
        let page = (entry / layout.page_entries) as usize;
        let piece = self.dictionary_pieces[dictionary as usize] + page * 2 + 1;
        let (contents, bytes) = self.dictionary_frames.piece(piece, &self.source.bytes, &self.source.name, self.source.offset)?;
        let (ends, ranges) = dictionary::decode_sets(&contents[bytes], layout.page_len(page), plan.ranges).map_err(|e| self.damaged(e))?;
        let index = (entry % layout.page_entries) as usize;
        let start = if index == 0 { 0 } else { ends[index - 1] as usize };
        let set = &ranges[start..ends[index] as usize];
        Ok(if set.is_empty() { None } else { Some(set.to_vec()) })
    }

    /// Decodes every page set, so that a check of everything misses none.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`].
    pub fn check_sets(&mut self) -> Result<()> {
        let plan = self.plan.clone();
        for (index, layout) in plan.dictionaries.iter().enumerate().filter(|(_, l)| l.sets) {
            for page in 0..layout.pages() {
                self.page_set(index as u32, (page * layout.page_entries as usize) as u32)?;
            }
        }
        Ok(())
    }

    fn damaged(&self, error: WireError) -> Error {
        self.source.corrupt(format_args!("{} (at byte {} of a page)", error.what, error.offset))
    }

    fn end_of(&self, len: usize) -> Result<u32> {
        u32::try_from(len).map_err(|_| self.source.corrupt("a row range passes 4 GiB"))
    }

    /// Number, first value and length of the page that holds `range`.
    fn page_of(&self, domain: u32, range: usize) -> Result<(usize, usize, usize)> {
        let pages = &self.domain_pages[domain as usize];
        let page = pages.partition_point(|p| p.end <= range);
        let ranges = pages.get(page).filter(|p| p.contains(&range)).ok_or_else(|| self.source.corrupt("no such page"))?;
        let domain = &self.plan.domains[domain as usize];
        let start = domain.range(ranges.start).start;
        Ok((page, start, domain.range(ranges.end - 1).end - start))
    }

    fn piece(&mut self, column: u32, page: usize) -> Result<(Arc<Vec<u8>>, Range<usize>)> {
        let piece = *self.pieces[column as usize].get(page).ok_or_else(|| self.source.corrupt("no such page"))?;
        self.data_frames.piece(piece as usize, &self.source.bytes, &self.source.name, self.source.offset)
    }

    fn text_slice(&mut self, column: u32, range: usize, here: Range<usize>) -> Result<Slice> {
        if here.is_empty() {
            return Ok(Slice::whole(Vec::new(), Vec::new()));
        }
        let (page, start, len) = self.page_of(self.plan.columns[column as usize].domain, range)?;
        let values = match &self.caches[column as usize].text {
            Some((cached, values)) if *cached == page => values.clone(),
            _ => {
                let (mut data, mut ends) = (Vec::new(), Vec::new());
                let (contents, bytes) = self.piece(column, page)?;
                text::decode(&contents[bytes], len, &mut data, &mut ends).map_err(|e| self.damaged(e))?;
                if ends.len() != len {
                    return Err(self.source.corrupt("a page of another length"));
                }
                let values = Arc::new(Values::Text { data, ends });
                self.caches[column as usize].text = Some((page, values.clone()));
                values
            }
        };
        Ok(Slice { values, start: here.start - start, len: here.len() })
    }

    fn entry_slice(&mut self, column: u32, dictionary: u32, range: usize, here: Range<usize>) -> Result<Slice> {
        if here.is_empty() {
            return Ok(Slice::whole(Vec::new(), Vec::new()));
        }
        let (page, start, _) = self.page_of(self.plan.columns[column as usize].domain, range)?;
        let values = match &self.caches[column as usize].text {
            Some((cached, values)) if *cached == page => values.clone(),
            _ => {
                let entries = self.entries(dictionary)?;
                let most = u64::from(self.plan.dictionaries[dictionary as usize].entries);
                self.numbers(column, range)?;
                let numbers = self.caches[column as usize].page.take().map(|(_, numbers)| numbers).unwrap_or_default();
                if numbers.iter().any(|&n| n >= most) {
                    return Err(self.source.corrupt("no such dictionary entry"));
                }
                let values = Arc::new(Values::Entries { ids: numbers.iter().map(|&n| n as u32).collect(), entries });
                self.caches[column as usize].text = Some((page, values.clone()));
                values
            }
        };
        Ok(Slice { values, start: here.start - start, len: here.len() })
    }

    fn print(&mut self, column: u32, type_: Type, numbers: &Numbers) -> Result<Slice> {
        let (mut out, mut ends) = self.buffers(column);
        let mut printer = Printer::new(type_);
        for &number in numbers.raw() {
            printer.print((number ^ 1 << 63) as i64, &mut out);
            ends.push(self.end_of(out.len())?);
        }
        Ok(Slice::whole(out.into_memory(), ends))
    }

    fn join(&mut self, column: u32, list: &List, range: usize) -> Result<Slice> {
        let counts = self.numbers(list.counts, range)?;
        let elements = self.values(list.elements, range)?;
        let (mut out, mut ends) = self.buffers(column);
        let mut next = 0;
        for &count in counts.raw() {
            let count = usize::try_from((count ^ 1 << 63) as i64).ok().filter(|&count| count <= elements.len() - next);
            let count = count.ok_or_else(|| self.source.corrupt("lists need more elements than there are"))?;
            for index in next..next + count {
                if index > next {
                    out.put_long(&list.separator);
                }
                let element = elements.get(index);
                out.put(element, 0, element.len());
            }
            next += count;
            ends.push(self.end_of(out.len())?);
        }
        if next < elements.len() {
            return Err(self.source.corrupt("lists need fewer elements than there are"));
        }
        Ok(Slice::whole(out.into_memory(), ends))
    }

    fn assemble(&mut self, column: u32, range: usize) -> Result<Slice> {
        let program = self.program(column);
        let ids = self.numbers(column, range)?;
        let mut children = Vec::with_capacity(program.children.len());
        for &(child, _) in &program.children {
            children.push(self.child(child, range)?);
        }
        let (mut out, mut ends) = self.buffers(column);
        program.run(ids.raw(), &children, &mut out, &mut ends).map_err(|what| self.source.corrupt(what))?;
        Ok(Slice::whole(out.into_memory(), ends))
    }

    /// The values of a column that is part of a composite one, as text. Entries of a dictionary are copied together first: many
    /// loads at once hide what each of them waits for.
    fn child(&mut self, column: u32, range: usize) -> Result<Slice> {
        let Column { domain, kind } = &self.plan.columns[column as usize];
        if self.plan.domains[*domain as usize].range(range).is_empty() {
            return Ok(Slice::whole(Vec::new(), Vec::new()));
        }
        if let Kind::Same(other) = *kind {
            return self.child(other, range);
        }
        let slice = self.values(column, range)?;
        let Values::Entries { ids, entries } = &*slice.values else { return Ok(slice) };
        let (mut out, mut ends) = self.buffers(column);
        entries.gather(&ids[slice.start..slice.start + slice.len], &mut out, &mut ends);
        self.end_of(out.len())?;
        let slice = Slice::whole(out.into_memory(), ends);
        self.caches[column as usize].range = Some((range, slice.clone()));
        Ok(slice)
    }

    /// Empty buffers: those of the column's last range when nobody holds it any more.
    fn buffers(&mut self, column: u32) -> (Out, Vec<u32>) {
        let last = self.caches[column as usize].range.take().and_then(|(_, slice)| slice.into_buffers());
        let (data, mut ends) = last.unwrap_or_default();
        ends.clear();
        (Out::reuse(data), ends)
    }

    fn program(&mut self, column: u32) -> Arc<Program> {
        if let Some(program) = &self.programs[column as usize] {
            return program.clone();
        }
        let program = Arc::new(Program::new(&self.plan, column));
        self.programs[column as usize] = Some(program.clone());
        program
    }
}

fn put_escaped(plain: &[u8], escape: Escape, out: &mut Out) {
    let controls = escape == Escape::Json && plain.iter().fold(u8::MAX, |least, &b| least.min(b)) < b' ';
    let find = |rest: &[u8]| match escape {
        Escape::Json if controls => rest.iter().position(|&b| b < b' ' || matches!(b, b'"' | b'\\')),
        Escape::Json => memchr::memchr2(b'"', b'\\', rest),
        Escape::Doubled => memchr::memchr(b'"', rest),
    };
    let mut at = 0;
    while let Some(found) = find(&plain[at..]) {
        out.put(plain, at, found);
        let byte = plain[at + found];
        match (escape, JSON_ESCAPES.iter().find(|e| e.0 == byte)) {
            (Escape::Doubled, _) => out.put_long(b"\"\""),
            (Escape::Json, Some(&(_, short))) => out.put_long(&[b'\\', short]),
            (Escape::Json, None) => out.put_long(&[byte]),
        }
        at += found + 1;
    }
    out.put(plain, at, plain.len() - at);
}
