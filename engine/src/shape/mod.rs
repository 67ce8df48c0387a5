//! Shapes: taking lines apart into what stays the same (the template) and what varies (the slots), without losing a byte.
//!
//! A scanner writes the template's *key* and the spans of the slots; literals and slots together are the line.
//! This module must not know how slots are encoded or stored.

use crate::encoding::out::Out;

mod bytes;
pub mod demote;
pub mod json;
mod properties;
pub mod text;
pub mod time;

/// A run of bytes in an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub at: u32,
    /// Length in bytes.
    pub len: u32,
}

impl Span {
    /// The byte behind the last.
    pub fn end(self) -> usize {
        self.at as usize + self.len as usize
    }

    /// The span's bytes.
    pub fn of(self, arena: &[u8]) -> &[u8] {
        &arena[self.at as usize..self.at as usize + self.len as usize]
    }
}

/// In a key: the byte before a slot's kind; the literal byte 1 is written twice.
pub const MARK: u8 = 1;

/// What a slot holds; stands behind [`MARK`] in a key. 1 is not used: it is the literal byte 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum SlotKind {
    /// A token with a digit.
    Token = 2,
    /// What stands between two double quotes.
    Quoted = 3,
    /// A timestamp.
    Time = 4,
    /// A JSON string, without its quotes.
    JsonString = 5,
    /// A JSON number.
    JsonNumber = 6,
    /// `true`, `false` or `null`.
    JsonWord = 7,
    /// What stands between a JSON array's brackets.
    JsonArray = 11,
    /// A whole line that has no template of its own.
    #[default]
    Verbatim = 8,
    /// A word in which like templates differ; in no key.
    Word = 10,
}

impl SlotKind {
    /// The kind that stands behind [`MARK`] in a key.
    fn of(byte: u8) -> Option<SlotKind> {
        Some(match byte {
            2 => SlotKind::Token,
            3 => SlotKind::Quoted,
            4 => SlotKind::Time,
            5 => SlotKind::JsonString,
            6 => SlotKind::JsonNumber,
            7 => SlotKind::JsonWord,
            8 => SlotKind::Verbatim,
            11 => SlotKind::JsonArray,
            _ => return None,
        })
    }
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part<T> {
    /// Bytes that all lines of the shape have.
    Literal(Vec<u8>),
    /// A place where they differ: the next value of a column.
    Slot(T),
    /// A place with the value that a column has in the same row.
    Aligned(T),
}

/// Takes a key apart.
pub fn parts_of(key: &[u8]) -> Vec<Part<SlotKind>> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut bytes = key.iter();
    while let Some(&byte) = bytes.next() {
        let kind = if byte == MARK { bytes.next().and_then(|&b| SlotKind::of(b)) } else { None };
        let Some(kind) = kind else {
            literal.push(byte);
            continue;
        };
        if kind == SlotKind::Time {
            // The layout keeps shapes with different layouts apart; the column finds it again.
            bytes.by_ref().take(3).for_each(drop);
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        parts.push(Part::Slot(kind));
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    parts
}

/// Writes a key; holds what scanners keep from line to line.
#[derive(Debug, Default)]
pub struct Key {
    out: Out,
    classes: bytes::Classes,
    times: time::Times,
    /// Whether the line has the byte that literals must double.
    marked: bool,
}

impl Key {
    /// The key's bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.out.as_slice()
    }

    /// Forgets everything; the next line is `line`.
    pub fn begin(&mut self, line: &[u8]) {
        self.out.clear();
        self.marked = memchr::memchr(MARK, line).is_some();
    }

    /// Appends the literal `arena[from..to]`.
    #[inline]
    fn put_literal(&mut self, arena: &[u8], from: usize, to: usize) {
        if !self.marked {
            self.out.put(arena, from, to - from);
            return;
        }
        for &byte in &arena[from..to] {
            self.out.put_long(if byte == MARK { &[MARK, MARK] } else { std::slice::from_ref(&byte) });
        }
    }

    /// Appends a slot.
    #[inline]
    fn put_slot(&mut self, slots: &mut Vec<Span>, kind: SlotKind, at: usize, len: usize) {
        self.out.put_long(&[MARK, kind as u8]);
        slots.push(Span { at: at as u32, len: len as u32 });
    }
}

#[cfg(test)]
pub(crate) fn rebuild(key: &[u8], slots: &[Span], arena: &[u8]) -> Vec<u8> {
    let mut slots = slots.iter();
    let mut out = Vec::new();
    for part in parts_of(key) {
        match part {
            Part::Literal(bytes) => out.extend_from_slice(&bytes),
            Part::Slot(_) | Part::Aligned(_) => out.extend_from_slice(slots.next().unwrap().of(arena)),
        }
    }
    assert!(slots.next().is_none());
    out
}
