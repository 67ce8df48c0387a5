//! The simulated disk's inside: names and files, each with what is durable and what is only cached.

use super::Dice;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

#[derive(Debug, Default)]
pub(super) struct State {
    pub generation: u64,
    pub dice: Option<Dice>,
    pub names: BTreeMap<PathBuf, Node>,
    pub durable: BTreeMap<PathBuf, Node>,
    /// Changes of names that no sync has made durable, in order.
    pub pending: Vec<Vec<(PathBuf, Option<Node>)>>,
    pub locks: HashSet<PathBuf>,
    pub calls: u64,
    pub fail_at: Option<u64>,
    pub fail_from: Option<u64>,
    pub lying: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Dir,
    File(Arc<Mutex<Inode>>),
}

#[derive(Debug)]
pub(super) struct Inode {
    pub data: Vec<u8>,
    pub synced_len: usize,
    /// Bytes that were written when a sync failed: the cache believes them clean, the platter may not have them.
    pub lost: Vec<Range<usize>>,
    pub modified: SystemTime,
}

pub(super) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

pub(super) fn is_root(dir: &Path) -> bool {
    dir.as_os_str().is_empty() || dir.parent().is_none()
}

pub(super) fn set(names: &mut BTreeMap<PathBuf, Node>, changes: Vec<(PathBuf, Option<Node>)>) {
    for (path, node) in changes {
        match node {
            Some(node) => names.insert(path, node),
            None => names.remove(&path),
        };
    }
}

impl State {
    pub fn file(&self, path: &Path) -> io::Result<Arc<Mutex<Inode>>> {
        match self.names.get(path) {
            Some(Node::File(inode)) => Ok(inode.clone()),
            _ => Err(not_found()),
        }
    }

    pub fn dir_exists(&self, dir: &Path) -> bool {
        is_root(dir) || matches!(self.names.get(dir), Some(Node::Dir))
    }

    pub fn rename_all(&mut self, changes: Vec<(PathBuf, Option<Node>)>) -> io::Result<()> {
        if changes.iter().any(|(path, _)| !self.dir_exists(parent(path))) {
            return Err(not_found());
        }
        self.pending.push(changes.clone());
        set(&mut self.names, changes);
        Ok(())
    }

    pub fn create(&mut self, path: &Path) -> io::Result<Arc<Mutex<Inode>>> {
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Inode { data: Vec::new(), synced_len: 0, lost: Vec::new(), modified: SystemTime::now() };
        let inode = Arc::new(Mutex::new(inode));
        self.rename_all(vec![(path.to_path_buf(), Some(Node::File(inode.clone())))])?;
        Ok(inode)
    }

    pub fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
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

    pub fn forget(&mut self) {
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
    pub fn forget(&mut self, dice: Option<&mut Dice>) {
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

    pub fn cut(&mut self, len: usize) {
        self.data.truncate(len);
        self.synced_len = self.synced_len.min(self.data.len());
        self.lost.iter_mut().for_each(|range| range.end = range.end.min(len));
        self.lost.retain(|range| range.start < range.end);
    }

    pub fn sync_failed(&mut self) {
        if self.synced_len < self.data.len() {
            self.lost.push(self.synced_len..self.data.len());
        }
        self.synced_len = self.data.len();
    }
}
