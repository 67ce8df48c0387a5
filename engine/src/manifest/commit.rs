//! Committing: build on the newest state, create the next version, find out what became of it.
//!
//! The state in memory moves only on knowledge: one's own delta was created, or another's was read. While the outcome of a
//! request is unknown, `unsure` stays set (also when the caller drops the future half-way), and the next call reads first.

use super::codec::{decode_delta, encode_delta};
use super::delta::{Delta, JobChange, Record, WriterChange, apply};
use super::environment::Environment;
use super::open::{self, Loaded};
use super::state::{JobEntry, State, Writer};
use super::{Options, delta_key};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::{Created, Objects};
use crate::record::Tenant;
use bytes::Bytes;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// The longest wait before another attempt, ms.
const BACKOFF_MS_MAX: u64 = 5_000;
/// Conflicts in a row after which a committer begins to wait.
const CONFLICTS_EAGER: u32 = 2;

/// The manifest of one store. One for a process: its commits queue up in here, those of other processes meet them in the object store.
#[derive(Debug)]
pub struct Manifest {
    pub(super) objects: Arc<dyn Objects>,
    pub(super) environment: Arc<dyn Environment>,
    pub(super) options: Options,
    state: RwLock<Arc<State>>,
    pub(super) tail: Mutex<Tail>,
    pub(super) checkpointing: Mutex<()>,
}

/// What is known about the end of history.
#[derive(Debug)]
pub(super) struct Tail {
    /// A checkpoint not newer than the state; 0 for none.
    pub(super) base: u64,
    /// The state was the newest at this time, ns.
    confirmed_ns: i64,
    /// A request's outcome is unknown: read before building.
    unsure: bool,
}

enum Outcome {
    /// The version is ours.
    Ours,
    /// The version holds this delta of another.
    Theirs(Bytes),
}

impl Manifest {
    /// Opens the manifest; a store without one has the empty state of version 0.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] names the damaged object; io errors.
    pub async fn open(objects: Arc<dyn Objects>, environment: Arc<dyn Environment>) -> Result<Manifest> {
        Self::open_with(objects, environment, Options::default()).await
    }

    /// As [`Manifest::open`], with options.
    ///
    /// # Errors
    /// As [`Manifest::open`].
    pub async fn open_with(objects: Arc<dyn Objects>, environment: Arc<dyn Environment>, options: Options) -> Result<Manifest> {
        let confirmed_ns = environment.now_ns();
        let Loaded { state, base } = open::load(objects.as_ref()).await?;
        let tail = Mutex::new(Tail { base, confirmed_ns, unsure: false });
        Ok(Manifest { objects, environment, options, state: RwLock::new(state), tail, checkpointing: Mutex::new(()) })
    }

    /// The newest state this process knows of.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what others have committed.
    ///
    /// # Errors
    /// Io errors, damage; the state has moved as far as could be read.
    pub async fn refresh(&self) -> Result<Arc<State>> {
        let mut tail = self.tail.lock().await;
        self.catch_up(&mut tail).await
    }

    /// Commits what `build` makes of the newest state, and returns the state that came of it. `build` is called again, on a newer state,
    /// whenever another commit came first: it must look at the state it is given each time. An empty delta commits nothing.
    ///
    /// # Errors
    /// `build`'s own. [`ErrorKind::Fenced`]: an epoch is over. [`ErrorKind::Busy`]: parts to be removed are gone (plan anew), or the
    /// outcome is unknown: then the commit may or may not have happened, the next call finds out first, and `build` must
    /// recognise its own work (a segment's id, a WAL position) in the state.
    pub async fn commit<F>(&self, mut build: F) -> Result<Arc<State>>
    where
        F: FnMut(&State) -> Result<Delta> + Send,
    {
        let mut tail = self.tail.lock().await;
        let mut fresh = tail.unsure || !self.is_trusted(&tail);
        if fresh {
            self.catch_up(&mut tail).await?;
        }
        for conflicts in 0..self.options.conflicts_max {
            let before = self.state();
            let Some((record, after)) = self.prepare(&before, &mut build, &mut fresh, &mut tail).await? else {
                if self.state().version == before.version {
                    return Ok(before);
                }
                continue;
            };
            let began_ns = self.environment.now_ns();
            tail.unsure = true;
            match self.publish(&record).await? {
                Outcome::Ours => {
                    self.confirm_ours(&mut tail, record.version).await?;
                    let state = self.set(Arc::new(after));
                    (tail.confirmed_ns, tail.unsure) = (began_ns, false);
                    let base = tail.base;
                    drop(tail);
                    self.checkpoint_if_due(&state, base, began_ns).await;
                    return Ok(state);
                }
                Outcome::Theirs(bytes) => {
                    let next = open::replay_one(&before, &delta_key(record.version), &bytes).map(Arc::new);
                    self.catch_up_from(&mut tail, next).await?;
                    fresh = true;
                    if conflicts >= CONFLICTS_EAGER {
                        self.pause(conflicts - CONFLICTS_EAGER).await;
                    }
                }
            }
        }
        Err(Error::busy(format!("manifest: {} other commits came first; try again", self.options.conflicts_max)))
    }

    /// Registers the writer `id`: whoever had the name is fenced. Returns its epoch and the WAL position it goes on from.
    ///
    /// # Errors
    /// As [`Manifest::commit`].
    pub async fn register_writer(&self, id: u128) -> Result<Writer> {
        let state = self.commit(|_| Ok(Delta { writers: vec![WriterChange::Register { id }], ..Delta::default() })).await?;
        state.writer(id).ok_or_else(|| Error::internal("manifest: a registered writer is missing"))
    }

    /// Begins the job `key` of `tenant`, or takes it over: whoever had it is fenced. An empty state is a new job's.
    ///
    /// # Errors
    /// As [`Manifest::commit`].
    pub async fn begin_job(&self, tenant: &Tenant, key: &str) -> Result<JobEntry> {
        let begin = || JobChange::Begin { tenant: tenant.clone(), key: key.to_string() };
        let state = self.commit(|_| Ok(Delta { jobs: vec![begin()], ..Delta::default() })).await?;
        state.job(tenant, key).cloned().ok_or_else(|| Error::internal("manifest: a begun job is missing"))
    }

    /// The next delta and its state; `None` when there is nothing to do, or when the state moved under it.
    /// A refusal is believed only on a state that is known to be the newest.
    async fn prepare<F>(&self, before: &State, build: &mut F, fresh: &mut bool, tail: &mut Tail) -> Result<Option<(Record, State)>>
    where
        F: FnMut(&State) -> Result<Delta> + Send,
    {
        let prepared = build(before).and_then(|delta| {
            if delta.is_empty() {
                return Ok(None);
            }
            let id = u128::from(self.environment.random()) << 64 | u128::from(self.environment.random());
            let record = Record::new(before, delta, id, self.environment.now_ns())?;
            let after = apply(before, &record)?;
            Ok(Some((record, after)))
        });
        if *fresh || matches!(prepared, Ok(Some(_))) {
            return prepared;
        }
        *fresh = true;
        let now = self.catch_up(tail).await?;
        if now.version == before.version { prepared } else { Ok(None) }
    }

    /// Creates the version, and finds out whose it became. Repeats the very same request: it may still arrive late, so it is never given up for another.
    async fn publish(&self, record: &Record) -> Result<Outcome> {
        let key = delta_key(record.version);
        let bytes = Bytes::from(encode_delta(record)?);
        let mut last = Error::busy("no attempt was made");
        for attempt in 0..self.options.attempts_max {
            if attempt > 0 {
                self.pause(attempt - 1).await;
            }
            match self.objects.create(&key, bytes.clone()).await {
                Ok(Created::Done) => return Ok(Outcome::Ours),
                Ok(Created::Exists) => {}
                // It is not there, and no other try can change that.
                Err(e) if e.kind() == ErrorKind::Denied => return Err(e),
                Err(e) => last = e,
            }
            match self.objects.get(&key).await {
                Ok(found) => {
                    let theirs = decode_delta(&key, &found, record.version)?;
                    return Ok(if theirs.commit_id == record.commit_id { Outcome::Ours } else { Outcome::Theirs(found) });
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => last = e,
            }
        }
        Err(Error::busy(format!("{key}: the outcome of a commit is unknown after {} attempts: {last}", self.options.attempts_max)))
    }

    /// Makes sure that the version just created did not fill the place of one that had been removed.
    async fn confirm_ours(&self, tail: &mut Tail, version: u64) -> Result<()> {
        if self.is_trusted(tail) || open::still_there(self.objects.as_ref(), tail.base).await? {
            return Ok(());
        }
        self.reopen(tail).await?;
        Err(Error::busy(format!("{}: this process fell behind; the outcome of its commit is unknown", delta_key(version))))
    }

    /// Reads all newer deltas; opens anew when history was removed in between.
    async fn catch_up(&self, tail: &mut Tail) -> Result<Arc<State>> {
        self.catch_up_from(tail, Ok(self.state())).await
    }

    /// Goes on from `start`, the state in memory or one that a delta just read made of it.
    async fn catch_up_from(&self, tail: &mut Tail, start: Result<Arc<State>>) -> Result<Arc<State>> {
        let began_ns = self.environment.now_ns();
        let (mut state, mut outcome) = match start {
            Ok(start) => (start, Ok(())),
            Err(e) => (self.state(), Err(e)),
        };
        if outcome.is_ok() {
            outcome = open::replay(self.objects.as_ref(), &mut state).await;
        }
        // Neither a state nor an error is believed while what was read may be from a history that has been removed.
        if !self.is_trusted(tail) && !open::still_there(self.objects.as_ref(), tail.base).await? {
            return self.reopen(tail).await;
        }
        // What was read is kept, even when reading stopped half-way: else a slow reader on a bad line would never arrive.
        self.set(Arc::clone(&state));
        outcome?;
        (tail.confirmed_ns, tail.unsure) = (began_ns, false);
        Ok(state)
    }

    async fn reopen(&self, tail: &mut Tail) -> Result<Arc<State>> {
        let confirmed_ns = self.environment.now_ns();
        let Loaded { state, base } = open::load(self.objects.as_ref()).await?;
        *tail = Tail { base, confirmed_ns, unsure: false };
        Ok(self.set(state))
    }

    /// Whether nothing after the state can have been removed since the state was the newest.
    fn is_trusted(&self, tail: &Tail) -> bool {
        self.is_recent(tail.confirmed_ns)
    }

    /// Whether less than a quarter of the grace period has passed since `then_ns`. A clock that went back says no.
    pub(super) fn is_recent(&self, then_ns: i64) -> bool {
        let quarter_ns = (self.options.grace / 4).as_nanos();
        self.environment.now_ns().checked_sub(then_ns).and_then(|ns| u128::try_from(ns).ok()).is_some_and(|ns| ns < quarter_ns)
    }

    fn set(&self, state: Arc<State>) -> Arc<State> {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&state);
        state
    }

    /// Waits before attempt `tried` + 1: from half to all of the backoff, doubled each time.
    async fn pause(&self, tried: u32) {
        let backoff_ns = u64::try_from(self.options.backoff.as_nanos()).unwrap_or(u64::MAX);
        let longest_ns = backoff_ns.saturating_mul(1 << tried.min(16)).min(BACKOFF_MS_MAX * 1_000_000);
        let jitter_ns = self.environment.random() % (longest_ns / 2 + 1);
        self.environment.sleep(Duration::from_nanos(longest_ns / 2 + jitter_ns)).await;
    }
}
