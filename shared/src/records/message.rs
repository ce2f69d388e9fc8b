//! The bodies of messages on the bus. Each is at most 64 KiB; what is larger
//! travels by digest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::binding::Bindings;
use super::checkpoint::{ChangesetRef, CheckpointRef, IssueRef};
use super::evidence::EvidenceRef;
use crate::digest::Digest;
use crate::ids::{CheckpointId, GrantId, InstanceId, JobId, ReviewId, StepId, TaskId};
use crate::time::{Span, Timestamp};

/// Says that a job waits; the worker takes the lease to get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobMessage {
    /// The job.
    pub job_id: JobId,
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub epoch: u64,
}

/// The kinds of reviews that a policy can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewKind {
    /// Deterministic checks and verifiers.
    Rules,
    /// A model.
    Model,
    /// An external program.
    Command,
    /// A person.
    Human,
}

/// Asks for one review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// The review.
    pub review_id: ReviewId,
    /// The task.
    pub task_id: TaskId,
    /// The review's name in the policy.
    pub review: String,
    /// Its kind.
    pub kind: ReviewKind,
    /// The round, from 1.
    pub round: u32,
    /// What the verdict must be bound to.
    pub bindings: Bindings,
    /// The checkpoint to review.
    pub checkpoint: CheckpointRef,
    /// The last accepted checkpoint: the increment starts there.
    pub accepted: Option<CheckpointRef>,
    /// The blob of the [`super::TaskSpec`] in force.
    pub spec: Digest,
    /// The blob of the resolved policy that the task pins.
    pub policy: Digest,
    /// The blob of the list of open findings ([`super::Finding`]).
    pub open_findings: Digest,
    /// When the review counts as timed out.
    pub deadline: Timestamp,
}

/// How an attempt ended, where no gating checkpoint says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The job.
    pub job_id: JobId,
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub epoch: u64,
    /// Who ran it.
    pub worker: InstanceId,
    /// What came of it.
    pub outcome: AttemptOutcome,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AttemptOutcome {
    /// A step ended well; its checkpoint, if the policy wanted one, was sent before.
    StepDone {
        /// The step.
        step: StepId,
        /// The target when the scratch was cut.
        base: Digest,
        /// The scratch as it was left.
        tree: Digest,
        /// The evidence index.
        evidence_index: Digest,
    },
    /// A step failed.
    StepFailed {
        /// The step.
        step: StepId,
        /// What went wrong.
        error: IssueRef,
        /// The same for the same failure: lets rules see that nothing changes.
        error_hash: Digest,
        /// The target when the scratch was cut, where it came so far.
        base: Option<Digest>,
        /// The scratch as it was left, where it came so far.
        tree: Option<Digest>,
        /// The evidence index.
        evidence_index: Option<Digest>,
    },
    /// A grant was carried out.
    Applied {
        /// The grant.
        grant: GrantId,
        /// What was applied.
        changeset: ChangesetRef,
        /// The target afterwards.
        target: Digest,
        /// The commit that was made, where the policy wants one.
        commit: Option<String>,
    },
    /// A grant could not be carried out: the target is not what it was.
    ApplyConflict {
        /// The grant.
        grant: GrantId,
        /// The target as measured.
        target: Digest,
        /// Paths in the way.
        paths: Vec<String>,
    },
    /// The target's changes and the task's overlap.
    RebaseOverlap {
        /// The target as measured.
        target: Digest,
        /// The paths that both changed.
        paths: Vec<String>,
        /// A readable account for the agent.
        evidence: Option<EvidenceRef>,
    },
    /// A rebase ended well while steps are still to come; else a gating checkpoint says it.
    Rebased {
        /// The target as measured: the new base.
        base: Digest,
        /// The new scratch.
        tree: Digest,
        /// The evidence index.
        evidence_index: Digest,
    },
    /// The worker can't do it now and gives it back.
    Released {
        /// When to try again.
        after: Span,
        /// Why.
        reason: String,
    },
    /// The worker stopped because it was told to; `tree` is what there was.
    Stopped {
        /// The target when the scratch was cut, where it came so far.
        base: Option<Digest>,
        /// The scratch as it was left, where it came so far.
        tree: Option<Digest>,
    },
}

/// Submits a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointMessage {
    /// The task.
    pub task_id: TaskId,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The attempt.
    pub epoch: u64,
    /// The blob of the checkpoint's canonical bytes.
    pub record: Digest,
    /// The step that this checkpoint completes, where it does.
    pub completes: Option<StepId>,
}

/// Publishes a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerdictMessage {
    /// The task.
    pub task_id: TaskId,
    /// The review that it answers.
    pub review_id: ReviewId,
    /// The blob of the signed envelope.
    pub envelope: Digest,
}
