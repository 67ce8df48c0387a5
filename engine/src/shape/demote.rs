//! Demotion: templates that differ in few words become one, with slots for the words that vary.
//!
//! `my-elb,1` and `other-elb,2` have two templates, and every column behind them would be split in two. One template with the name
//! as a slot keeps the columns whole.

use super::{MARK, Part, SlotKind, Span};
use hashbrown::HashMap;

/// Clusters of one skeleton that a template is compared with.
const CLUSTERS_MAX: usize = 32;

/// Where the value of a merged template's slot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The line's own next slot.
    Slot,
    /// The word that this shape has here, in [`Merged::words`].
    Word(Span),
}

/// Templates after demotion.
#[derive(Debug, Default)]
pub struct Merged {
    /// The templates.
    pub templates: Vec<Vec<Part<SlotKind>>>,
    /// For each shape its template.
    pub template_of: Vec<u32>,
    /// For each shape the values of its template's slots, in order.
    pub sources: Vec<Vec<Source>>,
    /// Bytes of demoted words.
    pub words: Vec<u8>,
}

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    /// Bytes between words and slots.
    Other(&'a [u8]),
    Slot(SlotKind),
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 128 || matches!(byte, b'.' | b'-' | b'_')
}

/// The tokens of a text key, and its skeleton: the key with every word replaced by one byte.
fn tokens(key: &[u8]) -> (Vec<Token<'_>>, Vec<u8>) {
    const WORD: u8 = 255;
    let (mut tokens, mut skeleton) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < key.len() {
        let rest = &key[at..];
        if let [MARK, kind, ..] = rest
            && let Some(kind) = SlotKind::of(*kind)
        {
            // A timestamp's layout is part of the skeleton: columns of one layout stay apart from others.
            let len = if kind == SlotKind::Time { 5 } else { 2 };
            tokens.push(Token::Slot(kind));
            skeleton.extend_from_slice(&rest[..len.min(rest.len())]);
            at += len;
        } else if is_word(rest[0]) {
            let len = rest.iter().take_while(|b| is_word(**b)).count();
            tokens.push(Token::Word(&rest[..len]));
            skeleton.push(WORD);
            at += len;
        } else {
            // A doubled mark is one literal byte.
            let len = if rest[0] == MARK { 2 } else { 1 };
            tokens.push(Token::Other(&rest[..1]));
            skeleton.extend_from_slice(&rest[..len.min(rest.len())]);
            at += len;
        }
    }
    (tokens, skeleton)
}

/// Templates that become one.
struct Cluster<'a> {
    shapes: Vec<u32>,
    /// The tokens of the first.
    tokens: Vec<Token<'a>>,
    /// Indexes of the tokens that differ.
    varying: Vec<usize>,
}

/// Merges the templates of text `keys` where that leaves `similarity` of their words and slots the same; `counts` says how often each occurs.
/// Keys for which `keep` says so stay alone.
pub fn merge(keys: &[Vec<u8>], counts: &[u32], keep: impl Fn(&[u8]) -> bool, variable_part: f64) -> Merged {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|&shape| std::cmp::Reverse(counts[shape as usize]));
    let mut groups: HashMap<Vec<u8>, Vec<Cluster<'_>>, foldhash::fast::FixedState> = HashMap::default();
    let mut merged = Merged { template_of: vec![0; keys.len()], sources: vec![Vec::new(); keys.len()], ..Merged::default() };
    for &shape in &order {
        let key = &keys[shape as usize];
        if keep(key) {
            continue;
        }
        let (own, skeleton) = tokens(key);
        let matter = own.iter().filter(|t| !matches!(t, Token::Other(_))).count();
        let most = (matter as f64 * variable_part) as usize;
        let clusters = groups.entry(skeleton).or_default();
        let join = clusters.iter_mut().take(CLUSTERS_MAX).find_map(|cluster| {
            let varying = varying(&cluster.tokens, &own, &cluster.varying);
            (varying.len() <= most).then_some((cluster, varying))
        });
        match join {
            Some((cluster, varying)) => {
                cluster.shapes.push(shape);
                cluster.varying = varying;
            }
            None => clusters.push(Cluster { shapes: vec![shape], tokens: own, varying: Vec::new() }),
        }
    }
    let mut clusters: Vec<Cluster<'_>> = groups.into_values().flatten().collect();
    let alone = |shape| Cluster { shapes: vec![shape], tokens: Vec::new(), varying: Vec::new() };
    clusters.extend((0..keys.len() as u32).filter(|&s| keep(&keys[s as usize])).map(alone));
    clusters.sort_unstable_by_key(|c| c.shapes[0]);
    for cluster in clusters {
        merged.add(keys, &cluster, &keep);
    }
    merged
}

/// The tokens that vary already, and those in which `a` and `b` differ.
fn varying(a: &[Token<'_>], b: &[Token<'_>], known: &[usize]) -> Vec<usize> {
    (0..a.len().min(b.len())).filter(|i| a[*i] != b[*i] || known.binary_search(i).is_ok()).collect()
}

impl Merged {
    fn add(&mut self, keys: &[Vec<u8>], cluster: &Cluster<'_>, keep: &impl Fn(&[u8]) -> bool) {
        let template = self.templates.len() as u32;
        let first = &keys[cluster.shapes[0] as usize];
        if keep(first) {
            let parts = super::parts_of(super::json::template(first).unwrap_or(first));
            self.sources[cluster.shapes[0] as usize] = parts.iter().filter(|p| matches!(p, Part::Slot(_))).map(|_| Source::Slot).collect();
            self.template_of[cluster.shapes[0] as usize] = template;
            self.templates.push(parts);
            return;
        }
        for &shape in &cluster.shapes {
            let mut sources = Vec::new();
            for (index, token) in tokens(&keys[shape as usize]).0.into_iter().enumerate() {
                match token {
                    Token::Slot(_) => sources.push(Source::Slot),
                    Token::Word(word) if cluster.varying.binary_search(&index).is_ok() => {
                        sources.push(Source::Word(Span { at: self.words.len() as u32, len: word.len() as u32 }));
                        self.words.extend_from_slice(word);
                    }
                    _ => {}
                }
            }
            self.sources[shape as usize] = sources;
            self.template_of[shape as usize] = template;
        }
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        for (index, token) in tokens(first).0.into_iter().enumerate() {
            let slot = match token {
                Token::Slot(kind) => kind,
                Token::Word(_) if cluster.varying.binary_search(&index).is_ok() => SlotKind::Word,
                Token::Word(bytes) | Token::Other(bytes) => {
                    literal.extend_from_slice(bytes);
                    continue;
                }
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Slot(slot));
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        self.templates.push(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::text::{self, Grain};
    use crate::shape::{Key, json};
    use proptest::prelude::*;

    /// Takes lines apart, merges their templates, and puts them together again; returns the number of templates.
    fn round_trip(lines: &[Vec<u8>], variable_part: f64) -> usize {
        let (mut key, mut keys, mut slots) = (Key::default(), Vec::new(), Vec::new());
        for line in lines {
            let mut own = Vec::new();
            key.begin(line);
            let span = Span { at: 0, len: line.len() as u32 };
            if !json::scan(line, span, &mut key, &mut own) {
                text::scan(line, span, Grain::Coarse, &mut key, &mut own);
            }
            keys.push(key.as_slice().to_vec());
            slots.push(own);
        }
        let merged = merge(&keys, &vec![1; keys.len()], |k| json::template(k).is_some(), variable_part);
        for (index, line) in lines.iter().enumerate() {
            let (mut own, mut sources) = (slots[index].iter(), merged.sources[index].iter());
            let mut back = Vec::new();
            for part in &merged.templates[merged.template_of[index] as usize] {
                match part {
                    Part::Literal(bytes) => back.extend_from_slice(bytes),
                    Part::Slot(_) | Part::Aligned(_) => match sources.next().unwrap() {
                        Source::Slot => back.extend_from_slice(own.next().unwrap().of(line)),
                        Source::Word(span) => back.extend_from_slice(span.of(&merged.words)),
                    },
                }
            }
            assert!(own.next().is_none() && sources.next().is_none());
            assert_eq!(back, *line);
        }
        merged.templates.len()
    }

    #[test]
    fn words_that_vary_become_slots() {
        let lines = |texts: &[&str]| texts.iter().map(|t| t.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(round_trip(&lines(&["1,my-elb,2,\"a\",3", "1,other-elb,2,\"b\",4"]), 0.3), 1);
        assert_eq!(round_trip(&lines(&["all of this differs", "from what stands here"]), 0.3), 2);
        assert_eq!(round_trip(&lines(&["{\"a\":1}", "{\"b\":1}"]), 1.0), 2);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(lines in prop::collection::vec(prop_oneof![
            any::<Vec<u8>>(),
            "[ab]{1,2}( [ab0-9]{1,2}){0,6}".prop_map(String::into_bytes),
            "[ab\u{1}\u{2}\u{4} \"1]{0,12}".prop_map(String::into_bytes),
            "\\{\"[ab]\":[0-9]\\}".prop_map(String::into_bytes),
        ], 0..20), variable_part in 0.0..1.0f64) {
            round_trip(&lines, variable_part);
        }
    }
}
