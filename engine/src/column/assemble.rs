//! Putting composite values together: literals, and the next values of other columns, straight into one buffer.

use super::plan::{Kind, Plan};
use super::values::{Slice, Values};
use crate::encoding::out::Out;
use crate::shape::Part;
use std::ops::Range;

/// A composite column's shapes, ready to run.
#[derive(Debug)]
pub(super) struct Program {
    /// Literals back to back, and room behind them so that copies of fixed length stay inside.
    literals: Vec<u8>,
    steps: Vec<Step>,
    /// The steps of each shape.
    shapes: Vec<Range<usize>>,
    /// The columns whose values are used, each once, and whether as those of the same row.
    pub children: Vec<(u32, bool)>,
}

/// A literal, then a value of a child.
#[derive(Debug)]
struct Step {
    at: u32,
    len: u32,
    /// Index in [`Program::children`]; [`NO_CHILD`] at the end of a shape.
    child: u32,
}

const NO_CHILD: u32 = u32::MAX;

/// Gives the values of a child one after the other.
struct Feed<'a> {
    data: &'a [u8],
    /// Where the first value begins.
    start: usize,
    at: usize,
    all: &'a [u32],
    /// Values are those of the row, not the next ones.
    aligned: bool,
    ends: std::slice::Iter<'a, u32>,
}

impl<'a> Feed<'a> {
    fn new(slice: &'a Slice, aligned: bool) -> Self {
        // Other forms are not given by the decoder; a feed without values is an error when one is wanted.
        let Values::Text { data, ends } = &*slice.values else {
            return Feed { data: &[], start: 0, at: 0, all: &[], aligned, ends: [].iter() };
        };
        let start = if slice.start == 0 { 0 } else { ends[slice.start - 1] as usize };
        let all = &ends[slice.start..slice.start + slice.len];
        Feed { data, start, at: start, all, aligned, ends: all.iter() }
    }

    /// The next value is that of `row`, one of the range's.
    fn go_to(&mut self, row: usize) {
        self.at = if row == 0 { self.start } else { self.all[row - 1] as usize };
        self.ends = self.all[row..].iter();
    }

    /// Appends the next value; `None` when there is none.
    #[inline]
    fn put(&mut self, out: &mut Out) -> Option<()> {
        let end = *self.ends.next()? as usize;
        out.put(self.data, self.at, end - self.at);
        self.at = end;
        Some(())
    }
}

/// The encoding of a column, or of the one that it is the same as.
fn kind_of(plan: &Plan, mut column: u32) -> &Kind {
    while let Kind::Same(other) = plan.columns[column as usize].kind {
        column = other;
    }
    &plan.columns[column as usize].kind
}

impl Program {
    /// The program of composite column `column`: constants are folded into literals, children are numbered.
    pub fn new(plan: &Plan, column: u32) -> Program {
        let mut program = Program { literals: Vec::new(), steps: Vec::new(), shapes: Vec::new(), children: Vec::new() };
        let Kind::Shapes(shapes) = &plan.columns[column as usize].kind else { return program };
        let mut numbers: hashbrown::HashMap<(u32, bool), u32> = hashbrown::HashMap::new();
        for shape in shapes {
            let first = program.steps.len();
            let mut literal = program.literals.len();
            for part in shape {
                let child = match part {
                    Part::Literal(bytes) => {
                        program.literals.extend_from_slice(bytes);
                        continue;
                    }
                    Part::Slot(child) => (*child, false),
                    Part::Aligned(child) => (*child, true),
                };
                if let Kind::Constant(value) = kind_of(plan, child.0) {
                    program.literals.extend_from_slice(value);
                    continue;
                }
                let children = &mut program.children;
                let child = *numbers.entry(child).or_insert_with(|| {
                    children.push(child);
                    children.len() as u32 - 1
                });
                program.step(&mut literal, child);
            }
            if program.literals.len() > literal {
                program.step(&mut literal, NO_CHILD);
            }
            program.shapes.push(first..program.steps.len());
        }
        program.literals.resize(program.literals.len() + crate::encoding::out::STEP, 0);
        program
    }

    fn step(&mut self, literal: &mut usize, child: u32) {
        self.steps.push(Step { at: *literal as u32, len: (self.literals.len() - *literal) as u32, child });
        *literal = self.literals.len();
    }

    /// The values of shapes `ids`, out of `children`, which are texts, appended to `out`; their ends behind `ends`.
    ///
    /// # Errors
    /// A sentence when shapes and values do not go together, or the values pass 4 GiB.
    pub fn run(&self, ids: &[u64], children: &[Slice], out: &mut Out, ends: &mut Vec<u32>) -> Result<(), &'static str> {
        let mut feeds: Vec<Feed<'_>> = children.iter().zip(&self.children).map(|(slice, child)| Feed::new(slice, child.1)).collect();
        if feeds.iter().any(|feed| feed.aligned && feed.all.len() != ids.len()) {
            return Err("a column has another number of values than the one it is aligned with");
        }
        ends.reserve(ids.len());
        for (row, &id) in ids.iter().enumerate() {
            let steps = usize::try_from(id).ok().and_then(|id| self.shapes.get(id)).ok_or("no such shape")?;
            for step in &self.steps[steps.clone()] {
                out.put(&self.literals, step.at as usize, step.len as usize);
                if let Some(feed) = feeds.get_mut(step.child as usize) {
                    if feed.aligned {
                        feed.go_to(row);
                    }
                    feed.put(out).ok_or("shapes need more values than their columns have")?;
                }
            }
            ends.push(out.len() as u32);
        }
        if u32::try_from(out.len()).is_err() {
            return Err("a row range passes 4 GiB");
        }
        if feeds.iter().all(|f| f.aligned || f.ends.len() == 0) { Ok(()) } else { Err("shapes need fewer values than their columns have") }
    }
}
