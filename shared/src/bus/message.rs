//! Messages, and the names of the queues that they go through.
//!
//! A message is an envelope around the canonical JSON of a record. It is small:
//! what is larger travels by digest. Knows nothing about how it is carried.

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ids::{MessageId, TaskId};
use crate::json;

/// The largest body of a message: 64 KiB.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The longest kind of a message, in bytes.
pub const KIND_BYTES_MAX: usize = 64;

/// The longest name of a pool, in bytes: `root.` and an id fit.
const POOL_BYTES_MAX: usize = 128;

/// Text that is no name of a pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a pool: use 1 to 128 letters, digits, `.`, `_` or `-`, beginning with a letter or digit")]
pub struct InvalidPool(pub String);

/// Text that is no name of a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a queue: expected `jobs.POOL`, `reviews.POOL`, `in.worker`, `in.reviewer` or `dead`")]
pub struct InvalidQueue(pub String);

/// Why a message can never be sent.
#[derive(Debug, thiserror::Error)]
pub enum InvalidMessage {
    /// The body is too large.
    #[error("message `{id}` of kind `{kind}` has {size} bytes, more than {MESSAGE_BYTES_MAX}: send a digest instead")]
    TooLarge {
        /// The message.
        id: MessageId,
        /// Its kind.
        kind: String,
        /// Its size.
        size: usize,
    },
    /// The kind is empty, too long or holds something other than `a-z`, `0-9`, `_`, `.` and `-`.
    #[error("message `{id}` has the kind `{kind}`: use 1 to 64 of `a-z`, `0-9`, `_`, `.` and `-`")]
    Kind {
        /// The message.
        id: MessageId,
        /// Its kind.
        kind: String,
    },
    /// The body has no canonical form.
    #[error("message `{id}` has a body that can't be sent")]
    Body {
        /// The message.
        id: MessageId,
        /// What is wrong with it.
        source: json::Error,
    },
}

/// A group of workers or reviewers that take work from one queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pool(String);

impl Pool {
    /// The name of the pool.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pool {
    type Error = InvalidPool;
    fn try_from(value: String) -> Result<Self, InvalidPool> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let valid = value.len() <= POOL_BYTES_MAX
            && value.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
            && value.bytes().all(legal);
        if valid { Ok(Self(value)) } else { Err(InvalidPool(value)) }
    }
}

impl FromStr for Pool {
    type Err = InvalidPool;
    fn from_str(value: &str) -> Result<Self, InvalidPool> {
        Self::try_from(value.to_owned())
    }
}

impl From<Pool> for String {
    fn from(pool: Pool) -> String {
        pool.0
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A queue, by its name. As text it is what docs and logs show: `jobs.default`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Queue {
    /// Jobs for the workers of a pool; only the orchestrator writes it.
    Jobs(Pool),
    /// Review requests for the reviewers of a pool; only the orchestrator writes it.
    Reviews(Pool),
    /// What workers report to the orchestrator.
    InWorker,
    /// What reviewers report to the orchestrator.
    InReviewer,
    /// Messages that nobody can handle; the orchestrator escalates them.
    Dead,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jobs(pool) => write!(f, "jobs.{pool}"),
            Self::Reviews(pool) => write!(f, "reviews.{pool}"),
            Self::InWorker => f.write_str("in.worker"),
            Self::InReviewer => f.write_str("in.reviewer"),
            Self::Dead => f.write_str("dead"),
        }
    }
}

impl TryFrom<String> for Queue {
    type Error = InvalidQueue;
    fn try_from(value: String) -> Result<Self, InvalidQueue> {
        let pool = |prefix: &str| value.strip_prefix(prefix).and_then(|name| name.parse::<Pool>().ok());
        let queue = match value.as_str() {
            "in.worker" => Some(Self::InWorker),
            "in.reviewer" => Some(Self::InReviewer),
            "dead" => Some(Self::Dead),
            _ => pool("jobs.").map(Self::Jobs).or_else(|| pool("reviews.").map(Self::Reviews)),
        };
        queue.ok_or(InvalidQueue(value))
    }
}

impl FromStr for Queue {
    type Err = InvalidQueue;
    fn from_str(value: &str) -> Result<Self, InvalidQueue> {
        Self::try_from(value.to_owned())
    }
}

impl From<Queue> for String {
    fn from(queue: Queue) -> String {
        queue.to_string()
    }
}

/// A message: the envelope that the bus reads, and a body that it doesn't.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The id of the outbox row; the same however often it is sent.
    pub id: MessageId,
    /// What the body is, such as `checkpoint`.
    pub kind: String,
    /// The task that it is about.
    pub task: TaskId,
    /// The attempt that it is about.
    pub epoch: u64,
    /// The queue that it goes to.
    pub queue: Queue,
    /// Canonical JSON, at most [`MESSAGE_BYTES_MAX`].
    pub body: Vec<u8>,
}

impl Message {
    /// Makes a message whose body is the canonical JSON of `record`.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage`] where the record has no canonical form, or the message breaks a limit.
    pub fn new<T: Serialize + ?Sized>(
        id: MessageId,
        kind: &str,
        task: TaskId,
        epoch: u64,
        queue: Queue,
        record: &T,
    ) -> Result<Self, InvalidMessage> {
        let body = match json::canonical(record) {
            Ok(body) => body,
            Err(source) => return Err(InvalidMessage::Body { id, source }),
        };
        let message = Self { id, kind: kind.to_owned(), task, epoch, queue, body };
        message.check()?;
        Ok(message)
    }

    /// Reads the body strictly.
    ///
    /// # Errors
    ///
    /// [`json::Error`]; reject the delivery then, it will never be readable.
    pub fn parse<T: DeserializeOwned>(&self, what: &'static str) -> Result<T, json::Error> {
        json::parse_as(what, &self.body)
    }

    /// Checks the limits that every bus enforces.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::TooLarge`] and [`InvalidMessage::Kind`].
    pub fn check(&self) -> Result<(), InvalidMessage> {
        let (id, kind) = (self.id.clone(), self.kind.clone());
        let legal = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
        if kind.is_empty() || kind.len() > KIND_BYTES_MAX || !kind.bytes().all(legal) {
            return Err(InvalidMessage::Kind { id, kind });
        }
        match self.body.len() {
            size if size > MESSAGE_BYTES_MAX => Err(InvalidMessage::TooLarge { id, kind, size }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_survive_a_round_trip_and_others_are_refused() {
        for name in ["jobs.default", "jobs.root.r-1", "reviews.gpu_2", "in.worker", "in.reviewer", "dead"] {
            assert_eq!(name.parse::<Queue>().unwrap().to_string(), name);
        }
        for bad in ["", "jobs.", "jobs", "jobs.*", "jobs.-x", "jobs.a b", "in.operator", "Dead", "reviews.é"] {
            assert!(bad.parse::<Queue>().is_err(), "{bad}");
        }
        assert!(format!("jobs.{}", "x".repeat(129)).parse::<Queue>().is_err());
    }

    #[test]
    fn bodies_over_64_kib_floats_and_odd_kinds_are_refused() {
        let make = |kind: &str, body: &serde_json::Value| {
            Message::new("m-1".parse().unwrap(), kind, "t-1".parse().unwrap(), 1, Queue::InWorker, body)
        };
        let fits = serde_json::Value::from("x".repeat(MESSAGE_BYTES_MAX - 2));
        assert_eq!(make("attempt", &fits).unwrap().body.len(), MESSAGE_BYTES_MAX);
        let too_large = serde_json::Value::from("x".repeat(MESSAGE_BYTES_MAX - 1));
        assert!(matches!(make("attempt", &too_large), Err(InvalidMessage::TooLarge { .. })));
        assert!(matches!(make("attempt", &serde_json::json!(0.5)), Err(InvalidMessage::Body { .. })));
        for kind in ["", "two words", "Loud", "line\n", &"x".repeat(65)] {
            assert!(matches!(make(kind, &serde_json::json!(1)), Err(InvalidMessage::Kind { .. })), "{kind:?}");
        }
    }
}
