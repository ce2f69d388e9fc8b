//! What is left of tasks that are over for long, and of the journal's oldest
//! segments.
//!
//! A forgotten task keeps a small tombstone. Segments that hold nothing but
//! records of forgotten tasks are dropped from the front; a journaled record
//! says so before any file goes, so the chain can still be verified. Which tasks
//! are forgotten is decided by whoever knows policies.

use async_trait::async_trait;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Store;
use super::error::{CommitError, Error};
use super::journal::Front;

/// The kind of the store's own record that says which tasks were forgotten.
pub(super) const FORGOTTEN: &str = "store.forgotten";

/// The kind of the store's own record that writes anew what is still needed of segments that are about to go.
pub(super) const CARRIED: &str = "store.carried";

/// The kind of the store's own record that says which segments go.
pub(super) const PRUNED: &str = "store.pruned";

/// The most tombstones in one record.
pub(super) const TOMBSTONES_MAX: usize = 200;

/// The most segments that are dropped at once.
pub(super) const SEGMENTS_MAX: usize = 64;

/// The largest note on a tombstone, in bytes.
pub const NOTE_BYTES_MAX: usize = 4_096;

/// A task that is to be forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Forget {
    /// The task.
    pub task: TaskId,
    /// The number of its newest event; where another one came since, nothing is forgotten.
    pub version: u64,
    /// What is worth knowing for ever, at most [`NOTE_BYTES_MAX`] bytes.
    pub note: Value,
}

/// What is left of a forgotten task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tombstone {
    /// The task.
    pub task: TaskId,
    /// How many records it had.
    pub records: u64,
    /// The hash of its last record.
    pub last_hash: Digest,
    /// When it was forgotten.
    pub forgotten_at: Timestamp,
    /// What is worth knowing for ever.
    pub note: Value,
}

/// The event of a [`FORGOTTEN`] or [`CARRIED`] record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tombstones {
    pub(super) tombstones: Vec<Tombstone>,
}

/// A segment that was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedSegment {
    /// Its size.
    pub bytes: u64,
    /// The number of its first record.
    pub first: u64,
    /// The hash of its last record.
    pub hash: Digest,
    /// The number of its last record.
    pub last: u64,
    /// Its number.
    pub segment: u32,
    /// The SHA-256 of the whole file.
    pub sha256: Digest,
}

/// The event of a [`PRUNED`] record: from here on the chain may begin later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pruned {
    /// Where it began before.
    pub(super) before: Front,
    /// Where it begins once all of `segments` are gone.
    pub(super) front: Front,
    /// What goes, oldest first.
    pub(super) segments: Vec<DroppedSegment>,
}

impl Pruned {
    /// Whether a chain may begin there: everything is gone, nothing yet, or only the oldest segments so far.
    pub(super) fn allows(&self, found: Front) -> bool {
        let between = |dropped: &DroppedSegment| {
            dropped.segment.checked_add(1) == Some(found.segment)
                && dropped.last == found.head.count
                && Some(dropped.hash) == found.head.hash
        };
        found == self.before || found == self.front || self.segments.iter().any(between)
    }
}

/// A store that can forget.
#[async_trait]
pub trait Prune: Store {
    /// Forgets tasks: from now on the store knows only their tombstones. One record for each few of them, so a crash
    /// may leave some forgotten and others not.
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] where one of them has changed; those before it may be forgotten already.
    async fn forget(&self, tasks: Vec<Forget>, at: Timestamp) -> Result<(), CommitError>;

    /// What is left of a task that was forgotten.
    async fn tombstone(&self, task: &TaskId) -> Result<Option<Tombstone>, Error>;

    /// Up to `limit` tombstones in the order of their tasks, those after `after`.
    async fn tombstones(&self, after: Option<&TaskId>, limit: usize) -> Result<Vec<Tombstone>, Error>;

    /// The segments, oldest first, that hold nothing which is still needed; a bounded number of them.
    async fn droppable(&self) -> Result<Vec<DroppedSegment>, Error>;

    /// Drops what [`Prune::droppable`] finds, after it has journaled that. A crash at any instant leaves a store that
    /// opens, and whose next opening finishes it.
    async fn drop_front(&self, at: Timestamp) -> Result<Vec<DroppedSegment>, CommitError>;
}
