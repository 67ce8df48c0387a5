//! A server that is killed again and again while clients send: what it acknowledged is there exactly once.
//!
//! `HAYSTORE_CRASH_ROUNDS` sets how often it is killed in all (200), `HAYSTORE_TEST_SEED` repeats a run's choices.

use crate::support::{Client, Folder, Rng, START_MAX, Server, said};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Stores, each killed its share of the rounds.
const STORES: usize = 8;
/// Stores at work at the same time.
const AT_ONCE: usize = 4;
/// Small enough that a round of a second sees flushes and merges, and deletes what earlier rounds replaced.
const OPTIONS: [&str; 8] = ["--flush-bytes", "24kB", "--flush-age", "300ms", "--compact-every", "150ms", "--grace", "5s"];
/// Days of the client that sends late and early records.
const DAYS: usize = 3;
const DAY_NS: u64 = 86_400_000_000_000;

/// How a client sends. The number of each is in its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    /// Native lines at the moment of their arrival.
    Lines,
    /// Native NDJSON of another tenant.
    Ndjson,
    /// Loki's push, all at one nanosecond: only their arrival orders them.
    Push,
    /// Loki's push at any time of several days.
    PushLate,
}

const SENDERS: [Sender; 4] = [Sender::Lines, Sender::Ndjson, Sender::Push, Sender::PushLate];
const OTHER_TENANT: (&str, &str) = ("X-Scope-OrgID", "other");

/// What is known of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It was acknowledged, or was found once: it is there from now on.
    Kept,
    /// No answer came: all of it may be there, or nothing.
    Unknown,
    /// It was refused, or was not found: it never is.
    Gone,
}

/// A batch is named by its sender and number; the rest follows from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BatchId {
    sender: Sender,
    number: usize,
}

impl BatchId {
    fn lines(self) -> Vec<String> {
        let mut rng = Rng::new((self.number * SENDERS.len() + self.sender as usize) as u64);
        let count = 1 + rng.below(20);
        let line = |index: usize| {
            let filler = "ab c0".repeat(rng.below(30));
            let (sender, number) = (self.sender as usize, self.number);
            match self.sender {
                Sender::Ndjson => {
                    format!(r#"{{"id":"{sender}-{number}-{index}","count":{count},"level":"info","id2":"{:x}{filler}"}}"#, rng.bits())
                }
                _ => format!("id={sender}-{number}-{index} of {count} value {:x} {filler}", rng.bits()),
            }
        };
        (0..count).map(line).collect()
    }

    fn send(self, client: &Client) -> Fate {
        let lines = self.lines();
        let body = lines.join("\n");
        let answer = match self.sender {
            Sender::Lines => client.try_post("/api/v1/ingest?format=lines&timestamps=none&label=s%3Dlines", &[], body.as_bytes()),
            Sender::Ndjson => {
                client.try_post("/api/v1/ingest?format=ndjson&timestamps=none&label=s%3Djson", &[OTHER_TENANT], body.as_bytes())
            }
            Sender::Push | Sender::PushLate => {
                client.try_post("/loki/api/v1/push", &[("Content-Type", "application/json")], self.push(&lines).as_bytes())
            }
        };
        match answer.map(|a| a.status) {
            Ok(200 | 204) => Fate::Kept,
            Ok(429 | 503) => Fate::Gone,
            Ok(status) => panic!("{self:?} was answered {status}"),
            Err(_) => Fate::Unknown,
        }
    }

    fn push(self, lines: &[String]) -> String {
        let mut rng = Rng::new(self.number as u64);
        let mut body = format!(r#"{{"streams":[{{"stream":{{"s":"{:?}"}},"values":["#, self.sender);
        for (index, line) in lines.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let late = if self.sender == Sender::PushLate { rng.below(DAYS) as u64 * DAY_NS + rng.bits() % DAY_NS } else { 7 };
            let _ = write!(body, r#"{comma}["{}",{}]"#, 1_700_000_000_000_000_000 + late, serde_json::to_string(line).unwrap());
        }
        body + "]}]}"
    }
}

/// What was sent, and what became of it.
#[derive(Default)]
struct Ledger(BTreeMap<BatchId, Fate>);

impl Ledger {
    /// Checks everything that the store gives back, and learns what became of batches without an answer.
    fn check(&mut self, scans: &[Vec<u8>], when: &str) {
        let mut found: BTreeMap<BatchId, Vec<(usize, String)>> = BTreeMap::new();
        let mut last: BTreeMap<Sender, (usize, usize)> = BTreeMap::new();
        for line in scans.iter().flat_map(|s| s.split(|&b| b == b'\n')).filter(|l| !l.is_empty()) {
            let line = std::str::from_utf8(line).unwrap();
            let (id, index) = parse(line).unwrap_or_else(|| panic!("{when}: nobody sent {line:?}"));
            if id.sender != Sender::PushLate {
                let place = last.insert(id.sender, (id.number, index));
                assert!(place < Some((id.number, index)), "{when}: {id:?} {index} comes behind {place:?}");
            }
            found.entry(id).or_default().push((index, line.to_string()));
        }
        for (id, records) in &mut found {
            assert!(self.0.contains_key(id), "{when}: {id:?} was never sent");
            records.sort();
            let lines: Vec<&str> = records.iter().map(|(_, line)| line.as_str()).collect();
            assert_eq!(lines, id.lines(), "{when}: {id:?} is not there exactly once");
        }
        for (id, fate) in &mut self.0 {
            match (*fate, found.contains_key(id)) {
                (Fate::Kept, false) => panic!("{when}: {id:?} was acknowledged and is lost"),
                (Fate::Gone, true) => panic!("{when}: {id:?} was refused, or not found before, and is there"),
                (Fate::Unknown, there) => *fate = if there { Fate::Kept } else { Fate::Gone },
                _ => {}
            }
        }
    }

    fn count(&self, fate: Fate) -> usize {
        self.0.values().filter(|f| **f == fate).count()
    }
}

/// The batch and the place in it that a line names.
fn parse(line: &str) -> Option<(BatchId, usize)> {
    let id = line.strip_prefix("id=").or_else(|| line.strip_prefix(r#"{"id":""#))?;
    let end = id.find([' ', '"'])?;
    let numbers: Vec<usize> = id[..end].split('-').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let [sender, number, index] = numbers[..] else { return None };
    Some((BatchId { sender: *SENDERS.get(sender)?, number }, index))
}

/// Sends from all clients until the server is killed after `life`.
fn load(server: Server, life: Duration, next: &mut BTreeMap<Sender, usize>, ledger: &mut Ledger) -> String {
    let stop = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let senders = SENDERS.map(|sender| {
        let (client, stop, first) = (server.client(), stop.clone(), next.get(&sender).copied().unwrap_or(0));
        std::thread::spawn(move || {
            let mut sent = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let id = BatchId { sender, number: first + sent.len() };
                let fate = id.send(&client);
                sent.push((id, fate));
                if fate == Fate::Unknown {
                    break;
                }
                std::thread::sleep(Duration::from_millis(if fate == Fate::Gone { 50 } else { 12 }));
            }
            sent
        })
    });
    std::thread::sleep(life.saturating_sub(begin.elapsed()));
    let log = server.kill();
    stop.store(true, Ordering::Relaxed);
    for (sender, sent) in SENDERS.into_iter().zip(senders.map(|s| s.join().unwrap())) {
        *next.entry(sender).or_default() += sent.len();
        ledger.0.extend(sent);
    }
    log
}

fn scans(client: &Client) -> Vec<Vec<u8>> {
    let of = |headers: &[(&str, &str)]| client.get_with("/api/v1/scan", headers).ok().body;
    vec![of(&[]), of(&[OTHER_TENANT])]
}

/// Starts a server on the store; now and then it is killed while it starts, and started again.
fn start(folder: &Folder, rng: &mut Rng) -> Server {
    if rng.below(5) == 0 {
        let pause = Duration::from_millis(rng.below(150) as u64);
        let ended = Server::begin(folder.path(), &OPTIONS, |child| {
            std::thread::sleep(pause);
            let _ = child.kill();
        });
        // It may have been quick enough to say where it serves.
        drop(ended);
    }
    Server::start(folder.path(), &OPTIONS)
}

fn no_faults(log: &str, when: &str) {
    let fault = log.lines().find(|l| l.contains("panicked") || l.contains("ERROR") || l.starts_with("error"));
    assert!(fault.is_none(), "{when}:\n{log}");
}

fn one_store(mut rng: Rng, rounds: usize, name: usize) {
    let folder = Folder::new();
    let (mut ledger, mut next) = (Ledger::default(), BTreeMap::new());
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let when = format!("store {name}, round {round}");
        let server = start(&folder, &mut rng);
        slowest = slowest.max(server.start_took);
        assert!(server.start_took < START_MAX, "{when}: the start took {:?}", server.start_took);
        ledger.check(&scans(&server.client()), &when);
        // Up to 1.5 s; more often short, for much happens early.
        let life = rng.below(1500) * (250 + rng.below(750)) / 1000;
        let log = load(server, Duration::from_millis(life as u64), &mut next, &mut ledger);
        no_faults(&log, &when);
    }
    let server = start(&folder, &mut rng);
    ledger.check(&scans(&server.client()), "at last");
    no_faults(&server.stop(), "at last");
    let all = || vec![folder.ok(&["scan"]), folder.ok(&["scan", "--tenant", "other"])];
    ledger.check(&all(), "stopped");
    let merged = folder.store().join("segments");
    assert!(
        std::fs::read_dir(&merged).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().starts_with("tenant=")),
        "nothing was merged"
    );
    folder.ok(&["compact", "--grace", "0"]);
    ledger.check(&all(), "compacted");
    let verified = folder.run(&["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    println!(
        "store {name}: {rounds} kills, {} batches kept, {} gone, slowest start {slowest:?}",
        ledger.count(Fate::Kept),
        ledger.count(Fate::Gone)
    );
}

#[test]
fn what_was_acknowledged_is_there_exactly_once_however_often_it_is_killed() {
    let mut rng = Rng::seeded("crash");
    let rounds: usize = std::env::var("HAYSTORE_CRASH_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(200);
    let seeds: Vec<u64> = (0..STORES).map(|_| rng.bits()).collect();
    let share = rounds.div_ceil(STORES);
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let seeds = &seeds;
            scope.spawn(move || (worker..STORES).step_by(AT_ONCE).for_each(|store| one_store(Rng::new(seeds[store]), share, store)));
        }
    });
}

/// A check that cannot fail shows nothing: the ledger must see each kind of fault.
#[test]
fn canary_a_lost_doubled_torn_or_moved_record_is_found_out() {
    let ids = [0, 1, 2].map(|number| BatchId { sender: Sender::Lines, number });
    let good: Vec<String> = ids.iter().flat_map(|id| id.lines()).collect();
    let fails = |lines: &[String], fates: [Fate; 3]| {
        let mut ledger = Ledger(ids.into_iter().zip(fates).collect());
        let scan = lines.join("\n").into_bytes();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ledger.check(&[scan], "canary"))).is_err()
    };
    let kept = [Fate::Kept; 3];
    assert!(!fails(&good, kept) && !fails(&good, [Fate::Unknown; 3]));
    let first = ids[0].lines().len();
    assert!(!fails(&good[first..], [Fate::Unknown, Fate::Kept, Fate::Kept]));
    assert!(fails(&good[first..], kept), "lost");
    assert!(fails(&good, [Fate::Gone, Fate::Kept, Fate::Kept]), "refused and there");
    assert!(fails(&good[..good.len() - 1], [Fate::Kept, Fate::Kept, Fate::Unknown]), "half a batch");
    assert!(fails(&[&good[..], &good[..1]].concat(), kept), "doubled");
    assert!(fails(&[&good[first..], &good[..first]].concat(), kept), "moved");
    assert!(fails(&[&good[..], &["id=9".to_string()]].concat(), kept), "foreign");
}
