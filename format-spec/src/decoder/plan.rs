//! `row-group.md`: the plan with the roots, and the root.

use super::cursor::Cursor;
use super::{Result, Seen, VALUES_MAX};
use crate::constants::{self as c, class, column, escape, types};

/// Values of a column in each row range.
pub type Domain = Vec<usize>;

/// The class of a dictionary's entries.
#[derive(Clone, Copy)]
pub enum Class {
    Text,
    Hex { width: usize, upper: bool },
    Uuid,
    Ipv4,
}

/// A dictionary's layout.
pub struct Dictionary {
    pub class: Class,
    pub entries: usize,
    pub page_entries: usize,
    pub sets: bool,
    pub page_bytes_max: usize,
}

/// What a number prints as.
#[derive(Clone, Copy)]
pub enum Type {
    Int,
    Padded { width: u8 },
    Decimal { scale: u8 },
    Time { family: u8, separator: u8, digits: u8 },
    ShortTime { family: u8, separator: u8, digits: u8 },
    ShortDecimal { scale: u8, point: bool },
}

/// A part of a template.
#[derive(Clone)]
pub enum Part {
    Literal(Vec<u8>),
    Slot(usize),
    Aligned(usize),
}

/// How an escaped column differs from the plain one.
pub enum Way {
    Json,
    Doubled,
}

/// How a column is encoded.
pub enum Kind {
    Constant(Vec<u8>),
    Same(usize),
    Text,
    Number(Type),
    Dictionary(usize),
    Shapes(Vec<Vec<Part>>),
    Escaped(usize, Way),
    List { counts: usize, elements: usize, separator: Vec<u8> },
    Computed { source: usize, divisor: i64, addend: i64, type_: Type },
    Mapped { key: usize, dictionary: usize, table: Vec<usize> },
}

/// One column.
pub struct Column {
    pub domain: usize,
    pub kind: Kind,
}

/// Length of each piece and whether it is hard; stored length, compressed or not, and checksum of each frame.
pub struct Area {
    pub pieces: Vec<(u64, bool)>,
    pub frames: Vec<(u64, bool, u32)>,
}

/// How the rows of one shape get their timestamps.
pub struct Derived {
    pub shape: usize,
    pub column: usize,
    pub multiplier: i64,
    pub addend: i64,
}

/// The columns that make the records.
pub struct Roots {
    pub lines: usize,
    pub metadata: usize,
    pub formats: usize,
    pub labels: usize,
    pub stream_rows: usize,
    pub streams: usize,
    pub explicit: usize,
    pub derived: Vec<Derived>,
}

/// The plan.
pub struct Plan {
    pub ranges: usize,
    pub domains: Vec<Domain>,
    pub dictionaries: Vec<Dictionary>,
    pub columns: Vec<Column>,
    pub dictionary_area: Area,
    pub data_area: Area,
    pub roots: Roots,
}

/// One row range in the root.
pub struct Range {
    pub rows: usize,
    pub least: i64,
    pub greatest: i64,
}

/// Row ranges, and for each dictionary the fences of its pages.
pub type Root = (Vec<Range>, Vec<Vec<Vec<u8>>>);

/// Reads a plan.
pub fn read_plan(bytes: &[u8], offset: u64, seen: &mut Seen) -> Result<Plan> {
    let mut cursor = Cursor::new(bytes, offset, "plan");
    let r = &mut cursor;
    let ranges = r.at_most(c::RANGES_MAX, "too many row ranges")?;
    let mut values = 0;
    let domains = list(r, |r| {
        values += ranges;
        if values > VALUES_MAX { r.fail("more domains than the reference decoder takes") } else { read_domain(r, ranges) }
    })?;
    let dictionaries = list(r, |r| read_dictionary(r, seen))?;
    let mut columns: Vec<Column> = Vec::new();
    for _ in 0..r.count()? {
        let column = read_column(r, columns.len(), domains.len(), &dictionaries, seen)?;
        check_column(r, &column, &columns, &dictionaries)?;
        columns.push(column);
    }
    let (dictionary_area, data_area) = (read_area(r)?, read_area(r)?);
    let roots = read_roots(r, &columns)?;
    r.end()?;
    Ok(Plan { ranges, domains, dictionaries, columns, dictionary_area, data_area, roots })
}

/// What a column asks of those that it is made from.
fn check_column(r: &Cursor<'_>, own: &Column, columns: &[Column], dictionaries: &[Dictionary]) -> Result<()> {
    let partners: Vec<usize> = match &own.kind {
        Kind::Same(other) | Kind::Escaped(other, _) => vec![*other],
        Kind::Mapped { key, .. } => vec![*key],
        Kind::List { counts, .. } => vec![*counts],
        Kind::Computed { source, .. } => vec![*source],
        Kind::Shapes(shapes) => {
            shapes.iter().flatten().filter_map(|part| if let Part::Aligned(other) = part { Some(*other) } else { None }).collect()
        }
        _ => Vec::new(),
    };
    if let Kind::Mapped { key, table, .. } = &own.kind {
        let Kind::Dictionary(of_key) = columns[*key].kind else { return r.fail("the key of a mapped column has no entry numbers") };
        if columns[*key].domain == own.domain && table.len() != dictionaries[of_key].entries {
            return r.fail("a table of another length than its key's dictionary");
        }
    }
    if let Kind::List { counts: numbers, .. } | Kind::Computed { source: numbers, .. } = own.kind
        && !holds_numbers(columns, numbers)
    {
        return r.fail("counts, or the source of computed numbers, that are no numbers");
    }
    if partners.iter().any(|&other| columns[other].domain != own.domain) {
        return r.fail("a column and the one it is made from have different domains");
    }
    Ok(())
}

/// Whether the column has numbers, or is the same as one that has.
fn holds_numbers(columns: &[Column], column: usize) -> bool {
    match columns[column].kind {
        Kind::Same(other) => matches!(columns[other].kind, Kind::Number(_)),
        Kind::Number(_) => true,
        _ => false,
    }
}

fn list<T>(r: &mut Cursor<'_>, mut one: impl FnMut(&mut Cursor<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut out = Vec::new();
    for _ in 0..r.count()? {
        out.push(one(r)?);
    }
    Ok(out)
}

fn read_domain(r: &mut Cursor<'_>, ranges: usize) -> Result<Domain> {
    let mut counts = vec![0; ranges];
    let (mut next, mut total) = (0, 0);
    for _ in 0..r.count()? {
        let range = next + r.below(ranges - next.min(ranges), "no such row range")?;
        let count = r.at_most(u64::from(u32::MAX) - 1, "too many values")? + 1;
        total += count as u64;
        if total > u64::from(u32::MAX) {
            return r.fail("too many values");
        }
        counts[range] = count;
        next = range + 1;
    }
    Ok(counts)
}

fn read_dictionary(r: &mut Cursor<'_>, seen: &mut Seen) -> Result<Dictionary> {
    let tag = r.u8()?;
    seen.insert(("class", u64::from(tag)));
    let class = match tag {
        class::TEXT => Class::Text,
        class::HEX_LOWER | class::HEX_UPPER => {
            let width = usize::from(r.u8()?);
            if !(c::HEX_WIDTH_MIN..=c::HEX_WIDTH_MAX).contains(&width) {
                return r.fail("bad width of a hex class");
            }
            Class::Hex { width, upper: tag == class::HEX_UPPER }
        }
        class::UUID => Class::Uuid,
        class::IPV4 => Class::Ipv4,
        _ => return r.fail("unknown class"),
    };
    let entries = r.at_most(u64::from(u32::MAX), "too many entries")?;
    let page_entries = r.at_most(c::DICTIONARY_PAGE_ENTRIES_MAX, "too many entries a page")?;
    let sets = r.u8()?;
    if page_entries == 0 || sets > 1 {
        return r.fail("bad dictionary");
    }
    seen.insert(("page sets", u64::from(sets)));
    let page_bytes_max = r.at_most(u64::from(u32::MAX), "page too large")?;
    Ok(Dictionary { class, entries, page_entries, sets: sets == 1, page_bytes_max })
}

fn read_column(r: &mut Cursor<'_>, index: usize, domains: usize, dictionaries: &[Dictionary], seen: &mut Seen) -> Result<Column> {
    let domain = r.below(domains, "no such domain")?;
    let tag = r.u8()?;
    seen.insert(("column", u64::from(tag)));
    let kind = match tag {
        column::CONSTANT => Kind::Constant(r.bytes()?.to_vec()),
        column::SAME => Kind::Same(r.below(index, "no such column")?),
        column::TEXT => Kind::Text,
        column::NUMBER => Kind::Number(read_type(r, seen)?),
        column::DICTIONARY => Kind::Dictionary(r.below(dictionaries.len(), "no such dictionary")?),
        column::SHAPES => Kind::Shapes(read_shapes(r, index, seen)?),
        column::ESCAPED => {
            let other = r.below(index, "no such column")?;
            let way = r.u8()?;
            seen.insert(("escape", u64::from(way)));
            match way {
                escape::JSON => Kind::Escaped(other, Way::Json),
                escape::DOUBLED => Kind::Escaped(other, Way::Doubled),
                _ => return r.fail("unknown way to escape"),
            }
        }
        column::LIST => {
            let (counts, elements) = (r.below(index, "no such column")?, r.below(index, "no such column")?);
            Kind::List { counts, elements, separator: r.bytes()?.to_vec() }
        }
        column::COMPUTED => {
            let source = r.below(index, "no such column")?;
            let divisor = match i64::try_from(r.varint()?) {
                Ok(divisor) if divisor > 0 => divisor,
                _ => return r.fail("bad divisor"),
            };
            Kind::Computed { source, divisor, addend: r.signed()?, type_: read_type(r, seen)? }
        }
        column::MAPPED => {
            let (key, dictionary) = (r.below(index, "no such column")?, r.below(dictionaries.len(), "no such dictionary")?);
            Kind::Mapped { key, dictionary, table: list(r, |r| r.below(dictionaries[dictionary].entries, "no such dictionary entry"))? }
        }
        _ => return r.fail("unknown column encoding"),
    };
    Ok(Column { domain, kind })
}

/// Chunks, then shapes out of chunks.
fn read_shapes(r: &mut Cursor<'_>, index: usize, seen: &mut Seen) -> Result<Vec<Vec<Part>>> {
    let chunks = list(r, |r| {
        let mut chunk = vec![Part::Literal(r.bytes()?.to_vec())];
        let tail = r.varint()?;
        seen.insert(("part", if tail == 0 { 0 } else { 2 - tail % 2 }));
        if tail > 0 {
            let column = usize::try_from((tail - 1) / 2).ok().filter(|&column| column < index).ok_or_else(|| r.error("no such column"))?;
            chunk.push(if tail % 2 == 1 { Part::Slot(column) } else { Part::Aligned(column) });
        }
        Ok(chunk)
    })?;
    let mut literal_bytes = 0;
    list(r, |r| {
        let mut shape = Vec::new();
        let mut next = 0;
        for _ in 0..r.count()? {
            let word = r.at_most(chunks.len() as u64, "no such chunk of a shape")?;
            let number = if word == 0 { next } else { word - 1 };
            let Some(chunk) = chunks.get(number) else { return r.fail("no such chunk of a shape") };
            if let Part::Literal(literal) = &chunk[0] {
                literal_bytes += literal.len();
            }
            if literal_bytes > c::SHAPES_BYTES_MAX {
                return r.fail("shapes with too many bytes");
            }
            shape.extend_from_slice(chunk);
            next = number + 1;
        }
        Ok(shape)
    })
}

fn read_type(r: &mut Cursor<'_>, seen: &mut Seen) -> Result<Type> {
    let tag = r.u8()?;
    seen.insert(("type", u64::from(tag)));
    Ok(match tag {
        types::INT => Type::Int,
        types::PADDED => match r.u8()? {
            width if (1..=c::PADDED_WIDTH_MAX).contains(&width) => Type::Padded { width },
            _ => return r.fail("bad width"),
        },
        types::DECIMAL => match r.u8()? {
            scale if (1..=c::DECIMAL_SCALE_MAX).contains(&scale) => Type::Decimal { scale },
            _ => return r.fail("bad scale"),
        },
        types::SHORT_DECIMAL => match (r.u8()?, r.u8()?) {
            (scale, point @ (0 | 1)) if (1..=c::DECIMAL_SCALE_MAX).contains(&scale) => Type::ShortDecimal { scale, point: point == 1 },
            _ => return r.fail("bad scale"),
        },
        types::TIME | types::SHORT_TIME => {
            let (family, separator, digits) = (r.u8()?, r.u8()?, r.u8()?);
            let separated = if digits == 0 { separator == 0 } else { separator == b'.' || separator == b',' };
            let short = tag == types::SHORT_TIME;
            if family >= c::TIME_FAMILIES || digits > c::TIME_DIGITS_MAX || !separated || (short && digits == 0) {
                return r.fail("bad time layout");
            }
            seen.insert(("time family", u64::from(family)));
            if short { Type::ShortTime { family, separator, digits } } else { Type::Time { family, separator, digits } }
        }
        _ => return r.fail("unknown type"),
    })
}

fn read_area(r: &mut Cursor<'_>) -> Result<Area> {
    let pieces = list(r, |r| {
        let word = r.at_most(u64::from(u32::MAX) * 2 + 1, "piece too long")? as u64;
        Ok((word / 2, word % 2 == 1))
    })?;
    let frames = list(r, |r| {
        let word = r.at_most(u64::from(u32::MAX) * 2 + 1, "frame too long")? as u64;
        Ok((word / 2, word % 2 == 1, r.u32()?))
    })?;
    Ok(Area { pieces, frames })
}

fn read_roots(r: &mut Cursor<'_>, columns: &[Column]) -> Result<Roots> {
    let column = |r: &mut Cursor<'_>| r.below(columns.len(), "no such column");
    let (lines, metadata, formats, labels, stream_rows) = (column(r)?, column(r)?, column(r)?, column(r)?, column(r)?);
    let streams = r.at_most(u64::from(u32::MAX), "too many streams")?;
    let explicit = column(r)?;
    let no_shapes = Vec::new();
    let shapes = if let Kind::Shapes(shapes) = &columns[lines].kind { shapes } else { &no_shapes };
    let mut derived: Vec<Derived> = Vec::new();
    for _ in 0..r.count()? {
        let shape = r.below(shapes.len(), "no such shape")?;
        if derived.last().is_some_and(|last| last.shape >= shape) {
            return r.fail("derived timestamps are not sorted by shape");
        }
        let column = column(r)?;
        if !shapes[shape].iter().any(|part| matches!(part, Part::Slot(slot) if *slot == column)) {
            return r.fail("a derived timestamp's column is no slot of its shape");
        }
        derived.push(Derived { shape, column, multiplier: r.signed()?, addend: r.signed()? });
    }
    let numbers = |column: usize| holds_numbers(columns, column);
    if !numbers(explicit) || !numbers(stream_rows) || !derived.iter().all(|d| numbers(d.column)) {
        return r.fail("a column that must hold numbers does not");
    }
    Ok(Roots { lines, metadata, formats, labels, stream_rows, streams, explicit, derived })
}

/// Reads a root.
pub fn read_root(bytes: &[u8], offset: u64) -> Result<Root> {
    let mut cursor = Cursor::new(bytes, offset, "root");
    let ranges = list(&mut cursor, |r| {
        let rows = r.at_most(u64::from(u32::MAX), "too many rows")?;
        let least = r.signed()?;
        Ok(Range { rows, least, greatest: least.wrapping_add(r.varint()? as i64) })
    })?;
    let fences = list(&mut cursor, |r| list(r, |r| Ok(r.bytes()?.to_vec())))?;
    cursor.end()?;
    Ok((ranges, fences))
}
