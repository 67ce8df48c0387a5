//! Random records and queries, by seed. Small alphabets on purpose: equal timestamps, equal streams, repeated templates, near misses.

use crate::record::Rec;
use haystore::disk::Dice;
use haystore::query::{LabelMatcher, LabelTest, LineFilter, Pattern, Query};
use haystore::{Format, Labels, Metadata, Tenant, Value};
use std::ops::RangeInclusive;

/// Nanoseconds of a day.
pub const DAY_NS: i64 = 86_400_000_000_000;
/// 2024-01-01 in nanoseconds.
pub const START_NS: i64 = 1_704_067_200_000_000_000;

/// A source of random things.
#[derive(Debug, Clone)]
pub struct Random(pub Dice);

impl Random {
    /// The same seed gives the same things.
    pub fn new(seed: u64) -> Self {
        Random(Dice::new(seed))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// `len` bytes, any.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.0.roll() as u8).collect()
    }

    /// One of three tenants.
    pub fn tenant(&mut self) -> Tenant {
        Tenant::new(self.pick(&["a", "b", "team-(c)"])).unwrap()
    }

    /// One of few streams; the stream without labels is among them.
    pub fn labels(&mut self) -> Labels {
        let mut pairs = Vec::new();
        for (name, values) in [("app", &["", "web", "web2", "d\"b\n"][..]), ("host", &["", "h1", "h2"]), ("é", &["", "ü"])] {
            let value = self.pick(values);
            if !value.is_empty() {
                pairs.push((name, value));
            }
        }
        Labels::new(pairs)
    }

    /// Mostly near each other, often equal, sometimes at the ends of time.
    pub fn timestamp(&mut self) -> i64 {
        match self.below(40) {
            0 => self.pick(&[i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX]),
            1..=6 => START_NS + self.below(5) as i64 * DAY_NS - self.below(3) as i64,
            7..=12 => START_NS + (self.0.below(5 * DAY_NS as u64)) as i64,
            _ => START_NS + self.below(60) as i64 * 1_000_000,
        }
    }

    /// A part of time, as a query asks for it.
    pub fn range(&mut self) -> RangeInclusive<i64> {
        if self.once_in(2) {
            return i64::MIN..=i64::MAX;
        }
        let (a, b) = (self.timestamp(), self.timestamp());
        if self.once_in(10) { a.max(b)..=a.min(b) } else { a.min(b)..=a.max(b) }
    }

    /// A format.
    pub fn format(&mut self) -> Format {
        match self.below(8) {
            0 => Format::Json,
            1 => Format::Logfmt,
            2 => Format::Csv { delimiter: b',', columns: vec!["a".into(), "b\0".into()] },
            3 => Format::Csv { delimiter: b';', columns: Vec::new() },
            _ => Format::Text,
        }
    }

    /// Metadata; most often none.
    pub fn metadata(&mut self) -> Metadata {
        let count = if self.once_in(3) { self.below(4) } else { 0 };
        Metadata((0..count).map(|_| (self.pick(&["", "trace", "a.b", "$x", "é"]).to_string(), self.value(2))).collect())
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(self.once_in(2)),
            2 => Value::Int(self.0.roll() as i64),
            3 => Value::Float(f64::from_bits(self.0.roll())),
            4 => Value::Str(self.pick(&["", "x", "\"\\\u{0}\n", "0123456789abcdef", "$b"]).to_string()),
            5 => Value::Int(self.below(5) as i64),
            6 => {
                let len = self.below(5);
                Value::Bytes(self.bytes(len))
            }
            7 => Value::List((0..self.below(3)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Map((0..self.below(3)).map(|i| (["$m", "k", ""][i].to_string(), self.value(depth - 1))).collect()),
        }
    }

    /// A line: templates, JSON, CSV, times, raw bytes, nothing.
    pub fn line(&mut self) -> Vec<u8> {
        let n = self.below(1000);
        let (id, host) = (format!("{:016x}", self.0.roll()), format!("h{}.example.com", n % 7));
        let text = match self.below(20) {
            0 => String::new(),
            1 => {
                let len = self.below(30);
                return self.bytes(len);
            }
            2 => {
                let len = self.below(300);
                return (0..len).map(|_| self.pick(b"ab\"\\{}[]:,=\r\n\0\xff \xc3\xa9")).collect();
            }
            3 => format!("{{\"level\":\"info\",\"n\":{n},\"id\":\"{:08x}\",\"nested\":{{\"a\":[{n},null,1.50]}}}}", self.0.roll() as u32),
            4 => format!("{{\"level\":\"warn\", \"msg\":\"a \\\"quoted\\\" \\u00e9 \\/ text {n}\", \"x\":1e3,\"x\":-0}}"),
            5 => format!("level=error code={:05} msg=\"it broke at {n}\" dur={}.{}ms", n, n % 7, n % 10),
            6 => format!("10.0.{}.{} - - [01/Jan/2024:00:00:{:02} +0000] \"GET /a/{n} HTTP/1.1\" 200 {}", n % 3, n % 250, n % 60, n * 7),
            7 => format!("2024-01-01T00:00:{:02}.{:03}Z INFO worker-{} took job {:016x}", n % 60, n, n % 4, self.0.roll()),
            8 => format!("a,b,{n},\"c \"\"d\"\"\",,{}", n % 2),
            9 => "the same line, again and again".to_string(),
            10 => format!("   {n}\tcolumns\t{}\t", n % 3),
            11 => format!("{:040}", n),
            12 => "x".repeat(n),
            13 => {
                let tags: Vec<String> =
                    (0..self.below(4)).map(|i| self.pick(&["1", "\"a,]\"", "{\"b\":[2]}", "null"]).to_string() + &" ".repeat(i)).collect();
                format!("{{\"tags\":[{}],\"empty\":[],\"two\":[{n},\"{host}\"],\"s\":\"{host}\"}}", tags.join(","))
            }
            14 => format!("{{\"host\":\"{host}\",\"id\":\"{id}\",\"url\":\"http://{host}/jobs/{id}?n={n}\",\"twice\":\"{host} {host}\"}}"),
            15 => format!("{n},{id},\"{{\"\"log\"\":\"\"id: {id} n={n}\\n\"\",\"\"x\"\":\"\"\\\"\"q\\\"\"\"\"}}\""),
            16 => format!("{{\"id\":\"{id}\",\"text\":\"Made:\\r\\nId: {id}\\r\\nHost Name:\\t{host}\\r\\nMore = a\\tb{n}\\r\\n\"}}"),
            17 => format!("{} {}", n as f64 / 8.0, format!("12:00:{:02}.{:03}", n % 60, n).trim_end_matches('0')),
            18 => {
                format!("2024-01-01T00:00:{:02}.{:03}Z,{},{}", n % 60, n, START_NS / 1_000_000 + n as i64 + (n % 60) as i64 * 1000, n / 100)
            }
            _ => format!("user {} logged in from h{} after {n} tries", n % 5, n % 3),
        };
        text.into_bytes()
    }

    /// A record.
    pub fn record(&mut self) -> Rec {
        Rec {
            timestamp: self.timestamp(),
            labels: self.labels(),
            line: self.line(),
            metadata: self.metadata().encode(),
            format: self.format(),
        }
    }

    /// From 1 to `most` records.
    pub fn records(&mut self, most: usize) -> Vec<Rec> {
        let count = 1 + self.below(most);
        (0..count).map(|_| self.record()).collect()
    }

    /// A query; its needles are often parts of lines of `records`.
    pub fn query(&mut self, records: &[Rec]) -> Query {
        let mut query = Query::default();
        for _ in 0..self.below(3) {
            query.matchers.push(self.matcher());
        }
        for _ in 0..self.below(3) {
            query.filters.push(self.filter(records));
        }
        query
    }

    /// A label matcher.
    pub fn matcher(&mut self) -> LabelMatcher {
        let name = self.pick(&["app", "host", "é", "none"]).to_string();
        let value = self.pick(&["", "web", "web2", "h1", "ü"]).to_string();
        let pattern = |random: &mut Self| Pattern::label(random.pick(&["web.*", "", "h[12]", ".+", "d\"b\n|ü"])).unwrap();
        let test = match self.below(4) {
            0 => LabelTest::Eq(value),
            1 => LabelTest::Ne(value),
            2 => LabelTest::Match(pattern(self)),
            _ => LabelTest::NoMatch(pattern(self)),
        };
        LabelMatcher { name, test }
    }

    fn filter(&mut self, records: &[Rec]) -> LineFilter {
        let pattern =
            |random: &mut Self| Pattern::line(random.pick(&["level.*(info|warn)", "^$", "[0-9]{3}", "GET /a/1", "(?i)LEVEL"])).unwrap();
        match self.below(6) {
            0..=1 => LineFilter::Contains(self.needle(records)),
            2 => LineFilter::ContainsNot(self.needle(records)),
            3 => LineFilter::ContainsAny((0..self.below(3)).map(|_| self.needle(records)).collect()),
            4 => LineFilter::Match(pattern(self)),
            _ => LineFilter::NoMatch(pattern(self)),
        }
    }

    /// A part of a random line, sometimes with one byte changed.
    pub fn needle(&mut self, records: &[Rec]) -> Vec<u8> {
        let Some(line) = (!records.is_empty()).then(|| self.pick(records).line).filter(|l| !l.is_empty()) else {
            return b"level".to_vec();
        };
        let from = self.below(line.len());
        let len = (1 + self.below(12)).min(line.len() - from);
        let mut needle = line[from..from + len].to_vec();
        if self.once_in(6) {
            let at = self.below(len);
            needle[at] = needle[at].wrapping_add(1);
        }
        needle
    }
}
