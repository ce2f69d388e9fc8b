//! Asking to start an effect, and saying what came of it: the shapes.
//!
//! What may be started is decided by the orchestrator's core; nothing here
//! decides or runs anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{InstanceId, TaskId};
use crate::records::{EffectCall, EffectResult};
use crate::time::Span;

/// How long after a claim an effect may be started; after that it has to be claimed again.
///
/// Workers count from before they ask, by their monotonic clock, so that the orchestrator's count ends later.
pub const START_WINDOW: Span = Span::from_secs(30);

/// Asks to start something that acts outside the scratch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub epoch: u64,
    /// Who asks.
    pub worker: InstanceId,
    /// Names this run of the job, the same however often it asks: whoever asks again with it has not started.
    pub run: Digest,
    /// What would be started.
    pub call: EffectCall,
    /// How long it may take as far as the worker knows; plan and policy may say less.
    pub time_limit: Span,
}

/// The answer to a [`ClaimRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClaimAnswer {
    /// It does nothing outside the scratch: run it, and settle nothing.
    Free,
    /// The claim is journaled: start it within [`START_WINDOW`], and say what came of it.
    Granted {
        /// The idempotency key.
        key: Digest,
        /// How long it may take.
        time_limit: Span,
    },
    /// It has happened already: do not start it.
    Done {
        /// The idempotency key.
        key: Digest,
        /// What it left, where that is known.
        result: Option<EffectResult>,
        /// How that is known, for people.
        how: String,
    },
    /// Somebody has to agree first: write a gating checkpoint that shows the call.
    Gated {
        /// The idempotency key.
        key: Digest,
        /// Shows what it would do.
        dry_run: Option<Vec<String>>,
        /// Why, for people.
        why: String,
    },
    /// Nobody knows whether it happened, but this command can tell.
    Probe {
        /// The idempotency key.
        key: Digest,
        /// The command.
        argv: Vec<String>,
        /// How long until its `not done` counts: before, the effect may still be under way.
        not_done_counts_in: Span,
    },
    /// Nobody knows whether it happened, and only a person can find out.
    Unknown {
        /// The idempotency key.
        key: Digest,
        /// Why nobody knows.
        why: String,
    },
    /// It may not be started.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Says what came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// The task.
    pub task_id: TaskId,
    /// The idempotency key.
    pub key: Digest,
    /// The attempt that claimed it, or that probed.
    pub epoch: u64,
    /// Who says so.
    pub worker: InstanceId,
    /// What came of it.
    pub outcome: Settled,
}

/// What came of an effect, as a worker saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Settled {
    /// It happened.
    Done(EffectResult),
    /// Its command said that it failed.
    Failed {
        /// How.
        why: String,
    },
    /// It was claimed and never started.
    NotStarted {
        /// Why.
        why: String,
    },
    /// Nobody knows.
    Unknown {
        /// Why.
        why: String,
    },
    /// Its probe was asked.
    Probed(ProbeAnswer),
}

/// What a probe says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeAnswer {
    /// It happened.
    Done,
    /// It has not happened.
    NotDone,
    /// It can't tell.
    Unclear,
}
