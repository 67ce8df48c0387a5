//! What this process has used: CPU time and memory, from `/proc`. Elsewhere than on Linux nothing is known.

use std::fs;
use std::time::Instant;

/// Linux tells times in this many ticks a second, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// A span of work being measured.
#[derive(Debug)]
pub struct Span {
    begin: Instant,
    cpu: Option<f64>,
}

/// What a span of work used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Seconds on the wall clock.
    pub wall: f64,
    /// CPU seconds of all threads.
    pub cpu: Option<f64>,
    /// The most memory resident at a time, in bytes.
    pub peak_rss: Option<u64>,
}

impl Span {
    /// Begins now; the memory peak begins anew.
    pub fn begin() -> Self {
        // Where it is refused, the peak is the whole process's: higher, never lower.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Span { cpu: cpu_seconds(), begin: Instant::now() }
    }

    /// Ends now.
    pub fn end(self) -> Used {
        let cpu = cpu_seconds().zip(self.cpu).map(|(now, then)| now - then);
        Used { wall: self.begin.elapsed().as_secs_f64(), cpu, peak_rss: peak_rss() }
    }
}

impl Used {
    /// Megabytes of `bytes` for each CPU second, as text.
    pub fn per_cpu_second(&self, bytes: u64) -> String {
        self.cpu.filter(|&s| s > 0.0).map_or_else(|| "n/a".into(), |s| format!("{:.0}", bytes as f64 / 1e6 / s))
    }
}

fn cpu_seconds() -> Option<f64> {
    stat_seconds(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// User and system time in the text of `/proc/self/stat`. The second field, in parentheses, may hold anything.
fn stat_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

fn peak_rss() -> Option<u64> {
    status_peak(&fs::read_to_string("/proc/self/status").ok()?)
}

fn status_peak(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim();
    Some(kib.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_read() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(stat_seconds(stat), Some(3.0));
        assert_eq!(stat_seconds(""), None);
        assert_eq!(status_peak("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(status_peak("Name:\tx\n"), None);
    }
}
