//! Standard output, standard error, interruption: what the outside world does to a command.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Whoever read our output went away (`| head`). Not a failure: the command ends quietly.
#[derive(Debug)]
pub struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of the output went away")
    }
}

impl std::error::Error for OutputClosed {}

/// Standard output, written in large pieces.
pub struct Stdout {
    buffer: Vec<u8>,
    out: Box<dyn Write + Send>,
}

/// Bytes gathered before a write.
const WRITE_BYTES: usize = 256 << 10;

impl Stdout {
    /// The process's standard output.
    pub fn new() -> Self {
        Self::to(Box::new(io::stdout()))
    }

    /// Another sink, written in the same way.
    pub fn to(out: Box<dyn Write + Send>) -> Self {
        Stdout { buffer: Vec::with_capacity(WRITE_BYTES + 4096), out }
    }

    /// The buffer, to be appended to; call [`Stdout::settle`] now and then.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes when enough has gathered.
    ///
    /// # Errors
    /// [`OutputClosed`], or the failure of the sink.
    pub fn settle(&mut self) -> anyhow::Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what has gathered.
    ///
    /// # Errors
    /// As [`Stdout::settle`].
    pub fn flush(&mut self) -> anyhow::Result<()> {
        let written = self.out.write_all(&self.buffer).and_then(|()| self.out.flush());
        self.buffer.clear();
        written.map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => OutputClosed.into(),
            _ => anyhow::Error::new(e).context("cannot write the output"),
        })
    }
}

impl Default for Stdout {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdout").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// Prints `text` to standard output.
///
/// # Errors
/// As [`Stdout::flush`].
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = Stdout::new();
    out.buffer().extend_from_slice(text.as_bytes());
    out.flush()
}

/// Whether tables on standard output may be coloured.
pub fn stdout_colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Writes `message` to standard error, behind a coloured `word:` when a terminal reads it.
pub fn say(word: &str, message: impl fmt::Display) {
    let mut err = io::stderr().lock();
    let colours = err.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // Nothing can be done when standard error is gone.
    let _ = match (word, colours) {
        ("", _) => writeln!(err, "{message}"),
        ("error", true) => writeln!(err, "\x1b[1;31m{word}:\x1b[0m {message}"),
        (_, true) => writeln!(err, "\x1b[1;33m{word}:\x1b[0m {message}"),
        (_, false) => writeln!(err, "{word}: {message}"),
    };
}

/// A bar of `bytes` on standard error: bytes, rate, time left. Invisible when no terminal reads it.
pub fn progress(bytes: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let template = if bytes > 0 {
        "{msg} [{bar:30}] {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left"
    } else {
        "{msg} {spinner} {decimal_bytes}  {decimal_bytes_per_sec}  {elapsed}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what.to_string());
    bar
}

/// Whether the user asked the command to stop. The second time ends the process at once.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    shared: Arc<(AtomicBool, Notify)>,
}

/// The exit code of an interrupted command.
pub const INTERRUPTED: u8 = 130;

impl Interrupt {
    /// Listens for SIGINT from now on; needs a running runtime.
    pub fn listen() -> Self {
        let interrupt = Interrupt::default();
        let shared = interrupt.shared.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if shared.0.swap(true, Ordering::SeqCst) {
                    std::process::exit(i32::from(INTERRUPTED));
                }
                shared.1.notify_waiters();
            }
        });
        interrupt
    }

    /// Whether it happened.
    pub fn raised(&self) -> bool {
        self.shared.0.load(Ordering::SeqCst)
    }

    /// Ends when it happens.
    pub async fn wait(&self) {
        let notified = self.shared.1.notified();
        let mut notified = std::pin::pin!(notified);
        notified.as_mut().enable();
        if !self.raised() {
            notified.await;
        }
    }

    /// `work`, unless interrupted before it ends.
    pub async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.wait() => None,
        }
    }
}
