//! `encodings.md` and `shapes.md`: the values of all columns of a row group, children first.

use super::area::{Piece, pages};
use super::dictionary::Entries;
use super::integers::{integers, texts};
use super::plan::{Column, Domain, Kind, Part, Plan, Way};
use super::{COLUMN_BYTES_MAX, Result, Seen, VALUES_MAX, fail, print};

/// All values of a column, in order.
#[derive(Default, Clone)]
pub struct Values {
    /// What its pages of integers hold: numbers, entry numbers, shape numbers.
    pub integers: Vec<u64>,
    /// The values.
    pub texts: Vec<Vec<u8>>,
}

impl Values {
    /// Number `index` of a column of numbers.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.integers.get(index).map(|&n| signed(n))
    }
}

/// Numbers are stored with their sign bit turned over, so that they sort as unsigned integers.
fn signed(stored: u64) -> i64 {
    (stored ^ 1 << 63) as i64
}

/// Decodes all columns; `at` is the row group's offset, for errors.
pub fn read_all(plan: &Plan, dictionaries: &[Entries], pieces: &[Piece], at: u64, seen: &mut Seen) -> Result<Vec<Values>> {
    let mut order = Vec::new();
    for (index, column) in plan.columns.iter().enumerate() {
        if matches!(column.kind, Kind::Text | Kind::Number(_) | Kind::Dictionary(_) | Kind::Shapes(_)) {
            for (page, (first_range, count)) in pages(&plan.domains[column.domain]).into_iter().enumerate() {
                order.push((first_range, index, page, count));
            }
        }
    }
    order.sort_unstable();
    if order.len() != pieces.len() {
        return fail(at, "the plan has another number of pieces than its columns have pages");
    }
    let mut stored: Vec<Vec<(usize, &Piece)>> = vec![Vec::new(); plan.columns.len()];
    for ((_, column, _, count), piece) in order.into_iter().zip(pieces) {
        stored[column].push((count, piece));
    }
    let mut decoded: Vec<Values> = Vec::new();
    for (column, pages) in plan.columns.iter().zip(&stored) {
        let values = read_one(plan, column, pages, dictionaries, &decoded, at, seen)?;
        let expected: usize = plan.domains[column.domain].iter().sum();
        if values.texts.len() != expected {
            return fail(at, "a column has another number of values than its domain");
        }
        decoded.push(values);
    }
    Ok(decoded)
}

fn read_one(
    plan: &Plan,
    column: &Column,
    pages: &[(usize, &Piece)],
    dictionaries: &[Entries],
    decoded: &[Values],
    at: u64,
    seen: &mut Seen,
) -> Result<Values> {
    let domain = &plan.domains[column.domain];
    let total: usize = domain.iter().sum();
    if total > VALUES_MAX {
        return fail(at, "more values than the reference decoder takes");
    }
    let mut values = Values::default();
    for &(count, piece) in pages {
        if matches!(column.kind, Kind::Text) {
            values.texts.extend(texts(&piece.bytes, count, piece.offset, seen)?);
        } else {
            values.integers.extend(integers(&piece.bytes, count, piece.offset, seen)?);
        }
    }
    let mut bytes = 0;
    let mut push = |texts: &mut Vec<Vec<u8>>, text: Vec<u8>| {
        bytes += text.len();
        texts.push(text);
        if bytes > COLUMN_BYTES_MAX { fail(at, "more bytes than the reference decoder takes") } else { Ok(()) }
    };
    match &column.kind {
        Kind::Text => {}
        Kind::Constant(value) => {
            for _ in 0..total {
                push(&mut values.texts, value.clone())?;
            }
        }
        Kind::Same(other) => values = decoded[*other].clone(),
        Kind::Escaped(child, way) => {
            for plain in &decoded[*child].texts {
                push(&mut values.texts, plain.iter().flat_map(|&byte| escaped(byte, way)).collect())?;
            }
        }
        Kind::List { counts, elements, separator } => {
            let of_range = (domain, &plan.domains[plan.columns[*elements].domain]);
            for value in join(&decoded[*counts], &decoded[*elements], separator, of_range, at)? {
                push(&mut values.texts, value)?;
            }
        }
        Kind::Computed { source, divisor, addend, type_ } => {
            for &stored in &decoded[*source].integers {
                let number = signed(stored).div_euclid(*divisor).wrapping_add(*addend);
                let Some(text) = print::number(*type_, number) else { return fail(at, "a computed number that its type cannot have") };
                values.integers.push(number as u64 ^ 1 << 63);
                push(&mut values.texts, text)?;
            }
        }
        Kind::Number(type_) => {
            for &stored in &values.integers {
                let Some(text) = print::number(*type_, signed(stored)) else {
                    return fail(pages.first().map_or(at, |p| p.1.offset), "a number that its type cannot have");
                };
                push(&mut values.texts, text)?;
            }
        }
        Kind::Mapped { key, dictionary, table } => {
            let entries = &dictionaries[*dictionary];
            // The key's numbers were found to be below its dictionary's entries, and so are within the table.
            values.integers = decoded[*key].integers.iter().map(|&number| table[number as usize] as u64).collect();
            for &entry in &values.integers {
                push(&mut values.texts, entries.values[entry as usize].clone())?;
            }
            check_sets(entries, &values.integers, domain)?;
        }
        Kind::Dictionary(dictionary) => {
            let entries = &dictionaries[*dictionary];
            for &entry in &values.integers {
                match usize::try_from(entry).ok().and_then(|e| entries.values.get(e)) {
                    Some(value) => push(&mut values.texts, value.clone())?,
                    None => return fail(pages.first().map_or(at, |p| p.1.offset), "no such dictionary entry"),
                }
            }
            check_sets(entries, &values.integers, domain)?;
        }
        Kind::Shapes(shapes) => {
            for line in assemble(plan, shapes, &values.integers, domain, decoded, at)? {
                push(&mut values.texts, line)?;
            }
        }
    }
    Ok(values)
}

fn escaped(byte: u8, way: &Way) -> Vec<u8> {
    match (way, byte) {
        (Way::Json, b'"' | b'\\') => vec![b'\\', byte],
        (Way::Json, 8) => b"\\b".to_vec(),
        (Way::Json, 9) => b"\\t".to_vec(),
        (Way::Json, 10) => b"\\n".to_vec(),
        (Way::Json, 12) => b"\\f".to_vec(),
        (Way::Json, 13) => b"\\r".to_vec(),
        (Way::Doubled, b'"') => b"\"\"".to_vec(),
        _ => vec![byte],
    }
}

/// The values of a list. In each row range they use up the elements of that range exactly.
fn join(counts: &Values, elements: &Values, separator: &[u8], (domain, of_elements): (&Domain, &Domain), at: u64) -> Result<Vec<Vec<u8>>> {
    let (mut row, mut next, mut end) = (0, 0, 0);
    let mut out = Vec::new();
    for (&rows, &there) in domain.iter().zip(of_elements) {
        end += there;
        for _ in 0..rows {
            let taken = counts.number(row).and_then(|count| usize::try_from(count).ok()).filter(|&count| count <= end - next);
            let Some(taken) = taken else { return fail(at, "lists need more elements than there are") };
            out.push(elements.texts[next..next + taken].join(separator));
            next += taken;
            row += 1;
        }
        if next != end {
            return fail(at, "lists need fewer elements than there are");
        }
    }
    Ok(out)
}

/// An entry that says its row ranges is in no other.
fn check_sets(entries: &Entries, numbers: &[u64], domain: &Domain) -> Result<()> {
    let mut numbers = numbers.iter();
    for (range, &count) in domain.iter().enumerate() {
        for &entry in numbers.by_ref().take(count) {
            if let Some(set) = &entries.sets[entry as usize]
                && !set.contains(&range)
            {
                return fail(entries.offset, "an entry occurs in a row range that its page set leaves out");
            }
        }
    }
    Ok(())
}

/// The values of a column of shapes. In each row range, its slots use up the values of their columns in that range exactly.
fn assemble(plan: &Plan, shapes: &[Vec<Part>], ids: &[u64], domain: &Domain, decoded: &[Values], at: u64) -> Result<Vec<Vec<u8>>> {
    let mut row = 0;
    let slots: std::collections::BTreeSet<usize> =
        shapes.iter().flatten().filter_map(|part| if let Part::Slot(column) = part { Some(*column) } else { None }).collect();
    let mut next = vec![0; decoded.len()];
    let mut ends = vec![0; decoded.len()];
    let mut ids = ids.iter();
    let mut out = Vec::new();
    for (range, &count) in domain.iter().enumerate() {
        for &slot in &slots {
            ends[slot] += plan.domains[plan.columns[slot].domain][range];
        }
        for &id in ids.by_ref().take(count) {
            let Some(shape) = usize::try_from(id).ok().and_then(|id| shapes.get(id)) else { return fail(at, "no such shape") };
            let mut value = Vec::new();
            for part in shape {
                match part {
                    Part::Literal(bytes) => value.extend_from_slice(bytes),
                    // Domains are the same, so the place among all values is the same, too.
                    Part::Aligned(column) => value.extend_from_slice(&decoded[*column].texts[row]),
                    Part::Slot(column) => {
                        if next[*column] == ends[*column] {
                            return fail(at, "shapes need more values than their columns have");
                        }
                        value.extend_from_slice(&decoded[*column].texts[next[*column]]);
                        next[*column] += 1;
                    }
                }
            }
            out.push(value);
            row += 1;
        }
        if slots.iter().any(|&slot| next[slot] != ends[slot]) {
            return fail(at, "shapes need fewer values than their columns have");
        }
    }
    Ok(out)
}
