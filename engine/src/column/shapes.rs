//! Encoding composite values: shapes, their slots as columns.

use super::contexts;
use super::encode::{Encoder, Hint, verbatim_shape};
use super::plan::{Kind, Shape};
use super::references::Sibling;
use crate::encoding::out::Out;
use crate::error::Result;
use crate::shape::demote::{self, Merged, Source};
use crate::shape::text::{self, Grain};
use crate::shape::{Key, Part, SlotKind, Span, json};
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

/// Text shapes of fewer values share one column of whole values.
const TEXT_VALUES_MIN: u32 = 4;
/// Shapes of one column; values of further ones share one column of whole values.
const SHAPES_MAX: usize = 16 << 10;
/// Values after which shapes must have proved useful.
const TRIAL_VALUES: usize = 2048;
/// Templates that differ in at most this part of their words and slots become one.
const VARIABLE_PART: f64 = 0.2;
/// Names with fewer values share columns …
const POOLED_VALUES_MAX: usize = 16;
/// … where there are more templates than this.
const POOLED_FROM: usize = 64;
/// Values of this mean length or more are encoded behind the others.
const LONG_BYTES: usize = 64;
/// Values looked at by [`is_worth_it`].
const SAMPLE: usize = 512;

/// What a look at some values says of cutting them into templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// Few templates, and slots.
    Good,
    /// Many templates, yet most values share theirs with others.
    Unclear,
    /// Not worth a trial.
    Bad,
}

/// So many values that are not cut, and none that is, are enough to know.
const UNCUT_MAX: usize = 32;
/// A template has proved itself when so many values of a sample have it …
const SAMPLE_COUNT_MIN: usize = 3;
/// … and all proved ones together must hold this part of the sample.
const COVERED_MIN: f64 = 0.5;

/// What cutting these values at `grain` promises.
pub(super) fn promise(arena: &[u8], spans: &[Span], grain: Grain) -> Promise {
    let step = (spans.len() / SAMPLE).max(1);
    let mut shapes = Shapes::default();
    let (mut slots, mut uncut, mut seen) = (Vec::new(), 0usize, 0usize);
    for span in spans.iter().step_by(step).take(SAMPLE) {
        slots.clear();
        shapes.key.begin(span.of(arena));
        let cut = text::scan(arena, *span, grain, &mut shapes.key, &mut slots);
        uncut += usize::from(!cut || slots.is_empty() || slots[0] == *span);
        if uncut >= UNCUT_MAX && uncut == seen + 1 {
            return Promise::Bad;
        }
        shapes.intern();
        seen += 1;
    }
    if uncut * 2 >= seen {
        return Promise::Bad;
    }
    let merged = shapes.merge(grain);
    let mut counts = vec![0; merged.templates.len()];
    merged.template_of.iter().zip(&shapes.counts).for_each(|(&template, &count)| counts[template as usize] += count as usize);
    let covered: usize = counts.iter().filter(|&&count| count >= SAMPLE_COUNT_MIN).sum();
    match counts.len() {
        templates if templates <= (seen / 8).max(4) => Promise::Good,
        _ if covered as f64 >= COVERED_MIN * seen as f64 => Promise::Unclear,
        _ => Promise::Bad,
    }
}

/// Distinct keys, numbered as they come.
#[derive(Default)]
struct Shapes {
    key: Key,
    table: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    keys: Vec<Vec<u8>>,
    counts: Vec<u32>,
    /// The first value of each shape.
    samples: Vec<u32>,
}

impl Shapes {
    /// The number of `self.key`; a new one if it was not seen.
    fn intern(&mut self) -> u32 {
        let key = self.key.as_slice();
        let hash = self.hasher.hash_one(key);
        if let Some(&id) = self.table.find(hash, |&id| self.keys[id as usize] == key) {
            self.counts[id as usize] += 1;
            return id;
        }
        let id = self.keys.len() as u32;
        self.keys.push(key.to_vec());
        self.counts.push(1);
        let (keys, hasher) = (&self.keys, &self.hasher);
        self.table.insert_unique(hash, id, |&id| hasher.hash_one(&keys[id as usize][..]));
        id
    }
}

impl Shapes {
    fn merge(&self, grain: Grain) -> Merged {
        let part = if grain == Grain::Fine { 0.0 } else { VARIABLE_PART };
        demote::merge(&self.keys, &self.counts, |key| json::template(key).is_some(), part)
    }
}

/// The values of a slot's column while rows are dealt out. They are copied together: every later pass over the column
/// then reads memory in order, and not a few bytes of each line.
#[derive(Default)]
struct Child {
    data: Out,
    spans: Vec<Span>,
    ends: Vec<u32>,
    slot: SlotKind,
    /// How many values there will be.
    values: usize,
}

const NO_SHAPE: u32 = u32::MAX;

/// All values taken apart.
struct Parsed {
    shapes: Shapes,
    /// The shape of each value; [`NO_SHAPE`] for one kept whole.
    rows: Vec<u32>,
    slots: Vec<Span>,
    slot_ends: Vec<u32>,
}

fn parse(arena: &[u8], spans: &[Span], grain: Grain, may_be_json: bool) -> Option<Parsed> {
    let mut parsed = Parsed {
        shapes: Shapes::default(),
        rows: Vec::with_capacity(spans.len()),
        slots: Vec::new(),
        slot_ends: Vec::with_capacity(spans.len()),
    };
    let mut whole = 0;
    for (index, &span) in spans.iter().enumerate() {
        let start = parsed.slots.len();
        let shapes = &mut parsed.shapes;
        shapes.key.begin(span.of(arena));
        if !(may_be_json && json::scan(arena, span, &mut shapes.key, &mut parsed.slots)) {
            text::scan(arena, span, grain, &mut shapes.key, &mut parsed.slots);
        }
        let known = shapes.keys.len();
        let id = if known < SHAPES_MAX { shapes.intern() } else { NO_SHAPE };
        if id == NO_SHAPE {
            parsed.slots.truncate(start);
            parsed.slots.push(span);
            whole += 1;
        } else if id as usize == known {
            shapes.samples.push(index as u32);
        }
        parsed.rows.push(id);
        parsed.slot_ends.push(parsed.slots.len() as u32);
        if index + 1 == TRIAL_VALUES.min(spans.len()) && index > 64 && parsed.shapes.keys.len() * 4 > index * 3 && !has_json(&parsed.shapes)
        {
            return None;
        }
    }
    (whole * 4 < spans.len().max(1) * 3).then_some(parsed)
}

fn has_json(shapes: &Shapes) -> bool {
    let json = shapes.keys.iter().filter(|k| json::template(k).is_some()).count();
    json * 2 > shapes.keys.len()
}

impl Encoder {
    /// Takes values apart into shapes and slots; `None` when they have too little in common.
    pub(super) fn shapes(&mut self, arena: &[u8], spans: &[Span], domain: u32, grain: Grain, hint: Hint) -> Result<Option<u32>> {
        let Some(parsed) = parse(arena, spans, grain, hint.json) else { return Ok(None) };
        let merged = parsed.shapes.merge(grain);
        let order = rank(&parsed, &merged);
        let aligned = self.align((&parsed, &merged), arena, domain);
        let (mut children, layouts) = lay_out((arena, spans), (&parsed, &merged), &order, &aligned);
        let rows = deal((&parsed, &merged), (arena, spans), &layouts, &mut children, &self.domains[domain as usize].ends, &order);
        let whole = rows.iter().any(|&r| r as usize == order.len());
        drop(parsed.slots);
        let columns = self.children(children, grain, hint)?;
        let mut shapes: Vec<Shape> = layouts.into_iter().map(|parts| parts.into_iter().map(|p| to_column(p, &columns)).collect()).collect();
        if whole {
            shapes.push(verbatim_shape(columns[0]));
        }
        let ids: Vec<u64> = rows.iter().map(|&r| u64::from(r)).collect();
        let column = self.add(domain, Kind::Shapes(shapes));
        self.integer_pages(column, &ids, domain)?;
        if hint.depth == 0 && hint.lines {
            self.line_shapes = rows;
        }
        Ok(Some(column))
    }

    /// Encodes the columns of slots; those that may refer to others behind these.
    fn children(&mut self, mut children: Vec<Child>, grain: Grain, hint: Hint) -> Result<Vec<u32>> {
        let next_grain = match grain {
            Grain::Named | Grain::Coarse => |slot: SlotKind| match slot {
                SlotKind::Token => Some(Grain::Fine),
                SlotKind::Word => None,
                _ => Some(Grain::Coarse),
            },
            Grain::Fine => |_: SlotKind| None,
        };
        let mut order: Vec<usize> = (0..children.len()).collect();
        order.sort_by_key(|&index| (children[index].is_long(), children[index].is_mixed_time()));
        let siblings = self.siblings.len();
        let mut columns = vec![0; children.len()];
        for index in order {
            let child = std::mem::take(&mut children[index]);
            let domain = self.domain(child.ends);
            let hint = Hint { depth: hint.depth + 1, lines: false, json: false, slot: child.slot, grain: next_grain(child.slot) };
            let (data, spans) = (child.data.into_memory(), child.spans);
            columns[index] = match child.slot {
                SlotKind::Verbatim => self.verbatim(&data, &spans, domain)?,
                _ => self.column(&data, &spans, domain, hint)?,
            };
            self.remember_sibling(Sibling { domain, column: columns[index], data, spans });
        }
        self.siblings.truncate(siblings);
        Ok(columns)
    }

    /// The slots of templates that have, in every row, the value that a sibling has there: for each template and slot its column.
    fn align(&self, (parsed, merged): (&Parsed, &Merged), arena: &[u8], domain: u32) -> Aligned {
        let siblings: Vec<&Sibling> = self.siblings_of(domain).collect();
        let mut aligned = Aligned::default();
        if siblings.is_empty() {
            return aligned;
        }
        // For each template and slot the siblings that are not refuted yet.
        let mut left: Vec<Option<Vec<Vec<u32>>>> = vec![None; merged.templates.len()];
        let mut start = 0;
        for (row, (&shape, &end)) in parsed.rows.iter().zip(&parsed.slot_ends).enumerate() {
            let mut own = parsed.slots[start as usize..end as usize].iter().map(|s| s.of(arena));
            start = end;
            let Some(&template) = merged.template_of.get(shape as usize) else { continue };
            let mut values = merged.sources[shape as usize].iter().map(|source| match source {
                Source::Slot => own.next().unwrap_or_default(),
                Source::Word(span) => span.of(&merged.words),
            });
            match &mut left[template as usize] {
                Some(slots) => {
                    for (candidates, value) in slots.iter_mut().zip(values) {
                        candidates.retain(|&index| siblings[index as usize].value(row) == value);
                    }
                }
                none => {
                    let equal = |value: &[u8]| (0..siblings.len() as u32).filter(|&i| siblings[i as usize].value(row) == value).collect();
                    *none = Some(values.by_ref().map(equal).collect());
                }
            }
        }
        for (template, slots) in left.into_iter().enumerate() {
            for (slot, candidates) in slots.into_iter().flatten().enumerate() {
                if let Some(&first) = candidates.first() {
                    aligned.insert((template as u32, slot), siblings[first as usize].column);
                }
            }
        }
        aligned
    }
}

/// For templates and slots the columns that have their values.
type Aligned = HashMap<(u32, usize), u32, foldhash::fast::FixedState>;

fn to_column(part: Part<usize>, columns: &[u32]) -> Part<u32> {
    match part {
        Part::Literal(bytes) => Part::Literal(bytes),
        Part::Slot(child) => Part::Slot(columns[child]),
        Part::Aligned(column) => Part::Aligned(column as u32),
    }
}

/// The templates kept, most frequent first; values of the others are made whole.
fn rank(parsed: &Parsed, merged: &Merged) -> Vec<u32> {
    let mut counts = vec![0; merged.templates.len()];
    let mut json = vec![false; merged.templates.len()];
    for (shape, &template) in merged.template_of.iter().enumerate() {
        counts[template as usize] += parsed.shapes.counts[shape];
        json[template as usize] = json::template(&parsed.shapes.keys[shape]).is_some();
    }
    let kept = |&id: &u32| counts[id as usize] >= TEXT_VALUES_MIN || json[id as usize];
    let mut order: Vec<u32> = (0..merged.templates.len() as u32).filter(kept).collect();
    order.sort_by_key(|&id| std::cmp::Reverse(counts[id as usize]));
    order
}

/// What names the columns of a template's slots: the path in JSON, else what stands before them, and what a value looks like.
fn names(arena: &[u8], spans: &[Span], parsed: &Parsed, merged: &Merged, shape: usize) -> Vec<Vec<u8>> {
    let row = parsed.shapes.samples[shape] as usize;
    let start = if row == 0 { 0 } else { parsed.slot_ends[row - 1] };
    let mut own = parsed.slots[start as usize..].iter();
    let values = merged.sources[shape].iter().map(|source| match source {
        Source::Slot => own.next().map_or(&[][..], |s| s.of(arena)),
        Source::Word(span) => span.of(&merged.words),
    });
    if json::template(&parsed.shapes.keys[shape]).is_some() {
        // A path says enough; a look only counts where there is nothing else.
        let paths = json::paths(spans[row].of(arena));
        return paths.into_iter().map(|path| [&path[..], &[0; contexts::LOOK_BYTES]].concat()).collect();
    }
    let contexts = contexts::of(&merged.templates[merged.template_of[shape] as usize]);
    contexts.into_iter().zip(values).map(|(context, value)| [&context[..], &contexts::look(value)].concat()).collect()
}

/// The columns needed, the first of them for whole values, and the parts of each template kept.
fn lay_out(
    (arena, spans): (&[u8], &[Span]),
    (parsed, merged): (&Parsed, &Merged),
    order: &[u32],
    aligned: &Aligned,
) -> (Vec<Child>, Vec<Vec<Part<usize>>>) {
    let new_child = |slot| Child { slot, ..Child::default() };
    let mut children = vec![new_child(SlotKind::Verbatim)];
    let mut by_name: HashMap<(Vec<u8>, SlotKind), usize, foldhash::fast::FixedState> = HashMap::default();
    let mut counts = vec![0; merged.templates.len()];
    let mut shape_of = vec![0; merged.templates.len()];
    for (shape, &template) in merged.template_of.iter().enumerate() {
        counts[template as usize] += parsed.shapes.counts[shape] as usize;
        shape_of[template as usize] = shape;
    }
    let names: Vec<Vec<Vec<u8>>> = order.iter().map(|&t| names(arena, spans, parsed, merged, shape_of[t as usize])).collect();
    let mut named: HashMap<&[u8], usize, foldhash::fast::FixedState> = HashMap::default();
    for (names, &template) in names.iter().zip(order) {
        names.iter().for_each(|name| *named.entry(name).or_default() += counts[template as usize]);
    }
    // Many columns of few values cost more than one of values that look alike.
    let rare = |name: &[u8]| order.len() > POOLED_FROM && named.get(name).is_some_and(|&count| count < POOLED_VALUES_MAX);
    let mut layouts = Vec::with_capacity(order.len());
    for (names, &template) in names.iter().zip(order) {
        let mut layout = Vec::new();
        let mut names = names.iter().enumerate();
        for part in &merged.templates[template as usize] {
            let kind = match part {
                Part::Literal(bytes) => {
                    layout.push(Part::Literal(bytes.clone()));
                    continue;
                }
                Part::Slot(kind) | Part::Aligned(kind) => *kind,
            };
            // A slot without a name is alone.
            let (slot, name) = names.next().map_or((usize::MAX, &[][..]), |(slot, name)| (slot, &name[..]));
            if let Some(&column) = aligned.get(&(template, slot)) {
                layout.push(Part::Aligned(column as usize));
                continue;
            }
            let name = if rare(name) { &name[name.len() - contexts::LOOK_BYTES..] } else { name };
            let alike = if kind == SlotKind::Word { SlotKind::Token } else { kind };
            let next = children.len();
            let child = if name.is_empty() { next } else { *by_name.entry((name.to_vec(), alike)).or_insert(next) };
            if child == next {
                children.push(new_child(kind));
            }
            children[child].values += counts[template as usize];
            layout.push(Part::Slot(child));
        }
        layouts.push(layout);
    }
    (children, layouts)
}

/// Deals the slots out to the columns; returns each value's template, in the new order.
fn deal(
    (parsed, merged): (&Parsed, &Merged),
    (arena, spans): (&[u8], &[Span]),
    layouts: &[Vec<Part<usize>>],
    children: &mut [Child],
    ends: &[u32],
    order: &[u32],
) -> Vec<u32> {
    let mut place_of = vec![order.len() as u32; merged.templates.len()];
    order.iter().enumerate().for_each(|(place, &template)| place_of[template as usize] = place as u32);
    let child_of = |part: &Part<usize>| match part {
        Part::Literal(_) => None,
        Part::Slot(child) => Some(Some(*child)),
        Part::Aligned(_) => Some(None),
    };
    let slots_of: Vec<Vec<Option<usize>>> = layouts.iter().map(|l| l.iter().filter_map(child_of).collect()).collect();
    children.iter_mut().for_each(|child| child.spans.reserve_exact(child.values));
    let mut rows = Vec::with_capacity(spans.len());
    let mut at = 0;
    for (range, &end) in ends.iter().enumerate() {
        while rows.len() < end as usize {
            let row = rows.len();
            let slot_end = parsed.slot_ends[row] as usize;
            let shape = parsed.rows[row];
            let place = merged.template_of.get(shape as usize).map_or(order.len() as u32, |&t| place_of[t as usize]);
            match slots_of.get(place as usize) {
                Some(slots) => {
                    for (&child, source) in slots.iter().zip(&merged.sources[shape as usize]) {
                        let (bytes, span) = match source {
                            Source::Slot => (arena, parsed.slots[at]),
                            Source::Word(span) => (&merged.words[..], *span),
                        };
                        at += usize::from(*source == Source::Slot);
                        if let Some(child) = child {
                            children[child].push(bytes, span, range);
                        }
                    }
                }
                None => children[0].push(arena, spans[row], range),
            }
            at = slot_end;
            rows.push(place);
        }
    }
    for child in children {
        child.ends.resize(ends.len(), child.spans.len() as u32);
    }
    rows
}

impl Child {
    fn is_long(&self) -> bool {
        self.data.len() > LONG_BYTES * self.spans.len()
    }

    /// Whether it has timestamps that are not all written alike: they may follow from a column of numbers.
    fn is_mixed_time(&self) -> bool {
        self.slot == SlotKind::Time && self.spans.windows(2).any(|w| w[0].len != w[1].len)
    }

    fn push(&mut self, arena: &[u8], span: Span, range: usize) {
        if self.ends.len() < range {
            self.ends.resize(range, self.spans.len() as u32);
        }
        self.spans.push(Span { at: self.data.len() as u32, len: span.len });
        self.data.put(arena, span.at as usize, span.len as usize);
    }
}
