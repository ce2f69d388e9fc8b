//! What the core answers: the next state of the task and what has to be done.
//!
//! Effects leave the executor no choices, and each may be carried out twice
//! without harm.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::EscalationId;
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::task::Task;

/// The core's answer to an event.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The task changes.
    Advance {
        /// The task afterwards.
        next: Box<Task>,
        /// What has to be done. Blobs are stored before the event is journaled, everything else after.
        effects: Vec<Effect>,
    },
    /// The event changes nothing: it is late, a duplicate, or not meant for this state.
    Ignore(Reason),
}

/// Why an event was ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It comes from an attempt that was replaced.
    StaleEpoch,
    /// It does not matter in the state that the task is in.
    NotInThisState,
    /// It was taken before.
    Duplicate,
    /// The checkpoint does not belong into the chain.
    NotInChain(String),
    /// It is about a round, item, grant or effect that is no longer open.
    Superseded,
    /// The call does nothing outside the scratch: the ledger has nothing to say about it.
    NoEffect,
    /// The effect happened, and that never changes.
    EffectDone,
    /// Nobody knows whether the effect happened; it is not started again.
    EffectUnknown,
    /// The effect may still be under way, so that a probe's `not done` says nothing yet.
    TooEarly,
}

/// A pair of state and event that must not happen: a client's error, or a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the task is {state}: {hint}")]
pub struct IllegalTransition {
    /// The state, in a word.
    pub state: &'static str,
    /// The event, in a word.
    pub event: &'static str,
    /// What to do instead.
    pub hint: String,
}

/// Something that has to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Store a blob.
    StoreBlob {
        /// Its digest.
        digest: Digest,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Publish a message.
    Publish {
        /// The message's id; the same across resends.
        id: String,
        /// The kind of message, such as `job`.
        kind: String,
        /// Where to.
        to: Destination,
        /// Its body.
        body: Value,
    },
    /// Set or move a timer.
    SetTimer {
        /// Which.
        timer: Timer,
        /// When it fires.
        at: Timestamp,
    },
    /// Clear a timer.
    ClearTimer {
        /// Which.
        timer: Timer,
    },
    /// Write a row of the task, beside its state.
    PutRow {
        /// Its table.
        table: String,
        /// Its key.
        key: String,
        /// What it holds.
        value: Value,
    },
}

/// Who gets a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// The workers of a root.
    Jobs,
    /// The reviewers.
    Reviews,
}

/// A durable timer; a task has at most one of each name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Timer {
    /// A queued job's message may be lost, or its back-off is over.
    Dispatch {
        /// The attempt.
        epoch: u64,
    },
    /// A round's reviews take too long.
    Review {
        /// The round.
        round: u32,
    },
    /// An inbox item expires.
    Item {
        /// The item.
        item: EscalationId,
        /// The stage whose deadline it is.
        stage: u32,
    },
    /// The time under lease is used up.
    Wall {},
}

impl Timer {
    /// The timer's name within its task: setting another with this name replaces it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dispatch { .. } => "dispatch",
            Self::Review { .. } => "review",
            Self::Item { .. } => "item",
            Self::Wall {} => "wall",
        }
    }
}
