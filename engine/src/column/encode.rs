//! Encoding columns: looks at the values of a column, chooses its encoding, takes composite values apart into further columns.
//!
//! Choices never decide correctness: whoever encodes a row group decodes it again and compares.

use super::dictionary::{Builder, Distinct};
use super::plan::{Column, Domain, Escape, JSON_ESCAPES, Kind, Plan, Shape};
use super::references::{Sibling, Source};
use super::shapes::Promise;
use super::{frames, mapping};
use crate::encoding::integers::{self, IntCoding};
use crate::encoding::typed::{FixedClass, Type};
use crate::encoding::{Piece, text};
use crate::error::Result;
use crate::packing;
use crate::shape::text::Grain;
use crate::shape::time::Times;
use crate::shape::{Part, SlotKind, Span};
use hashbrown::HashMap;
use std::hash::{BuildHasher, Hasher};

/// Composite values are taken apart at most so deep.
const DEPTH_MAX: u8 = 12;
/// Values looked at to choose.
const SAMPLE: usize = 1024;
/// A column's type is widened at most so often.
const TYPES_TRIED_MAX: usize = 8;
/// Distinct values a value up to which a dictionary is made.
const DICTIONARY_RATIO_MAX: f64 = 0.7;
/// Values encoded to try an encoding, and their bytes.
const TRIAL_VALUES_MAX: usize = 2048;
const TRIAL_BYTES_MAX: usize = 512 << 10;
/// Values in which escapes are looked for.
const ESCAPES_LOOKED_AT: usize = 64;
/// Columns with fewer values are not taken apart.
const COMPOSITE_VALUES_MIN: usize = 32;

/// From this level of zstd on time is spent for size …
pub const DENSE_LEVEL: i32 = 9;
/// … where what is left to compress is at most this part of the lines: (part, level).
const LEVELS: [(usize, i32); 3] = [(40, 19), (12, 15), (6, 12)];

/// How hard to try.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// zstd's level.
    pub zstd: i32,
    /// pco's level.
    pub pco: u8,
    /// Whether columns found equal by their hash are stored once; off after a hash lied.
    pub same: bool,
    /// Whether plain compression of the whole row group in one piece is tried too, whatever it costs; its rows can only be read together.
    pub archive: bool,
}

/// What is known of a column before its values are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hint {
    pub depth: u8,
    /// Values are lines: are always tried as shapes.
    pub lines: bool,
    /// Values may be JSON objects.
    pub json: bool,
    pub slot: SlotKind,
    /// What may still be cut: a coarse token only finely, a run of digits not at all.
    pub grain: Option<Grain>,
}

/// Encodes the columns of one row group.
pub struct Encoder {
    pub(super) ranges: usize,
    pub(super) effort: Effort,
    pub(super) domains: Vec<Domain>,
    domain_index: HashMap<Domain, u32, foldhash::fast::FixedState>,
    pub(crate) columns: Vec<Column>,
    /// For each column how deep others nest in it.
    pub(super) nested: Vec<u32>,
    pages: Vec<(u32, u32, u32, Piece)>,
    seen: HashMap<(u64, u32), u32, foldhash::fast::FixedState>,
    dictionaries: Vec<Builder>,
    classes: HashMap<FixedClass, u32, foldhash::fast::FixedState>,
    /// Numbers of the line's direct slots; wanted to find the timestamp again.
    pub(crate) numbers: HashMap<u32, Vec<i64>, foldhash::fast::FixedState>,
    /// The shape of each line, once the line column is encoded.
    pub(crate) line_shapes: Vec<u32>,
    /// Columns that those still to come may refer to, of all levels that are open.
    pub(super) siblings: Vec<Sibling>,
    /// The same for columns of numbers.
    pub(super) sources: Vec<Source>,
    /// Bytes of all lines.
    line_bytes: usize,
    /// Encodes a sample to see how long it gets.
    on_trial: bool,
}

impl Encoder {
    /// An encoder of rows in `ranges` row ranges.
    pub fn new(ranges: usize, effort: Effort) -> Self {
        Encoder {
            ranges,
            effort,
            domains: Vec::new(),
            domain_index: HashMap::default(),
            columns: Vec::new(),
            nested: Vec::new(),
            pages: Vec::new(),
            seen: HashMap::default(),
            dictionaries: Vec::new(),
            classes: HashMap::default(),
            numbers: HashMap::default(),
            line_shapes: Vec::new(),
            siblings: Vec::new(),
            sources: Vec::new(),
            line_bytes: 0,
            on_trial: false,
        }
    }

    /// The number of the domain with these range ends.
    pub fn domain(&mut self, ends: Vec<u32>) -> u32 {
        let domain = Domain { ends };
        if let Some(&index) = self.domain_index.get(&domain) {
            return index;
        }
        let index = self.domains.len() as u32;
        self.domains.push(domain.clone());
        self.domain_index.insert(domain, index);
        index
    }

    /// Encodes lines; returns the column.
    ///
    /// # Errors
    /// When zstd fails.
    pub fn lines(&mut self, arena: &[u8], spans: &[Span], domain: u32) -> Result<u32> {
        self.line_bytes += arena.len();
        self.column(arena, spans, domain, Hint { depth: 0, lines: true, json: true, slot: SlotKind::Verbatim, grain: Some(Grain::Coarse) })
    }

    /// Encodes values as they are, without looking for structure; returns the column.
    ///
    /// # Errors
    /// When zstd fails.
    pub fn verbatim(&mut self, arena: &[u8], spans: &[Span], domain: u32) -> Result<u32> {
        let column = self.add(domain, Kind::Text);
        self.text_pages(column, arena, spans, domain);
        Ok(column)
    }

    /// Encodes numbers; returns the column.
    ///
    /// # Errors
    /// When zstd fails.
    pub fn number_column(&mut self, numbers: &[i64], domain: u32) -> Result<u32> {
        let column = self.add(domain, Kind::Number(Type::Int));
        self.number_pages(column, numbers, domain)?;
        Ok(column)
    }

    /// Ends encoding: sorts the dictionaries, packs all pages; frames go behind `out`, dictionaries first.
    /// Returns the plan and, for each dictionary, the fences of its pages.
    ///
    /// # Errors
    /// When zstd fails or a page is too large.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(Plan, Vec<Vec<Vec<u8>>>)> {
        let mut dictionary_pieces = Vec::new();
        let mut dictionary_plans = Vec::new();
        let mut fences = Vec::new();
        let mut uses = Vec::new();
        for builder in std::mem::take(&mut self.dictionaries) {
            let finished = builder.finish(&self.columns, &self.domains, self.ranges)?;
            uses.extend(finished.columns);
            dictionary_pieces.extend(finished.pieces);
            dictionary_plans.push(finished.plan);
            fences.push(finished.fences);
        }
        uses.sort_unstable_by_key(|u: &(u32, Vec<u64>)| u.0);
        for (column, mapping) in mapping::find(&uses, &self.columns, &dictionary_plans) {
            self.columns[column as usize].kind = Kind::Mapped(mapping);
        }
        for (column, ids) in uses {
            let Column { domain, kind } = &self.columns[column as usize];
            if kind.has_pages() {
                self.integer_pages(column, &ids, *domain)?;
            }
        }
        self.pages.sort_unstable_by_key(|p| (p.0, p.1, p.2));
        let (entries, pages): (Vec<&Piece>, Vec<&Piece>) = (dictionary_pieces.iter().collect(), self.pages.iter().map(|p| &p.3).collect());
        let level = self.frame_level(entries.iter().chain(&pages).filter(|p| !p.hard).map(|p| p.bytes.len()).sum());
        let dictionary_area = frames::pack(&entries, level, out)?;
        let data_area = frames::pack(&pages, level, out)?;
        let plan = Plan {
            ranges: self.ranges as u32,
            domains: self.domains,
            dictionaries: dictionary_plans,
            columns: self.columns,
            dictionary_area,
            data_area,
        };
        Ok((plan, fences))
    }

    /// zstd's level for frames when `soft` bytes are to be compressed: what columns took away leaves time for the rest.
    fn frame_level(&self, soft: usize) -> i32 {
        let level = self.effort.zstd;
        let best = LEVELS.iter().find(|(part, _)| soft.saturating_mul(*part) <= self.line_bytes).map_or(level, |l| l.1);
        if level < DENSE_LEVEL { level } else { level.max(best) }
    }

    pub(super) fn add(&mut self, domain: u32, kind: Kind) -> u32 {
        self.nested.push(kind.children().map(|child| self.nested[child as usize] + 1).max().unwrap_or(0));
        self.columns.push(Column { domain, kind });
        self.columns.len() as u32 - 1
    }

    pub(super) fn column(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<u32> {
        debug_assert_eq!(self.domains[domain as usize].total(), spans.len());
        let first = spans.first().map_or(&[][..], |s| s.of(arena));
        if spans.iter().all(|s| s.len as usize == first.len() && (s.len == 0 || s.of(arena) == first)) {
            return Ok(self.add(domain, Kind::Constant(first.to_vec())));
        }
        let key = (sequence_hash(arena, spans), domain);
        if self.effort.same
            && let Some(&other) = self.seen.get(&key)
        {
            return Ok(self.add(domain, Kind::Same(other)));
        }
        let column = match self.typed(arena, spans, domain, hint)? {
            Some(column) => column,
            None => self.untyped(arena, spans, domain, hint)?,
        };
        self.seen.insert(key, column);
        Ok(column)
    }

    fn typed(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<Option<u32>> {
        let Some((type_, numbers)) = common_type(arena, spans) else { return Ok(None) };
        if let Some(class) = FixedClass::of(type_) {
            return Ok(Some(self.class_column(class, arena, spans, domain)));
        }
        if matches!(type_, Type::Int | Type::Padded(_)) && repeats_widely(&numbers) {
            return Ok(None);
        }
        let numbers = match self.computed(numbers, domain, type_) {
            Ok(column) => return Ok(Some(column)),
            Err(numbers) => numbers,
        };
        let column = self.add(domain, Kind::Number(type_));
        self.number_pages(column, &numbers, domain)?;
        self.remember(column, domain, &numbers);
        if hint.depth == 1 && matches!(type_, Type::Int | Type::Time(_) | Type::ShortTime(_)) {
            self.numbers.insert(column, numbers);
        }
        Ok(Some(column))
    }

    fn class_column(&mut self, class: FixedClass, arena: &[u8], spans: &[Span], domain: u32) -> u32 {
        let index = match self.classes.get(&class) {
            Some(&index) => index,
            None => {
                self.dictionaries.push(Builder::new(Some(class)));
                self.classes.insert(class, self.dictionaries.len() as u32 - 1);
                self.dictionaries.len() as u32 - 1
            }
        };
        let column = self.add(domain, Kind::Dictionary(index));
        let builder = &mut self.dictionaries[index as usize];
        let mut packed = Vec::with_capacity(class.width());
        let ids = spans
            .iter()
            .map(|s| {
                packed.clear();
                class.pack(s.of(arena), &mut packed);
                builder.distinct.id(&packed)
            })
            .collect();
        builder.columns.push((column, ids));
        column
    }

    fn untyped(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<u32> {
        if hint.lines {
            if let Some(column) = self.shapes(arena, spans, domain, Grain::Coarse, hint)? {
                return Ok(column);
            }
            return self.verbatim(arena, spans, domain);
        }
        if let Some(column) = self.mixed_times(arena, spans, domain, hint)? {
            return Ok(column);
        }
        let ratio = distinct_ratio(arena, spans);
        if ratio <= 0.12
            && let Some(column) = self.text_dictionary(arena, spans, domain, 0.25)
        {
            return Ok(column);
        }
        if spans.len() >= COMPOSITE_VALUES_MIN && hint.depth < DEPTH_MAX {
            if hint.slot == SlotKind::JsonArray
                && let Some(column) = self.list(arena, spans, domain, hint)?
            {
                return Ok(column);
            }
            if hint.json
                && spans.iter().take(ESCAPES_LOOKED_AT).any(|s| s.of(arena).starts_with(b"{"))
                && let Some(column) = self.shapes(arena, spans, domain, Grain::Coarse, hint)?
            {
                return Ok(column);
            }
            if let Some(column) = self.unescaped(arena, spans, domain, hint)? {
                return Ok(column);
            }
            let grains = [Grain::Named, Grain::Coarse, Grain::Fine];
            let grains = grains.into_iter().filter(|&g| hint.grain == Some(Grain::Coarse) || hint.grain == Some(g));
            let promises: Vec<(Grain, Promise)> = grains.map(|grain| (grain, super::shapes::promise(arena, spans, grain))).collect();
            for &(grain, _) in promises.iter().filter(|p| p.1 == Promise::Good) {
                if let Some(column) = self.shapes(arena, spans, domain, grain, hint)? {
                    return Ok(column);
                }
            }
            if let Some(column) = self.reference(arena, spans, domain, hint)? {
                return Ok(column);
            }
            for &(grain, _) in promises.iter().filter(|p| p.1 == Promise::Unclear) {
                if self.shapes_pay(arena, spans, grain, hint)?
                    && let Some(column) = self.shapes(arena, spans, domain, grain, hint)?
                {
                    return Ok(column);
                }
            }
        }
        if ratio <= 0.6
            && let Some(column) = self.text_dictionary(arena, spans, domain, DICTIONARY_RATIO_MAX)
        {
            return Ok(column);
        }
        self.verbatim(arena, spans, domain)
    }

    /// JSON inside a JSON string and quotes inside a quoted field, when undoing the escapes can be undone.
    fn unescaped(&mut self, arena: &[u8], spans: &[Span], domain: u32, hint: Hint) -> Result<Option<u32>> {
        let any = |has: fn(&[u8]) -> bool| spans.iter().take(ESCAPES_LOOKED_AT).any(|s| has(s.of(arena)));
        let escape = match hint.slot {
            SlotKind::JsonString if any(|value| value.contains(&b'\\')) => Escape::Json,
            SlotKind::Quoted if any(|value| memchr::memmem::find(value, b"\"\"").is_some()) => Escape::Doubled,
            _ => return Ok(None),
        };
        let mut plain = Vec::new();
        let mut plain_spans = Vec::with_capacity(spans.len());
        for span in spans {
            let at = plain.len();
            if !unescape(span.of(arena), escape, &mut plain) {
                return Ok(None);
            }
            plain_spans.push(Span { at: at as u32, len: (plain.len() - at) as u32 });
        }
        let inner = Hint { depth: hint.depth + 1, lines: false, json: true, slot: SlotKind::Verbatim, grain: Some(Grain::Coarse) };
        let child = self.column(&plain, &plain_spans, domain, inner)?;
        Ok(Some(self.add(domain, Kind::Escaped(child, escape))))
    }

    /// Whether cutting values at `grain` makes them smaller: some of them are encoded in all ways.
    fn shapes_pay(&self, arena: &[u8], spans: &[Span], grain: Grain, hint: Hint) -> Result<bool> {
        if self.on_trial {
            return Ok(false);
        }
        let mut bytes = 0;
        let fits = |span: &&Span| {
            bytes += span.len as usize;
            bytes <= TRIAL_BYTES_MAX
        };
        let count = spans.iter().take(TRIAL_VALUES_MAX).take_while(fits).count();
        let sample = &spans[..count];
        let cut = self.trial(count, |encoder| encoder.shapes(arena, sample, 0, grain, hint))?;
        let plain = self.trial(count, |encoder| encoder.verbatim(arena, sample, 0).map(Some))?;
        let entries = self.trial(count, |encoder| Ok(encoder.text_dictionary(arena, sample, 0, DICTIONARY_RATIO_MAX)))?;
        Ok(cut.is_some_and(|cut| [plain, entries].into_iter().flatten().all(|other| cut < other)))
    }

    /// The bytes that a column of `count` values takes, its part of the plan included; `None` when `encode` makes none.
    fn trial(&self, count: usize, encode: impl FnOnce(&mut Encoder) -> Result<Option<u32>>) -> Result<Option<usize>> {
        let mut encoder = Encoder::new(1, self.effort);
        encoder.on_trial = true;
        encoder.domain(vec![count as u32]);
        if encode(&mut encoder)?.is_none() {
            return Ok(None);
        }
        let (mut frames, mut plan) = (Vec::new(), Vec::new());
        encoder.finish(&mut frames)?.0.encode(&mut plan);
        Ok(Some(frames.len() + packing::compress(&plan, self.effort.zstd)?.len()))
    }

    fn text_dictionary(&mut self, arena: &[u8], spans: &[Span], domain: u32, ratio_max: f64) -> Option<u32> {
        let most = (spans.len() as f64 * ratio_max) as usize;
        let mut builder = Builder::new(None);
        let mut ids = Vec::with_capacity(spans.len());
        for span in spans {
            ids.push(builder.distinct.id(span.of(arena)));
            if builder.distinct.len() > most {
                return None;
            }
        }
        let column = self.add(domain, Kind::Dictionary(self.dictionaries.len() as u32));
        builder.columns.push((column, ids));
        self.dictionaries.push(builder);
        Some(column)
    }

    fn text_pages(&mut self, column: u32, arena: &[u8], spans: &[Span], domain: u32) {
        for (page, ranges) in self.domains[domain as usize].pages().into_iter().enumerate() {
            let values = values_of(&self.domains[domain as usize], &ranges);
            let piece = text::encode(spans[values].iter().map(|s| s.of(arena)));
            self.pages.push((ranges.start as u32, column, page as u32, piece));
        }
    }

    pub(super) fn number_pages(&mut self, column: u32, numbers: &[i64], domain: u32) -> Result<()> {
        let ordered: Vec<u64> = numbers.iter().map(|&n| n as u64 ^ 1 << 63).collect();
        self.integer_pages(column, &ordered, domain)
    }

    pub(super) fn integer_pages(&mut self, column: u32, integers: &[u64], domain: u32) -> Result<()> {
        let pages = self.domains[domain as usize].pages();
        let mut coding: Option<IntCoding> = None;
        for (page, ranges) in pages.into_iter().enumerate() {
            let values = &integers[values_of(&self.domains[domain as usize], &ranges)];
            let coding = match coding {
                Some(coding) => coding,
                None => {
                    let (mut failed, mut scratch) = (None, Vec::new());
                    let sample = &values[..values.len().min(if self.effort.zstd < DENSE_LEVEL { 2 } else { 8 } * SAMPLE)];
                    let level = self.effort.zstd;
                    let chosen =
                        integers::choose(sample, self.effort.pco, |bytes| match packing::compress_into(bytes, level, &mut scratch) {
                            Ok(()) => scratch.len(),
                            Err(error) => {
                                failed = Some(error);
                                bytes.len()
                            }
                        });
                    if let Some(error) = failed {
                        return Err(error);
                    }
                    *coding.insert(chosen)
                }
            };
            self.pages.push((ranges.start as u32, column, page as u32, integers::encode(values, coding)));
        }
        Ok(())
    }
}

fn values_of(domain: &Domain, ranges: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    domain.range(ranges.start).start..domain.range(ranges.end - 1).end
}

/// Hash of a sequence of byte strings.
fn sequence_hash(arena: &[u8], spans: &[Span]) -> u64 {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    for span in spans {
        hasher.write_u32(span.len);
        hasher.write(span.of(arena));
    }
    hasher.finish()
}

/// The type that all values share, and their numbers when it is numeric.
fn common_type(arena: &[u8], spans: &[Span]) -> Option<(Type, Vec<i64>)> {
    let mut type_ = Type::of(spans.first()?.of(arena))?;
    let mut times = Times::default();
    'again: for _ in 0..TYPES_TRIED_MAX {
        let fixed = FixedClass::of(type_).is_some();
        let mut numbers = Vec::with_capacity(if fixed { 0 } else { spans.len() });
        for span in spans {
            let value = span.of(arena);
            if fixed && type_.holds(value) {
                continue;
            }
            match type_.number_with(value, &mut times) {
                Some(number) => numbers.push(number),
                None => {
                    type_ = type_.join(Type::of(value)?, value)?;
                    continue 'again;
                }
            }
        }
        return Some((type_, numbers));
    }
    None
}

/// Whether wide numbers come from a small set in no order, so that a dictionary holds them better.
fn repeats_widely(numbers: &[i64]) -> bool {
    let mut sample: Vec<i64> = numbers.iter().copied().take(2 * SAMPLE).collect();
    let rising = sample.windows(2).filter(|w| w[1] >= w[0]).count();
    let len = sample.len();
    sample.sort_unstable();
    let (Some(least), Some(most)) = (sample.first(), sample.last()) else { return false };
    let wide = most.wrapping_sub(*least) as u64 > 1 << 20;
    sample.dedup();
    wide && rising * 10 < len * 9 && sample.len() * 4 < len
}

/// Distinct values per value in a sample.
fn distinct_ratio(arena: &[u8], spans: &[Span]) -> f64 {
    let step = (spans.len() / SAMPLE).max(1);
    let mut distinct = Distinct::default();
    let mut seen = 0;
    for span in spans.iter().step_by(step).take(SAMPLE) {
        distinct.id(span.of(arena));
        seen += 1;
    }
    distinct.len() as f64 / f64::from(seen.max(1))
}

/// Undoes escapes; false when the text could not have been escaped so.
fn unescape(escaped: &[u8], escape: Escape, out: &mut Vec<u8>) -> bool {
    // Raw, as no JSON has it but some writers do, a control byte with a short escape would come back with it.
    if escape == Escape::Json && escaped.iter().any(|byte| *byte < b' ' && JSON_ESCAPES.iter().any(|e| e.0 == *byte)) {
        return false;
    }
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'\\', b'"', &escaped[at..]) {
        let place = at + found;
        out.extend_from_slice(&escaped[at..place]);
        let (byte, len) = match (escape, escaped.get(place..place + 2)) {
            (Escape::Json, Some([b'\\', short])) => match JSON_ESCAPES.iter().find(|e| e.1 == *short) {
                Some(&(byte, _)) => (byte, 2),
                None => return false,
            },
            (Escape::Doubled, Some(b"\"\"")) => (b'"', 2),
            (Escape::Doubled, _) if escaped[place] == b'\\' => (b'\\', 1),
            _ => return false,
        };
        out.push(byte);
        at = place + len;
    }
    out.extend_from_slice(&escaped[at..]);
    true
}

/// The parts of a shape for a column that is one slot.
pub(super) fn verbatim_shape(column: u32) -> Shape {
    vec![Part::Slot(column)]
}
