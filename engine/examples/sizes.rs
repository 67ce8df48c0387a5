use haystore::column::encode::Effort;
use haystore::segment::*;
use haystore::shape::Span;
use haystore::*;
use std::time::Instant;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
}
fn main() {
    let level: i32 = std::env::var("LEVEL").ok().and_then(|v| v.parse().ok()).unwrap_or(1);
    let group: usize = std::env::var("GROUP").ok().and_then(|v| v.parse().ok()).unwrap_or(16) << 20;
    let pco: u8 = std::env::var("PCO").ok().and_then(|v| v.parse().ok()).unwrap_or(4);
    for file in std::env::args().skip(1) {
        let data = std::fs::read(&file).unwrap();
        let (mut total, mut enc, mut dec) = (0usize, 0.0, 0.0);
        let mut at = 0;
        let mut n = 0i64;
        let mut verb = 0;
        let t0 = Instant::now();
        while at < data.len() {
            let mut rows = Rows::default();
            rows.formats.push(Format::Text);
            let start = at;
            while at < data.len() && at - start < group {
                let end = memchr::memchr(b'\n', &data[at..]).map_or(data.len(), |e| at + e);
                rows.line_spans.push(Span { at: (at - start) as u32, len: (end - at) as u32 });
                rows.metadata_spans.push(Span { at: 0, len: 0 });
                rows.timestamps.push(if std::env::var("TS").is_ok() { n * 1000 } else { 0 });
                n += 1;
                rows.row_formats.push(0);
                at = end + 1;
            }
            rows.lines = data[start..at.min(data.len())].to_vec();
            rows.streams.push((Labels::default(), rows.timestamps.len() as u32));
            let mut out = Vec::new();
            let c = cpu();
            let meta = encode_row_group(&rows, Effort { zstd: level, pco, same: true }, &mut out).unwrap();
            enc += cpu() - c;
            total += out.len();
            let c = cpu();
            let src = haystore::column::decode::Source { bytes: out.into(), name: "x".into(), offset: 0 };
            let mut g = RowGroup::open(&meta, src).unwrap();
            let mut len = 0;
            for r in 0..g.ranges() {
                let s = g.lines(r).unwrap();
                len += s.as_text().map_or(0, |t| t.0.len());
            }
            dec += cpu() - c;
            verb += usize::from(g.is_verbatim());
            if std::env::var("DUMP").is_ok() && start == 0 {
                let p = g.decoder().plan().clone();
                let mut by: std::collections::BTreeMap<u32, (u64, u64)> = Default::default();
                for ((_, c, _), pc) in p.page_order().iter().zip(&p.data_area.pieces) {
                    let e = by.entry(*c).or_default();
                    e.0 += pc.0 as u64;
                    e.1 += 1;
                }
                println!(
                    "plan {:?} root {:?} dict {} data {}",
                    meta.plan,
                    meta.root,
                    p.dictionary_area.frames.iter().map(|f| f.stored as u64).sum::<u64>(),
                    p.data_area.frames.iter().map(|f| f.stored as u64).sum::<u64>()
                );
                for (i, c) in p.columns.iter().enumerate() {
                    let k = format!("{:?}", c.kind);
                    let b = by.get(&(i as u32)).copied().unwrap_or_default();
                    if b.0 > 2000 || p.columns.len() < 120 {
                        println!(
                            "{i} n={} pieces={} {} {}",
                            p.domains[c.domain as usize].total(),
                            b.1,
                            b.0,
                            k.chars().take(300).collect::<String>()
                        );
                    }
                }
                for (i, d) in p.dictionaries.iter().enumerate() {
                    println!("dict {i} {d:?}");
                }
            }
            let _ = len;
        }
        let mb = data.len() as f64 / 1e6;
        println!(
            "{file} raw {} stored {total} ratio {:.2} enc {:.1} MB/s dec {:.1} MB/s wall {:?} verbatim {verb}",
            data.len(),
            data.len() as f64 / total as f64,
            mb / enc,
            mb / dec,
            t0.elapsed()
        );
    }
}
