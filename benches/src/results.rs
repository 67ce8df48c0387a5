//! What was measured: a line a step, as a table or as JSON.

use crate::process::Used;
use haystore_server::cli::table::Table;
use haystore_server::cli::units::size;
use serde_json::{Value, json};

/// One step.
#[derive(Debug, Clone)]
pub struct Row {
    /// The corpus.
    pub corpus: &'static str,
    /// What was done.
    pub step: &'static str,
    /// Bytes of lines that went through, newlines counted.
    pub raw_bytes: u64,
    /// What it used.
    pub used: Used,
    /// Bytes of the store's folder behind it.
    pub stored_bytes: Option<u64>,
}

/// Latencies of needles, in milliseconds, the median of several.
#[derive(Debug, Clone)]
pub struct Needles {
    /// The corpus.
    pub corpus: &'static str,
    /// The state of the store.
    pub state: &'static str,
    /// Ids that are there.
    pub present_ms: f64,
    /// Ids that are not.
    pub absent_ms: f64,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Results {
    /// Steps in the order in which they were done.
    pub rows: Vec<Row>,
    /// Needles likewise.
    pub needles: Vec<Needles>,
    /// Name, raw bytes and bytes under gzip -6, zstd -3, zstd -19.
    pub compressed: Vec<(&'static str, u64, Vec<Option<u64>>)>,
}

fn per_cpu_second(row: &Row) -> f64 {
    row.raw_bytes as f64 / 1e6 / row.used.cpu.max(0.001)
}

impl Results {
    /// As text for people.
    pub fn table(&self) -> String {
        let optional = |n: Option<u64>| n.map_or_else(|| "-".into(), size);
        let mut steps = Table::new(["corpus", "step", "raw", "CPU s", "MB per CPU s", "wall s", "peak RSS", "stored"]);
        for row in &self.rows {
            steps.row(vec![
                row.corpus.into(),
                row.step.into(),
                size(row.raw_bytes),
                format!("{:.2}", row.used.cpu),
                format!("{:.0}", per_cpu_second(row)),
                format!("{:.1}", row.used.wall),
                size(row.used.peak_rss),
                optional(row.stored_bytes),
            ]);
        }
        let mut needles = Table::new(["corpus", "store", "needle there, ms", "needle absent, ms"]);
        for n in &self.needles {
            needles.row(vec![n.corpus.into(), n.state.into(), format!("{:.1}", n.present_ms), format!("{:.1}", n.absent_ms)]);
        }
        let mut sizes = Table::new(["corpus", "raw", "gzip -6", "zstd -3", "zstd -19"]);
        for (name, raw, compressed) in &self.compressed {
            let mut cells = vec![(*name).to_string(), size(*raw)];
            cells.extend(compressed.iter().map(|&n| optional(n)));
            sizes.row(cells);
        }
        [steps, needles, sizes].map(|table| table.render(false)).join("\n")
    }

    /// As one JSON object.
    pub fn json(&self) -> Value {
        let step = |r: &Row| {
            json!({"corpus": r.corpus, "step": r.step, "raw_bytes": r.raw_bytes, "cpu_s": r.used.cpu, "mb_per_cpu_s": per_cpu_second(r),
                "wall_s": r.used.wall, "peak_rss_bytes": r.used.peak_rss, "stored_bytes": r.stored_bytes})
        };
        let needle = |n: &Needles| json!({"corpus": n.corpus, "store": n.state, "present_ms": n.present_ms, "absent_ms": n.absent_ms});
        let compressed = |(name, raw, sizes): &(&str, u64, Vec<Option<u64>>)| json!({"corpus": name, "raw_bytes": raw, "gzip_6": sizes.first(), "zstd_3": sizes.get(1), "zstd_19": sizes.get(2)});
        json!({
            "steps": self.rows.iter().map(step).collect::<Vec<_>>(),
            "needles": self.needles.iter().map(needle).collect::<Vec<_>>(),
            "compressed": self.compressed.iter().map(compressed).collect::<Vec<_>>(),
        })
    }
}
