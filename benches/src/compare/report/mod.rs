//! What was measured, and how it is shown.

mod html;
mod table;

pub use html::page;
pub use table::table;

use crate::peer::{Bytes, Keeps, Needle, Order, Sort};
use crate::survey::Survey;
use serde_json::{Value, json};

/// What a step took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step {
    /// Seconds on the wall clock.
    pub wall_s: f64,
    /// CPU seconds of all threads; `None` when another process did the work.
    pub cpu_s: Option<f64>,
}

/// What a search gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What was looked for.
    pub needle: Needle,
    /// Milliseconds, the median of all times.
    pub ms: f64,
    /// Lines that hold it.
    pub lines: u64,
    /// Lines given that do not.
    pub others: u64,
}

/// What a full read gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Full {
    /// What it took.
    pub step: Step,
    /// Lines that came.
    pub lines: u64,
    /// Lines that went in.
    pub wanted: u64,
    /// Whether they are the same, byte for byte, in whatever order.
    pub is_same: bool,
    /// Whether their order is that of the files, too.
    pub in_order: bool,
}

/// One store's figures; those behind a failure are missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Store {
    /// Its name.
    pub name: &'static str,
    /// What it keeps.
    pub keeps: Keeps,
    /// Taking all logs.
    pub ingest: Option<Step>,
    /// Bytes at rest.
    pub stored_bytes: Option<u64>,
    /// Needles.
    pub needles: Vec<Found>,
    /// Reading everything.
    pub full: Option<Full>,
    /// What failed.
    pub errors: Vec<String>,
}

/// Everything.
#[derive(Debug, Clone)]
pub struct Report {
    /// The files.
    pub files: Vec<String>,
    /// What is known of them.
    pub survey: Survey,
    /// The stores, in the order in which they were measured.
    pub stores: Vec<Store>,
}

/// The middle of `values`; of an even number the mean of the two; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[sorted.len() / 2 - 1] + upper) / 2.0 } else { upper })
}

impl Store {
    /// Nothing measured yet.
    pub fn new(name: &'static str, keeps: Keeps) -> Self {
        Store { name, keeps, ingest: None, stored_bytes: None, needles: Vec::new(), full: None, errors: Vec::new() }
    }

    /// Milliseconds that needles of one sort take, the median.
    pub fn needle_ms(&self, sort: Sort) -> Option<f64> {
        let times: Vec<f64> = self.needles.iter().filter(|f| f.needle.sort == sort).map(|f| f.ms).collect();
        median(&times)
    }

    /// How answers differ from the plain scan, a sentence each.
    pub fn differences(&self) -> Vec<String> {
        let mut out = Vec::new();
        for Found { needle, lines, others, .. } in self.needles.iter().filter(|f| (f.lines, f.others) != (f.needle.lines, 0)) {
            let besides = if *others > 0 { format!(", and {others} that do not hold it") } else { String::new() };
            out.push(format!("{} {:?}: {} lines hold it, {lines} were found{besides}", needle.sort.name(), needle.text, needle.lines));
        }
        match self.full {
            Some(full) if full.lines != full.wanted => out.push(format!("{} lines went in, {} came out", full.wanted, full.lines)),
            Some(full) if !full.is_same => out.push("as many lines came out as went in, but with other bytes".into()),
            _ => {}
        }
        out
    }

    /// Whether nothing failed and it gave what it says it gives.
    pub fn is_sound(&self) -> bool {
        let is_right = |f: &Found| (f.lines, f.others) == (f.needle.lines, 0) || self.keeps.may_differ(f.needle.sort);
        let finds = self.needles.iter().all(is_right);
        let reads = self.full.is_some_and(|full| {
            let exact = self.keeps.bytes != Bytes::Exact || full.is_same;
            let ordered = self.keeps.order != Order::Files || !full.is_same || full.in_order;
            full.lines == full.wanted && exact && ordered
        });
        self.errors.is_empty() && finds && reads
    }

    /// One word on the answers.
    pub fn verdict(&self) -> &'static str {
        match (self.errors.is_empty(), self.is_sound(), self.differences().is_empty()) {
            (false, _, _) => "failed",
            (true, false, _) => "WRONG",
            (true, true, false) => "differs",
            (true, true, true) => "same",
        }
    }

    fn json(&self) -> Value {
        let step = |s: Option<Step>| s.map(|s| json!({"wall_s": s.wall_s, "cpu_s": s.cpu_s}));
        let needle = |f: &Found| {
            json!({"text": f.needle.text, "sort": f.needle.sort.name(), "ms": f.ms, "lines": f.lines, "other_lines": f.others,
                "expected_lines": f.needle.lines})
        };
        let full = self.full.map(|f| {
            json!({"wall_s": f.step.wall_s, "cpu_s": f.step.cpu_s, "lines": f.lines, "same_bytes": f.is_same, "files_order": f.in_order})
        });
        json!({"name": self.name, "keeps": self.keeps.json(), "stored_bytes": self.stored_bytes, "ingest": step(self.ingest),
            "needles": self.needles.iter().map(needle).collect::<Vec<_>>(), "full_read": full, "verdict": self.verdict(),
            "differences": self.differences(), "errors": self.errors})
    }
}

impl Report {
    /// As one JSON object.
    pub fn json(&self) -> Value {
        let survey = &self.survey;
        let needle = |n: &Needle| json!({"text": n.text, "sort": n.sort.name(), "lines": n.lines});
        json!({"files": self.files, "lines": survey.sum.lines, "raw_bytes": survey.sum.bytes, "has_times": survey.has_times,
            "needles": survey.needles.iter().map(needle).collect::<Vec<_>>(),
            "stores": self.stores.iter().map(Store::json).collect::<Vec<_>>()})
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::peer::Way;
    use haystore_bench::input::Sum;

    /// A report of two stores, the second with a name that wants escaping in its figures.
    pub fn sample() -> Report {
        let keeps = Keeps {
            bytes: Bytes::Exact,
            order: Order::Files,
            substring: Way::Scan,
            token: Way::Scan,
            fields: "no",
            how: "a <file> & more",
        };
        let needle = Needle { text: "<a&b>".into(), sort: Sort::Token, lines: 1 };
        let mut store = Store::new("plain", keeps);
        store.ingest = Some(Step { wall_s: 0.5, cpu_s: Some(0.25) });
        store.stored_bytes = Some(1000);
        store.needles = vec![Found { needle: needle.clone(), ms: 2.0, lines: 1, others: 0 }];
        store.full = Some(Full { step: Step { wall_s: 0.1, cpu_s: None }, lines: 10, wanted: 10, is_same: true, in_order: true });
        let mut words = Store::new("words", Keeps { substring: Way::No, ..keeps });
        words.needles = vec![Found { needle: needle.clone(), ms: 1.0, lines: 0, others: 3 }];
        words.errors = vec!["<script>".into()];
        let sum = Sum::of("0123456789\n".repeat(10).as_bytes()).unwrap();
        let survey = Survey { sum, crc: 0, has_times: false, times: (0, 0), needles: vec![needle] };
        Report { files: vec!["a&b.log".into()], survey, stores: vec![store, words] }
    }

    #[test]
    fn medians() {
        assert_eq!([median(&[]), median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])], [None, Some(2.0), Some(2.5)]);
    }

    #[test]
    fn stores_of_words_may_differ_and_others_not() {
        let report = sample();
        let [plain, words] = &report.stores[..] else { panic!("two stores") };
        assert_eq!((plain.verdict(), words.verdict()), ("same", "failed"));
        let words = Store { errors: Vec::new(), full: plain.full, ..words.clone() };
        assert_eq!(words.verdict(), "differs");
        assert_eq!(words.differences(), ["token \"<a&b>\": 1 lines hold it, 0 were found, and 3 that do not hold it"]);
        let scans = Store { keeps: plain.keeps, ..words.clone() };
        assert_eq!(scans.verdict(), "WRONG");
        let short = Store { full: plain.full.map(|f| Full { lines: 9, ..f }), ..plain.clone() };
        assert_eq!((short.verdict(), short.differences()), ("WRONG", vec!["10 lines went in, 9 came out".to_string()]));
        let turned = Store { full: plain.full.map(|f| Full { in_order: false, ..f }), ..plain.clone() };
        assert_eq!(turned.verdict(), "WRONG");
    }

    #[test]
    fn json_has_everything() {
        let json = sample().json();
        assert_eq!(json["lines"], 10);
        assert_eq!(json["stores"][0]["needles"][0]["text"], "<a&b>");
        assert_eq!(json["stores"][0]["ingest"]["cpu_s"], 0.25);
        assert_eq!(json["stores"][1]["full_read"], Value::Null);
    }
}
