//! Many streams: interleaved, of many tenants, over many days, with late records.
//!
//! What holds: [`Many`] yields batches of one tenant each; their records together are exactly [`Config::records`];
//! every stream occurs when there are at least as many records as streams. Memory is one open batch a tenant.

use super::rng::{Rng, Zipf};
use super::text::{LOWER, address, hex, number};
use haystore::{Batch, Format, Labels, Result, Tenant};

/// What is made. The default is the size at which the store is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Streams, over all tenants.
    pub streams: u32,
    /// Tenants; stream `i` belongs to tenant `i % tenants`.
    pub tenants: u32,
    /// Days from the first record to the last.
    pub days: u32,
    /// Late records in 1,000: up to a day behind their turn.
    pub late_per_mille: u32,
    /// Records, over all tenants.
    pub records: u64,
    /// Records in a full batch.
    pub batch_records: usize,
    /// Another seed, other records.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config { streams: 100_000, tenants: 100, days: 10, late_per_mille: 50, records: 1_000_000, batch_records: 2000, seed: 1 }
    }
}

/// 2024-03-01T00:00:00Z.
const START_NS: i64 = 1_709_251_200_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;
const APPS: [&str; 8] = ["checkout", "gateway", "search", "billing", "auth", "mailer", "images", "reports"];
const LEVELS: [&str; 4] = ["info", "info", "warn", "error"];
const ROUTES: [&str; 6] = ["/v1/items", "/v1/orders", "/v1/login", "/v1/search", "/healthz", "/v1/export"];

/// The batches of a many-streams corpus, in the order of their arrival.
#[derive(Debug)]
pub struct Many {
    config: Config,
    rng: Rng,
    ranks: Zipf,
    addresses: Vec<Vec<u8>>,
    names: Vec<Tenant>,
    open: Vec<Batch>,
    made: u64,
    flushing: usize,
    line: Vec<u8>,
}

impl Many {
    /// The corpus of `config`.
    ///
    /// # Errors
    /// [`haystore::ErrorKind::Invalid`] when a count of `config` is 0.
    pub fn new(config: Config) -> Result<Self> {
        if config.streams == 0 || config.tenants == 0 || config.days == 0 || config.batch_records == 0 {
            return Err(haystore::Error::invalid("streams, tenants, days and records a batch must be at least 1"));
        }
        let mut rng = Rng::new(config.seed ^ 0x3a_4e11);
        let names = (0..config.tenants).map(|i| Tenant::new(&format!("tenant-{i:03}"))).collect::<Result<Vec<_>>>()?;
        Ok(Many {
            ranks: Zipf::new(config.streams as usize, 0.6),
            addresses: (0..5000).map(|_| address(&mut rng)).collect(),
            open: names.iter().map(|_| Batch::new()).collect(),
            names,
            made: 0,
            flushing: 0,
            line: Vec::new(),
            rng,
            config,
        })
    }

    /// The labels of stream `stream`.
    pub fn labels(&self, stream: u32) -> Labels {
        let of_tenant = stream / self.config.tenants;
        Labels::new([
            ("app", APPS[of_tenant as usize % APPS.len()].to_string()),
            ("host", format!("node-{:04}", of_tenant / 8 % 500)),
            ("pod", format!("pod-{:08x}", stream.wrapping_mul(2_654_435_761))),
        ])
    }

    /// Makes the next record; returns its tenant's index.
    fn step(&mut self) -> Result<usize> {
        let Config { streams, tenants, days, records, late_per_mille, .. } = self.config;
        // Every stream once, evenly spread among the skewed rest.
        let stride = (records / u64::from(streams)).max(1);
        let turn = self.made / stride;
        let stream =
            if self.made.is_multiple_of(stride) && turn < u64::from(streams) { turn as u32 } else { self.ranks.draw(&mut self.rng) as u32 };
        let span = i128::from(days) * i128::from(DAY_NS);
        let mut timestamp = START_NS + (span * i128::from(self.made) / i128::from(records)) as i64;
        if self.rng.below(1000) < u64::from(late_per_mille) {
            timestamp -= self.rng.below(DAY_NS as u64) as i64;
        }
        self.write_line();
        let tenant = (stream % tenants) as usize;
        let labels = self.labels(stream);
        let batch = &mut self.open[tenant];
        let (stream, format) = (batch.stream(&labels), batch.format(&Format::Logfmt)?);
        batch.push(timestamp, stream, format, &self.line, &[])?;
        self.made += 1;
        Ok(tenant)
    }

    fn write_line(&mut self) {
        let Many { rng, line, addresses, .. } = self;
        line.clear();
        for (key, value) in
            [("level=", *rng.pick(&LEVELS)), (" method=", *rng.pick(&["GET", "GET", "GET", "POST"])), (" path=", *rng.pick(&ROUTES))]
        {
            line.extend_from_slice(key.as_bytes());
            line.extend_from_slice(value.as_bytes());
        }
        line.extend_from_slice(b" status=");
        number(line, *rng.pick(&[200, 200, 200, 200, 201, 304, 404, 500]));
        line.extend_from_slice(b" client=");
        line.extend_from_slice(rng.pick(addresses.as_slice()).as_slice());
        line.extend_from_slice(b" duration_us=");
        number(line, rng.lognormal(7.0, 1.2) as u64);
        line.extend_from_slice(b" trace=");
        hex(line, rng.bits(), 16, LOWER);
        hex(line, rng.bits(), 16, LOWER);
    }

    fn advance(&mut self) -> Result<Option<(Tenant, Batch)>> {
        while self.made < self.config.records {
            let tenant = self.step()?;
            if self.open[tenant].len() >= self.config.batch_records {
                return Ok(Some(self.take(tenant)));
            }
        }
        while self.flushing < self.open.len() {
            let tenant = self.flushing;
            self.flushing += 1;
            if !self.open[tenant].is_empty() {
                return Ok(Some(self.take(tenant)));
            }
        }
        Ok(None)
    }

    fn take(&mut self, tenant: usize) -> (Tenant, Batch) {
        (self.names[tenant].clone(), std::mem::take(&mut self.open[tenant]))
    }
}

impl Iterator for Many {
    type Item = Result<(Tenant, Batch)>;
    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_stream_and_record_is_there_and_some_are_late() {
        let config = Config { streams: 500, tenants: 7, records: 20_000, batch_records: 300, ..Config::default() };
        let (mut records, mut late, mut newest) = (0, 0, i64::MIN);
        let (mut streams, mut tenants) = (HashSet::new(), HashSet::new());
        for item in Many::new(config).unwrap() {
            let (tenant, batch) = item.unwrap();
            records += batch.len() as u64;
            streams.extend(batch.streams().iter().map(|l| (tenant.clone(), l.clone())));
            tenants.insert(tenant);
            let mut last = i64::MIN;
            for record in batch.iter() {
                late += u32::from(record.timestamp < last);
                last = last.max(record.timestamp);
                newest = newest.max(record.timestamp);
            }
        }
        assert_eq!(records, 20_000);
        assert_eq!((streams.len(), tenants.len()), (500, 7));
        assert!((800..1100).contains(&late), "{late}");
        assert!(newest > START_NS + 9 * DAY_NS && newest < START_NS + 10 * DAY_NS);
        assert!(Many::new(Config { streams: 0, ..config }).is_err());
    }

    #[test]
    fn the_same_seed_gives_the_same_batches() {
        let config = Config { streams: 50, tenants: 3, records: 500, ..Config::default() };
        let all = |c: Config| -> Vec<(i64, Vec<u8>)> {
            Many::new(c).unwrap().flat_map(|b| b.unwrap().1.iter().map(|r| (r.timestamp, r.line.to_vec())).collect::<Vec<_>>()).collect()
        };
        assert_eq!(all(config), all(config));
        assert_ne!(all(config), all(Config { seed: 2, ..config }));
    }
}
