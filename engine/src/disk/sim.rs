//! A simulated disk: files in memory behind a page cache that a crash forgets.
//!
//! What holds: after [`SimDisk::crash`] a file has the bytes of its last successful sync, and a folder the names of its
//! last successful [`Disk::sync_dir`]. A seeded disk keeps a random part of the rest: files torn at any byte, pages of
//! zeros, some of the renames. Bytes written before a *failed* sync may be lost even when a later sync succeeds, as on
//! real kernels. Handles from before a crash fail every call: dead processes write nothing.

use super::{Dice, Disk, DiskEntry, DiskFile, DiskLock};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// A simulated disk; clones share it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    generation: u64,
}

#[derive(Debug)]
struct State {
    generation: u64,
    dice: Option<Dice>,
    names: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    /// Changes of names that no sync has made durable, in order.
    pending: Vec<Vec<(PathBuf, Option<Node>)>>,
    locks: HashSet<PathBuf>,
    calls: u64,
    fail_at: Option<u64>,
    fail_from: Option<u64>,
    lying: bool,
}

#[derive(Debug, Clone)]
enum Node {
    Dir,
    File(Arc<Mutex<Inode>>),
}

#[derive(Debug)]
struct Inode {
    data: Vec<u8>,
    synced_len: usize,
    /// Bytes that were written when a sync failed: the cache believes them clean, the platter may not have them.
    lost: Vec<Range<usize>>,
    modified: SystemTime,
}

/// What an injected failure does besides failing.
enum Fault {
    None,
    /// Nothing was done, or (on a seeded disk) everything, or a part.
    Injected,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn injected() -> io::Error {
    io::Error::other("injected failure")
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk whose crashes lose everything that was not synced.
    pub fn new() -> Self {
        Self::with_dice(None)
    }

    /// An empty disk whose crashes and failures keep a random part of what was not synced.
    pub fn seeded(seed: u64) -> Self {
        Self::with_dice(Some(Dice::new(seed)))
    }

    fn with_dice(dice: Option<Dice>) -> Self {
        let state = State {
            generation: 0,
            dice,
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            locks: HashSet::new(),
            calls: 0,
            fail_at: None,
            fail_from: None,
            lying: false,
        };
        SimDisk { state: Arc::new(Mutex::new(state)), generation: 0 }
    }

    /// Cuts the power and switches it on again: the answer is the disk as the next process finds it. This handle, its
    /// clones and their files fail from now on; locks and requested failures are gone.
    #[must_use]
    pub fn crash(&self) -> SimDisk {
        let mut state = hold(&self.state);
        state.generation += 1;
        state.fail_at = None;
        state.fail_from = None;
        state.locks.clear();
        state.forget();
        SimDisk { state: self.state.clone(), generation: state.generation }
    }

    /// The `n`th call from now on (1 is the next) fails once.
    pub fn fail_at(&self, n: u64) {
        let mut state = hold(&self.state);
        state.fail_at = Some(state.calls + n);
    }

    /// The `n`th call from now on and all later ones fail, until a crash or [`SimDisk::heal`].
    pub fn fail_from(&self, n: u64) {
        let mut state = hold(&self.state);
        state.fail_from = Some(state.calls + n);
    }

    /// Calls succeed again.
    pub fn heal(&self) {
        let mut state = hold(&self.state);
        state.fail_at = None;
        state.fail_from = None;
    }

    /// From now on syncs of files answer well and do nothing: with such a disk a crash test must fail.
    pub fn ignore_syncs(&self) {
        hold(&self.state).lying = true;
    }

    /// Calls made so far, over all crashes.
    pub fn calls(&self) -> u64 {
        hold(&self.state).calls
    }

    /// Changes bytes at rest: `change` gets the file's content, which is durable afterwards.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let state = hold(&self.state);
        let inode = state.file(path)?;
        let mut inode = hold(&inode);
        change(&mut inode.data);
        inode.synced_len = inode.data.len();
        Ok(())
    }

    fn enter(&self) -> io::Result<(MutexGuard<'_, State>, Fault)> {
        let mut state = hold(&self.state);
        if state.generation != self.generation {
            return Err(io::Error::other("this process ended in a crash"));
        }
        state.calls += 1;
        let failing = state.fail_at == Some(state.calls) || state.fail_from.is_some_and(|n| state.calls >= n);
        Ok((state, if failing { Fault::Injected } else { Fault::None }))
    }

    /// For calls that change nothing.
    fn look(&self) -> io::Result<MutexGuard<'_, State>> {
        match self.enter()? {
            (state, Fault::None) => Ok(state),
            _ => Err(injected()),
        }
    }

    /// Runs `change`, or fails; a failure on a seeded disk may come after the change was made.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let (mut state, fault) = self.enter()?;
        match fault {
            Fault::None => change(&mut state),
            Fault::Injected => {
                if state.dice.as_mut().is_some_and(Dice::coin) {
                    change(&mut state)?;
                }
                Err(injected())
            }
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn is_root(dir: &Path) -> bool {
    dir.as_os_str().is_empty() || dir.parent().is_none()
}

fn set(names: &mut BTreeMap<PathBuf, Node>, changes: Vec<(PathBuf, Option<Node>)>) {
    for (path, node) in changes {
        match node {
            Some(node) => names.insert(path, node),
            None => names.remove(&path),
        };
    }
}

impl State {
    fn file(&self, path: &Path) -> io::Result<Arc<Mutex<Inode>>> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Ok(inode.clone()),
            _ => Err(not_found()),
        }
    }

    fn dir_exists(&self, dir: &Path) -> bool {
        is_root(dir) || matches!(self.names.get(dir), Some(Node::Dir))
    }

    fn rename_all(&mut self, changes: Vec<(PathBuf, Option<Node>)>) -> io::Result<()> {
        if changes.iter().any(|(path, _)| !self.dir_exists(parent(path))) {
            return Err(not_found());
        }
        self.pending.push(changes.clone());
        set(&mut self.names, changes);
        Ok(())
    }

    fn create(&mut self, path: &Path) -> io::Result<Arc<Mutex<Inode>>> {
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Inode { data: Vec::new(), synced_len: 0, lost: Vec::new(), modified: SystemTime::now() };
        let inode = Arc::new(Mutex::new(inode));
        self.rename_all(vec![(path.to_path_buf(), Some(Node::File(inode.clone())))])?;
        Ok(inode)
    }

    fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        if !self.dir_exists(dir) {
            return Err(not_found());
        }
        let mut later_paths: HashSet<PathBuf> = HashSet::new();
        let mut rest = Vec::new();
        let mut made = Vec::new();
        for mut changes in std::mem::take(&mut self.pending).into_iter().rev() {
            changes.retain(|(path, _)| !later_paths.contains(path));
            if changes.iter().any(|(path, _)| parent(path) == dir) {
                later_paths.extend(changes.iter().map(|(path, _)| path.clone()));
                made.push(changes);
            } else if !changes.is_empty() {
                rest.push(changes);
            }
        }
        rest.reverse();
        self.pending = rest;
        for changes in made.into_iter().rev() {
            set(&mut self.durable, changes);
        }
        Ok(())
    }

    fn forget(&mut self) {
        for changes in std::mem::take(&mut self.pending) {
            if self.dice.as_mut().is_some_and(Dice::coin) {
                set(&mut self.durable, changes);
            }
        }
        let durable = self.durable.clone();
        self.durable.retain(|path, _| {
            let mut above = path.ancestors().skip(1);
            above.all(|dir| is_root(dir) || matches!(durable.get(dir), Some(Node::Dir)))
        });
        self.names = self.durable.clone();
        let mut seen = HashSet::new();
        for node in self.names.values() {
            if let Node::File(inode) = node
                && seen.insert(Arc::as_ptr(inode))
            {
                hold(inode).forget(self.dice.as_mut());
            }
        }
    }
}

impl Inode {
    fn forget(&mut self, dice: Option<&mut Dice>) {
        let tail = self.data.len() - self.synced_len;
        let mut zeros = std::mem::take(&mut self.lost);
        match dice {
            None => self.data.truncate(self.synced_len),
            Some(dice) => {
                let kept = self.synced_len + dice.below(tail as u64 + 1) as usize;
                self.data.truncate(kept);
                zeros.retain(|_| dice.coin());
                if kept > self.synced_len && dice.per_mille(250) {
                    let from = self.synced_len + dice.below((kept - self.synced_len) as u64) as usize;
                    zeros.push(from..from + 1 + dice.below((kept - from) as u64) as usize);
                }
            }
        }
        for range in zeros {
            let end = range.end.min(self.data.len());
            self.data[range.start.min(end)..end].fill(0);
        }
        self.synced_len = self.data.len();
    }

    fn cut(&mut self, len: usize) {
        self.data.truncate(len);
        self.synced_len = self.synced_len.min(self.data.len());
        self.lost.iter_mut().for_each(|range| range.end = range.end.min(len));
        self.lost.retain(|range| range.start < range.end);
    }

    fn sync_failed(&mut self) {
        if self.synced_len < self.data.len() {
            self.lost.push(self.synced_len..self.data.len());
        }
        self.synced_len = self.data.len();
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: Arc<Mutex<Inode>>,
}

impl DiskFile for SimFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut state, fault) = self.disk.enter()?;
        let mut inode = hold(&self.inode);
        inode.modified = SystemTime::now();
        match fault {
            Fault::None => {
                inode.data.extend_from_slice(bytes);
                Ok(())
            }
            Fault::Injected => {
                let part = state.dice.as_mut().map_or(0, |dice| dice.below(bytes.len() as u64 + 1) as usize);
                inode.data.extend_from_slice(&bytes[..part]);
                Err(injected())
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let (state, fault) = self.disk.enter()?;
        let mut inode = hold(&self.inode);
        match fault {
            Fault::None if state.lying => Ok(()),
            Fault::None => {
                inode.synced_len = inode.data.len();
                Ok(())
            }
            Fault::Injected => {
                inode.sync_failed();
                Err(injected())
            }
        }
    }

    fn len(&self) -> u64 {
        hold(&self.inode).data.len() as u64
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = hold(&self.disk.state);
        if state.generation == self.disk.generation {
            state.locks.remove(&self.path);
        }
    }
}

impl Disk for SimDisk {
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.change(|state| state.file(path).or_else(|_| state.create(path)))?;
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.change(|state| state.create(path))?;
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inode = self.look()?.file(path)?;
        let bytes = hold(&inode).data.clone();
        Ok(bytes)
    }

    fn read_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        let inode = self.look()?.file(path)?;
        let inode = hold(&inode);
        let piece = |range: &Range<u64>| {
            let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
            inode.data.get(start..end).map(<[u8]>::to_vec)
        };
        ranges.iter().map(|range| piece(range).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())).collect()
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let inode = self.look()?.file(path)?;
        let len = hold(&inode).data.len() as u64;
        Ok(len)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DiskEntry>> {
        let state = self.look()?;
        if !state.dir_exists(dir) {
            return Err(not_found());
        }
        let children = state.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        let entry = |(path, node): (&PathBuf, &Node)| {
            let name = path.file_name()?.to_str()?.to_string();
            Some(match node {
                Node::Dir => DiskEntry { name, len: 0, modified: SystemTime::UNIX_EPOCH, is_dir: true },
                Node::File(inode) => {
                    let inode = hold(inode);
                    DiskEntry { name, len: inode.data.len() as u64, modified: inode.modified, is_dir: false }
                }
            })
        };
        let mut out: Vec<DiskEntry> = children.filter_map(entry).collect();
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.change(|state| {
            let mut above: Vec<&Path> = dir.ancestors().filter(|dir| !is_root(dir)).collect();
            above.reverse();
            for dir in above {
                match state.names.get(dir) {
                    Some(Node::Dir) => {}
                    Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                    None => state.rename_all(vec![(dir.to_path_buf(), Some(Node::Dir))])?,
                }
                state.sync_dir(parent(dir))?;
            }
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|state| {
            let inode = state.file(from)?;
            if from == to {
                return Ok(());
            }
            state.rename_all(vec![(from.to_path_buf(), None), (to.to_path_buf(), Some(Node::File(inode)))])
        })
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(|state| {
            let inode = state.file(from)?;
            if state.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.rename_all(vec![(to.to_path_buf(), Some(Node::File(inode)))])
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(|state| {
            state.file(path)?;
            state.rename_all(vec![(path.to_path_buf(), None)])
        })
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let (mut state, fault) = self.enter()?;
        let inode = state.file(path)?;
        let mut inode = hold(&inode);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        match fault {
            Fault::None => {
                inode.cut(len);
                inode.synced_len = inode.data.len();
                Ok(())
            }
            Fault::Injected => {
                if state.dice.as_mut().is_some_and(Dice::coin) {
                    inode.cut(len);
                    inode.sync_failed();
                }
                Err(injected())
            }
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(|state| state.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<DiskLock> {
        let mut state = self.look()?;
        if state.file(path).is_err() {
            state.create(path)?;
        }
        if !state.locks.insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { disk: self.clone(), path: path.to_path_buf() }))
    }
}

#[cfg(test)]
#[path = "sim_tests.rs"]
pub(super) mod tests;
