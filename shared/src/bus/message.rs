//! Messages: what the bus carries.
//!
//! A message is an envelope around the canonical JSON of a record. It is small:
//! what is larger travels by digest. Knows nothing about how it is carried.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::queue::Queue;
use crate::ids::{MessageId, TaskId};
use crate::json;

/// The largest body of a message: 64 KiB.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The longest kind of a message, in bytes.
pub const KIND_BYTES_MAX: usize = 64;

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
