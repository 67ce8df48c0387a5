//! What the tests share: the program, a server of it, a client, random numbers.

mod http;
mod rng;

pub use http::{Client, quoted};
pub use rng::Rng;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest a server may take to serve, even on a slow machine that does other things too.
pub const START_MAX: Duration = Duration::from_secs(10);

/// The program with `words`, without the environment's wishes.
pub fn program<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haystore"));
    for name in ["HAYSTORE_STORE", "HAYSTORE_TENANT", "HAYSTORE_WAL", "HAYSTORE_LISTEN", "HAYSTORE_LOG", "HAYSTORE_THREADS"] {
        command.env_remove(name);
    }
    command.args(words).stdin(Stdio::null());
    command
}

/// The exit code of `output`.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// What `output` says on standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder that goes with the test, and the program run in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The folder of the store that the program takes here by default.
    pub fn store(&self) -> PathBuf {
        self.path().join("haystore-data")
    }

    /// Writes a file; returns its name.
    pub fn write<'n>(&self, name: &'n str, bytes: &[u8]) -> &'n str {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        name
    }

    pub fn run(&self, words: &[&str]) -> Output {
        program(words).current_dir(self.path()).output().unwrap()
    }

    /// Runs what must succeed; returns its standard output.
    #[track_caller]
    pub fn ok(&self, words: &[&str]) -> Vec<u8> {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}: {}", output.status, said(&output));
        output.stdout
    }

    /// Runs with `input` on standard input.
    pub fn feed(&self, words: &[&str], input: &[u8]) -> Output {
        let mut command = program(words);
        command.current_dir(self.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input).unwrap());
            child.wait_with_output().unwrap()
        })
    }

    /// A server of this folder's store.
    pub fn serve(&self, options: &[&str]) -> Server {
        Server::start(self.path(), options)
    }
}

/// A server that runs; killed when dropped.
pub struct Server {
    child: Child,
    address: String,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
    /// From the process's begin until it served.
    pub start_took: Duration,
}

impl Server {
    /// Starts a server in `folder` on a port that the system chooses, and waits until it serves.
    #[track_caller]
    pub fn start(folder: &Path, options: &[&str]) -> Self {
        Self::begin(folder, options, |_| {}).unwrap_or_else(|log| panic!("the server does not serve:\n{log}"))
    }

    /// As [`Server::start`]; `meanwhile` gets the process as soon as there is one. Err: it ended before it served.
    pub fn begin(folder: &Path, options: &[&str], meanwhile: impl FnOnce(&mut Child)) -> Result<Self, String> {
        let begin = Instant::now();
        let mut command = program(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(options).current_dir(folder).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (sender, receiver) = std::sync::mpsc::channel();
        let kept = log.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once(" on http://") {
                    let _ = sender.send(address.to_string());
                }
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        meanwhile(&mut child);
        let mut server = Server { child, address: String::new(), log, reader: Some(reader), start_took: Duration::ZERO };
        match receiver.recv_timeout(Duration::from_secs(60)) {
            Ok(address) => {
                server.address = address;
                server.start_took = begin.elapsed();
                Ok(server)
            }
            Err(_) => Err(server.kill()),
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn client(&self) -> Client {
        Client::new(&self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL. Returns what it said.
    pub fn kill(mut self) -> String {
        self.end()
    }

    /// SIGTERM; it must end well. Returns what it said.
    #[track_caller]
    pub fn stop(mut self) -> String {
        signal("TERM", self.child.id());
        let status = self.child.wait().unwrap();
        let log = self.end();
        assert!(status.success(), "{status}:\n{log}");
        log
    }

    fn end(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a signal by its name.
pub fn signal(name: &str, pid: u32) {
    let _ = Command::new("kill").args([format!("-{name}"), pid.to_string()]).stderr(Stdio::null()).status();
}

/// `bytes` with a newline at their end, unless there are none: what a raw scan of a file gives.
pub fn ended(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.last().is_some_and(|&b| b != b'\n') {
        bytes.push(b'\n');
    }
    bytes
}

/// The lines of `bytes`, sorted.
pub fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Compares, and says where the first difference is instead of printing everything.
#[track_caller]
pub fn assert_same(found: &[u8], wanted: &[u8], what: &str) {
    if found == wanted {
        return;
    }
    let at = found.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    let part =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[at.saturating_sub(80).min(bytes.len())..(at + 80).min(bytes.len())]).into_owned();
    panic!("{what}: {} bytes, wanted {}; differs at {at}:\n{:?}\n{:?}", found.len(), wanted.len(), part(found), part(wanted));
}
