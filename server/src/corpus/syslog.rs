//! RFC 3164 messages as a syslog daemon writes them to its file: `Mmm dd hh:mm:ss host program[pid]: message`.

use super::Lines;
use super::rng::{Pool, Rng, Zipf};
use super::text::{LOWER, UPPER, address, civil, clock, hex, number, padded};

/// 2013-10-01T00:00:00Z.
const START_SECOND: u64 = 1_380_585_600;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HOSTS: [&str; 5] = ["robert", "db1", "web1", "web2", "gw"];
const USERS: [&str; 8] = ["root", "admin", "test", "oracle", "ubuntu", "git", "postgres", "deploy"];
/// Program and message; a letter in braces is drawn anew in each line, by [`Syslog::slot`].
const MESSAGES: [(&str, &str); 10] = [
    ("sshd", "Failed password for invalid user {w} from {a} port {p} ssh2"),
    ("sshd", "Accepted publickey for {w} from {a} port {p} ssh2: RSA SHA256:{h}"),
    (
        "kernel",
        "[{i}.{j}] [UFW BLOCK] IN=eth0 OUT= MAC={m} SRC={a} DST=192.168.1.10 LEN={k} TOS=0x00 PREC=0x00 TTL={t} ID={p} PROTO=TCP SPT={p} DPT={j} WINDOW=1024 RES=0x00 SYN URGP=0",
    ),
    ("CRON", "(root) CMD (   cd / && run-parts --report /etc/cron.hourly)"),
    ("systemd", "Started Session {j} of user {w}."),
    ("dhclient", "DHCPREQUEST of 192.168.1.{k} on eth0 to 192.168.1.1 port 67"),
    ("postfix/smtpd", "connect from unknown[{a}]"),
    ("postfix/qmgr", "{h}: from=<{w}@example.com>, size={i}, nrcpt=1 (queue active)"),
    ("NetworkManager", "<info> (wlan0): supplicant interface state: {w} -> associated"),
    ("named", "client {a}#{p}: query (cache) '{w}.example.org/A/IN' denied"),
];

/// The generator of [`super::Kind::Syslog`].
pub(super) struct Syslog {
    rng: Rng,
    messages: Zipf,
    users: Vec<String>,
    addresses: Pool,
    seconds: f64,
    second_text: (u64, Vec<u8>),
    /// One message again and again, as under an attack: lines left, and which.
    burst: (u64, usize),
}

/// What is drawn once a line, however often it occurs in it.
struct Draw {
    port: u64,
    i: u64,
    j: u64,
    address: usize,
}

impl Syslog {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0515_1060);
        let mut users: Vec<String> = USERS.map(String::from).to_vec();
        users.extend((0..300).map(|i| format!("user{i}")));
        let addresses: Vec<Vec<u8>> = (0..20_000).map(|_| address(&mut rng)).collect();
        Syslog {
            messages: Zipf::new(MESSAGES.len(), 0.7),
            users,
            addresses: Pool::new(addresses, 0.9),
            seconds: 0.0,
            second_text: (0, Vec::new()),
            burst: (0, 0),
            rng,
        }
    }

    fn time(&mut self, out: &mut Vec<u8>) {
        self.seconds += self.rng.exponential(if self.burst.0 > 0 { 0.05 } else { 0.5 });
        let second = START_SECOND + self.seconds as u64;
        if self.second_text.0 != second {
            let (_, month, day) = civil(second / 86_400);
            let text = &mut self.second_text.1;
            text.clear();
            text.extend_from_slice(MONTHS[month as usize - 1].as_bytes());
            text.push(b' ');
            padded(text, day, 2, b' ');
            text.push(b' ');
            clock(text, second);
            text.push(b' ');
            self.second_text.0 = second;
        }
        out.extend_from_slice(&self.second_text.1);
    }

    fn message(&mut self) -> usize {
        if self.burst.0 > 0 {
            self.burst.0 -= 1;
            return self.burst.1;
        }
        let message = self.messages.draw(&mut self.rng);
        if self.rng.per_mille(4) {
            self.burst = (self.rng.between(3, 30), message);
        }
        message
    }

    fn slot(&mut self, out: &mut Vec<u8>, letter: u8, draw: &Draw) {
        let rng = &mut self.rng;
        match letter {
            b'w' => out.extend_from_slice(rng.pick(&self.users).as_bytes()),
            b'a' => out.extend_from_slice(&self.addresses.items[draw.address]),
            b'p' => number(out, draw.port),
            b'h' => hex(out, rng.bits(), 10, UPPER),
            b'i' => number(out, draw.i),
            b'j' => number(out, draw.j),
            b'k' => number(out, rng.between(40, 254)),
            b't' => number(out, rng.between(30, 255)),
            _ if rng.per_mille(50) => {
                let bits = rng.bits();
                for i in 0..6 {
                    out.extend_from_slice(if i == 0 { b"" } else { b":" });
                    hex(out, bits >> (8 * i), 2, LOWER);
                }
            }
            _ => out.extend_from_slice(b"00:1c:42:aa:bb:cc"),
        }
    }
}

impl Lines for Syslog {
    fn push_line(&mut self, out: &mut Vec<u8>) {
        self.time(out);
        let (program, message) = MESSAGES[self.message()];
        let rng = &mut self.rng;
        out.extend_from_slice(rng.pick(&HOSTS).as_bytes());
        out.push(b' ');
        out.extend_from_slice(program.as_bytes());
        out.push(b'[');
        number(out, rng.between(300, 32_000));
        out.extend_from_slice(b"]: ");
        let draw = Draw {
            port: rng.between(1024, 65_535),
            i: rng.between(100, 99_999),
            j: rng.between(1, 65_000),
            address: self.addresses.draw_index(rng),
        };
        let mut parts = message.split('{');
        out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            self.slot(out, part.as_bytes()[0], &draw);
            out.extend_from_slice(&part.as_bytes()[2..]);
        }
        out.push(b'\n');
    }
}
