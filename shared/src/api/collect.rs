//! What is left of old tasks, and what collecting garbage came to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TaskState;
use crate::digest::Digest;
use crate::ids::{CheckpointId, TaskId};
use crate::time::Timestamp;

/// What is left of a task that was pruned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Epitaph {
    /// The task.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub outcome: TaskState,
    /// The same in half a sentence.
    pub detail: String,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its newest checkpoint's name.
    pub checkpoint: Option<CheckpointId>,
    /// That checkpoint's hash; commits that were made for the task name hashes too.
    pub checkpoint_hash: Option<Digest>,
    /// How many journal records it had.
    pub records: u64,
    /// The hash of the last of them.
    pub last_hash: Digest,
    /// When it was pruned.
    pub pruned_at: Timestamp,
}

/// How much of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// How many bytes together.
    pub bytes: u64,
}

impl Amount {
    /// Adds one of this size.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What collecting garbage came to, or would come to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CollectReport {
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// Blobs that nothing referred to.
    pub freed: Amount,
    /// Blobs that stay, by what refers to them: `checkpoints`, `trees`, `files`, `evidence`, `verdicts`, `run states`,
    /// `tasks and policies`, `other`; and `young` for those that somebody may be about to refer to.
    pub kept: BTreeMap<String, Amount>,
    /// Blobs younger than this stay.
    pub young_from: Option<Timestamp>,
    /// Tasks that were over for longer than their policies keep them.
    pub pruned: Vec<TaskId>,
    /// Segments of the journal that held nothing else.
    pub segments: Amount,
}
