//! Putting composite values together: literals, and the next values of other columns, straight into one buffer.

use super::plan::{Kind, Plan};
use super::values::{Numbers, Slice, Values};
use crate::encoding::out::Out;
use crate::encoding::print::Printer;
use crate::encoding::typed::Type;
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
    /// The columns whose values are used, each once.
    pub children: Vec<u32>,
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

/// The values of a child in one row range.
pub(super) enum Child {
    /// Text, of any kind.
    Text(Slice),
    /// Numbers to be printed.
    Numbers(Numbers, Type),
}

/// Gives the values of a child one after the other.
enum Feed<'a> {
    Text { data: &'a [u8], ends: std::slice::Iter<'a, u32>, at: usize },
    Entries { ids: std::slice::Iter<'a, u32>, data: &'a [u8], ends: &'a [u32] },
    Numbers { numbers: std::slice::Iter<'a, u64>, printer: Printer },
}

impl<'a> Feed<'a> {
    fn new(values: &'a Child) -> Self {
        let slice = match values {
            Child::Numbers(numbers, type_) => return Feed::Numbers { numbers: numbers.raw().iter(), printer: Printer::new(*type_) },
            Child::Text(slice) => slice,
        };
        match &*slice.values {
            Values::Text { data, ends } => {
                let at = if slice.start == 0 { 0 } else { ends[slice.start - 1] as usize };
                Feed::Text { data, ends: ends[slice.start..slice.start + slice.len].iter(), at }
            }
            Values::Entries { ids, entries } => match &**entries {
                Values::Text { data, ends } => Feed::Entries { ids: ids[slice.start..slice.start + slice.len].iter(), data, ends },
                _ => Feed::Text { data: &[], ends: [].iter(), at: 0 },
            },
            // Constants are folded into the literals.
            Values::Constant(_) => Feed::Text { data: &[], ends: [].iter(), at: 0 },
        }
    }

    /// Appends the next value; `None` when there is none.
    #[inline]
    fn put(&mut self, out: &mut Out) -> Option<()> {
        match self {
            Feed::Text { data, ends, at } => {
                let end = *ends.next()? as usize;
                out.put(data, *at, end - *at);
                *at = end;
            }
            Feed::Entries { ids, data, ends } => {
                let id = *ids.next()? as usize;
                let end = *ends.get(id)? as usize;
                let start = if id == 0 { 0 } else { *ends.get(id - 1)? as usize };
                out.put(data, start, end - start);
            }
            Feed::Numbers { numbers, printer } => printer.print((numbers.next()? ^ 1 << 63) as i64, out),
        }
        Some(())
    }

    fn is_done(&self) -> bool {
        match self {
            Feed::Text { ends, .. } => ends.len() == 0,
            Feed::Entries { ids, .. } => ids.len() == 0,
            Feed::Numbers { numbers, .. } => numbers.len() == 0,
        }
    }
}

impl Program {
    /// The program of composite column `column`: constants are folded into literals, children are numbered.
    pub fn new(plan: &Plan, column: u32) -> Program {
        let mut program = Program { literals: Vec::new(), steps: Vec::new(), shapes: Vec::new(), children: Vec::new() };
        let Kind::Shapes(shapes) = &plan.columns[column as usize].kind else { return program };
        let mut numbers: hashbrown::HashMap<u32, u32> = hashbrown::HashMap::new();
        for shape in shapes {
            let first = program.steps.len();
            let mut literal = program.literals.len();
            for part in shape {
                let child = match part {
                    Part::Literal(bytes) => {
                        program.literals.extend_from_slice(bytes);
                        continue;
                    }
                    Part::Slot(child) => *child,
                };
                if let Kind::Constant(value) = &plan.columns[child as usize].kind {
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

    /// The values of shapes `ids`, out of `children`, appended to `out`; their ends behind `ends`.
    ///
    /// # Errors
    /// A sentence when shapes and values do not go together, or the values pass 4 GiB.
    pub fn run(&self, ids: &[u64], children: &[Child], out: &mut Out, ends: &mut Vec<u32>) -> Result<(), &'static str> {
        let mut feeds: Vec<Feed<'_>> = children.iter().map(Feed::new).collect();
        ends.reserve(ids.len());
        for &id in ids {
            let steps = usize::try_from(id).ok().and_then(|id| self.shapes.get(id)).ok_or("no such shape")?;
            for step in &self.steps[steps.clone()] {
                out.put(&self.literals, step.at as usize, step.len as usize);
                if let Some(feed) = feeds.get_mut(step.child as usize) {
                    feed.put(out).ok_or("shapes need more values than their columns have")?;
                }
            }
            ends.push(out.len() as u32);
        }
        if u32::try_from(out.len()).is_err() {
            return Err("a row range passes 4 GiB");
        }
        if feeds.iter().all(Feed::is_done) { Ok(()) } else { Err("shapes need fewer values than their columns have") }
    }
}
