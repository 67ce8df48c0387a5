//! A simulated disk: files in memory behind a page cache that a crash forgets.
//!
//! What holds: after [`SimDisk::crash`] a file has the bytes of its last successful sync, and a folder the names of its
//! last successful [`Disk::sync_dir`]. A seeded disk keeps a random part of the rest: files torn at any byte, pages of
//! zeros, some of the renames. Bytes written before a *failed* sync may be lost even when a later sync succeeds, as on
//! real kernels. Handles from before a crash fail every call: dead processes write nothing.

use super::sim_state::{Inode, Node, State, hold, is_root, not_found, parent};
use super::{Dice, Disk, DiskEntry, DiskFile, DiskLock};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// A simulated disk; clones share it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    generation: u64,
}

/// What an injected failure does besides failing.
enum Fault {
    None,
    /// Nothing was done, or (on a seeded disk) everything, or a part.
    Injected,
}

fn injected() -> io::Error {
    io::Error::other("injected failure")
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
        let state = State { dice, ..State::default() };
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
