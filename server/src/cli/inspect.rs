//! `haystore inspect`: what is in a segment file.

use super::args::InspectArgs;
use super::units::{count, of, ratio, size};
use super::{Outcome, terminal};
use anyhow::{Context, Result};
use haystore::column::decode::Source;
use haystore::segment::{Footer, GroupInfo, RowGroup, Template, read_footer, templates};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Row groups shown without `--all`.
const GROUPS_SHOWN: usize = 3;
/// Bytes read first from the end of the file: the footer mostly fits.
const TAIL_BYTES: u64 = 64 << 10;

/// Prints the footer's facts and the templates.
///
/// # Errors
/// A file that cannot be read, is no segment, or is damaged.
pub fn run(args: &InspectArgs) -> Result<Outcome> {
    let name = args.segment.display().to_string();
    let mut file = File::open(&args.segment).with_context(|| format!("cannot open {name}"))?;
    let bytes = file.metadata()?.len();
    let footer = footer_of(&mut file, &name, bytes)?;
    let shown = if args.all { footer.groups.len() } else { GROUPS_SHOWN };
    let mut out = head(&footer, bytes);
    for (index, info) in footer.groups.iter().enumerate().take(shown) {
        let mut group = open_group(&mut file, info, &name)?;
        let found = templates(&mut group)?;
        out += &group_text(index, info, &found, args.top);
    }
    if footer.groups.len() > shown {
        let _ = writeln!(out, "\n{} more: --all shows them", of((footer.groups.len() - shown) as u64, "row group"));
    }
    terminal::print(&out)?;
    Ok(Outcome::Done)
}

fn read_at(file: &mut File, at: u64, len: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len)?];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn footer_of(file: &mut File, name: &str, bytes: u64) -> Result<Footer> {
    let tail_len = bytes.min(TAIL_BYTES);
    let tail = read_at(file, bytes - tail_len, tail_len)?;
    match read_footer(name, bytes, &tail)? {
        Ok(footer) => Ok(footer),
        Err(needed) => {
            let tail = read_at(file, bytes - needed, needed)?;
            read_footer(name, bytes, &tail)?.ok().context("the footer is longer than it says")
        }
    }
}

fn open_group(file: &mut File, info: &GroupInfo, name: &str) -> Result<RowGroup> {
    let bytes = read_at(file, info.offset, info.meta.stored_bytes())?.into();
    Ok(RowGroup::open(&info.meta, Source { bytes, name: name.into(), offset: info.offset })?)
}

fn head(footer: &Footer, bytes: u64) -> String {
    let rows: u64 = footer.groups.iter().map(|g| u64::from(g.meta.rows)).sum();
    let raw: u64 = footer.groups.iter().map(|g| g.meta.line_bytes + u64::from(g.meta.rows)).sum();
    format!(
        "{}, {}, {} raw in {} ({})\n",
        of(footer.groups.len() as u64, "row group"),
        of(rows, "record"),
        size(raw),
        size(bytes),
        ratio(raw, bytes)
    )
}

fn group_text(index: usize, info: &GroupInfo, found: &[Template], top: usize) -> String {
    let meta = &info.meta;
    let raw = meta.line_bytes + u64::from(meta.rows);
    let mut out = format!(
        "\nrow group {index} of tenant {}: {} of {}, {} raw in {} ({}), {}\n",
        info.tenant,
        of(u64::from(meta.rows), "record"),
        of(u64::from(meta.streams), "stream"),
        size(raw),
        size(meta.stored_bytes()),
        ratio(raw, meta.stored_bytes()),
        of(found.len() as u64, "template"),
    );
    for template in found.iter().take(top) {
        let _ = writeln!(out, "{:>12}  {}", count(template.rows), template.text);
    }
    if found.len() > top {
        let rest: u64 = found[top..].iter().map(|t| t.rows).sum();
        let _ = writeln!(out, "{:>12}  in {}; --top shows more", count(rest), of((found.len() - top) as u64, "more template"));
    }
    out
}
