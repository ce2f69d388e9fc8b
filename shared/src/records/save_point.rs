//! Save points: where an agent's work can go on from, and what is looked at
//! before it does.
//!
//! A run state belongs to one tree and is never resumed without it. It is raw: no
//! evidence, and nothing that a reviewer or a page shows. These are shapes only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoint::Precondition;
use crate::digest::Digest;
use crate::ids::StepId;

/// The largest run state, in bytes.
pub const RUN_STATE_BYTES_MAX: u64 = 1 << 20;

/// The longest reason for a condition's outcome, in characters.
pub const REASON_CHARS_MAX: usize = 500;

/// A stored run state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStateRef {
    /// Its blob.
    pub digest: Digest,
    /// How many turns the agent has taken in the whole task; 0 where it does not say.
    pub turns: u64,
    /// How full the window was after the last response; 0 where nobody says.
    pub tokens_used: u64,
    /// How many tokens were used in all; 0 where nobody says.
    pub tokens_total: u64,
}

/// A run state with the tree that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SavePoint {
    /// The attempt that took it.
    pub epoch: u64,
    /// The step at work.
    pub step: StepId,
    /// The agent's own state.
    pub run_state: RunStateRef,
    /// The target when the scratch was cut.
    pub base: Digest,
    /// The scratch at the same moment.
    pub tree: Digest,
    /// The evidence index so far.
    pub evidence_index: Option<Digest>,
    /// Where the step stood before its first save point. Filled in where the save point is journaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<StepBegan>,
}

/// Where a step stood before its first save point: what it goes back to if none of them can be restored. The work of
/// all steps before it is in there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepBegan {
    /// The attempt that took the first of its save points.
    pub epoch: u64,
    /// The scratch as the steps before had left it, on the same base.
    pub tree: Digest,
}

/// An effect that came after the checkpoint to which an attempt may have to go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaterEffect {
    /// What was called.
    pub call: String,
    /// What came of it, in a word.
    pub status: String,
}

/// What came of looking at a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckOutcome {
    /// It holds.
    Pass {},
    /// It does not hold, and nothing may run.
    Fail {
        /// Why.
        why: String,
    },
    /// It does not hold as it stands, or will be looked at later, and that is all right.
    Explained {
        /// Why.
        why: String,
    },
}

/// A condition and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// The condition.
    pub condition: Precondition,
    /// What came of it.
    pub outcome: CheckOutcome,
}
