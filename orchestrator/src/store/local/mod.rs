//! The store on the local disk: the journal as the truth, the index on top of it.
//!
//! Two threads do the writing. The appender checks versions, appends batches to
//! the journal and waits for the disk; the indexer applies what is durable to the
//! index and only then answers. Readers use the index and the journal directly.

mod appender;
pub(in crate::store) mod check;
mod indexer;
mod open;
mod prune;
pub(in crate::store) mod read;
mod replay;
mod shared;

pub(super) use open::rebuild_index;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::Store;
use super::error::{CommitError, Error};
use super::journal::{Head, TornTail};
use super::model::{Commit, Committed, DueTimer, PendingMessage, Recorded, Stored, StoredTask};
use super::rows::Row;
use appender::Command;
use shared::Shared;

/// How many commits wait for the appender before callers are held back.
const QUEUE_LENGTH: usize = 1024;

/// How to open a [`LocalStore`].
#[derive(Debug, Clone)]
pub struct Options {
    /// A segment that has grown to this size is followed by a new one.
    pub segment_bytes_max: u64,
    /// How much of the index is kept in memory.
    pub cache_bytes: u64,
    /// How long to wait for another process that is just ending.
    pub lock_patience: Duration,
    /// The time at which the store is opened, for people who look at the lock file.
    pub now: Timestamp,
}

impl Options {
    /// The usual values.
    pub fn new(now: Timestamp) -> Self {
        Self { segment_bytes_max: 64 << 20, cache_bytes: 32 << 20, lock_patience: Duration::from_secs(1), now }
    }
}

/// The store on the local disk.
///
/// Dropping it finishes what is under way and frees the folder, and waits for
/// both; [`Store::close`] does the same and tells whether it worked.
#[derive(Debug)]
pub struct LocalStore {
    folder: PathBuf,
    shared: Arc<Shared>,
    commands: Mutex<Option<mpsc::Sender<Command>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held while segments are dropped.
    pruning: tokio::sync::Mutex<()>,
    torn: Option<TornTail>,
    rebuilt: Option<String>,
    head_file_was_missing: bool,
}

impl LocalStore {
    /// Opens the store in a folder, or begins it there. Blocks; may take long after a crash.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] where another process has it open; an error for which
    /// [`Error::is_integrity`] holds where acknowledged data is damaged or gone.
    pub fn open(folder: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        open::open(folder.as_ref(), options, |_| {})
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What a crash had left at the end of the journal, if this opening repaired it.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Why this opening rebuilt the index from nothing, if it did.
    pub fn rebuilt(&self) -> Option<&str> {
        self.rebuilt.as_deref()
    }

    /// Whether this opening found no head file, and wrote it anew.
    pub fn head_file_was_missing(&self) -> bool {
        self.head_file_was_missing
    }

    /// Why nothing can be stored now, as far as the newest attempt tells: a full disk, or one that fails.
    pub fn refused(&self) -> Option<String> {
        self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sender(&self) -> Result<mpsc::Sender<Command>, Error> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Closed)
    }

    async fn send(&self, command: Command) -> Result<(), Error> {
        self.sender()?.send(command).await.map_err(|_| Error::Closed)
    }

    /// Runs a longer read off the asynchronous threads.
    async fn reading<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Shared) -> Result<T, Error> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared)).await.unwrap_or(Err(Error::Closed))
    }

    /// Lets the threads finish; they end when the last commit that is under way has its answer.
    fn end(&self) -> Vec<JoinHandle<()>> {
        drop(self.commands.lock().unwrap_or_else(PoisonError::into_inner).take());
        std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn wait_for(threads: Vec<JoinHandle<()>>, shared: &Shared) {
    for thread in threads {
        if thread.join().is_err() {
            shared.fail("a thread of the store panicked");
        }
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        wait_for(self.end(), &self.shared);
    }
}

#[async_trait]
impl Store for LocalStore {
    async fn load(&self, task: &TaskId) -> Result<Option<Stored>, Error> {
        read::load(&*self.shared, task)
    }

    async fn tasks(&self, after: Option<&TaskId>, limit: usize) -> Result<Vec<StoredTask>, Error> {
        let after = after.cloned();
        self.reading(move |shared| read::tasks(shared, after.as_ref(), limit)).await
    }

    async fn row(&self, task: &TaskId, table: &str, key: &str) -> Result<Option<Value>, Error> {
        read::row(&*self.shared, task, table, key)
    }

    async fn rows(
        &self,
        table: &str,
        task: Option<&TaskId>,
        after: Option<(&TaskId, &str)>,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let (table, task) = (table.to_owned(), task.cloned());
        let after = after.map(|(task, key)| (task.clone(), key.to_owned()));
        self.reading(move |shared| {
            let after = after.as_ref().map(|(task, key)| (task, key.as_str()));
            read::rows(shared, &table, task.as_ref(), after, limit)
        })
        .await
    }

    async fn commit(&self, task: &TaskId, expected_version: u64, commit: Commit) -> Result<Committed, CommitError> {
        let prepared = check::prepare(task, expected_version, commit)?.slim();
        let (reply, answer) = oneshot::channel();
        self.send(Command::Commit { prepared: Box::new(prepared), expected_version, reply }).await?;
        answer.await.unwrap_or(Err(CommitError::Store(Error::Closed)))
    }

    async fn pending_messages(&self, limit: usize) -> Result<Vec<PendingMessage>, Error> {
        self.reading(move |shared| read::pending_messages(shared, limit)).await
    }

    async fn mark_delivered(&self, ids: Vec<MessageId>, at: Timestamp) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        self.shared.delivered.lock().unwrap_or_else(PoisonError::into_inner).extend(ids.iter().cloned());
        self.send(Command::Delivered { ids, at }).await
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Error> {
        self.reading(move |shared| read::due_timers(shared, now, limit)).await
    }

    async fn next_timer_at(&self) -> Result<Option<Timestamp>, Error> {
        read::next_timer_at(&*self.shared)
    }

    async fn seen(&self, id: &MessageId) -> Result<bool, Error> {
        read::seen(&*self.shared, id)
    }

    async fn events(&self, task: &TaskId, after_version: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
        let task = task.clone();
        self.reading(move |shared| read::events(shared, &task, after_version, limit)).await
    }

    async fn records_after(&self, sequence: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
        let folder = open::journal_folder(&self.folder);
        self.reading(move |shared| read::records_after(shared, &folder, sequence, limit)).await
    }

    fn head(&self) -> Head {
        *self.shared.head.borrow()
    }

    fn changes(&self) -> watch::Receiver<Head> {
        self.shared.head.subscribe()
    }

    async fn close(&self) -> Result<(), Error> {
        let threads = self.end();
        self.reading(move |shared| {
            wait_for(threads, shared);
            Ok(())
        })
        .await?;
        self.shared.failure().map_or(Ok(()), |failure| Err(Error::Unusable(failure)))
    }
}

#[cfg(test)]
mod tests;
