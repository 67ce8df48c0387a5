//! The ways a needle can lie in the lines of one shape: a fixed text with slots in it.
//!
//! Holds: a line made of the pieces contains the needle if and only if all tests of at least one placement hold for its
//! slots' values, whatever these are, empty ones included. Literals pin the needle down, so placements are few: about one
//! a slot, and one for each split of the needle over slots that touch. Past a bound the answer is unknown.

use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;

/// The most placements that [`placements`] lists.
pub const PLACEMENTS_MAX: usize = 1024;

/// A part of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that every line of the shape holds here.
    Literal(&'a [u8]),
    /// A place where the value varies.
    Slot,
}

/// The answer of [`placements`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placements {
    /// The needle lies in the fixed text: every line of the shape holds it.
    Always,
    /// A line holds the needle when one of these holds. Empty: no line does.
    Any(Vec<Placement>),
    /// Too many ways: look at the lines.
    Unknown,
}

/// One way for the needle to lie in a line: all tests must hold. Slots ascend, and none occurs twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The slots that the needle touches; at least one.
    pub tests: Vec<SlotTest>,
}

/// What one slot's value must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotTest {
    /// The slot, counted from 0 among the slots of the shape.
    pub slot: usize,
    /// How the value must hold the part.
    pub fit: Fit,
    /// The part of the needle, in bytes; it is empty only for [`Fit::Whole`].
    pub part: Range<usize>,
}

/// How a value holds a part of the needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The value is the part.
    Whole,
    /// The value begins with the part.
    Prefix,
    /// The value ends with the part.
    Suffix,
    /// The value has the part, which is the whole needle, anywhere in it.
    Contains,
}

impl SlotTest {
    /// Whether `value` passes.
    pub fn holds(&self, needle: &[u8], value: &[u8]) -> bool {
        let part = &needle[self.part.clone()];
        match self.fit {
            Fit::Whole => value == part,
            Fit::Prefix => value.starts_with(part),
            Fit::Suffix => value.ends_with(part),
            Fit::Contains => memmem::find(value, part).is_some(),
        }
    }
}

/// All ways for `needle` to lie in a line made of `pieces`; unknown past [`PLACEMENTS_MAX`].
pub fn placements(needle: &[u8], pieces: &[Piece<'_>]) -> Placements {
    placements_where(needle, pieces, PLACEMENTS_MAX, &|_| true)
}

/// All ways for `needle` to lie in a line made of `pieces`; unknown past `count_max` ways, or when looking for them takes
/// more than a multiple of that.
///
/// `can_hold` says whether any value of a test's slot can pass it; where none can (a slot of digits holds no comma), the ways that
/// need it are left out as they come up. Each such fact keeps a needle that spans many slots from branching.
pub fn placements_where(needle: &[u8], pieces: &[Piece<'_>], count_max: usize, can_hold: &dyn Fn(&SlotTest) -> bool) -> Placements {
    let runs = runs(pieces);
    let inside = |run: &Run<'_>| matches!(run, Run::Literal(text) if memmem::find(text, needle).is_some());
    if needle.is_empty() || runs.iter().any(inside) {
        return Placements::Always;
    }
    let mut search = Search { needle, runs: &runs, count_max, can_hold, steps: 0, found: Vec::new() };
    match search.all() {
        Ok(()) => Placements::Any(search.found),
        Err(TooMany) => Placements::Unknown,
    }
}

/// The pieces with literals that touch made one, and empty ones left out.
enum Run<'a> {
    Literal(Cow<'a, [u8]>),
    Slot(usize),
}

fn runs<'a>(pieces: &[Piece<'a>]) -> Vec<Run<'a>> {
    let mut runs = Vec::with_capacity(pieces.len());
    let mut slots = 0;
    for piece in pieces {
        match (*piece, runs.last_mut()) {
            (Piece::Literal([]), _) => {}
            (Piece::Literal(text), Some(Run::Literal(before))) => before.to_mut().extend_from_slice(text),
            (Piece::Literal(text), _) => runs.push(Run::Literal(Cow::Borrowed(text))),
            (Piece::Slot, _) => {
                runs.push(Run::Slot(slots));
                slots += 1;
            }
        }
    }
    runs
}

struct TooMany;

/// Branches looked at for each placement that may be listed.
const STEPS_PER_PLACEMENT: usize = 16;

struct Search<'a> {
    needle: &'a [u8],
    runs: &'a [Run<'a>],
    count_max: usize,
    can_hold: &'a dyn Fn(&SlotTest) -> bool,
    steps: usize,
    found: Vec<Placement>,
}

/// The needle's first `matched` bytes lie before run `run`, where the rest goes on.
struct Branch {
    run: usize,
    matched: usize,
    /// How many tests of the path led here, before `test`.
    depth: usize,
    test: Option<SlotTest>,
}

impl Search<'_> {
    fn all(&mut self) -> Result<(), TooMany> {
        let len = self.needle.len();
        let runs = self.runs;
        for (run, piece) in runs.iter().enumerate() {
            match piece {
                Run::Slot(slot) => {
                    self.emit(&[], Some(SlotTest { slot: *slot, fit: Fit::Contains, part: 0..len }))?;
                    for matched in 1..len {
                        if self.goes_on(run + 1, matched) {
                            let test = SlotTest { slot: *slot, fit: Fit::Suffix, part: 0..matched };
                            self.follow(Branch { run: run + 1, matched, depth: 0, test: Some(test) })?;
                        }
                    }
                }
                // The needle begins in the literal's tail.
                Run::Literal(text) => {
                    for matched in 1..len.min(text.len() + 1) {
                        if text.ends_with(&self.needle[..matched]) && self.goes_on(run + 1, matched) {
                            self.follow(Branch { run: run + 1, matched, depth: 0, test: None })?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Lists every placement that begins with `first`.
    fn follow(&mut self, first: Branch) -> Result<(), TooMany> {
        let len = self.needle.len();
        if first.test.as_ref().is_some_and(|test| !(self.can_hold)(test)) {
            return Ok(());
        }
        let mut path: Vec<SlotTest> = Vec::new();
        let mut branches = vec![first];
        while let Some(Branch { mut run, mut matched, depth, test }) = branches.pop() {
            self.steps += 1;
            if self.steps + branches.len() > self.count_max.saturating_mul(STEPS_PER_PLACEMENT) {
                return Err(TooMany);
            }
            path.truncate(depth);
            path.extend(test);
            if let Some(Run::Literal(text)) = self.runs.get(run) {
                if text.len() >= len - matched {
                    self.emit(&path, None)?;
                    continue;
                }
                matched += text.len();
                run += 1;
            }
            let Some(Run::Slot(slot)) = self.runs.get(run) else { continue };
            self.emit(&path, Some(SlotTest { slot: *slot, fit: Fit::Prefix, part: matched..len }))?;
            for next in (matched..len).filter(|&next| self.goes_on(run + 1, next)) {
                let test = SlotTest { slot: *slot, fit: Fit::Whole, part: matched..next };
                if (self.can_hold)(&test) {
                    branches.push(Branch { run: run + 1, matched: next, depth: path.len(), test: Some(test) });
                }
            }
        }
        Ok(())
    }

    /// Whether the needle from byte `matched` on, not yet at its end, can lie from run `run` on.
    fn goes_on(&self, run: usize, matched: usize) -> bool {
        let rest = &self.needle[matched..];
        match self.runs.get(run) {
            None => false,
            Some(Run::Slot(_)) => true,
            Some(Run::Literal(text)) => text.starts_with(rest) || run + 1 < self.runs.len() && rest.starts_with(text),
        }
    }

    /// Lists the placement `path` and `last`, whose other tests are known to be possible.
    fn emit(&mut self, path: &[SlotTest], last: Option<SlotTest>) -> Result<(), TooMany> {
        if last.as_ref().is_some_and(|test| !(self.can_hold)(test)) {
            return Ok(());
        }
        if self.found.len() >= self.count_max {
            return Err(TooMany);
        }
        self.found.push(Placement { tests: path.iter().cloned().chain(last).collect() });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(text: &str) -> Vec<Piece<'_>> {
        text.split_inclusive('_')
            .flat_map(|part| match part.strip_suffix('_') {
                Some(before) => vec![Piece::Literal(before.as_bytes()), Piece::Slot],
                None => vec![Piece::Literal(part.as_bytes())],
            })
            .collect()
    }

    fn show(needle: &str, answer: &Placements) -> String {
        let Placements::Any(list) = answer else { return format!("{answer:?}") };
        let test = |t: &SlotTest| {
            let part = &needle[t.part.clone()];
            let shown = match t.fit {
                Fit::Whole => part.to_string(),
                Fit::Prefix => format!("{part}*"),
                Fit::Suffix => format!("*{part}"),
                Fit::Contains => format!("*{part}*"),
            };
            format!("{}:{shown}", t.slot)
        };
        let mut shown: Vec<String> = list.iter().map(|p| p.tests.iter().map(test).collect::<Vec<_>>().join(" ")).collect();
        shown.sort();
        shown.join(" | ")
    }

    #[test]
    fn placements_of_small_shapes() {
        // Shape (`_` is a slot), needle, placements.
        let cases = [
            ("", "", "Always"),
            ("", "a", ""),
            ("abc", "bc", "Always"),
            ("abc", "cd", ""),
            ("user=_ id=_", "r=", "Always"),
            ("user=_ id=_", "bob", "0:*bob* | 1:*bob*"),
            ("user=_ id=_", "user=bob id=7", "0:*user=bob 1:7* | 0:*user=bob id=7* | 0:bob 1:7* | 0:bob id=7* | 1:*user=bob id=7*"),
            ("user=_ id=_", "b i", "0:*b | 0:*b i* | 1:*b i*"),
            ("_,_", "1,2", "0:*1 1:2* | 0:*1,2* | 1:*1,2*"),
            ("__", "abc", "0:*a 1:bc* | 0:*ab 1:c* | 0:*abc* | 1:*abc*"),
            ("a__b", "ab", "0: 1: | 0: 1:b* | 0:*a 1: | 0:*a 1:b* | 0:*ab* | 0:b* | 1:*a | 1:*ab*"),
            ("_", "x", "0:*x*"),
        ];
        for (text, needle, expected) in cases {
            assert_eq!(show(needle, &placements(needle.as_bytes(), &shape(text))), expected, "{needle:?} in {text:?}");
        }
    }

    #[test]
    fn placements_are_few_where_literals_pin_them() {
        let csv = vec!["_"; 200].join(",");
        let uuid = "0f3c1a52-7f6e-4c39-b1ad-0d9be84d6a10";
        for (text, needle, count_max) in
            [(csv.as_str(), uuid, 200), (csv.as_str(), "10.0.0.1,443,GET", 800), ("_ _ _ _", "a b", 12), ("__", uuid, 40)]
        {
            let answer = placements(needle.as_bytes(), &shape(text));
            let Placements::Any(list) = &answer else { panic!("{needle}: {answer:?}") };
            assert!(list.len() <= count_max, "{needle} in {text}: {}", list.len());
        }
        let many = "_".repeat(12);
        assert_eq!(placements(uuid.as_bytes(), &shape(&many)), Placements::Unknown);
        let within = |count_max| placements_where(b"abc", &shape("__"), count_max, &|_| true);
        assert_eq!(within(3), Placements::Unknown);
        assert!(matches!(within(4), Placements::Any(_)));
        let long = vec![b','; 100_000];
        let wide = vec!["_"; 2_000].join(",");
        assert_eq!(placements(&long, &shape(&wide)), Placements::Unknown);
    }

    #[test]
    fn what_slots_cannot_hold_keeps_placements_few() {
        let csv = vec!["_"; 200].join(",");
        let needle = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p";
        assert_eq!(placements(needle.as_bytes(), &shape(&csv)), Placements::Unknown);
        let no_comma = |test: &SlotTest| !needle[test.part.clone()].contains(',');
        let answer = placements_where(needle.as_bytes(), &shape(&csv), 200, &no_comma);
        let Placements::Any(list) = &answer else { panic!("{answer:?}") };
        assert_eq!(list.len(), 200 - 15);
        assert!(list.iter().all(|placement| placement.tests.len() == 16));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30_000))]
        #[test]
        fn a_line_holds_the_needle_exactly_when_a_placement_holds(
            pieces in prop::collection::vec(prop::option::of("[ab]{0,3}"), 0..6),
            values in prop::collection::vec("[ab]{0,3}", 6),
            needle in "[ab]{0,6}",
            known in any::<bool>(),
        ) {
            let pieces_of: Vec<Piece<'_>> = pieces.iter().map(|p| p.as_ref().map_or(Piece::Slot, |text| Piece::Literal(text.as_bytes()))).collect();
            let mut slots = values.iter();
            let line: String = pieces.iter().map(|p| p.as_ref().or_else(|| slots.next()).map_or("", |s| s.as_str())).collect();
            let holds = |t: &SlotTest| t.holds(needle.as_bytes(), values[t.slot].as_bytes());
            // Sometimes it is known that a slot's value has no more than its length.
            let can_hold = |t: &SlotTest| !known || t.part.len() <= values[t.slot].len();
            match placements_where(needle.as_bytes(), &pieces_of, PLACEMENTS_MAX, &can_hold) {
                Placements::Always => prop_assert!(line.contains(&needle)),
                Placements::Any(list) => {
                    prop_assert_eq!(list.iter().any(|p| p.tests.iter().all(holds)), line.contains(&needle));
                    for placement in &list {
                        prop_assert!(!placement.tests.is_empty());
                        prop_assert!(placement.tests.windows(2).all(|w| w[0].slot < w[1].slot));
                    }
                }
                Placements::Unknown => {}
            }
        }
    }
}
