//! Load balancer access logs: `time,balancer,client:port,backend:port,three times,two codes,two sizes,"request","agent",cipher,protocol`.

use super::Lines;
use super::rng::{Pool, Rng, Zipf};
use super::text::{LOWER, address, civil, clock, hex, number, padded, seconds};

/// 2015-05-13T00:00:00Z.
const START_SECOND: u64 = 1_431_475_200;
const BALANCERS: [&str; 4] = ["my-loadbalancer", "api-prod-elb", "web-prod-elb", "img-elb"];
const PAGES: [&str; 17] = [
    "/",
    "/index.html",
    "/favicon.ico",
    "/robots.txt",
    "/login",
    "/logout",
    "/health",
    "/static/app.js",
    "/static/site.css",
    "/api/v1/users",
    "/api/v1/orders",
    "/api/v1/cart",
    "/api/v1/items",
    "/api/v1/search",
    "/api/v1/session",
    "/api/v1/events",
    "/api/v1/metrics",
];
const SYSTEMS: [&str; 4] =
    ["Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "iPhone; CPU iPhone OS 14_4 like Mac OS X"];
const CIPHERS: [&str; 5] =
    ["DHE-RSA-AES128-SHA,TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256,TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384,TLSv1.2", "-,-", "AES128-SHA,TLSv1"];
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "HEAD", "DELETE"];
const CODES: [u64; 10] = [200, 304, 404, 302, 301, 500, 503, 403, 201, 504];

/// The generator of [`super::Kind::Elb`].
pub(super) struct Elb {
    rng: Rng,
    clients: Pool,
    backends: Pool,
    balancers: Pool,
    paths: Pool,
    agents: Pool,
    ciphers: Pool,
    methods: Pool,
    codes: Zipf,
    micros: u64,
    second_text: (u64, Vec<u8>),
    /// A client that asks again and again: lines left, and which.
    burst: (u64, usize),
}

impl Elb {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x00e1_b000);
        let clients: Vec<Vec<u8>> = (0..60_000).map(|_| address(&mut rng)).collect();
        let backends: Vec<String> = (0..48).map(|_| format!("10.0.{}.{}:80", rng.below(4), rng.between(1, 254))).collect();
        let mut paths: Vec<String> = PAGES.iter().map(|p| (*p).to_string()).collect();
        paths.extend((0..3000).map(|i| format!("/products/{i}")));
        paths.extend((0..4000).map(|_| format!("/img/{:012x}.jpg", rng.bits() >> 16)));
        let mut agents: Vec<String> = ["curl/7.38.0", "-", "ELB-HealthChecker/2.0"].map(String::from).to_vec();
        for system in SYSTEMS {
            agents.extend((60..120).map(|version| {
                let (build, patch) = (rng.between(2000, 6000), rng.between(10, 200));
                format!("Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version}.0.{build}.{patch} Safari/537.36")
            }));
        }
        Elb {
            clients: Pool::new(clients, 0.9),
            backends: Pool::new(backends, 0.2),
            balancers: Pool::new(BALANCERS, 0.7),
            paths: Pool::new(paths, 0.9),
            agents: Pool::new(agents, 0.8),
            ciphers: Pool::new(CIPHERS, 1.2),
            methods: Pool::new(METHODS, 1.8),
            codes: Zipf::new(CODES.len(), 1.7),
            micros: START_SECOND * 1_000_000,
            second_text: (0, Vec::new()),
            burst: (0, 0),
            rng,
        }
    }

    fn time(&mut self, out: &mut Vec<u8>) {
        // In a burst lines come ten times as fast.
        let gap = if self.burst.0 > 0 { 250.0 } else { 2500.0 };
        self.micros += self.rng.exponential(gap) as u64 + 1;
        let second = self.micros / 1_000_000;
        if self.second_text.0 != second {
            let (year, month, day) = civil(second / 86_400);
            let text = &mut self.second_text.1;
            text.clear();
            number(text, year);
            text.push(b'-');
            padded(text, month, 2, b'0');
            text.push(b'-');
            padded(text, day, 2, b'0');
            text.push(b'T');
            clock(text, second);
            text.push(b'.');
            self.second_text.0 = second;
        }
        out.extend_from_slice(&self.second_text.1);
        padded(out, self.micros % 1_000_000, 6, b'0');
        out.extend_from_slice(b"Z,");
    }

    fn client(&mut self) -> usize {
        if self.burst.0 > 0 {
            self.burst.0 -= 1;
            return self.burst.1;
        }
        let client = self.clients.draw_index(&mut self.rng);
        if self.rng.per_mille(5) {
            self.burst = (self.rng.between(3, 20), client);
        }
        client
    }
}

impl Lines for Elb {
    fn push_line(&mut self, out: &mut Vec<u8>) {
        self.time(out);
        let client = self.client();
        let rng = &mut self.rng;
        out.extend_from_slice(self.balancers.draw(rng));
        out.push(b',');
        out.extend_from_slice(&self.clients.items[client]);
        out.push(b':');
        number(out, rng.between(1024, 65_535));
        out.push(b',');
        out.extend_from_slice(self.backends.draw(rng));
        for time in [rng.exponential(0.000_08), rng.lognormal(-5.0, 1.2), rng.exponential(0.000_09)] {
            out.push(b',');
            seconds(out, time);
        }
        let code = CODES[self.codes.draw(rng)];
        let method = self.methods.draw(rng);
        let received = if matches!(method, b"GET" | b"HEAD") { 0 } else { rng.exponential(900.0) as u64 };
        let sent = if matches!(code, 301 | 302 | 304) { 0 } else { rng.lognormal(8.0, 1.6) as u64 };
        for value in [code, if rng.per_mille(990) { code } else { 502 }, received, sent] {
            out.push(b',');
            number(out, value);
        }
        out.extend_from_slice(b",\"");
        out.extend_from_slice(method);
        out.extend_from_slice(b" https://www.example.com:443");
        out.extend_from_slice(self.paths.draw(rng));
        if rng.per_mille(250) {
            out.extend_from_slice(b"?id=");
            number(out, rng.between(1, 10_000_000));
            out.extend_from_slice(b"&s=");
            hex(out, rng.bits(), 16, LOWER);
        }
        out.extend_from_slice(b" HTTP/1.1\",\"");
        out.extend_from_slice(self.agents.draw(rng));
        out.extend_from_slice(b"\",");
        out.extend_from_slice(self.ciphers.draw(rng));
        out.push(b'\n');
    }
}
