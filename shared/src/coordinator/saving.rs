//! Telling where an attempt can go on from, and what was looked at before it
//! began: the shapes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{InstanceId, TaskId};
use crate::records::{Checked, SavePoint};

/// Asks to take a save point. All that it names is stored before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest {
    /// The task.
    pub task_id: TaskId,
    /// Who asks.
    pub worker: InstanceId,
    /// The save point.
    pub save_point: SavePoint,
}

/// The answer to a [`SaveRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SaveAnswer {
    /// It is journaled: the next attempt goes on from there.
    Saved,
    /// It is not taken.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Says what came of the conditions that an attempt looked at before anything ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionsReport {
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub epoch: u64,
    /// Who looked.
    pub worker: InstanceId,
    /// Every condition once.
    pub checks: Vec<Checked>,
}
