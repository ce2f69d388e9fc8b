//! The durable truth about tasks: what happened, what follows from it, and what
//! is still to be sent or to come due.
//!
//! One commit holds everything that follows from one event, so that a crash
//! leaves either all of it or nothing. The store knows nothing about lifecycles:
//! events, decisions, states and message bodies are opaque values to it. It
//! publishes nothing and fires no timer by itself.
//!
//! [`LocalStore`] joins an append-only journal, which is the truth, with an index
//! in sled, which can be thrown away and rebuilt at any time.

mod error;
mod index;
mod inspect;
mod journal;
mod keys;
mod local;
mod lock;
mod map;
mod model;
mod projection;
mod prune;
mod rebuild;
mod rows;
#[cfg(feature = "simulation")]
pub mod simulated;
mod verify;

use async_trait::async_trait;
use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

pub use error::{CommitError, Error, Holder};
pub use index::IndexError;
pub use inspect::{IndexCheck, check_index, extent, finish_copy, io_error, segment_files};
pub use journal::{Front, Head, TornTail};
pub use local::{LocalStore, Options};
pub use model::{
    Commit, Committed, DueTimer, MESSAGES_MAX, OutgoingMessage, PendingMessage, RECORD_BYTES_MAX, Record, Recorded,
    Stored, StoredTask, TIMERS_MAX, TimerChange, TimerId,
};
pub use prune::{DroppedSegment, Forget, NOTE_BYTES_MAX, Prune, Tombstone};
pub use rebuild::{Loss, LostEvents, RebuildError, Rebuilt, rebuild};
pub use rows::{ROWS_MAX, Row, RowChange};
pub use verify::{Report, verify, verify_each};

/// A durable store of tasks. Everything it returns has survived a power cut,
/// except where a method says otherwise.
#[async_trait]
pub trait Store: Send + Sync {
    /// The newest state of a task, or `None` where there is no such task.
    async fn load(&self, task: &TaskId) -> Result<Option<Stored>, Error>;

    /// Up to `limit` tasks in the order of their ids, those after `after`.
    async fn tasks(&self, after: Option<&TaskId>, limit: usize) -> Result<Vec<StoredTask>, Error>;

    /// A row of a task, or `None` where there is no such row.
    async fn row(&self, task: &TaskId, table: &str, key: &str) -> Result<Option<Value>, Error>;

    /// Up to `limit` rows of a table in the order of their tasks and keys, those after `after`;
    /// only those of `task` where one is given.
    async fn rows(
        &self,
        table: &str,
        task: Option<&TaskId>,
        after: Option<(&TaskId, &str)>,
        limit: usize,
    ) -> Result<Vec<Row>, Error>;

    /// Appends what follows from one event, if the task is still at
    /// `expected_version` (0 for a task that does not exist yet).
    ///
    /// When this returns, the record is on the disk and every other method sees
    /// it. No two records of a task share a version. After
    /// [`CommitError::Conflict`]: load, decide again, commit again. After any
    /// other error the record may or may not be there: load to find out.
    async fn commit(&self, task: &TaskId, expected_version: u64, commit: Commit) -> Result<Committed, CommitError>;

    /// Up to `limit` messages that are not marked as delivered, oldest first.
    async fn pending_messages(&self, limit: usize) -> Result<Vec<PendingMessage>, Error>;

    /// Notes that the bus has taken these messages. The note is journaled soon
    /// after, together with others; a crash before that sends them again.
    async fn mark_delivered(&self, ids: Vec<MessageId>, at: Timestamp) -> Result<(), Error>;

    /// Up to `limit` timers that are due at `now`, most overdue first. They come
    /// again until a commit clears or moves them.
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Error>;

    /// When the next timer is due.
    async fn next_timer_at(&self) -> Result<Option<Timestamp>, Error>;

    /// Whether a commit that this incoming message caused is among the newest
    /// records. The window is bounded; versions and epochs catch what is older.
    async fn seen(&self, id: &MessageId) -> Result<bool, Error>;

    /// Up to `limit` records of a task after a version, oldest first.
    async fn events(&self, task: &TaskId, after_version: u64, limit: usize) -> Result<Vec<Recorded>, Error>;

    /// Up to `limit` records of all tasks after a sequence number, oldest first.
    async fn records_after(&self, sequence: u64, limit: usize) -> Result<Vec<Recorded>, Error>;

    /// The newest acknowledged record.
    fn head(&self) -> Head;

    /// Tells whenever [`Store::head`] moves.
    fn changes(&self) -> watch::Receiver<Head>;

    /// Finishes what is under way, makes the index durable and frees the folder.
    /// Later commits fail with [`Error::Closed`].
    async fn close(&self) -> Result<(), Error>;
}
