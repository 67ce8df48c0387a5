//! What a process has used: CPU time and memory, from `/proc`: Linux only.

use std::fs;

/// Linux tells times in this many ticks a second, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a span of work used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Used {
    /// Seconds on the wall clock.
    pub wall: f64,
    /// CPU seconds of all threads.
    pub cpu: f64,
    /// The most memory resident at a time, in bytes.
    pub peak_rss: u64,
}

/// CPU seconds of process `id` (or `self`) so far, also of one that has ended and was not waited for.
pub fn cpu_seconds(id: &str) -> Option<f64> {
    stat_seconds(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// CPU seconds of the calling thread so far.
pub fn thread_cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// Whether process `id` has ended.
pub fn has_ended(id: &str) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .map_or(true, |stat| stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z')))
}

/// The most bytes that process `id` had resident at a time.
pub fn peak_rss(id: &str) -> Option<u64> {
    status_peak(&fs::read_to_string(format!("/proc/{id}/status")).ok()?)
}

/// User and system time in the text of `/proc/self/stat`. The second field, in parentheses, may hold anything.
fn stat_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
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
