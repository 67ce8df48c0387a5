//! What went in comes out: lines of any bytes, through appends and jobs, in memory, flushed, compacted, after a restart.

use haystore::{Labels, Store, Tenant};
use haystore_tests::check::{assert_same, everything};
use haystore_tests::model::Model;
use haystore_tests::random::{DAY_NS, Random, START_NS};
use haystore_tests::record::{Rec, batch_of};
use haystore_tests::rounds::{for_seeds, run};
use haystore_tests::world::{World, quiet_options};

/// Appends `by_append`, publishes `by_job`, and compares in every state.
async fn come_back(seed: u64, by_append: Vec<Rec>, by_job: Vec<Rec>) {
    let world = World::in_memory(seed, quiet_options());
    let (store, tenant, mut model) = (world.open().await, Tenant::default(), Model::default());
    for piece in by_append.chunks(97) {
        store.append(&tenant, batch_of(piece)).await.unwrap();
    }
    model.append(&tenant, by_append);
    check(&store, &tenant, &model, "in memory").await;
    let mut job = store.job(&tenant, "file").await.unwrap();
    for piece in by_job.chunks(61) {
        job.write(batch_of(piece), b"state".to_vec()).await.unwrap();
    }
    job.finish().await.unwrap();
    model.publish(&tenant, by_job);
    check(&store, &tenant, &model, "after the job").await;
    drop(store);
    let store = world.open().await;
    check(&store, &tenant, &model, "recovered").await;
    store.flush().await.unwrap();
    model.flush();
    check(&store, &tenant, &model, "flushed").await;
    store.compact().await.unwrap();
    check(&store, &tenant, &model, "compacted").await;
    store.close().await.unwrap();
    drop(store);
    let mut archive = world.clone();
    archive.options.gear = haystore::Gear { level: 12, archive: true };
    let store = archive.open().await;
    assert!(store.compact_again().await.unwrap().replaced > 0);
    check(&store, &tenant, &model, "archived").await;
    store.close().await.unwrap();
    drop(store);
    check(&world.open_reader().await.unwrap(), &tenant, &model, "reopened").await;
}

async fn check(store: &Store, tenant: &Tenant, model: &Model, state: &str) {
    assert_same(state, &everything(store, tenant).await.unwrap(), &model.all(tenant));
}

fn at(random: &mut Random, line: impl Into<Vec<u8>>) -> Rec {
    let timestamp = START_NS + random.below(2) as i64 * DAY_NS + random.below(4) as i64;
    Rec { line: line.into(), ..Rec::plain(timestamp, &random.labels(), "") }
}

#[test]
fn random_lines_come_back() {
    for_seeds(12, |seed| async move {
        let mut random = Random::new(seed);
        let mut some = |count: usize| (0..count).map(|_| random.record()).collect::<Vec<_>>();
        let (by_append, by_job) = (some(250), some(250));
        come_back(seed, by_append, by_job).await;
    });
}

/// One template, slots of every kind; each round another kind.
#[test]
fn repeated_templates_come_back() {
    for_seeds(24, |seed| async move {
        let mut random = Random::new(seed);
        let mut make = |count: usize| (0..count).map(|i| templated(&mut random, seed, i)).collect::<Vec<_>>();
        let (by_append, by_job) = (make(300), make(300));
        come_back(seed, by_append, by_job).await;
    });
}

fn templated(random: &mut Random, kind: u64, i: usize) -> Rec {
    let n = random.0.roll();
    let line = match kind % 12 {
        0 => format!("job {} done in {}.{:03} s", n % 10, n % 7, n % 1000),
        1 => format!("id={n:032x} id2={:08X} ID3={:x}", n as u32, n % 300),
        2 => format!("{:08x}-{:04x}-4{:03x}-a{:03x}-{n:012x}", n as u32, n as u16, n % 4096, n % 4095),
        3 => format!("{}.{}.{}.{} 010.1.1.1 256.1.1.{}", n % 256, n % 3, n % 255, n % 10, n % 300),
        4 => format!("{{\"t\":\"2024-01-{:02}T{:02}:00:{:02}Z\",\"v\":{}}}", n % 33, n % 25, n % 61, n as i64),
        5 => format!("{}{}{}", "0".repeat(n as usize % 4), n % 100, [".0", ".", "e5", "E-5", "", "-"][n as usize % 6]),
        6 => format!("{{\"a\":{{\"b\":[{}]}},\"a\":null{}}}", n % 5, if n.is_multiple_of(9) { "" } else { "," }),
        7 => format!("\"{}\" '{}' \\{} \u{1}", n % 5, "q\"".repeat(n as usize % 3), n % 3),
        8 => format!("a=1 b= c=\"\" =d {}= \t{}", n % 4, n % 2),
        9 => format!("1{}", "9".repeat(n as usize % 25)),
        10 => format!("line {i} of the file{}", if n.is_multiple_of(50) { "\r" } else { "" }),
        _ => format!("-{} +{} {}", n % 3, n % 1000, i64::MIN.wrapping_add((n % 3) as i64)),
    };
    at(random, line)
}

#[test]
fn odd_lines_come_back() {
    run(async {
        let mut random = Random::new(1);
        let mut lines: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        lines.extend((0..=255u8).map(|b| vec![b'a', b, b'"', b, b'z']));
        lines.push((0..=255u8).collect());
        for text in [
            "",
            " ",
            "\r",
            "\n",
            "\r\n",
            "a\nb",
            "\0",
            "\0\0\0",
            "\u{feff}bom",
            "\u{2028}",
            "\"",
            "\\",
            "\\\"",
            "{",
            "}",
            "{}",
            "[]",
            "null",
            "{\"a\":1}",
            "{\"a\": 1 }",
            "{\"a\":1} ",
            "{\"a\":1,}",
            "{\"\\u00e9\":\"\\ud800\"}",
            "{\"a.b\":{\"c\":[1,[2,{\"d\":null}]]}}",
            "{\"a\":1}{\"b\":2}",
            "-0",
            "1e999",
            "12345678901234567890123",
            "NaN",
            "a=b",
            "=",
            "==",
            "a,b,\"c",
            "\u{10ffff}",
            "e\u{301}",
            "%s %d",
            "$0 ${x}",
            "<1>",
        ] {
            lines.push(text.as_bytes().to_vec());
        }
        lines.push(b"\xff\xfeu\x00t\x00f\x001\x006\x00".to_vec());
        lines.push(b"\xed\xa0\x80\xc0\x80\xf8\x88".to_vec());
        lines.push("[".repeat(5000).into_bytes());
        lines.push(format!("{}1{}", "{\"k\":".repeat(1000), "}".repeat(1000)).into_bytes());
        lines.push("\\".repeat(999).into_bytes());
        let mut make = || lines.iter().map(|l| at(&mut random, l.clone())).collect::<Vec<_>>();
        let (by_append, by_job) = (make(), make());
        come_back(1, by_append, by_job).await;
    });
}

#[test]
fn long_lines_come_back() {
    run(async {
        let mut random = Random::new(2);
        let mut make = |extra: u8| {
            let mut lines = vec![vec![b'x'; 1 << 20], random.bytes(1 << 20), b"word 12345 ".repeat(100_000), vec![0; (1 << 16) + 1]];
            lines.push(format!("{{\"big\":\"{}\",\"n\":{extra}}}", "é\\n".repeat(200_000)).into_bytes());
            lines.push(b"short".to_vec());
            lines.push((0..1 << 20).map(|i| if i % 97 == 0 { b' ' } else { b'a' + (i % 7) as u8 + extra }).collect());
            lines.into_iter().map(|l| Rec::plain(START_NS, &Labels::default(), l)).collect::<Vec<_>>()
        };
        let (by_append, by_job) = (make(0), make(1));
        come_back(2, by_append, by_job).await;
    });
}
