//! A process that is measured: this program as `haystore`, or as one of its own parts.

use crate::process::{Used, cpu_seconds, has_ended, peak_rss};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first argument that makes this program `haystore`.
pub const HAYSTORE: &str = "haystore";
/// How often memory is looked at. The kernel keeps the peak; only what grows in a process's last moment is missed.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running process.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    id: String,
    begin: Instant,
    peak: u64,
}

impl Child {
    /// Starts `haystore` with `arguments`.
    pub fn haystore<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, output: Stdio) -> Result<Self> {
        let mut all = vec![HAYSTORE.into()];
        all.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        Self::own(all, output)
    }

    /// Starts this program with `arguments`.
    pub fn own<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, output: Stdio) -> Result<Self> {
        let program = std::env::current_exe().context("this program's own file is not known")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(output).env("HAYSTORE_LOG", "warn");
        let process = command.spawn().context("cannot start a process to measure")?;
        Ok(Child { id: process.id().to_string(), process, begin: Instant::now(), peak: 0 })
    }

    /// What it writes, when its output was piped.
    pub fn output(&mut self) -> Result<std::process::ChildStdout> {
        self.process.stdout.take().context("the output was not piped")
    }

    fn used(&self) -> Used {
        let (cpu, peak) = (cpu_seconds(&self.id).unwrap_or(0.0), peak_rss(&self.id).unwrap_or(0));
        Used { wall: self.begin.elapsed().as_secs_f64(), cpu, peak_rss: peak.max(self.peak) }
    }

    /// Asks it to stop, as a service manager does.
    pub fn stop(&mut self) -> Result<()> {
        // It may be gone before it is looked at again.
        self.peak = self.used().peak_rss;
        let status = Command::new("kill").args(["-TERM", &self.id]).status().context("cannot run kill")?;
        ensure!(status.success(), "the process could not be stopped");
        Ok(())
    }

    /// Waits until it has ended, well; what it used.
    pub fn end(mut self) -> Result<Used> {
        while !has_ended(&self.id) {
            self.peak = self.peak.max(peak_rss(&self.id).unwrap_or(0));
            sleep(LOOK_EVERY);
        }
        let used = self.used();
        let status = self.process.wait()?;
        ensure!(status.success(), "a measured process failed: {status}");
        Ok(used)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Fails, as it should, where the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
