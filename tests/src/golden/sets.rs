//! The records of the golden segments. A set, once released, never changes.

use crate::random::{Random, START_NS};
use crate::record::Rec;
use haystore::{Format, Labels, Metadata, Tenant, Value};

const SECOND_NS: i64 = 1_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// A name and the records of each tenant.
pub type Set = (&'static str, Vec<(Tenant, Vec<Rec>)>);

/// All sets.
pub fn all() -> Vec<Set> {
    let one = |name, records| (name, vec![(Tenant::default(), records)]);
    vec![
        ("empty", Vec::new()),
        one("one", vec![Rec::plain(1, &Labels::default(), *b"x")]),
        one("text", text()),
        one("json", json()),
        one("csv", csv()),
        one("types", types()),
        one("integers", integers()),
        one("ranges", ranges()),
        ("tenants", tenants()),
        one("metadata", metadata()),
        one("verbatim", verbatim()),
        one("bytes", raw_bytes()),
    ]
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(pairs.iter().copied())
}

/// Two templates whose timestamp is in the line, one without.
fn text() -> Vec<Rec> {
    let mut random = Random::new(1);
    let stream = labels(&[("app", "web")]);
    (0..600)
        .map(|i: i64| {
            let (minute, second) = (i / 60, i % 60);
            let at = START_NS + i * SECOND_NS;
            match random.below(3) {
                0 => {
                    let (millisecond, job, took) = (random.below(1000), random.0.roll(), random.below(500));
                    let line = format!(
                        "2024-01-01T00:{minute:02}:{second:02}.{millisecond:03}Z INFO worker-{} took job {job:016x} in {took}ms",
                        i % 4
                    );
                    Rec::plain(at + millisecond as i64 * MILLISECOND_NS, &stream, line)
                }
                1 => {
                    let (path, size) = (random.pick(&["/", "/a", "/login", "/static/x.css"]), random.below(90_000));
                    let line = format!(
                        "10.0.{}.{} - - [01/Jan/2024:00:{minute:02}:{second:02} +0000] \"GET {path}?q={} HTTP/1.1\" 200 {size}",
                        random.below(3),
                        random.below(250),
                        random.below(20)
                    );
                    Rec::plain(at, &stream, line)
                }
                _ => {
                    Rec::plain(at + random.below(1_000_000) as i64, &stream, format!("user {} failed: no \"such thing\"", random.below(9)))
                }
            }
        })
        .collect()
}

/// Nested JSON, with JSON escaped in a string, in several shapes, one field a function of another, one computed from another, one that names another;
/// arrays of several lengths, decimals and times without zeros at the end; the timestamp is a number of milliseconds.
fn json() -> Vec<Rec> {
    let mut random = Random::new(2);
    let stream = labels(&[("app", "shop"), ("host", "h1")]);
    (0..400)
        .map(|i: i64| {
            let at = START_NS + i * 250 * MILLISECOND_NS;
            let (id, user) = (random.0.roll(), random.pick(&["ann", "bob", "eve \\\"x\\\"", "\\u00e9"]));
            let uuid = format!("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", id as u32, id >> 48, id & 0xfff, id >> 20 & 0xfff, id >> 16);
            let payload = format!("{{\\\"cart\\\":[{},{}],\\\"note\\\":\\\"a \\\\\\\\ b {}\\\"}}", i % 7, i % 11, random.below(5));
            // The pod decides the node.
            let (pod, node) = random.pick(&[("web-a", "north"), ("web-b", "south"), ("api", "north"), ("db", "east")]);
            let line = match i % 5 {
                0 => format!("{{\"ts\":{},\"level\":\"warn\", \"x\":null,\"x\":1.50e3,\"msg\":\"slow {i}\"}}", at / MILLISECOND_NS),
                _ => {
                    let fraction = format!("{:09}", random.below(1_000_000) * 1_000);
                    let clock = format!("00:{:02}:{:02}.{}", i / 60, i % 60, fraction.trim_end_matches('0'));
                    let tags: Vec<String> = (0..random.below(4)).map(|tag| format!("\"t{tag}{}\"", random.below(40))).collect();
                    let (price, whole) = (f64::from(random.below(4000) as u32) / 8.0, random.below(900));
                    format!(
                        "{{\"ts\":{0},\"s\":{1},\"level\":\"info\",\"pod\":\"{pod}\",\"node\":\"{node}\",\"user\":\"{user}\",\"request\":{{\"id\":\"{uuid}\",\"ok\":{2},\"ms\":{3}.{4}}},\"payload\":\"{payload}\",\"clock\":\"{clock}\",\"tags\":[{5}],\"price\":{price},\"message\":\"request {uuid} took {whole}ms\"}}",
                        at / MILLISECOND_NS,
                        at / SECOND_NS,
                        random.once_in(2),
                        random.below(300),
                        random.below(10),
                        tags.join(","),
                    )
                }
            };
            Rec { format: Format::Json, ..Rec::plain(at, &stream, line) }
        })
        .collect()
}

fn csv() -> Vec<Rec> {
    let mut random = Random::new(3);
    let stream = labels(&[("file", "sales.csv")]);
    let columns = ["id", "when", "name, first", "price", "zero\0byte", "one\u{1}byte"].map(String::from).to_vec();
    let format = Format::Csv { delimiter: b';', columns };
    let mut records =
        vec![Rec { format: Format::Csv { delimiter: b',', columns: Vec::new() }, ..Rec::plain(START_NS, &stream, "id,when") }];
    records.extend((0..300).map(|i: i64| {
        let line = format!(
            "{:06};2024-01-01 00:00:{:02};\"Ann; {}\";{}.{:02};;{};\"says \"\"no. {}\"\"\"",
            i,
            i % 60,
            random.pick(&["A", "B", "C"]),
            random.below(900),
            random.below(100),
            ["x", "y"][(i % 2) as usize],
            random.below(70)
        );
        Rec { format: format.clone(), ..Rec::plain(START_NS + i, &stream, line) }
    }));
    records
}

/// One column of each type and class, each time family with several fractions, and one column twice.
fn types() -> Vec<Rec> {
    let mut random = Random::new(4);
    (0..250)
        .map(|i: i64| {
            let (a, b) = (random.0.roll(), random.0.roll());
            let (day, hour, minute, second) = (1 + random.below(28), random.below(24), random.below(60), random.below(60));
            let year = random.pick(&[0, 1899, 1970, 2000, 2024, 9999]);
            let (clock, month) = (format!("{hour:02}:{minute:02}:{second:02}"), random.pick(&["Jan", "Feb", "Dec"]));
            let parts = [
                format!("{}", (a >> 33) as i64 - (1 << 30)),
                format!("{:07}", a % 100_000),
                format!("{}{}.{:03}", if i % 2 == 0 { "-" } else { "" }, 1 + a % 50, b % 1000),
                format!("{year:04}-{:02}-{day:02}T{clock}.{:06}", 1 + a % 12, a % 1_000_000),
                format!("{year:04}-{:02}-{day:02} {clock},{:03}", 1 + b % 12, b % 1000),
                format!("{year:04}/{:02}/{day:02} {clock}", 1 + a % 12),
                format!("{day:02}/{month}/{year:04}:{clock}"),
                format!("{month} {day:2} {clock}.{}", a % 10),
                format!("{clock}.{:09}", b % 1_000_000_000),
                format!("{a:016x}{:08x}", b as u32),
                format!("A{:07X}", a as u32 >> 4),
                format!("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", a as u32, a >> 48, b & 0xfff, b >> 20 & 0xfff, b >> 16),
                format!("10.{}.{}.{}", a % 256, b % 3, a % 7),
                format!("\"{}\"", random.pick(&["GET", "PUT", "a longer, quoted text"])),
            ];
            let line = format!("{} | again {}", parts.join(" | "), parts[0]);
            Rec::plain(random.timestamp(), &Labels::default(), line)
        })
        .collect()
}

/// One column for each form of integers: random 32 bits, random 64 bits, a repeating pattern of steps, few values, one value.
fn integers() -> Vec<Rec> {
    let mut random = Random::new(5);
    let mut at = 0i64;
    let steps = [3, 100_000, 7, 1, 40_000_000, 9, 250, 70_000, 5, 1, 1, 123_456];
    (0..1000)
        .map(|i: i64| {
            at += steps[i as usize % steps.len()];
            let (small, large) = (random.0.roll() as u32 >> 8, random.0.roll() as i64);
            let line = format!("small={small} large={large} steps={at} wave={} same={} end", [9, 1, 5, 1][i as usize % 4], 77);
            Rec::plain(START_NS + i, &Labels::default(), line)
        })
        .collect()
}

/// Thirteen row ranges of short lines: dictionary pages, page sets of one, of two and of no said ranges, pages of several ranges.
fn ranges() -> Vec<Rec> {
    let mut records = Vec::new();
    for row in 0..12 * 8192 + 500u32 {
        let range = row / 8192;
        let timestamp = START_NS + i64::from(range) * SECOND_NS;
        let line = if row % 900 == 7 {
            format!("rare \"thing {}\" {}", row / 900 % 4, row % 8)
        } else {
            // Entries of one range, of this and the next but one, and of all.
            let id = match row % 64 / 16 {
                0 => 0x4000_0000 + range % 2 * 256 + range / 4 * 1024,
                1 => 0x8000_0000,
                _ => 0x1000_0000 + row / 64 * 3,
            };
            format!("i {id:08x}")
        };
        records.push(Rec::plain(timestamp, &Labels::default(), line));
    }
    records
}

fn tenants() -> Vec<(Tenant, Vec<Rec>)> {
    let streams = [
        labels(&[]),
        labels(&[("app", "web")]),
        labels(&[("app", "web"), ("host", "h1")]),
        labels(&[("app", "a \"quoted\" \\ name"), ("tab", "\t\u{1f}")]),
        labels(&[("é", "ü\u{7f}")]),
    ];
    ["fake", "team-(b)", "z"]
        .into_iter()
        .enumerate()
        .map(|(index, tenant)| {
            let record = |i: usize| {
                let line = format!("{} sent {} bytes", tenant, i * 37 % 101);
                Rec::plain(START_NS + (i / 7) as i64, &streams[i * (index + 1) % streams.len()], line)
            };
            (Tenant::new(tenant).unwrap(), (0..60 + index * 40).map(record).collect())
        })
        .collect()
}

fn metadata() -> Vec<Rec> {
    let mut random = Random::new(6);
    let stream = labels(&[("service", "pay")]);
    (0..300)
        .map(|i: i64| {
            let mut pairs = vec![
                ("trace_id".to_string(), Value::Str(format!("{:016x}{:016x}", random.0.roll(), random.0.roll()))),
                ("severity".to_string(), Value::Int(9 + i % 4)),
            ];
            match i % 10 {
                0 => pairs.clear(),
                1 => pairs.push(("null".into(), Value::Null)),
                2 => pairs.push(("ok".into(), Value::Bool(i % 20 == 2))),
                3 => pairs.push(("ratio".into(), Value::Float(f64::from(i as u32) / 8.0))),
                4 => pairs.push(("odd".into(), Value::Float([f64::NAN, f64::INFINITY, -0.0, 5e-324][i as usize / 10 % 4]))),
                5 => pairs.push(("text".into(), Value::Str("a \"b\" \\ \u{0} \n é".into()))),
                6 => pairs.push(("raw".into(), Value::Bytes(i.to_be_bytes().to_vec()))),
                7 => pairs.push(("list".into(), Value::List(vec![Value::Int(i64::MIN), Value::List(vec![]), Value::Null]))),
                8 => pairs.push(("map".into(), Value::Map(vec![("a".into(), Value::Int(1)), ("a".into(), Value::Int(2))]))),
                _ => pairs.push(("dollar".into(), Value::Map(vec![("$b".into(), Value::Map(vec![]))]))),
            }
            Rec { metadata: Metadata(pairs).encode(), ..Rec::plain(START_NS + i, &stream, format!("payment {i} done")) }
        })
        .collect()
}

/// Lines that have nothing in common.
fn verbatim() -> Vec<Rec> {
    let mut random = Random::new(7);
    let mut line = || -> Vec<u8> { (0..40).map(|_| random.pick(b"abcdefghijklmnopqrstuvwxyz ,;:")).collect() };
    (0..300).map(|i| Rec::plain(START_NS + i, &Labels::default(), line())).collect()
}

/// Empty lines, bytes that are no UTF-8, the ends of time.
fn raw_bytes() -> Vec<Rec> {
    let mut random = Random::new(8);
    (0..200)
        .map(|i: i64| {
            let line = match i % 4 {
                0 => Vec::new(),
                1 => (0..=255).collect(),
                2 => b"\0\r\n\t\"\\".to_vec(),
                _ => {
                    let len = random.below(30);
                    random.bytes(len)
                }
            };
            let timestamp = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX][i as usize % 7];
            Rec::plain(timestamp, &Labels::default(), line)
        })
        .collect()
}
