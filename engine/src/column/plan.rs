//! The plan: how the columns of a row group are encoded; everything a reader needs beside the frames.

use crate::encoding::typed::{FixedClass, Type};
use crate::shape::Part;
use crate::shape::time::Layout;
use crate::wire::{Reader, WireResult, put_bytes, put_signed, put_varint};
use hashbrown::HashMap;

/// Columns nest at most so deep; the writer stays far below.
pub const DEPTH_MAX: u32 = 64;

/// A page holds whole row ranges and is closed when it has at least so many values.
pub const PAGE_VALUES_MIN: u32 = haystore_format::constants::PAGE_VALUES_MIN as u32;

/// The values of a column in each row range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Domain {
    /// Values up to the end of each range.
    pub ends: Vec<u32>,
}

impl Domain {
    /// All values.
    pub fn total(&self) -> usize {
        self.ends.last().map_or(0, |&e| e as usize)
    }

    /// First and last+1 value of a range.
    pub fn range(&self, range: usize) -> std::ops::Range<usize> {
        let start = if range == 0 { 0 } else { self.ends[range - 1] };
        start as usize..self.ends[range] as usize
    }

    /// The pages: each the ranges it covers. Pages without values are left out.
    pub fn pages(&self) -> Vec<std::ops::Range<usize>> {
        let mut pages = Vec::new();
        let (mut first, mut start) = (0, 0);
        for (range, &end) in self.ends.iter().enumerate() {
            if end == start {
                first = range + 1;
            } else if end - start >= PAGE_VALUES_MIN || range + 1 == self.ends.len() || end as usize == self.total() {
                pages.push(first..range + 1);
                (first, start) = (range + 1, end);
            }
        }
        pages
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Index of its domain.
    pub domain: u32,
    /// Its encoding.
    pub kind: Kind,
}

/// How a column is encoded.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Every value is this one. No pages.
    Constant(Vec<u8>),
    /// The same values as another column of the same domain with a smaller index. No pages.
    Same(u32),
    /// Pages of byte strings.
    Text,
    /// Pages of numbers that print as the values.
    Number(Type),
    /// Pages of entry numbers of a dictionary.
    Dictionary(u32),
    /// Pages of shape numbers; the slots are columns.
    Shapes(Vec<Shape>),
    /// The values of another column, with quotes escaped. No pages.
    Escaped(u32, Escape),
    /// Entries of a dictionary, chosen by the entry numbers of another column. No pages.
    Mapped(Mapping),
    /// Values of another column with a separator between. No pages.
    List(List),
    /// What numbers print as that follow from those of another column. No pages.
    Computed(Computed),
}

/// How an escaped column differs from the plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// As in JSON strings: [`JSON_ESCAPES`].
    Json,
    /// Each `"` stands twice, as in CSV.
    Doubled,
}

/// Bytes that JSON writes as `\` and another byte.
pub const JSON_ESCAPES: [(u8, u8); 7] = [(b'"', b'"'), (b'\\', b'\\'), (b'\n', b'n'), (b'\t', b't'), (b'\r', b'r'), (8, b'b'), (12, b'f')];

/// A column whose values are joined from several of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The column that says of how many: of numbers, in the same domain.
    pub counts: u32,
    /// The column of what is joined; in each row range it has as many values as the counts add up to.
    pub elements: u32,
    /// What stands between.
    pub separator: Vec<u8>,
}

/// A column of numbers computed from another one: number = source / divisor, rounded down, + addend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Computed {
    /// The column computed from, of stored numbers, in the same domain.
    pub source: u32,
    /// At least 1.
    pub divisor: i64,
    /// Added with wrapping.
    pub addend: i64,
    /// What the numbers print as.
    pub type_: Type,
}

impl Computed {
    /// The number that follows from `source`.
    pub fn number(&self, source: i64) -> i64 {
        source.div_euclid(self.divisor).wrapping_add(self.addend)
    }
}

/// A column that is a function of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The column that decides: of entry numbers, in the same domain, with a smaller index.
    pub key: u32,
    /// The dictionary of the values.
    pub dictionary: u32,
    /// For each entry of the key's dictionary the entry of the value.
    pub table: Vec<u32>,
}

/// A template: literals, and for slots the next value of a column.
pub type Shape = Vec<Part<u32>>;

impl Kind {
    /// The columns that this one is made of.
    pub fn children(&self) -> impl Iterator<Item = u32> + '_ {
        let (few, shapes) = match self {
            Kind::Same(child) | Kind::Escaped(child, _) | Kind::Mapped(Mapping { key: child, .. }) => ([Some(*child), None], &[][..]),
            Kind::Computed(computed) => ([Some(computed.source), None], &[][..]),
            Kind::List(list) => ([Some(list.counts), Some(list.elements)], &[][..]),
            Kind::Shapes(shapes) => ([None, None], &shapes[..]),
            _ => ([None, None], &[][..]),
        };
        let of_part = |part: &Part<u32>| if let Part::Slot(column) | Part::Aligned(column) = part { Some(*column) } else { None };
        few.into_iter().flatten().chain(shapes.iter().flatten().filter_map(of_part))
    }

    /// Whether the column has pages of its own.
    pub fn has_pages(&self) -> bool {
        matches!(self, Kind::Text | Kind::Number(_) | Kind::Dictionary(_) | Kind::Shapes(_))
    }

    /// The dictionary of the values, when they are entries of one.
    pub fn dictionary(&self) -> Option<u32> {
        match self {
            Kind::Dictionary(dictionary) | Kind::Mapped(Mapping { dictionary, .. }) => Some(*dictionary),
            _ => None,
        }
    }
}

/// One dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryPlan {
    /// The class of fixed-width ids it holds; `None`: text.
    pub class: Option<FixedClass>,
    /// Number of entries.
    pub entries: u32,
    /// Entries a page.
    pub page_entries: u32,
    /// Whether each page has page sets.
    pub sets: bool,
    /// Bound of the bytes of one page's text.
    pub page_bytes_max: u32,
}

impl DictionaryPlan {
    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.entries.div_ceil(self.page_entries.max(1)) as usize
    }

    /// Entries of page `page`.
    pub fn page_len(&self, page: usize) -> usize {
        (self.entries as usize - page * self.page_entries as usize).min(self.page_entries as usize)
    }
}

/// A stored piece of bytes and how to check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Bytes stored.
    pub stored: u32,
    /// Whether they are a zstd frame.
    pub compressed: bool,
    /// CRC-32 of the stored bytes.
    pub crc: u32,
}

/// Pieces and frames of one area (dictionaries or data), in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Area {
    /// Length of each piece, and whether it is hard.
    pub pieces: Vec<(u32, bool)>,
    /// The frames.
    pub frames: Vec<Frame>,
}

/// Everything but the frames.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Number of row ranges.
    pub ranges: u32,
    /// Domains.
    pub domains: Vec<Domain>,
    /// Dictionaries.
    pub dictionaries: Vec<DictionaryPlan>,
    /// Columns; children come before their parents.
    pub columns: Vec<Column>,
    /// Dictionary pages.
    pub dictionary_area: Area,
    /// Column pages.
    pub data_area: Area,
}

const TYPE_INT: u8 = haystore_format::constants::types::INT;
const TYPE_PADDED: u8 = haystore_format::constants::types::PADDED;
const TYPE_DECIMAL: u8 = haystore_format::constants::types::DECIMAL;
const TYPE_TIME: u8 = haystore_format::constants::types::TIME;
const TYPE_SHORT_TIME: u8 = haystore_format::constants::types::SHORT_TIME;
const TYPE_SHORT_DECIMAL: u8 = haystore_format::constants::types::SHORT_DECIMAL;

impl Plan {
    /// The plan as bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.ranges));
        put_varint(out, self.domains.len() as u64);
        self.domains.iter().for_each(|d| put_domain(out, d));
        put_varint(out, self.dictionaries.len() as u64);
        for dictionary in &self.dictionaries {
            put_class(out, dictionary.class);
            put_varint(out, u64::from(dictionary.entries));
            put_varint(out, u64::from(dictionary.page_entries));
            out.push(u8::from(dictionary.sets));
            put_varint(out, u64::from(dictionary.page_bytes_max));
        }
        put_varint(out, self.columns.len() as u64);
        self.columns.iter().for_each(|c| put_column(out, c));
        put_area(out, &self.dictionary_area);
        put_area(out, &self.data_area);
    }

    /// The inverse of [`Plan::encode`]; checks that all references point where they may.
    ///
    /// # Errors
    /// When the bytes are no plan.
    pub fn decode(reader: &mut Reader<'_>) -> WireResult<Plan> {
        let ranges = reader.bounded(1 << 20)? as u32;
        let domains = many(reader, |r| take_domain(r, ranges))?;
        let dictionaries = many(reader, take_dictionary)?;
        let mut columns: Vec<Column> = Vec::new();
        let mut depths: Vec<u32> = Vec::new();
        for index in 0..reader.count()? {
            let column = take_column(reader, index as u32, domains.len(), dictionaries.len())?;
            check_domains(reader, &column, &columns)?;
            if let Kind::Mapped(mapping) = &column.kind {
                check_mapping(reader, mapping, &columns, &dictionaries)?;
            }
            depths.push(column.kind.children().map(|c| depths[c as usize] + 1).max().unwrap_or(0));
            if depths.last().is_some_and(|&d| d > DEPTH_MAX) {
                return Err(reader.error("columns nested too deep"));
            }
            columns.push(column);
        }
        Ok(Plan { ranges, domains, dictionaries, columns, dictionary_area: take_area(reader)?, data_area: take_area(reader)? })
    }

    /// Column pages in the order of their pieces: by first range, then column.
    pub fn page_order(&self) -> Vec<(u32, u32, u32)> {
        let domain_pages: Vec<_> = self.domains.iter().map(Domain::pages).collect();
        let mut order = Vec::new();
        for (index, column) in self.columns.iter().enumerate().filter(|(_, c)| c.kind.has_pages()) {
            let pages = &domain_pages[column.domain as usize];
            order.extend(pages.iter().enumerate().map(|(page, ranges)| (ranges.start as u32, index as u32, page as u32)));
        }
        order.sort_unstable();
        order
    }
}

/// Columns that go together value by value have one domain, and where numbers are needed there are some.
fn check_domains(reader: &Reader<'_>, own: &Column, columns: &[Column]) -> WireResult<()> {
    let same = |other: u32| columns[other as usize].domain == own.domain;
    let number = |column: u32| match columns[column as usize].kind {
        Kind::Same(other) => matches!(columns[other as usize].kind, Kind::Number(_)),
        ref kind => matches!(kind, Kind::Number(_)),
    };
    let fits = match &own.kind {
        Kind::Same(other) | Kind::Escaped(other, _) | Kind::Mapped(Mapping { key: other, .. }) => same(*other),
        Kind::Shapes(shapes) => shapes.iter().flatten().all(|part| if let Part::Aligned(other) = part { same(*other) } else { true }),
        Kind::List(list) if !number(list.counts) => return Err(reader.error("a list without counts")),
        Kind::List(list) => same(list.counts),
        Kind::Computed(computed) if !number(computed.source) => return Err(reader.error("a column computed from one without numbers")),
        Kind::Computed(computed) => same(computed.source),
        _ => true,
    };
    if fits { Ok(()) } else { Err(reader.error("columns that go together have different domains")) }
}

fn check_mapping(reader: &Reader<'_>, mapping: &Mapping, columns: &[Column], dictionaries: &[DictionaryPlan]) -> WireResult<()> {
    let Kind::Dictionary(of_key) = columns[mapping.key as usize].kind else {
        return Err(reader.error("a column is chosen by one without entry numbers"));
    };
    let entries = dictionaries[mapping.dictionary as usize].entries;
    if mapping.table.len() != dictionaries[of_key as usize].entries as usize || mapping.table.iter().any(|&e| e >= entries) {
        return Err(reader.error("no such dictionary entry"));
    }
    Ok(())
}

fn many<T>(reader: &mut Reader<'_>, mut one: impl FnMut(&mut Reader<'_>) -> WireResult<T>) -> WireResult<Vec<T>> {
    let count = reader.count()?;
    let mut out = Vec::new();
    for _ in 0..count {
        out.push(one(reader)?);
    }
    Ok(out)
}

/// Non-empty ranges: gap to the last one, count less one; ended by their number first.
fn put_domain(out: &mut Vec<u8>, domain: &Domain) {
    let filled: Vec<usize> = (0..domain.ends.len()).filter(|&r| !domain.range(r).is_empty()).collect();
    put_varint(out, filled.len() as u64);
    let mut next = 0;
    for range in filled {
        put_varint(out, (range - next) as u64);
        put_varint(out, domain.range(range).len() as u64 - 1);
        next = range + 1;
    }
}

fn take_domain(reader: &mut Reader<'_>, ranges: u32) -> WireResult<Domain> {
    let mut ends = Vec::with_capacity(ranges as usize);
    let mut total = 0u64;
    for _ in 0..reader.count()? {
        let gap = reader.bounded(ranges as usize)?;
        if ends.len() + gap >= ranges as usize {
            return Err(reader.error("no such row range"));
        }
        ends.resize(ends.len() + gap, total as u32);
        total += reader.bounded(u32::MAX as usize - 1)? as u64 + 1;
        if total > u64::from(u32::MAX) {
            return Err(reader.error("too many values"));
        }
        ends.push(total as u32);
    }
    ends.resize(ranges as usize, total as u32);
    Ok(Domain { ends })
}

fn put_class(out: &mut Vec<u8>, class: Option<FixedClass>) {
    match class {
        None => out.push(0),
        Some(FixedClass::Hex { width, upper }) => out.extend_from_slice(&[if upper { 2 } else { 1 }, width]),
        Some(FixedClass::Uuid) => out.push(3),
        Some(FixedClass::Ipv4) => out.push(4),
    }
}

fn take_dictionary(reader: &mut Reader<'_>) -> WireResult<DictionaryPlan> {
    let class = match reader.byte()? {
        0 => None,
        tag @ (1 | 2) => {
            let width = reader.byte()?;
            if !(4..=64).contains(&width) {
                return Err(reader.error("bad width"));
            }
            Some(FixedClass::Hex { width, upper: tag == 2 })
        }
        3 => Some(FixedClass::Uuid),
        4 => Some(FixedClass::Ipv4),
        _ => return Err(reader.error("unknown class")),
    };
    let entries = reader.bounded(u32::MAX as usize)? as u32;
    let page_entries = reader.bounded(1 << 16)? as u32;
    let sets = reader.byte()?;
    let page_bytes_max = reader.bounded(u32::MAX as usize)? as u32;
    if page_entries == 0 || sets > 1 {
        return Err(reader.error("bad dictionary"));
    }
    Ok(DictionaryPlan { class, entries, page_entries, sets: sets == 1, page_bytes_max })
}

fn put_column(out: &mut Vec<u8>, column: &Column) {
    put_varint(out, u64::from(column.domain));
    match &column.kind {
        Kind::Constant(value) => {
            out.push(0);
            put_bytes(out, value);
        }
        Kind::Same(other) => {
            out.push(1);
            put_varint(out, u64::from(*other));
        }
        Kind::Text => out.push(2),
        Kind::Number(type_) => {
            out.push(3);
            put_type(out, *type_);
        }
        Kind::Dictionary(dictionary) => {
            out.push(4);
            put_varint(out, u64::from(*dictionary));
        }
        Kind::Shapes(shapes) => {
            out.push(5);
            put_shapes(out, shapes);
        }
        Kind::Escaped(child, escape) => {
            out.push(6);
            put_varint(out, u64::from(*child));
            out.push(*escape as u8);
        }
        Kind::Mapped(mapping) => {
            out.push(7);
            put_varint(out, u64::from(mapping.key));
            put_varint(out, u64::from(mapping.dictionary));
            put_varint(out, mapping.table.len() as u64);
            mapping.table.iter().for_each(|&entry| put_varint(out, u64::from(entry)));
        }
        Kind::List(list) => {
            out.push(8);
            put_varint(out, u64::from(list.counts));
            put_varint(out, u64::from(list.elements));
            put_bytes(out, &list.separator);
        }
        Kind::Computed(computed) => {
            out.push(9);
            put_varint(out, u64::from(computed.source));
            put_varint(out, computed.divisor as u64);
            put_signed(out, computed.addend);
            put_type(out, computed.type_);
        }
    }
}

fn put_type(out: &mut Vec<u8>, type_: Type) {
    match type_ {
        Type::Padded(width) => out.extend_from_slice(&[TYPE_PADDED, width]),
        Type::Decimal(scale) => out.extend_from_slice(&[TYPE_DECIMAL, scale]),
        Type::Time(l) => out.extend_from_slice(&[TYPE_TIME, l.family, l.separator, l.digits]),
        Type::ShortTime(l) => out.extend_from_slice(&[TYPE_SHORT_TIME, l.family, l.separator, l.digits]),
        Type::ShortDecimal { scale, point } => out.extend_from_slice(&[TYPE_SHORT_DECIMAL, scale, u8::from(point)]),
        _ => out.push(TYPE_INT),
    }
}

/// A literal and the slot behind it; shapes are made of these, and often share them.
type Chunk<'a> = (&'a [u8], Option<&'a Part<u32>>);

/// The chunks of a shape.
fn chunks_of(shape: &Shape) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut literal: &[u8] = &[];
    for part in shape {
        match part {
            Part::Literal(bytes) if literal.is_empty() => literal = bytes,
            Part::Literal(bytes) => {
                chunks.push((literal, None));
                literal = bytes;
            }
            slot => chunks.push((std::mem::take(&mut literal), Some(slot))),
        }
    }
    if !literal.is_empty() {
        chunks.push((literal, None));
    }
    chunks
}

/// All chunks once, in the order in which they first occur, then each shape as chunk numbers plus 1: 0 is the chunk behind the last.
fn put_shapes(out: &mut Vec<u8>, shapes: &[Shape]) {
    let mut numbers: HashMap<Chunk<'_>, u32, foldhash::fast::FixedState> = HashMap::default();
    let mut known: Vec<Chunk<'_>> = Vec::new();
    let mut bytes = Vec::new();
    put_varint(&mut bytes, shapes.len() as u64);
    for shape in shapes {
        let chunks = chunks_of(shape);
        put_varint(&mut bytes, chunks.len() as u64);
        let mut next = 0;
        for chunk in chunks {
            let number = *numbers.entry(chunk).or_insert_with(|| {
                known.push(chunk);
                known.len() as u32 - 1
            });
            put_varint(&mut bytes, if number == next { 0 } else { u64::from(number) + 1 });
            next = number + 1;
        }
    }
    put_varint(out, known.len() as u64);
    for (literal, slot) in known {
        put_bytes(out, literal);
        let tail = match slot {
            Some(Part::Slot(column)) => u64::from(*column) * 2 + 1,
            Some(Part::Aligned(column)) => u64::from(*column) * 2 + 2,
            _ => 0,
        };
        put_varint(out, tail);
    }
    out.extend_from_slice(&bytes);
}

/// The inverse of [`put_shapes`] for a column of number `index`.
fn take_shapes(reader: &mut Reader<'_>, index: u32) -> WireResult<Vec<Shape>> {
    let chunks: Vec<Shape> = many(reader, |r| {
        let literal = r.bytes()?;
        let mut chunk = if literal.is_empty() { Vec::new() } else { vec![Part::Literal(literal.to_vec())] };
        let tail = r.varint()?;
        if let Some(tail) = tail.checked_sub(1) {
            let column = u32::try_from(tail / 2).ok().filter(|&c| c < index).ok_or(r.error("no such column"))?;
            chunk.push(if tail % 2 == 0 { Part::Slot(column) } else { Part::Aligned(column) });
        }
        Ok(chunk)
    })?;
    let mut bytes = 0;
    many(reader, |r| {
        let mut shape = Vec::new();
        let mut next = 0;
        for _ in 0..r.count()? {
            let word = r.bounded(chunks.len())?;
            let number = word.checked_sub(1).unwrap_or(next);
            let chunk = chunks.get(number).ok_or(r.error("no such chunk of a shape"))?;
            bytes += chunk.iter().map(|part| if let Part::Literal(bytes) = part { bytes.len() } else { 0 }).sum::<usize>();
            if bytes > haystore_format::constants::SHAPES_BYTES_MAX {
                return Err(r.error("shapes too large"));
            }
            shape.extend_from_slice(chunk);
            next = number + 1;
        }
        Ok(shape)
    })
}

fn take_column(reader: &mut Reader<'_>, index: u32, domains: usize, dictionaries: usize) -> WireResult<Column> {
    let below = |reader: &mut Reader<'_>, bound: usize| {
        let value = reader.bounded(u32::MAX as usize)?;
        if value < bound { Ok(value as u32) } else { Err(reader.error("no such column, domain or dictionary")) }
    };
    let domain = below(reader, domains)?;
    let kind = match reader.byte()? {
        0 => Kind::Constant(reader.bytes()?.to_vec()),
        1 => Kind::Same(below(reader, index as usize)?),
        2 => Kind::Text,
        3 => Kind::Number(take_type(reader)?),
        4 => Kind::Dictionary(below(reader, dictionaries)?),
        5 => Kind::Shapes(take_shapes(reader, index)?),
        6 => Kind::Escaped(
            below(reader, index as usize)?,
            match reader.byte()? {
                0 => Escape::Json,
                1 => Escape::Doubled,
                _ => return Err(reader.error("unknown way to escape")),
            },
        ),
        7 => Kind::Mapped(Mapping {
            key: below(reader, index as usize)?,
            dictionary: below(reader, dictionaries)?,
            table: many(reader, |r| r.bounded(u32::MAX as usize).map(|entry| entry as u32))?,
        }),
        8 => Kind::List(List {
            counts: below(reader, index as usize)?,
            elements: below(reader, index as usize)?,
            separator: reader.bytes()?.to_vec(),
        }),
        9 => Kind::Computed(Computed {
            source: below(reader, index as usize)?,
            divisor: i64::try_from(reader.varint()?).ok().filter(|&d| d > 0).ok_or(reader.error("bad divisor"))?,
            addend: reader.signed()?,
            type_: take_type(reader)?,
        }),
        _ => return Err(reader.error("unknown encoding")),
    };
    Ok(Column { domain, kind })
}

fn take_type(reader: &mut Reader<'_>) -> WireResult<Type> {
    let type_ = match reader.byte()? {
        TYPE_INT => Type::Int,
        TYPE_PADDED => Type::Padded(reader.byte()?),
        TYPE_DECIMAL => Type::Decimal(reader.byte()?),
        TYPE_TIME => Type::Time(take_layout(reader)?),
        TYPE_SHORT_TIME => Type::ShortTime(take_layout(reader)?),
        TYPE_SHORT_DECIMAL => {
            let scale = reader.byte()?;
            let point = match reader.byte()? {
                0 => false,
                1 => true,
                _ => return Err(reader.error("bad type")),
            };
            Type::ShortDecimal { scale, point }
        }
        _ => return Err(reader.error("unknown type")),
    };
    let valid = match type_ {
        Type::Padded(width) => (1..=18).contains(&width),
        Type::Decimal(scale) | Type::ShortDecimal { scale, .. } => (1..=17).contains(&scale),
        Type::Time(layout) => layout.is_valid(),
        Type::ShortTime(layout) => layout.is_valid() && layout.digits > 0,
        _ => true,
    };
    if valid { Ok(type_) } else { Err(reader.error("bad type")) }
}

fn take_layout(reader: &mut Reader<'_>) -> WireResult<Layout> {
    Ok(Layout { family: reader.byte()?, separator: reader.byte()?, digits: reader.byte()? })
}

fn put_area(out: &mut Vec<u8>, area: &Area) {
    put_varint(out, area.pieces.len() as u64);
    area.pieces.iter().for_each(|&(len, hard)| put_varint(out, u64::from(len) << 1 | u64::from(hard)));
    put_varint(out, area.frames.len() as u64);
    for frame in &area.frames {
        put_varint(out, u64::from(frame.stored) << 1 | u64::from(frame.compressed));
        out.extend_from_slice(&frame.crc.to_le_bytes());
    }
}

fn take_area(reader: &mut Reader<'_>) -> WireResult<Area> {
    let flagged = |r: &mut Reader<'_>| {
        let word = r.varint()?;
        let value = u32::try_from(word >> 1).map_err(|_| r.error("number out of bounds"))?;
        Ok((value, word & 1 == 1))
    };
    let pieces = many(reader, flagged)?;
    let frames = many(reader, |r| {
        let (stored, compressed) = flagged(r)?;
        Ok(Frame { stored, compressed, crc: r.u32()? })
    })?;
    Ok(Area { pieces, frames })
}
