//! The job: what a worker is asked to do in one attempt.
//!
//! A worker receives only a job's name over the bus. It gets the job itself
//! when it takes the lease, so that it is never older than the lease.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoint::{ApprovalRef, ChangesetRef, CheckpointRef, IssueRef};
use super::evidence::EvidenceRef;
use super::plan::Plan;
use super::save_point::{LaterEffect, SavePoint};
use crate::digest::Digest;
use crate::ids::{FindingId, GrantId, JobId, RootId, StepId, TaskId};

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name.
    pub job_id: JobId,
    /// The task.
    pub task_id: TaskId,
    /// Fences this attempt against earlier ones.
    pub epoch: u64,
    /// What to do.
    pub kind: JobKind,
    /// The target.
    pub root_id: RootId,
    /// The blob of the [`super::TaskSpec`] in force.
    pub spec: Digest,
    /// The blob of the resolved policy that the task pins.
    pub policy: Digest,
    /// The plan in force.
    pub plan: Plan,
    /// Steps that ended well.
    pub completed: Vec<StepId>,
    /// The newest checkpoint.
    pub head: Option<CheckpointRef>,
    /// The number of the task's newest event.
    pub state_version: u64,
    /// The target when the scratch was cut; `None` before the first attempt.
    pub base: Option<Digest>,
    /// The scratch as it was left; `None` before the first attempt.
    pub tree: Option<Digest>,
    /// The evidence index so far.
    pub evidence_index: Option<Digest>,
    /// The review round that the next gating checkpoint opens, from 1.
    pub round: u32,
    /// How many attempts at the current step have failed.
    pub failures: u32,
    /// What reviewers, rules or people asked for.
    pub required_actions: Vec<RequiredAction>,
    /// What reached the target so far.
    pub applied: Vec<ChangesetRef>,
    /// People's approvals so far.
    pub approvals: Vec<ApprovalRef>,
    /// Findings and other things that are open.
    pub open_issues: Vec<IssueRef>,
    /// Where the agent's conversation goes on from; `None` where it begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<SavePoint>,
    /// Effects since the newest checkpoint: what an agent must know that goes back to it. The first fifty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_effects: Vec<LaterEffect>,
}

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JobKind {
    /// Runs a step of the plan.
    Step {
        /// The step.
        step: StepId,
        /// Whose conversation goes on.
        conversation: Conversation,
    },
    /// Applies a changeset to the target.
    Apply {
        /// The permission.
        grant: GrantId,
        /// The changeset.
        changeset: ChangesetRef,
    },
    /// Cuts a new scratch from the target and puts the changes of `tree` on it.
    Rebase,
    /// Gathers evidence that a reviewer missed: checkpoints the tree as it is, with the step's tests run again.
    Evidence {
        /// The step whose evidence is missing.
        step: StepId,
    },
}

impl JobKind {
    /// A word for logs and pages.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Apply { .. } => "apply",
            Self::Rebase => "rebase",
            Self::Evidence { .. } => "evidence",
        }
    }
}

/// Whose conversation a retry goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conversation {
    /// The same agent and conversation.
    #[default]
    Same,
    /// The same agent with a fresh conversation.
    Fresh,
    /// Another agent, by name.
    Agent(String),
}

/// Something that has to be done before a change can be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredAction {
    /// What.
    pub text: String,
    /// The finding that asks for it.
    pub finding: Option<FindingId>,
    /// Where to look.
    pub refs: Vec<EvidenceRef>,
    /// Who asks: a review's name, `policy` or a person.
    pub from: String,
}
