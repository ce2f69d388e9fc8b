//! Why the store could not do what was asked, with what to do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::index::IndexError;
use super::model::TimerId;

/// Who has a store open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// When it opened the store.
    pub since: Timestamp,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} since {}", self.pid, self.since)
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(" ({holder})"))
}

/// Why the store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the store open.
    #[error("another instance is running{} with the data in {}: stop it first, or use another `--data`", by(.holder.as_ref()), .path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Who, where the lock file says so.
        holder: Option<Holder>,
    },
    /// Records that were acknowledged are not in the journal any more.
    #[error(
        "the {witness} knows of {recorded} journal records, but only {found} are there: acknowledged data is gone; restore the journal from a backup"
    )]
    LostAcknowledged {
        /// What remembers them: the head file or the index.
        witness: &'static str,
        /// How many there were.
        recorded: u64,
        /// How many there are.
        found: u64,
    },
    /// A record is another one than the one that was acknowledged.
    #[error(
        "journal record {sequence} has the hash {found}, but the {witness} knows it as {recorded}: the journal was changed"
    )]
    HeadMismatch {
        /// What remembers it: the head file or the index.
        witness: &'static str,
        /// The record.
        sequence: u64,
        /// The hash that it had.
        recorded: String,
        /// The hash that it has.
        found: String,
    },
    /// Something in the journal is not what was written.
    #[error("{} is damaged at line {line} (byte {offset}): {what}", .segment.display())]
    Damaged {
        /// The segment file.
        segment: PathBuf,
        /// The line, from 1; the header is line 1.
        line: u64,
        /// Where the line begins, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A segment file is not there.
    #[error("the journal segment {} is missing: restore it from a backup", .0.display())]
    MissingSegment(PathBuf),
    /// More was pruned from the journal than its records say.
    #[error("the journal that begins with {} has lost more than was pruned: {what}; restore it from a backup", .segment.display())]
    Pruned {
        /// The first segment that is there.
        segment: PathBuf,
        /// What is missing.
        what: String,
    },
    /// The file was written by another version of Checkrein.
    #[error("{} has the format {found}, but this version of Checkrein reads formats 1 to {supported}: use the version that wrote it, or a newer one", .path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that this version reads.
        supported: u64,
    },
    /// The head file can't be read.
    #[error("the head file {} is damaged ({what}): verify the journal, then remove the file", .path.display())]
    HeadDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The index failed. The journal is the truth, so nothing is lost.
    #[error("the index of the store failed; it is rebuilt from the journal")]
    Index(#[source] IndexError),
    /// The index failed earlier, and could not be mended yet. It is tried again with the next commit.
    #[error("the index of the store can't be used now ({0}): free disk space or start again; nothing is lost")]
    Unusable(String),
    /// Nothing was stored, because the disk is full or failed; it is tried again with the next commit.
    #[error("can't {doing}, so nothing was stored")]
    NotStored {
        /// What was being done, with the path.
        doing: String,
        /// The cause, shared by everybody whose record was in the same batch.
        source: Arc<io::Error>,
    },
    /// The file system failed.
    #[error("can't {doing}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// Whether stored data is damaged or gone, so that the process must not go on.
    pub fn is_integrity(&self) -> bool {
        matches!(
            self,
            Self::LostAcknowledged { .. }
                | Self::HeadMismatch { .. }
                | Self::Damaged { .. }
                | Self::MissingSegment(_)
                | Self::Pruned { .. }
                | Self::HeadDamaged { .. }
        )
    }

    /// Wraps a failure of the file system.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    pub(super) fn mismatch(
        witness: &'static str,
        sequence: u64,
        recorded: Option<Digest>,
        found: Option<Digest>,
    ) -> Self {
        let text = |digest: Option<Digest>| digest.map_or_else(|| "none".to_owned(), String::from);
        Self::HeadMismatch { witness, sequence, recorded: text(recorded), found: text(found) }
    }
}

/// Why a commit was refused.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Somebody else committed first: load the task, decide again, commit again.
    #[error("the task is at version {actual}")]
    Conflict {
        /// The version that the task has.
        actual: u64,
    },
    /// The record can't be written as canonical JSON.
    #[error("the record can't be stored")]
    NotCanonical(#[source] json::Error),
    /// A value is nested so deeply that it could not be read back.
    #[error("`{0}` is nested too deeply to be stored")]
    TooDeep(&'static str),
    /// The record is too large.
    #[error("the record has {size} bytes, more than the limit of {limit}: keep large content in blobs")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// There is too much of something.
    #[error("{count} {what} in one commit are more than the limit of {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The kind is empty, too long, or begins with `store.`.
    #[error("`{0}` can't be the kind of an event: use 1 to 64 bytes that don't begin with `store.`")]
    Kind(String),
    /// A row has a table or a key that it can't have.
    #[error(
        "`{0}` can't name a row: a table has 1 to 16 lower-case letters, digits and hyphens, a key 1 to 256 printable ASCII characters"
    )]
    Row(String),
    /// A message could never be sent.
    #[error("a message can't be stored, because it could never be sent")]
    Message(#[source] checkrein_shared::bus::InvalidMessage),
    /// Two messages or two changes of rows in one commit contradict each other.
    #[error("`{0}` occurs twice in one commit")]
    Twice(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Text that can't name a timer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't name a timer: use 1 to {max} printable ASCII characters", max = TimerId::BYTES_MAX)]
pub struct InvalidTimerId(pub String);
