//! What goes into the store and what comes out of it.
//!
//! Plain data. Events, decisions, states and bodies are opaque values; only the
//! fields that the store itself needs have types.

use std::fmt;
use std::str::FromStr;

use checkrein_shared::bus::{InvalidMessage, Message, Queue};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::InvalidTimerId;
use super::rows::RowChange;

/// The largest record: 8 MiB. Large content belongs into blobs.
pub const RECORD_BYTES_MAX: usize = 8 << 20;

/// How many messages one commit may hold.
pub const MESSAGES_MAX: usize = 256;

/// How many timers one commit may set or clear.
pub const TIMERS_MAX: usize = 256;

/// Everything that follows from one event of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// When the event happened, by the event itself.
    pub at: Timestamp,
    /// The event's name, such as `checkpoint`.
    pub kind: String,
    /// The incoming message that brought the event, if one did: [`super::Store::seen`] finds it.
    pub cause: Option<MessageId>,
    /// The event.
    pub event: Value,
    /// What was decided about it, and by which rule.
    pub decision: Value,
    /// The whole state of the task after the event.
    pub state: Value,
    /// What is to be sent.
    pub messages: Vec<OutgoingMessage>,
    /// Which timers are set or cleared, in order.
    pub timers: Vec<TimerChange>,
    /// Which rows are written or removed; each at most once.
    pub rows: Vec<RowChange>,
}

/// A message that follows from an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutgoingMessage {
    /// Its id, the same however often it is sent. One that is still pending replaces the older.
    pub id: MessageId,
    /// Where it goes.
    pub queue: Queue,
    /// What the body is.
    pub kind: String,
    /// The attempt that it is about.
    pub epoch: u64,
    /// The body.
    pub body: Value,
}

/// The name of a timer, unique within its task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimerId(String);

impl TimerId {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TimerId {
    type Error = InvalidTimerId;
    fn try_from(value: String) -> Result<Self, InvalidTimerId> {
        let valid = (1..=Self::BYTES_MAX).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_graphic());
        if valid { Ok(Self(value)) } else { Err(InvalidTimerId(value)) }
    }
}

impl FromStr for TimerId {
    type Err = InvalidTimerId;
    fn from_str(value: &str) -> Result<Self, InvalidTimerId> {
        Self::try_from(value.to_owned())
    }
}

impl From<TimerId> for String {
    fn from(id: TimerId) -> String {
        id.0
    }
}

impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happens to a timer of the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TimerChange {
    /// It is set, or set anew.
    Set {
        /// Its name.
        id: TimerId,
        /// When it is due.
        at: Timestamp,
        /// What it is for.
        kind: Value,
    },
    /// It is cleared; clearing what is not set does nothing.
    Clear {
        /// Its name.
        id: TimerId,
    },
}

impl TimerChange {
    /// The timer.
    pub fn id(&self) -> &TimerId {
        match self {
            Self::Set { id, .. } | Self::Clear { id } => id,
        }
    }
}

/// Where a commit went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The number of the record among all, from 1.
    pub sequence: u64,
    /// The number of the event within its task, from 1.
    pub version: u64,
}

/// The newest state of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The number of the newest event.
    pub version: u64,
    /// The state after it.
    pub state: Value,
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTask {
    /// The task.
    pub task: TaskId,
    /// Its newest state.
    pub stored: Stored,
}

/// A message that waits to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingMessage {
    /// The task that it is about.
    pub task: TaskId,
    /// The record that it follows from.
    pub sequence: u64,
    /// The message.
    pub message: OutgoingMessage,
}

impl PendingMessage {
    /// The message as the bus takes it.
    ///
    /// # Errors
    ///
    /// None in practice: [`super::Store::commit`] has checked it.
    pub fn to_message(&self) -> Result<Message, InvalidMessage> {
        let OutgoingMessage { id, queue, kind, epoch, body } = &self.message;
        Message::new(id.clone(), kind, self.task.clone(), *epoch, queue.clone(), body)
    }
}

/// A timer that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct DueTimer {
    /// The task.
    pub task: TaskId,
    /// The timer.
    pub id: TimerId,
    /// When it was due.
    pub at: Timestamp,
    /// What it is for.
    pub kind: Value,
}

/// One line of the journal, without its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// When the event happened.
    pub at: Timestamp,
    /// The incoming message that brought it.
    pub cause: Option<MessageId>,
    /// What was decided.
    pub decision: Value,
    /// The event.
    pub event: Value,
    /// The event's name; those that begin with `store.` are the store's own.
    pub kind: String,
    /// What is to be sent.
    pub messages: Vec<OutgoingMessage>,
    /// The hash of the record before, `None` for the first.
    pub previous: Option<Digest>,
    /// Which rows are written or removed; journals of format 1 have none.
    #[serde(default)]
    pub rows: Vec<RowChange>,
    /// Its number, from 1.
    pub sequence: u64,
    /// The task's state after the event.
    pub state: Value,
    /// The task; the store's own records have none.
    pub task: Option<TaskId>,
    /// Which timers are set or cleared.
    pub timers: Vec<TimerChange>,
    /// The number of the event within its task, from 1; 0 in the store's own records.
    pub version: u64,
}

/// A record and its hash.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The digest of the record's canonical JSON.
    pub hash: Digest,
    /// The record.
    pub record: Record,
}
