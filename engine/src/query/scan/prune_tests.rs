//! With and without shortcuts the answer is the same.

use super::{prune, run};
use crate::column::decode::Source;
use crate::column::encode::Effort;
use crate::disk::Dice;
use crate::query::{LineMatcher, Query};
use crate::record::{Batch, Labels};
use crate::segment::{Cut, RowGroup, RowGroupMeta, encode_row_group};
use std::sync::Arc;

fn below(dice: &mut Dice, n: u64) -> u64 {
    dice.below(n)
}

fn word(dice: &mut Dice) -> &'static str {
    ["GET", "POST", "user", "alpha", "beta-x", "a.b", "[x]", "k=v", "\"", "\\", "é"][below(dice, 11) as usize]
}

fn value(dice: &mut Dice) -> String {
    match below(dice, 10) {
        0 => below(dice, 1000).to_string(),
        1 => format!("{:03}", below(dice, 1000)),
        2 => format!("{}.{:02}", below(dice, 100), below(dice, 100)),
        3 => format!("{:016x}", below(dice, u64::MAX)),
        4 => format!("10.{}.{}.7", below(dice, 3), below(dice, 250)),
        5 => format!("{:08x}-1111-2222-3333-44445555{:04x}", below(dice, 1 << 32), below(dice, 1 << 16)),
        6 => format!("2024-01-{:02}T10:00:{:02}.{:03}", 1 + below(dice, 28), below(dice, 60), below(dice, 1000)),
        7 => format!("host-{}", below(dice, 20)),
        8 => format!("\"{} {} {}\"", word(dice), below(dice, 50), word(dice)),
        _ => format!("{}{}", word(dice), below(dice, 5)),
    }
}

/// Lines of a few templates, so that shapes, dictionaries and numbers form.
fn lines(dice: &mut Dice, count: usize) -> Vec<Vec<u8>> {
    let templates: Vec<Vec<u64>> = (0..6).map(|_| (0..1 + below(dice, 6)).map(|_| below(dice, 10_000)).collect()).collect();
    (0..count)
        .map(|_| {
            let template = &templates[below(dice, 6) as usize];
            let mut line = String::new();
            for &seed in template {
                // The words and separators of a template stay; what varies is drawn anew.
                let mut fixed = Dice::new(seed);
                line.push_str(word(&mut fixed));
                line.push_str([" ", ",", ":", "=", "", "|"][below(&mut fixed, 6) as usize]);
                let kind = below(&mut fixed, 10);
                let mut drawn = value(dice);
                for _ in 0..20 {
                    if !kind.is_multiple_of(3) {
                        break;
                    }
                    drawn = value(dice);
                }
                line.push_str(&drawn);
                line.push_str([" ", ",", ""][below(&mut fixed, 3) as usize]);
            }
            if template.len() == 2 {
                let text = line.replace('\\', "\\\\").replace('"', "\\\"");
                line = format!("{{\"n\":{},\"m\":\"{text}\",\"in\":\"{{\\\"a\\\":\\\"{}\\\"}}\"}}", below(dice, 300), below(dice, 99));
            }
            if template.len() == 3 {
                line = composite(dice);
            }
            line.into_bytes()
        })
        .collect()
}

/// Lines that say the same twice: JSON with arrays, text of named values and a time in JSON, JSON in a field of CSV.
fn composite(dice: &mut Dice) -> String {
    let (id, host, n) = (format!("{:016x}", below(dice, u64::MAX)), format!("host-{}.example", below(dice, 40)), below(dice, 5000));
    let tags: Vec<String> = (0..below(dice, 4)).map(|i| format!("\"t{i}-{}\"", below(dice, 90))).collect();
    let clock = format!("2024-01-02T10:00:{:02}.{:06}", below(dice, 60), below(dice, 1_000_000) / 10 * 10);
    let clock = clock.trim_end_matches('0').trim_end_matches('.');
    match below(dice, 3) {
        0 => format!(
            "{{\"id\":\"{id}\",\"tags\":[{}],\"at\":\"{clock}Z\",\"d\":{},\"message\":\"job {id} took {n}ms\"}}",
            tags.join(", "),
            n as f64 / 8.0
        ),
        1 => format!(
            "{{\"host\":\"{host}\",\"id\":\"{id}\",\"text\":\"Made:\\r\\nHost Name: {host}\\r\\nPath:\\t\\tC:\\\\a\\\\{n}\\r\\nUrl: http://{host}/x/{n}\\r\\n\"}}"
        ),
        _ => format!("{n},{id},{host},\"{{\"\"n\"\":{n},\"\"log\"\":\"\"{clock} id: {id} of {host}\\n\"\"}}\""),
    }
}

type Stored = (RowGroupMeta, bytes::Bytes);

fn group_of_bytes((meta, bytes): &Stored) -> RowGroup {
    RowGroup::open(meta, Source { bytes: bytes.clone(), name: "x".into(), offset: 0 }).unwrap()
}

fn group_of(lines: &[Vec<u8>]) -> Stored {
    let mut batch = Batch::new();
    let stream = batch.stream(&Labels::new([("a", "b")]));
    let format = batch.format(&crate::Format::Text).unwrap();
    for (row, line) in lines.iter().enumerate() {
        batch.push(row as i64, stream, format, line, b"").unwrap();
    }
    let cut = Cut::new(vec![Arc::new(batch)], usize::MAX);
    let mut bytes = Vec::new();
    let meta = encode_row_group(&cut.rows(0), Effort { zstd: 1, pco: 4, same: true, archive: false }, &mut bytes).unwrap();
    (meta, bytes.into())
}

fn needle(dice: &mut Dice, lines: &[Vec<u8>]) -> Vec<u8> {
    let line = &lines[below(dice, lines.len() as u64) as usize];
    let len = (3 + below(dice, 20) as usize).min(line.len());
    let at = below(dice, (line.len() - len + 1) as u64) as usize;
    let mut needle = line[at..at + len].to_vec();
    if below(dice, 3) == 0 && !needle.is_empty() {
        let place = below(dice, needle.len() as u64) as usize;
        needle[place] = b"0123456789abcdef -\":."[below(dice, 21) as usize];
    }
    needle
}

#[test]
fn pruned_and_naive_searches_agree() {
    let rounds = std::env::var("HAYSTORE_TEST_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(3);
    let (mut skipped, mut all) = (0, 0);
    for seed in 0..rounds {
        let mut dice = Dice::new(seed);
        let lines = lines(&mut dice, 1500);
        let bytes = group_of(&lines);
        let mut group = group_of_bytes(&bytes);
        for _ in 0..150 {
            let needle = needle(&mut dice, &lines);
            let query = Query::needle(needle.clone());
            let wanted: Vec<i64> =
                (0..).zip(&lines).filter(|(_, l)| memchr::memmem::find(l, &needle).is_some()).map(|(row, _)| row).collect();
            let asked = run::Asked {
                matcher: LineMatcher::new(&query),
                query: Arc::new(query.clone()),
                range: i64::MIN..=i64::MAX,
                direction: crate::Direction::Forward,
            };
            let mut found: Vec<i64> = Vec::new();
            let mut runs = run::GroupRuns::new(group_of_bytes(&bytes), &asked).unwrap();
            while let Some(run) = runs.next(&asked, &mut run::Cost::default()).unwrap() {
                found.extend((0..run.len()).map(|i| run.get(i).timestamp));
            }
            assert_eq!(found, wanted, "seed {seed}, needle {:?}", String::from_utf8_lossy(&needle));
            if let Some(may) = prune::ranges(&mut group, &query).unwrap() {
                skipped += may.iter().filter(|m| !**m).count();
                all += may.len();
            }
        }
    }
    assert!(skipped * 4 > all, "only {skipped} of {all} ranges were ruled out");
}
