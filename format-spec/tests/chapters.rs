//! The chapters' tables say what the constants say, and name every one of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use haystore_format::constants::{self as c, class, column, escape, integer, types};
use std::collections::BTreeMap;

const CHAPTERS: &str = concat!(
    include_str!("../chapters/segment.md"),
    include_str!("../chapters/row-group.md"),
    include_str!("../chapters/encodings.md"),
    include_str!("../chapters/shapes.md"),
    include_str!("../chapters/records.md"),
);

macro_rules! values {
    ($($name:path),* $(,)?) => { BTreeMap::from([$((stringify!($name).trim_start_matches("c::").to_string(), format!("{}", $name))),*]) };
}

/// Names and values of the constants.
fn constants() -> BTreeMap<String, String> {
    let mut all = values![
        c::SEGMENT_VERSION,
        c::TRAILER_BYTES,
        c::TENANT_BYTES_MAX,
        c::RANGE_ROWS_MAX,
        c::RANGE_BYTES_MAX,
        c::RANGES_MAX,
        c::PAGE_VALUES_MIN,
        c::OWN_FRAME_BYTES,
        c::SHARED_FRAME_BYTES,
        c::DICTIONARY_PAGE_ENTRIES_MAX,
        c::HEX_WIDTH_MIN,
        c::HEX_WIDTH_MAX,
        c::PADDED_WIDTH_MAX,
        c::DECIMAL_SCALE_MAX,
        c::TIME_FAMILIES,
        c::TIME_DIGITS_MAX,
        c::SHAPES_BYTES_MAX,
        c::METADATA_DEPTH_MAX,
        c::PCO_MAJOR,
        c::PCO_MINOR,
        column::CONSTANT,
        column::SAME,
        column::TEXT,
        column::NUMBER,
        column::DICTIONARY,
        column::SHAPES,
        column::ESCAPED,
        column::MAPPED,
        column::LIST,
        column::COMPUTED,
        escape::JSON,
        escape::DOUBLED,
        types::INT,
        types::PADDED,
        types::DECIMAL,
        types::TIME,
        types::SHORT_TIME,
        types::SHORT_DECIMAL,
        class::TEXT,
        class::HEX_LOWER,
        class::HEX_UPPER,
        class::UUID,
        class::IPV4,
        integer::CONSTANT,
        integer::SHORT,
        integer::PLANES,
        integer::DELTA_PLANES,
        integer::PCO32,
        integer::PCO64,
    ];
    let magic: Vec<String> = c::MAGIC.iter().map(|b| format!("{b:02x}")).collect();
    all.insert("MAGIC".to_string(), magic.join(" "));
    all
}

/// The names that `constants.rs` defines.
fn defined() -> Vec<String> {
    let mut module = String::new();
    let mut names = Vec::new();
    for line in include_str!("../src/constants.rs").lines() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            module = name.trim_end_matches(" {").to_string() + "::";
        } else if let Some(rest) = line.trim_start().strip_prefix("pub const ") {
            let name = rest.split(':').next().unwrap();
            names.push(if line.starts_with(' ') { format!("{module}{name}") } else { name.to_string() });
        }
    }
    names.sort();
    names
}

/// Names and values in the chapters' tables: a row with a cell that is a constant's name in backticks. The value stands before it when the row is
/// about a tag, else behind it.
fn documented() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in CHAPTERS.lines().filter(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let is_name = |cell: &str| cell.len() > 2 && cell.starts_with('`') && cell.ends_with('`') && cell.contains(char::is_uppercase);
        for at in 1..cells.len() - 1 {
            let name = cells[at].trim_matches('`');
            if is_name(cells[at])
                && name.rsplit("::").next().unwrap().chars().all(|ch| ch.is_ascii_uppercase() || ch.is_ascii_digit() || ch == '_')
            {
                let value = if name.contains("::") { cells[at - 1] } else { cells[at + 1] };
                let before = found.insert(name.to_string(), value.to_string());
                assert_eq!(before, None, "{name} stands in two tables");
            }
        }
    }
    found
}

#[test]
fn tables_and_constants_agree() {
    assert_eq!(documented(), constants());
}

#[test]
fn every_constant_is_compared() {
    assert_eq!(constants().into_keys().collect::<Vec<_>>(), defined());
}

#[test]
fn versions_agree() {
    let readme = include_str!("../chapters/README.md");
    assert!(readme.contains(&format!("| segment | {} |", c::SEGMENT_VERSION)));
    assert_eq!(c::MAGIC[6], c::SEGMENT_VERSION);
}
