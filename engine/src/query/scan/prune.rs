//! Which row ranges of a row group can hold a needle: asked of templates, dictionaries, page sets and single columns, before a line is rebuilt.
//!
//! What holds: a range that is ruled out has no line with the needle. Where a question would cost more than rebuilding, the answer is "may".

use crate::column::decode::Values;
use crate::column::plan::{Computed, Kind, List, Mapping};
use crate::encoding::typed::{FixedClass, Type};
use crate::error::Result;
use crate::query::prune::{Fit, PLACEMENTS_MAX, Piece, Placements, SlotTest, placements_where};
use crate::query::{LineFilter, Query};
use crate::segment::RowGroup;
use crate::shape::Part;
use hashbrown::HashMap;
use memchr::memmem;

/// Shorter needles are in too many places to be worth a question.
const NEEDLE_BYTES_MIN: usize = 3;
/// Entries found up to which their page sets are asked; of more the ids are looked at.
const SETS_ASKED_MAX: usize = 32;
/// Ways of one shape to hold a needle up to which they are looked at.
const PLACEMENTS_ASKED_MAX: usize = PLACEMENTS_MAX;

/// For each row range whether it may hold what is looked for.
type Ranges = Vec<bool>;

/// The ranges of `group` in which a line may pass the filters of `query`; `None`: all, nothing was asked.
pub(super) fn ranges(group: &mut RowGroup, query: &Query) -> Result<Option<Ranges>> {
    let needles: Vec<&[Vec<u8>]> = query
        .filters
        .iter()
        .filter_map(|filter| match filter {
            LineFilter::Contains(needle) => Some(std::slice::from_ref(needle)),
            LineFilter::ContainsAny(needles) => Some(&needles[..]),
            _ => None,
        })
        .filter(|needles| needles.iter().all(|n| n.len() >= NEEDLE_BYTES_MIN))
        .collect();
    if needles.is_empty() || group.is_verbatim() {
        return Ok(None);
    }
    let column = group.line_column();
    let mut asking = Asking { group, known: HashMap::new(), shape_ranges: HashMap::new() };
    let mut left: Option<Ranges> = None;
    for any in needles {
        let mut found = asking.none();
        for needle in any {
            unite(&mut found, &asking.find(column, Fit::Contains, needle)?);
        }
        left = Some(match left {
            None => found,
            Some(before) => intersect(before, &found),
        });
        if left.as_ref().is_some_and(|l| !l.contains(&true)) {
            break;
        }
    }
    Ok(left)
}

fn unite(into: &mut Ranges, other: &Ranges) {
    into.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

fn intersect(mut into: Ranges, other: &Ranges) -> Ranges {
    into.iter_mut().zip(other).for_each(|(a, b)| *a &= b);
    into
}

type Question = (u32, Fit, Vec<u8>);

struct Asking<'a> {
    group: &'a mut RowGroup,
    /// Answers given already: shapes ask the same of the columns they share.
    known: HashMap<(u32, u8, Vec<u8>), Ranges>,
    /// For each composite column and each of its shapes the ranges that have it.
    shape_ranges: HashMap<u32, std::rc::Rc<Vec<Ranges>>>,
}

impl Asking<'_> {
    fn none(&self) -> Ranges {
        vec![false; self.group.ranges()]
    }

    /// The ranges in which the column has values at all.
    fn filled(&mut self, column: u32) -> Ranges {
        let plan = self.group.decoder().plan().clone();
        let domain = &plan.domains[plan.columns[column as usize].domain as usize];
        (0..self.group.ranges()).map(|r| !domain.range(r).is_empty()).collect()
    }

    /// The ranges in which a value of `column` may fit `part`.
    fn find(&mut self, column: u32, fit: Fit, part: &[u8]) -> Result<Ranges> {
        let (column, fit, part): Question = (column, fit, part.to_vec());
        let key = (column, fit as u8, part);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let plan = self.group.decoder().plan().clone();
        let part = &key.2[..];
        let found = match &plan.columns[column as usize].kind {
            Kind::Constant(value) => {
                if holds(fit, part, value) {
                    self.filled(column)
                } else {
                    self.none()
                }
            }
            Kind::Same(other) => self.find(*other, fit, part)?,
            Kind::Escaped(child, _) => self.find_escaped(column, *child, part)?,
            Kind::Shapes(_) => self.find_in_shapes(column, part)?,
            Kind::Dictionary(dictionary) | Kind::Mapped(Mapping { dictionary, .. }) => {
                self.find_in_dictionary(column, *dictionary, fit, part)?
            }
            Kind::List(list) => self.find_in_list(column, list, fit, part)?,
            Kind::Number(type_) | Kind::Computed(Computed { type_, .. }) if !could(&Kind::Number(*type_), None, part) => self.none(),
            Kind::Number(_) | Kind::Computed(_) | Kind::Text => self.find_in_values(column, fit, part)?,
        };
        self.known.insert(key, found.clone());
        Ok(found)
    }

    /// Looks at each value.
    fn find_in_values(&mut self, column: u32, fit: Fit, part: &[u8]) -> Result<Ranges> {
        let plan = self.group.decoder().plan().clone();
        let integers =
            matches!(plan.columns[column as usize].kind, Kind::Number(Type::Int) | Kind::Computed(Computed { type_: Type::Int, .. }));
        let mut found = self.filled(column);
        for (range, may) in found.iter_mut().enumerate().filter(|(_, may)| **may) {
            if integers && !self.has_long_numbers(column, range, part.len())? {
                *may = false;
                continue;
            }
            let values = self.group.decoder().values(column, range)?;
            let absent = values.as_text().is_some_and(|(data, _)| memmem::find(data, part).is_none());
            *may = !absent && (0..values.len()).any(|i| holds(fit, part, values.get(i)));
        }
        Ok(found)
    }

    /// Whether an integer of the range has at least `len` characters.
    fn has_long_numbers(&mut self, column: u32, range: usize, len: usize) -> Result<bool> {
        let Some(least) = 10u64.checked_pow(len.saturating_sub(1).min(19) as u32) else { return Ok(true) };
        let numbers = self.group.decoder().numbers(column, range)?;
        let long = |&n: &u64| {
            let number = (n ^ 1 << 63) as i64;
            number < 0 || number as u64 >= least || len <= 1
        };
        Ok(numbers.raw().iter().any(long))
    }

    fn find_in_dictionary(&mut self, column: u32, dictionary: u32, fit: Fit, part: &[u8]) -> Result<Ranges> {
        let plan = self.group.decoder().plan().clone();
        let layout = &plan.dictionaries[dictionary as usize];
        if !could(&Kind::Dictionary(dictionary), layout.class, part) {
            return Ok(self.none());
        }
        let entries = self.group.decoder().entries(dictionary)?;
        let hits = entries_that_hold(&entries, layout.entries as usize, fit, part);
        if hits.is_empty() {
            return Ok(self.none());
        }
        let filled = self.filled(column);
        if hits.len() <= SETS_ASKED_MAX && layout.sets {
            let mut found = self.none();
            let mut said = true;
            for &entry in &hits {
                match self.group.decoder().page_set(dictionary, entry)? {
                    Some(set) => set.iter().for_each(|&r| found[r as usize] = true),
                    None => said = false,
                }
            }
            if said {
                return Ok(intersect(filled, &found));
            }
        }
        let mut wanted = vec![false; layout.entries as usize];
        hits.iter().for_each(|&e| wanted[e as usize] = true);
        let mut found = filled;
        for (range, may) in found.iter_mut().enumerate().filter(|(_, may)| **may) {
            let ids = self.group.decoder().numbers(column, range)?;
            *may = ids.raw().iter().any(|&id| wanted.get(id as usize).copied().unwrap_or(true));
        }
        Ok(found)
    }

    /// In escaped text, `part` without quotes and backslashes is where it is in the plain text; of another the longest such run must be there.
    /// Its first byte may be an escape's letter, whose backslash lies before it.
    fn find_escaped(&mut self, column: u32, child: u32, part: &[u8]) -> Result<Ranges> {
        let runs = part.split(|b| matches!(b, b'"' | b'\\')).map(|run| run.get(1..).unwrap_or_default());
        match runs.max_by_key(|run| run.len()) {
            Some(run) if !run.is_empty() => self.find(child, Fit::Contains, run),
            _ => Ok(self.filled(column)),
        }
    }

    /// What lies within one element is there; what does not is looked for in the joined values.
    fn find_in_list(&mut self, column: u32, list: &List, fit: Fit, part: &[u8]) -> Result<Ranges> {
        if list.separator.iter().any(|b| !part.contains(b)) && !list.separator.is_empty() {
            let mut runs = part.split(|b| list.separator.contains(b)).filter(|run| !run.is_empty());
            if let (Some(run), None) = (runs.next(), runs.next()) {
                return self.find(list.elements, Fit::Contains, run);
            }
        }
        self.find_in_values(column, fit, part)
    }

    fn find_in_shapes(&mut self, column: u32, part: &[u8]) -> Result<Ranges> {
        let plan = self.group.decoder().plan().clone();
        let Kind::Shapes(shapes) = &plan.columns[column as usize].kind else { return Ok(self.filled(column)) };
        let occurs = self.ranges_of_shapes(column, shapes.len())?;
        let mut found = self.none();
        for (shape, occurs) in shapes.iter().zip(occurs.iter()) {
            if !occurs.iter().zip(&found).any(|(o, f)| *o && !f) {
                continue;
            }
            let constant = |c: u32| if let Kind::Constant(value) = &plan.columns[c as usize].kind { Some(&value[..]) } else { None };
            let slots: Vec<u32> = shape
                .iter()
                .filter_map(|p| if let Part::Slot(c) | Part::Aligned(c) = p { Some(*c) } else { None })
                .filter(|&c| constant(c).is_none())
                .collect();
            let pieces: Vec<Piece<'_>> = shape
                .iter()
                .map(|p| match p {
                    Part::Literal(bytes) => Piece::Literal(bytes),
                    Part::Slot(c) | Part::Aligned(c) => constant(*c).map_or(Piece::Slot, Piece::Literal),
                })
                .collect();
            let can_hold = |test: &SlotTest| {
                let kind = &plan.columns[slots[test.slot] as usize].kind;
                let class = kind.dictionary().and_then(|d| plan.dictionaries[d as usize].class);
                could(kind, class, &part[test.part.clone()])
            };
            let may = match placements_where(part, &pieces, PLACEMENTS_ASKED_MAX, &can_hold) {
                Placements::Always | Placements::Unknown => occurs.clone(),
                Placements::Any(ways) => {
                    let mut any = self.none();
                    for way in ways {
                        let mut all = occurs.clone();
                        for test in &way.tests {
                            if !all.contains(&true) {
                                break;
                            }
                            all = intersect(all, &self.find(slots[test.slot], test.fit, &part[test.part.clone()])?);
                        }
                        unite(&mut any, &all);
                    }
                    any
                }
            };
            unite(&mut found, &may);
        }
        Ok(found)
    }

    fn ranges_of_shapes(&mut self, column: u32, shapes: usize) -> Result<std::rc::Rc<Vec<Ranges>>> {
        if let Some(known) = self.shape_ranges.get(&column) {
            return Ok(known.clone());
        }
        let mut occurs = vec![self.none(); shapes];
        for range in 0..self.group.ranges() {
            for &id in self.group.decoder().numbers(column, range)?.raw() {
                if let Some(ranges) = occurs.get_mut(id as usize) {
                    ranges[range] = true;
                }
            }
        }
        let occurs = std::rc::Rc::new(occurs);
        self.shape_ranges.insert(column, occurs.clone());
        Ok(occurs)
    }
}

fn holds(fit: Fit, part: &[u8], value: &[u8]) -> bool {
    match fit {
        Fit::Whole => value == part,
        Fit::Prefix => value.starts_with(part),
        Fit::Suffix => value.ends_with(part),
        Fit::Contains => memmem::find(value, part).is_some(),
    }
}

/// Whether a value of this kind can have the characters of `part`.
fn could(kind: &Kind, class: Option<FixedClass>, part: &[u8]) -> bool {
    let all = |fits: fn(u8) -> bool| part.iter().all(|&b| fits(b));
    match (kind, class) {
        (Kind::Constant(value), _) => memmem::find(value, part).is_some(),
        (Kind::Number(Type::Int), _) => part.len() <= 20 && all(|b| b.is_ascii_digit() || b == b'-'),
        (Kind::Number(Type::Padded(width)), _) => part.len() <= usize::from(*width) && all(|b| b.is_ascii_digit()),
        (Kind::Number(Type::Decimal(_) | Type::ShortDecimal { .. }), _) => {
            part.len() <= 21 && all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'))
        }
        (Kind::Number(Type::Time(layout) | Type::ShortTime(layout)), _) => {
            part.len() <= layout.text_len()
                && all(|b| b.is_ascii_digit() || b.is_ascii_alphabetic() || matches!(b, b'-' | b':' | b' ' | b'/' | b'.' | b','))
        }
        (_, Some(FixedClass::Hex { width, upper: false })) => {
            part.len() <= usize::from(width) * 2 && all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        }
        (_, Some(FixedClass::Hex { width, upper: true })) => {
            part.len() <= usize::from(width) * 2 && all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'))
        }
        (_, Some(FixedClass::Uuid)) => part.len() <= 36 && all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-')),
        (_, Some(FixedClass::Ipv4)) => part.len() <= 15 && all(|b| b.is_ascii_digit() || b == b'.'),
        _ => true,
    }
}

/// The entries that fit `part`.
fn entries_that_hold(entries: &Values, count: usize, fit: Fit, part: &[u8]) -> Vec<u32> {
    let Values::Text { data, ends } = entries else {
        return (0..count).filter(|&i| holds(fit, part, entries.get(i))).map(|i| i as u32).collect();
    };
    let mut hits = Vec::new();
    let mut at = 0;
    // One pass over all text; a hit across a border between entries says nothing.
    let finder = memmem::Finder::new(part);
    if part.is_empty() {
        return (0..count).filter(|&i| holds(fit, part, entries.get(i))).map(|i| i as u32).collect();
    }
    while let Some(place) = finder.find(&data[at..]) {
        let entry = ends.partition_point(|&e| e as usize <= at + place);
        if entry >= count {
            break;
        }
        if holds(fit, part, entries.get(entry)) {
            hits.push(entry as u32);
        }
        at = ends[entry] as usize;
    }
    hits
}
