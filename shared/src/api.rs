//! What people's tools ask of Checkrein: submit, look, and decide.
//!
//! The shapes here are for the command line and the local API. They are made
//! from the core's state at the edge, and the core does not know them.

mod collect;
pub mod routes;
pub mod socket;

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::ids::{CheckpointId, EscalationId, TaskId};
use crate::records::{
    ChangesetRef, Checked, CheckpointRef, Constraint, EffectEntry, Evidence, EvidenceRef, Finding, Judgement, Mismatch,
    Plan, SpecText, TaskSpec,
};
use crate::time::Timestamp;

pub use collect::{Amount, CollectReport, Epitaph};

/// A new task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// What is wanted.
    pub spec: TaskSpec,
    /// The resolved policy, as canonical JSON.
    pub policy: Value,
    /// The policy as the person named it.
    pub policy_name: String,
    /// The absolute path of the task file, so that `run` finds the task again after a crash.
    pub origin: Option<String>,
    /// Who submits.
    pub by: String,
}

/// The state of a task, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// A job waits for a worker.
    Queued,
    /// A worker is at it.
    Running,
    /// Reviewers are at it.
    Reviewing,
    /// A person is asked.
    Waiting,
    /// A person has taken it over.
    Held,
    /// Somebody paused it.
    Paused,
    /// A rule or a person blocked it.
    Blocked,
    /// It is being cancelled.
    Cancelling,
    /// It is done.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// The word as pages show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Reviewing => "reviewing",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Cancelling => "cancelling",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more will happen.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSummary {
    /// The task.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: TaskState,
    /// What it is about right now, in half a sentence.
    pub detail: String,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// The task file that it came from.
    pub origin: Option<String>,
    /// When all but this was pruned, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_at: Option<Timestamp>,
}

/// A task, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    /// The list's row.
    pub summary: TaskSummary,
    /// What is to be achieved.
    pub objective: String,
    /// The target.
    pub workspace: String,
    /// The policy's name and the digest that the task pins.
    pub policy: PolicyView,
    /// The plan.
    pub steps: Vec<StepView>,
    /// The digest of the plan.
    pub plan_hash: Digest,
    /// The attempt.
    pub epoch: u64,
    /// The review round.
    pub round: u32,
    /// The number of the newest event.
    pub version: u64,
    /// The newest checkpoint.
    pub head: Option<CheckpointRef>,
    /// The newest accepted checkpoint.
    pub accepted: Option<CheckpointRef>,
    /// The target when the scratch was cut.
    pub base: Option<Digest>,
    /// The scratch.
    pub tree: Option<Digest>,
    /// The changeset under review or approved.
    pub proposed: Option<ChangesetRef>,
    /// What reached the target.
    pub applied: Vec<ChangesetRef>,
    /// Reviews of the newest round, and older ones that turned stale.
    pub reviews: Vec<ReviewView>,
    /// Findings that are open.
    pub findings: Vec<Finding>,
    /// The item that waits for a person.
    pub item: Option<InboxItem>,
    /// The folder in which a person works who has taken over.
    pub held_in: Option<String>,
    /// What was decided, newest last.
    pub decisions: Vec<DecisionView>,
    /// What was looked at before the newest attempt, and what came of it.
    #[serde(default)]
    pub conditions: Vec<Checked>,
    /// What is used up, by name (`wall_ms`, `rounds`).
    pub usage: BTreeMap<String, u64>,
}

/// Which policy a task pins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// As the person named it.
    pub name: String,
    /// The resolved policy's digest.
    pub digest: Digest,
}

/// A step and how far it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// Its name.
    pub id: String,
    /// `pending`, `running`, `completed`, `failed` or `pending_review`.
    pub state: String,
}

/// A review and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewView {
    /// Its name.
    pub id: String,
    /// The review's name in the policy.
    pub review: String,
    /// The round.
    pub round: u32,
    /// The checkpoint that was reviewed.
    pub checkpoint: CheckpointId,
    /// The judgement; `None` while it is awaited.
    pub verdict: Option<Judgement>,
    /// Whether it is in force.
    pub current: bool,
    /// What changed under it, where it is stale.
    pub stale: Vec<Mismatch>,
    /// Whether it timed out.
    pub timed_out: bool,
}

/// What was decided, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionView {
    /// When.
    pub at: Timestamp,
    /// `continue`, `warn`, `retry`, `request_evidence`, `block`, `escalate` or `abort`.
    pub action: String,
    /// The rule's id.
    pub rule: String,
    /// Where the rule stands: file and line.
    pub origin: String,
    /// The policy's digest.
    pub policy: Digest,
    /// What the rule says to people.
    pub message: Option<String>,
    /// The values that the rule saw.
    pub values: BTreeMap<String, String>,
}

/// An item that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InboxItem {
    /// Its name.
    pub id: EscalationId,
    /// The task.
    pub task_id: TaskId,
    /// The task's name.
    pub task: String,
    /// Who is asked: the policy's level.
    pub level: String,
    /// Why a person is asked.
    pub reason: String,
    /// What an approval must name: the hash of the checkpoint in question.
    pub checkpoint_hash: Option<Digest>,
    /// The checkpoint in question.
    pub checkpoint: Option<CheckpointRef>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it expires.
    pub deadline: Option<Timestamp>,
    /// Who has claimed it.
    pub claimed_by: Option<String>,
    /// How many approvals it needs, and who gave one.
    pub approvers_needed: u32,
    /// Who approved.
    pub approved_by: Vec<String>,
    /// What changed since it was opened, where something did.
    pub stale: Vec<Mismatch>,
    /// The effect that nobody knows the outcome of, where the question is about one.
    #[serde(default)]
    pub effect: Option<Digest>,
}

/// One event of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventView {
    /// The task.
    pub task_id: TaskId,
    /// Its number within the task, from 1.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// What kind of event, such as `checkpoint`.
    pub kind: String,
    /// What happened, in a line for people.
    pub text: String,
    /// How it went: `info`, `good`, `bad`, `ask`.
    pub tone: Tone,
    /// More about it, a line each: findings, stale fields, what the rules decided.
    pub details: Vec<String>,
    /// The task's state afterwards.
    pub state: TaskState,
    /// The event itself.
    pub data: Value,
}

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Something happened.
    Info,
    /// Something went well.
    Good,
    /// Something went wrong or is stale.
    Bad,
    /// A person is asked.
    Ask,
}

/// What a person does to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Parks it at its next checkpoint.
    Pause {},
    /// Lets a paused or blocked task go on.
    Resume {},
    /// Ends it.
    Cancel {},
    /// Claims its inbox item.
    Claim {},
    /// Approves exactly what was shown.
    Approve {
        /// The checkpoint hash that was shown.
        checkpoint_hash: Digest,
        /// A note for the record.
        note: Option<String>,
    },
    /// Rejects what was shown.
    Reject {
        /// The checkpoint hash that was shown.
        checkpoint_hash: Digest,
        /// Why.
        reason: String,
    },
    /// Sends it back with something to do.
    RequestChanges {
        /// The checkpoint hash that was shown.
        checkpoint_hash: Digest,
        /// What has to be done.
        text: String,
    },
    /// Takes it over.
    Takeover {
        /// The folder in which the person will work.
        folder: String,
    },
    /// Hands it back.
    HandBack {
        /// The tree that the person leaves.
        tree: Digest,
        /// The tree that the person started from.
        started_from: Digest,
        /// What the person did.
        note: Option<String>,
    },
    /// Changes specification, plan or constraints.
    Amend {
        /// What changes.
        amendment: Amendment,
    },
    /// Says whether an effect happened whose outcome nobody knows.
    SettleEffect {
        /// The effect's idempotency key.
        key: Digest,
        /// Whether it happened.
        done: bool,
        /// How that is known.
        reason: String,
    },
    /// Closes a finding with a reason.
    CloseFinding {
        /// The finding.
        finding: String,
        /// Why it is no longer open.
        reason: String,
    },
}

/// What an amendment changes; what it leaves out stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Amendment {
    /// A new objective.
    pub objective: Option<String>,
    /// A new specification.
    pub spec: Option<SpecText>,
    /// A new plan; its version is set by the orchestrator.
    pub plan: Option<Plan>,
    /// All constraints anew.
    pub constraints: Option<Vec<Constraint>>,
}

/// Where a page of the effects ledger ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectCursor {
    /// The last entry's task.
    pub task: TaskId,
    /// The last entry's key.
    pub key: Digest,
}

/// How many entries a page of the effects ledger has; a shorter one is the last.
pub const EFFECTS_PAGE: usize = 64;

/// What an action led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acted {
    /// The state afterwards.
    pub state: TaskState,
    /// What happened, in a line for people.
    pub text: String,
}

/// One artifact in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceView {
    /// Its ref.
    pub reference: EvidenceRef,
    /// What it is.
    pub evidence: Evidence,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It does not fit the state that the task is in.
    #[error("{0}")]
    Conflict(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Stored data is damaged.
    #[error("{0}")]
    Integrity(String),
    /// The server can't be reached or can't store anything now.
    #[error("{0}")]
    Unavailable(String),
}

/// Checkrein, as people's tools see it.
#[async_trait]
pub trait Api: Send + Sync {
    /// Submits a task. When this returns, it survives a crash.
    async fn submit(&self, submission: Submission) -> Result<TaskId, Error>;

    /// Every task, newest first.
    async fn tasks(&self) -> Result<Vec<TaskSummary>, Error>;

    /// One task.
    async fn task(&self, id: &TaskId) -> Result<TaskView, Error>;

    /// Events of a task after a version; waits up to `wait_ms` for the first.
    async fn events(&self, id: &TaskId, after: u64, wait_ms: u64) -> Result<Vec<EventView>, Error>;

    /// Does something to a task, as `by`.
    async fn act(&self, id: &TaskId, action: Action, by: &str) -> Result<Acted, Error>;

    /// Everything that waits for a person, most urgent first.
    async fn inbox(&self) -> Result<Vec<InboxItem>, Error>;

    /// The chain of a task, oldest first.
    async fn checkpoints(&self, id: &TaskId) -> Result<Vec<CheckpointRef>, Error>;

    /// The artifacts of a task.
    async fn evidence(&self, id: &TaskId) -> Result<Vec<EvidenceView>, Error>;

    /// A page of the effects ledger, by task and key: what comes after `after`, of one task or of all.
    async fn effects(&self, task: Option<&TaskId>, after: Option<&EffectCursor>) -> Result<Vec<EffectEntry>, Error>;

    /// The bytes of a blob.
    async fn blob(&self, digest: Digest) -> Result<Vec<u8>, Error>;

    /// Stores a blob.
    async fn put_blob(&self, bytes: Vec<u8>) -> Result<Digest, Error>;

    /// What is left of a task that was pruned.
    async fn epitaph(&self, id: &TaskId) -> Result<Epitaph, Error>;

    /// Prunes what the policies no longer keep, and removes blobs that nothing refers to; or only says what it would.
    async fn collect(&self, dry_run: bool) -> Result<CollectReport, Error>;
}
