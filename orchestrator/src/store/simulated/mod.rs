//! The store over a simulated disk: deterministic, single-threaded, and able to
//! be cut off at every step of a commit.
//!
//! What a commit means is the real thing: the checks, the journal's text and
//! chain, the projection and the reads. Only threads, files and sled are
//! replaced: whoever drives the simulation takes the steps (write, sync, index,
//! answer) one at a time, and may crash the disk between any two of them.

mod disk;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};

use super::Store;
use super::error::{CommitError, Error};
use super::journal::{Head, Prepared};
use super::keys;
use super::local::check;
use super::local::read;
use super::model::{Commit, Committed, DueTimer, PendingMessage, Recorded, Stored, StoredTask};
use super::projection::{DELIVERED, Delivered, Projection};
use super::rows::Row;
use disk::Written;
use view::View;

pub use disk::{Crash, Disk};

/// How many delivered messages one record names.
const DELIVERED_MAX: usize = 1_000;

type Reply = oneshot::Sender<Result<Committed, CommitError>>;

/// A record that was given its place in its task, and who waits for it.
struct Staged {
    prepared: Prepared,
    reply: Option<Reply>,
}

/// A record on its way, and who waits for it.
struct OnItsWay {
    written: Written,
    reply: Option<Reply>,
}

#[derive(Default)]
struct State {
    staged: Vec<Staged>,
    /// Written, not synced.
    written: Vec<OnItsWay>,
    /// Synced, not indexed.
    durable: Vec<OnItsWay>,
    /// Indexed, not answered.
    indexed: Vec<OnItsWay>,
    /// Versions that the index does not have yet.
    versions: HashMap<TaskId, u64>,
    delivered: Vec<MessageId>,
    delivered_at: Option<Timestamp>,
}

/// One process's view of a [`Disk`]. Drop it before the disk crashes.
pub struct SimulatedStore {
    disk: Arc<Disk>,
    state: Mutex<State>,
    /// Deliveries that are noted and not indexed yet.
    noted: Mutex<HashSet<MessageId>>,
    head: watch::Sender<Head>,
    work: Notify,
}

impl SimulatedStore {
    /// Opens what is on the disk: repairs an unfinished end, checks the chain, and brings the index up to it.
    ///
    /// # Errors
    ///
    /// As [`super::LocalStore::open`].
    pub fn open(disk: Arc<Disk>) -> Result<Self, Error> {
        let head = disk.recover()?;
        Ok(Self {
            disk,
            state: Mutex::default(),
            noted: Mutex::default(),
            head: watch::Sender::new(head),
            work: Notify::new(),
        })
    }

    /// Waits until something is staged.
    pub async fn work(&self) {
        while self.is_idle() {
            self.work.notified().await;
        }
    }

    fn is_idle(&self) -> bool {
        let state = self.state();
        state.staged.is_empty() && state.delivered.is_empty()
    }

    /// Appends everything that is staged, as one batch. Nothing of it is durable yet.
    pub fn write(&self) {
        let mut state = self.state();
        let mut staged = std::mem::take(&mut state.staged);
        if let Some(at) = state.delivered_at {
            let notes = std::mem::take(&mut state.delivered);
            let prepared = notes.chunks(DELIVERED_MAX).map(|messages| check::delivered(messages, at));
            staged.extend(prepared.map(|prepared| Staged { prepared, reply: None }));
        }
        let (batch, replies): (Vec<_>, Vec<_>) = staged.into_iter().map(|s| (s.prepared, s.reply)).unzip();
        let written = self.disk.append(batch);
        state.written.extend(written.into_iter().zip(replies).map(|(written, reply)| OnItsWay { written, reply }));
    }

    /// Makes everything that was written survive a power cut.
    pub fn sync(&self) {
        let mut state = self.state();
        let written = std::mem::take(&mut state.written);
        self.disk.sync(written.iter().map(|on_its_way| &on_its_way.written));
        state.durable.extend(written);
    }

    /// Brings the index up to what is durable.
    ///
    /// # Errors
    ///
    /// Where the records do not follow what the index holds.
    pub fn index(&self) -> Result<(), Error> {
        let mut state = self.state();
        let durable = std::mem::take(&mut state.durable);
        let Some(last) = durable.last() else { return Ok(()) };
        let record = &last.written.recorded;
        let head = Head { count: record.record.sequence, hash: Some(record.hash) };
        self.disk.with_index(|index| {
            let mut projection = Projection::new(index);
            for OnItsWay { written, .. } in &durable {
                projection.add(&written.recorded, written.position).map_err(Error::Index)?;
            }
            projection.finish().map_err(Error::Index)
        })?;
        let marks = durable.iter().filter(|d| d.written.recorded.record.kind == DELIVERED);
        for mark in marks {
            let event = mark.written.recorded.record.event.clone();
            let Ok(delivered) = serde_json::from_value::<Delivered>(event) else { continue };
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            for id in &delivered.messages {
                noted.remove(id);
            }
        }
        if state.staged.is_empty() && state.written.is_empty() {
            state.versions.clear();
        }
        state.indexed.extend(durable);
        self.head.send_replace(head);
        Ok(())
    }

    /// Tells everybody whose record can be read that it is stored.
    pub fn answer(&self) {
        let indexed = std::mem::take(&mut self.state().indexed);
        for OnItsWay { written, reply } in indexed {
            let Some(reply) = reply else { continue };
            let record = &written.recorded.record;
            self.disk.acknowledge(record.sequence);
            // Whoever asked may have given up waiting.
            let _gone = reply.send(Ok(Committed { sequence: record.sequence, version: record.version }));
        }
    }

    fn stage(&self, task: &TaskId, expected: u64, prepared: Prepared, reply: Reply) -> Result<(), CommitError> {
        let mut state = self.state();
        let actual = match state.versions.get(task) {
            Some(staged) => *staged,
            None => self.view().with(|source| {
                let value = source.get(&keys::task(task))?;
                value.map_or(Ok(0), |value| read::pointer(&value).map(|pointer| pointer.number))
            })?,
        };
        check::check_version(actual, expected)?;
        state.versions.insert(task.clone(), expected + 1);
        state.staged.push(Staged { prepared, reply: Some(reply) });
        self.work.notify_one();
        Ok(())
    }

    fn view(&self) -> View<'_> {
        View { disk: &self.disk, noted: &self.noted }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for SimulatedStore {
    async fn load(&self, task: &TaskId) -> Result<Option<Stored>, Error> {
        read::load(&self.view(), task)
    }

    async fn tasks(&self, after: Option<&TaskId>, limit: usize) -> Result<Vec<StoredTask>, Error> {
        read::tasks(&self.view(), after, limit)
    }

    async fn row(&self, task: &TaskId, table: &str, key: &str) -> Result<Option<Value>, Error> {
        read::row(&self.view(), task, table, key)
    }

    async fn rows(
        &self,
        table: &str,
        task: Option<&TaskId>,
        after: Option<(&TaskId, &str)>,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        read::rows(&self.view(), table, task, after, limit)
    }

    async fn commit(&self, task: &TaskId, expected_version: u64, commit: Commit) -> Result<Committed, CommitError> {
        let prepared = check::prepare(task, expected_version, commit)?;
        let (reply, answer) = oneshot::channel();
        self.stage(task, expected_version, prepared, reply)?;
        answer.await.unwrap_or(Err(CommitError::Store(Error::Closed)))
    }

    async fn pending_messages(&self, limit: usize) -> Result<Vec<PendingMessage>, Error> {
        read::pending_messages(&self.view(), limit)
    }

    async fn mark_delivered(&self, ids: Vec<MessageId>, at: Timestamp) -> Result<(), Error> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(ids.iter().cloned());
        let mut state = self.state();
        state.delivered.extend(ids);
        state.delivered_at = Some(at);
        self.work.notify_one();
        Ok(())
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Error> {
        read::due_timers(&self.view(), now, limit)
    }

    async fn next_timer_at(&self) -> Result<Option<Timestamp>, Error> {
        read::next_timer_at(&self.view())
    }

    async fn seen(&self, id: &MessageId) -> Result<bool, Error> {
        read::seen(&self.view(), id)
    }

    async fn events(&self, task: &TaskId, after_version: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
        read::events(&self.view(), task, after_version, limit)
    }

    async fn records_after(&self, sequence: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
        self.disk.records_after(sequence, self.head().count, limit)
    }

    fn head(&self) -> Head {
        *self.head.borrow()
    }

    fn changes(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    async fn close(&self) -> Result<(), Error> {
        Ok(())
    }
}
