//! The WAL's thread: it gathers what is queued, writes it, syncs once, and answers all.
//!
//! What holds: a file in which a write or sync failed gets no further frame. The next commit begins a new file, whose
//! header says how much of the old one counts.

use super::folder::{WalFolder, file_path, random};
use super::frames::Prepared;
use super::layout::FileHeader;
use super::recover::State;
use super::{Answer, ClosedFile, OnDurable, Shared, Wal, WalOptions, hold};
use crate::disk::{Disk, DiskFile, DiskLock, disk_error};
use crate::error::{Error, Result};
use crate::record::{Batch, Tenant};
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, mpsc};
use tokio::sync::oneshot;

/// An append that waits.
pub(super) struct Request {
    pub tenant: Tenant,
    pub batch: Arc<Batch>,
    pub prepared: Prepared,
    pub answer: oneshot::Sender<Answer>,
}

struct Writer {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: WalOptions,
    identity: u128,
    shared: Arc<Shared>,
    on_durable: Option<OnDurable>,
    file: Option<OpenFile>,
    next_number: u64,
    next_sequence: u64,
    previous_number: u64,
    previous_bytes: u64,
    buffer: Vec<u8>,
    _lock: DiskLock,
}

struct OpenFile {
    file: Box<dyn DiskFile>,
    number: u64,
    tag: u64,
    /// Bytes that are durable, and whose batches were acknowledged.
    good_bytes: u64,
    last_sequence: Option<u64>,
}

/// Begins a file and starts the thread.
pub(super) fn start(folder: WalFolder, state: State, on_durable: Option<OnDurable>) -> Result<Wal> {
    let shared = Arc::new(Shared::default());
    *hold(&shared.closed) = state.closed;
    shared.next_sequence.store(state.next_sequence, SeqCst);
    let mut writer = Writer {
        disk: folder.disk.clone(),
        dir: folder.dir.clone(),
        options: folder.options.clone(),
        identity: folder.identity,
        shared: shared.clone(),
        on_durable,
        file: None,
        next_number: state.next_number,
        next_sequence: state.next_sequence,
        previous_number: state.previous_number,
        previous_bytes: state.previous_bytes,
        buffer: Vec::new(),
        _lock: folder.lock,
    };
    writer.begin_file()?;
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("haystore-wal".to_string());
    let thread = thread.spawn(move || writer.run(&receiver)).map_err(|e| Error::io("start the WAL's thread", e))?;
    Ok(Wal {
        disk: folder.disk,
        dir: folder.dir,
        identity: folder.identity,
        options: folder.options,
        shared,
        trimming: Mutex::new(()),
        queue: Some(sender),
        thread: Some(thread),
    })
}

impl Writer {
    fn run(mut self, queue: &mpsc::Receiver<Request>) {
        while let Ok(first) = queue.recv() {
            let mut bytes = first.prepared.bytes.len();
            let mut group = vec![first];
            while bytes < self.options.commit_bytes_max {
                let Ok(request) = queue.try_recv() else { break };
                bytes += request.prepared.bytes.len();
                group.push(request);
            }
            self.commit(group, bytes);
        }
    }

    /// Makes the group durable and answers it.
    fn commit(&mut self, mut group: Vec<Request>, bytes: usize) {
        let first_sequence = self.next_sequence;
        let result = self.write(&mut group);
        self.shared.next_sequence.store(self.next_sequence, SeqCst);
        self.shared.queued_bytes.fetch_sub(bytes, SeqCst);
        self.count(&group, bytes, result.is_ok());
        if let Err(e) = &result {
            tracing::warn!("{} appends failed: {e}", group.len());
        }
        for (sequence, request) in (first_sequence..).zip(group) {
            let answer = result.clone().map(|()| {
                if let Some(on_durable) = &self.on_durable {
                    on_durable(sequence, &request.tenant, &request.batch);
                }
                (sequence, request.batch)
            });
            // Nobody has to wait for it.
            let _ = request.answer.send(answer);
        }
    }

    fn count(&self, group: &[Request], bytes: usize, done: bool) {
        let mut counts = hold(&self.shared.counts);
        if done {
            counts.batches += group.len() as u64;
            counts.records += group.iter().map(|request| request.batch.len() as u64).sum::<u64>();
            counts.frames += group.iter().map(|request| request.prepared.frames() as u64).sum::<u64>();
            counts.stored_bytes += bytes as u64;
            counts.commits += 1;
        } else {
            counts.failures += group.len() as u64;
        }
    }

    fn write(&mut self, group: &mut [Request]) -> Result<()> {
        if self.file.as_ref().is_some_and(|file| file.good_bytes >= self.options.file_bytes_max) {
            self.close_file();
        }
        if self.file.is_none() {
            self.begin_file()?;
        }
        let Some(file) = &mut self.file else { return Err(Error::internal("WAL without a file")) };
        self.buffer.clear();
        for request in group.iter_mut() {
            request.prepared.stamp(file.tag, self.next_sequence);
            self.next_sequence += 1;
        }
        let bytes = match group {
            [only] => &only.prepared.bytes,
            _ => {
                group.iter().for_each(|request| self.buffer.extend_from_slice(&request.prepared.bytes));
                &self.buffer
            }
        };
        let done = file.file.append(bytes).and_then(|()| file.file.sync());
        match done {
            Ok(()) => {
                file.good_bytes += bytes.len() as u64;
                file.last_sequence = Some(self.next_sequence - 1);
                self.shared.newest_bytes.store(file.good_bytes, SeqCst);
                Ok(())
            }
            Err(e) => Err(self.abandon_file(&e)),
        }
    }

    /// Begins the next file: its header and name are durable when this returns.
    fn begin_file(&mut self) -> Result<()> {
        let number = self.next_number;
        let path = file_path(&self.dir, number);
        // Also a number whose file could not be finished is used up.
        self.next_number += 1;
        let header = FileHeader {
            writer: self.identity,
            number,
            first_sequence: self.next_sequence,
            previous_number: self.previous_number,
            previous_bytes: self.previous_bytes,
            tag: random()?,
        };
        let begin = || {
            let mut file = self.disk.create_new(&path)?;
            file.append(&header.to_bytes())?;
            file.sync()?;
            self.disk.sync_dir(&self.dir)?;
            Ok(file)
        };
        let file = begin().map_err(|e: std::io::Error| disk_error("begin WAL file", &path, &e))?;
        let good_bytes = file.len();
        self.shared.newest_number.store(number, SeqCst);
        self.shared.newest_bytes.store(good_bytes, SeqCst);
        hold(&self.shared.counts).files += 1;
        self.file = Some(OpenFile { file, number, tag: header.tag, good_bytes, last_sequence: None });
        Ok(())
    }

    fn close_file(&mut self) {
        if let Some(file) = self.file.take() {
            (self.previous_number, self.previous_bytes) = (file.number, file.good_bytes);
            let closed = ClosedFile { number: file.number, last_sequence: file.last_sequence, bytes: file.good_bytes, damaged: false };
            hold(&self.shared.closed).push(closed);
            self.shared.newest_bytes.store(0, SeqCst);
        }
    }

    /// Gives a file up in which a write or sync failed.
    fn abandon_file(&mut self, cause: &std::io::Error) -> Error {
        self.close_file();
        let path = file_path(&self.dir, self.previous_number);
        // Best effort: should it fail, the next file's header still says that the bytes don't count.
        if let Err(e) = self.disk.truncate(&path, self.previous_bytes) {
            tracing::warn!("{}", disk_error("cut", &path, &e));
        }
        disk_error("write", &path, cause)
    }
}
