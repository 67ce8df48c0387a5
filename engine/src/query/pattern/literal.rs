//! Sets of literals: searched for together, and read out of a regex.

use super::mentions_replacement;
use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem::Finder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind};
use std::ops::Range;

/// A searcher for one or several needles, none of them empty.
#[derive(Debug)]
pub(in crate::query) enum Literals {
    /// One needle.
    One(Box<Finder<'static>>),
    /// Several.
    Many(Box<AhoCorasick>, usize),
}

impl Literals {
    /// A searcher for `needles`; `None` when there is none, one is empty, or they are too many to prepare.
    pub(in crate::query) fn new(needles: &[Vec<u8>]) -> Option<Self> {
        let len_min = needles.iter().map(Vec::len).min().filter(|&len| len > 0)?;
        if let [needle] = needles {
            return Some(Literals::One(Box::new(Finder::new(needle).into_owned())));
        }
        let searcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(needles).ok()?;
        Some(Literals::Many(Box::new(searcher), len_min))
    }

    /// Where the first of the needles lies in `text`: no needle begins earlier.
    pub(in crate::query) fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        match self {
            Literals::One(finder) => finder.find(text).map(|at| at..at + finder.needle().len()),
            Literals::Many(searcher, _) => searcher.find(text).map(|found| found.range()),
        }
    }

    /// How much the needles rule out, for choosing between sets: higher is better.
    pub(in crate::query) fn weight(&self) -> usize {
        match self {
            Literals::One(finder) => 2 * finder.needle().len(),
            Literals::Many(searcher, len_min) => weight(*len_min, searcher.patterns_len()),
        }
    }
}

/// Longer needles rule out more, many needles less.
fn weight(len_min: usize, count: usize) -> usize {
    (2 * len_min).saturating_sub(count.ilog2() as usize)
}

/// The most literals worth looking for at once.
const LITERALS_MAX: usize = 32;
/// The largest class whose characters are read as literals.
const CLASS_MAX: usize = 10;

/// Literals of which every text that `hir` matches holds at least one.
pub(super) fn required(hir: &Hir) -> Option<Literals> {
    // A broken byte counts as U+FFFD, but its bytes in the text are others.
    if mentions_replacement(hir, CLASS_MAX) {
        return None;
    }
    // Many single bytes rule out nothing: looking for them costs more than the regex.
    Literals::new(&required_set(hir)?).filter(|literals| literals.weight() > 0)
}

fn required_set(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => None,
        HirKind::Literal(_) | HirKind::Class(_) => of_run(hir),
        HirKind::Repetition(repetition) => {
            if repetition.min > 0 {
                required_set(&repetition.sub)
            } else {
                None
            }
        }
        HirKind::Capture(capture) => required_set(&capture.sub),
        HirKind::Concat(parts) => best_part(parts),
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(required_set(part)?);
                if all.len() > LITERALS_MAX {
                    return None;
                }
            }
            shortened(all)
        }
    }
}

/// The best of what the parts of a concatenation require; runs of literals and classes count as one part.
fn best_part(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let plain = |part: &Hir| matches!(part.kind(), HirKind::Literal(_) | HirKind::Class(_));
    let mut best: Option<(usize, Vec<Vec<u8>>)> = None;
    let mut consider = |set: Option<Vec<Vec<u8>>>| {
        if let Some(set) = set {
            let len_min = set.iter().map(Vec::len).min().unwrap_or(0);
            let weight = weight(len_min, set.len().max(1));
            if best.as_ref().is_none_or(|(most, _)| weight > *most) {
                best = Some((weight, set));
            }
        }
    };
    for run in parts.chunk_by(|a, b| plain(a) && plain(b)) {
        match run {
            [part] => consider(required_set(part)),
            _ => consider(of_run(&Hir::concat(run.to_vec()))),
        }
    }
    best.map(|(_, set)| set)
}

/// What a run of literals and classes begins with.
fn of_run(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let found = Extractor::new().limit_class(CLASS_MAX).extract(hir);
    shortened(found.literals()?.iter().map(|literal| literal.as_bytes().to_vec()).collect())
}

/// Cuts the literals until there are few enough; `None` when they rule out nothing.
fn shortened(mut set: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let mut len = set.iter().map(Vec::len).min().filter(|&len| len > 0)?;
    set.sort_unstable();
    set.dedup();
    while set.len() > LITERALS_MAX {
        len = len.checked_sub(1).filter(|&len| len > 0)?;
        set.iter_mut().for_each(|literal| literal.truncate(len));
        set.dedup();
    }
    Some(set)
}
