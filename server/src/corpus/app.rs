//! Application logs as a container collector sends them: one nested JSON object a line, the original JSON line inside a string.

use super::Lines;
use super::rng::{Rng, Zipf};
use super::text::{LOWER, address, hex, json_escaped, number, padded, uuid};

/// 2019-12-01T00:00:00Z.
const START_MILLI: u64 = 1_575_158_400_000;
const FIRST_ID: u64 = 115_342_345_700_747;
const WORDS: [&str; 12] =
    ["tenant", "billing", "search", "orders", "catalog", "auth", "mesh", "router", "ingest", "alerts", "users", "cache"];
const CLUSTERS: [&str; 3] = ["ld34", "ld60", "fr12"];
const POD_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Thread, level, logger and message; a letter in braces is a [`Draw`] of the line.
const TEMPLATES: [[&str; 4]; 10] = [
    ["cleaner-task", "INFO", "com.ibm.model", "Cleaner registry pruning task took {i}ms for {j}/{k} entries"],
    ["grpc-exec-{t}", "INFO", "com.ibm.mm.ModelMesh", "Loading model {u} type=rt:{w} size={i}KiB finished in {j}ms"],
    ["grpc-exec-{t}", "DEBUG", "com.ibm.mm.Invoke", "invokeModel for model id {u} from client {a}:{p} returned status OK after {i} us"],
    [
        "http-nio-8080-exec-{t}",
        "INFO",
        "org.app.access",
        "{a} - - \"GET /api/v2/tenants/{h}/items/{j}?page={k} HTTP/1.1\" 200 {i} \"-\" \"okhttp/4.9.1\"",
    ],
    ["http-nio-8080-exec-{t}", "WARN", "org.app.auth", "Token for user {w}{j} expired at {i}; session={u}"],
    [
        "kafka-coordinator-heartbeat-thread",
        "INFO",
        "org.apache.kafka.clients.consumer.internals.AbstractCoordinator",
        "[Consumer clientId=consumer-{w}-{t}, groupId={w}] Attempt to heartbeat failed since group is rebalancing generation {i}",
    ],
    [
        "pool-{t}-thread-{k}",
        "ERROR",
        "org.app.db.Pool",
        "java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after {i}ms.\n\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:{j})\n\tat com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:{k})",
    ],
    ["scheduler-{t}", "INFO", "org.app.sched.Quartz", "Job {w}.{h} completed in {i} ms, next fire at 2019-12-01T{c}:{d}:00.000Z"],
    ["etcd-watch", "DEBUG", "io.etcd.Watch", "received watch event rev={i} key=/registry/pods/{w}/{v}-{h}-{s} type=PUT"],
    ["gc-monitor", "INFO", "jvm.gc", "[GC pause (G1 Evacuation Pause) (young) {i}M->{j}M({k}M), 0.0{t}{t} secs]"],
];

/// The generator of [`super::Kind::App`].
pub(super) struct App {
    rng: Rng,
    hosts: Vec<Host>,
    host_ranks: Zipf,
    templates: Zipf,
    build_ids: Vec<Vec<u8>>,
    users: Vec<Vec<u8>>,
    addresses: Vec<Vec<u8>>,
    milli: f64,
    row: u64,
    /// One host with one message again and again: lines left, host, template.
    burst: (u64, usize, usize),
    thread: Vec<u8>,
    message: Vec<u8>,
    message_json: Vec<u8>,
    inner: Vec<u8>,
}

/// A pod and the constant parts of its lines.
struct Host {
    /// From `"_host"` to before `"_line"`.
    head: Vec<u8>,
    /// From `"_app"` to before `"_id"`.
    middle: Vec<u8>,
    /// `"__key"`.
    key: Vec<u8>,
}

/// The values of one line's slots.
struct Draw {
    i: u64,
    j: u64,
    k: u64,
    t: u64,
    port: u64,
    word: usize,
    other_word: usize,
    address: usize,
    user: usize,
    bits: u64,
    uuid: [u8; 36],
}

impl Host {
    fn new(rng: &mut Rng) -> Self {
        let service = *rng.pick(&WORDS);
        let mut template = Vec::new();
        hex(&mut template, rng.bits(), 10, LOWER);
        let template = String::from_utf8_lossy(&template).into_owned();
        let suffix: String = (0..5).map(|_| char::from(*rng.pick(POD_LETTERS))).collect();
        let pod = format!("{service}-tf-mm-{template}-{suffix}");
        let node = format!("kube-{}-crfd{:012x}-w{}", rng.pick(&WORDS), rng.bits() >> 16, rng.between(1, 900));
        let container: String = (0..4).map(|_| format!("{:016x}", rng.bits())).collect();
        let ip = format!("10.{}.{}.{}", rng.below(256), rng.below(256), rng.between(1, 254));
        let component = *rng.pick(&WORDS);
        let tenant = rng.below(41);
        let head = format!(
            "\"_host\":\"{pod}\",\"_ingester\":\"theingester\",\"_label\":{{\"service\":\"{service}-svc\",\"pod-template-hash\":\"{template}\",\"slot\":\"gyh345\",\"component\":\"{component}\",\"tenant\":\"ddd{tenant:03}\"}},\"_logtype\":\"json\",\"_tag\":[\"agent-v2production\",\"mothership-6677788\"],\"_file\":\"/var/log/containers/{pod}_{service}-runtime-{container}.log\","
        );
        let middle = format!(
            "\"_app\":\"{service}-runtime\",\"pod\":\"{pod}\",\"namespace\":\"logical\",\"container\":\"modelmesh-runtime\",\"containerid\":\"{container}\",\"node\":\"{node}\\n\",\"_ip\":\"{ip}\","
        );
        let key = format!("\"__key\":\"logline:1f34622021:{service}-runtime:{pod}:ld60\",");
        Host { head: head.into_bytes(), middle: middle.into_bytes(), key: key.into_bytes() }
    }
}

impl App {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x000a_9900);
        let hosts: Vec<Host> = (0..220).map(|_| Host::new(&mut rng)).collect();
        let hexes = |rng: &mut Rng, n: usize, width: u32| -> Vec<Vec<u8>> {
            (0..n)
                .map(|_| {
                    let mut text = Vec::new();
                    hex(&mut text, rng.bits(), width, LOWER);
                    text
                })
                .collect()
        };
        let users = hexes(&mut rng, 3000, 8);
        let build_ids = (0..500)
            .map(|_| {
                let mut text = Vec::new();
                uuid(&mut text, &mut rng);
                text
            })
            .collect();
        App {
            host_ranks: Zipf::new(hosts.len(), 0.8),
            hosts,
            templates: Zipf::new(TEMPLATES.len(), 0.8),
            build_ids,
            users,
            addresses: (0..5000).map(|_| address(&mut rng)).collect(),
            milli: START_MILLI as f64,
            row: 0,
            burst: (0, 0, 0),
            thread: Vec::new(),
            message: Vec::new(),
            message_json: Vec::new(),
            inner: Vec::new(),
            rng,
        }
    }

    /// Host and template of the next line.
    fn source(&mut self) -> (usize, usize) {
        if self.burst.0 > 0 {
            self.burst.0 -= 1;
            return (self.burst.1, self.burst.2);
        }
        let (host, template) = (self.host_ranks.draw(&mut self.rng), self.templates.draw(&mut self.rng));
        if self.rng.per_mille(5) {
            self.burst = (self.rng.between(3, 20), host, template);
        }
        (host, template)
    }

    fn draw(&mut self) -> Draw {
        let rng = &mut self.rng;
        let mut text = Vec::with_capacity(36);
        uuid(&mut text, rng);
        let mut uuid = [0; 36];
        uuid.copy_from_slice(&text);
        Draw {
            i: rng.exponential(900.0) as u64,
            j: rng.below(501),
            k: rng.below(100),
            t: rng.between(1, 32),
            port: rng.between(1024, 65_535),
            word: rng.below(WORDS.len() as u64) as usize,
            other_word: rng.below(WORDS.len() as u64) as usize,
            address: rng.below(self.addresses.len() as u64) as usize,
            user: rng.below(self.users.len() as u64) as usize,
            bits: rng.bits(),
            uuid,
        }
    }

    fn expand(&self, out: &mut Vec<u8>, template: &str, draw: &Draw) {
        let mut parts = template.split('{');
        out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            match part.as_bytes()[0] {
                b'i' => number(out, draw.i),
                b'j' => number(out, draw.j),
                b'k' => number(out, draw.k),
                b't' => number(out, draw.t),
                b'p' => number(out, draw.port),
                b'u' => out.extend_from_slice(&draw.uuid),
                b'w' => out.extend_from_slice(WORDS[draw.word].as_bytes()),
                b'v' => out.extend_from_slice(WORDS[draw.other_word].as_bytes()),
                b'a' => out.extend_from_slice(&self.addresses[draw.address]),
                b'h' => out.extend_from_slice(&self.users[draw.user]),
                b'c' => padded(out, draw.bits % 24, 2, b'0'),
                b'd' => padded(out, (draw.bits >> 8) % 60, 2, b'0'),
                _ => hex(out, draw.bits >> 20, 5, LOWER),
            }
            out.extend_from_slice(&part.as_bytes()[2..]);
        }
    }

    /// `,"threadId":…`, `{"epochSecond":…,"nanoOfSecond":…}` and their like.
    fn instant(out: &mut Vec<u8>, milli: u64) {
        out.extend_from_slice(b"{\"epochSecond\":");
        number(out, milli / 1000);
        out.extend_from_slice(b",\"nanoOfSecond\":");
        number(out, milli % 1000 * 1_000_000);
        out.push(b'}');
    }

    /// From `"thread"` to `"loggerFqcn"`: what the inner and the outer object share.
    fn shared(out: &mut Vec<u8>, thread: &[u8], level: &str, logger: &str, message_json: &[u8]) {
        for (part, value) in [
            (&b"\"thread\":\""[..], thread),
            (b"\",\"level\":\"", level.as_bytes()),
            (b"\",\"loggerName\":\"", logger.as_bytes()),
            (b"\",\"message\":\"", message_json),
        ] {
            out.extend_from_slice(part);
            out.extend_from_slice(value);
        }
        out.extend_from_slice(b"\",\"endOfBatch\":false,\"loggerFqcn\":\"org.apache.logging.log4j.spi.AbstractLogger\"");
    }

    fn thread_id(out: &mut Vec<u8>, id: u64) {
        out.extend_from_slice(b",\"threadId\":");
        number(out, id);
        out.extend_from_slice(b",\"threadPriority\":5");
    }

    fn milli(&mut self) -> u64 {
        self.milli += self.rng.exponential(0.8);
        let late = if self.rng.per_mille(100) { self.rng.below(2001) } else { 0 };
        self.milli as u64 - late
    }
}

impl Lines for App {
    fn push_line(&mut self, out: &mut Vec<u8>) {
        let milli = self.milli();
        let (host, template) = self.source();
        let draw = self.draw();
        let [thread_template, level, logger, message_template] = TEMPLATES[template];
        let (mut thread, mut message) = (std::mem::take(&mut self.thread), std::mem::take(&mut self.message));
        thread.clear();
        message.clear();
        self.expand(&mut thread, thread_template, &draw);
        self.expand(&mut message, message_template, &draw);
        self.message_json.clear();
        json_escaped(&mut self.message_json, &message);
        let thread_id = self.rng.between(1, 200);

        let inner = &mut self.inner;
        inner.clear();
        inner.push(b'{');
        Self::shared(inner, &thread, level, logger, &self.message_json);
        inner.extend_from_slice(b",\"instant\":");
        Self::instant(inner, milli);
        inner.extend_from_slice(b",\"contextMap\":{}");
        Self::thread_id(inner, thread_id);
        inner.push(b'}');

        let host = &self.hosts[host];
        out.extend_from_slice(b"{\"_account\":\"1f3434521\",\"_cluster\":\"");
        out.extend_from_slice(self.rng.pick(&CLUSTERS).as_bytes());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(&host.head);
        out.extend_from_slice(b"\"_line\":\"");
        json_escaped(out, &self.inner);
        out.extend_from_slice(b"\",\"_ts\":");
        number(out, milli);
        out.push(b',');
        out.extend_from_slice(&host.middle);
        out.extend_from_slice(b"\"_id\":\"");
        number(out, FIRST_ID + self.row);
        out.extend_from_slice(b"\",");
        out.extend_from_slice(&host.key);
        out.extend_from_slice(b"\"_bid\":\"");
        out.extend_from_slice(self.rng.pick(&self.build_ids).as_slice());
        out.push(b':');
        number(out, self.row / 50);
        out.extend_from_slice(b":ld60\",");
        Self::shared(out, &thread, level, logger, &self.message_json);
        Self::thread_id(out, thread_id);
        out.extend_from_slice(b",\"o_instant\":");
        Self::instant(out, milli);
        out.extend_from_slice(b",\"o_contextMap\":{}}\n");
        self.row += 1;
        (self.thread, self.message) = (thread, message);
    }
}
