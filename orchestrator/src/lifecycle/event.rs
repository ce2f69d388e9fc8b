//! What can happen to a task: one closed enum, whatever the source.
//!
//! Everything that the core may not find out by itself (time, names of people,
//! what a worker measured) arrives in here. Signatures, digests and schemas
//! are checked before an event is made.

use checkrein_shared::coordinator::{ClaimRequest, RedeemRequest, Settlement};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{EscalationId, FindingId, InstanceId, JobId, StepId, TaskId};
use checkrein_shared::records::{Attempt, Checked, Checkpoint, Plan, SavePoint, Verdict};
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::task::SpecState;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, by the orchestrator's clock.
    pub at: Timestamp,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EventKind {
    /// A worker took the job.
    LeaseTaken {
        /// The job.
        job_id: JobId,
        /// The attempt.
        epoch: u64,
        /// The worker.
        worker: InstanceId,
    },
    /// A worker was not heard of for too long.
    LeaseExpired {
        /// The attempt.
        epoch: u64,
    },
    /// Nobody could handle a message about the task.
    MessageDied {
        /// What it was: `job`, `review`, ..
        message: String,
        /// The attempt that it was about.
        epoch: u64,
        /// What became of it.
        reason: String,
    },
    /// A job was queued for too long; its message may be lost.
    DispatchTimedOut {
        /// The attempt.
        epoch: u64,
    },
    /// A worker wrote a checkpoint.
    CheckpointWritten {
        /// The checkpoint.
        checkpoint: Box<Checkpoint>,
        /// Its blob.
        record: Digest,
        /// The step that it completes.
        completes: Option<StepId>,
    },
    /// A worker looked at the conditions of its attempt.
    PreconditionsChecked {
        /// The attempt.
        epoch: u64,
        /// Who.
        worker: InstanceId,
        /// What came of each.
        checks: Vec<Checked>,
    },
    /// A worker saved where its attempt can go on from.
    SavePointTaken {
        /// Who.
        worker: InstanceId,
        /// What: the run state, and the tree that belongs to it.
        save_point: Box<SavePoint>,
    },
    /// An attempt ended.
    AttemptEnded {
        /// How.
        attempt: Box<Attempt>,
    },
    /// A reviewer published a verdict whose signature was checked.
    VerdictPublished {
        /// The verdict.
        verdict: Box<Verdict>,
        /// The signed envelope's blob.
        envelope: Digest,
    },
    /// The reviews of a round took too long.
    ReviewTimedOut {
        /// The round.
        round: u32,
    },
    /// The target was found changed.
    TargetDrifted {
        /// What it was compared with.
        base: Digest,
        /// What it is.
        target: Digest,
        /// Paths that differ, the first hundred.
        paths: Vec<String>,
    },
    /// A person changed specification, constraints or plan.
    Amended {
        /// Who.
        by: String,
        /// What is wanted now, where it changed.
        spec: Option<Box<SpecState>>,
        /// The plan now, where it changed.
        plan: Option<Plan>,
    },
    /// A person approved what was shown.
    Approved {
        /// Who.
        by: String,
        /// The hash that was shown.
        hash: Digest,
        /// A note for the record.
        note: Option<String>,
    },
    /// A person rejected what was shown.
    Rejected {
        /// Who.
        by: String,
        /// The hash that was shown.
        hash: Digest,
        /// Why.
        reason: String,
    },
    /// A person asked for changes.
    ChangesRequested {
        /// Who.
        by: String,
        /// The hash that was shown.
        hash: Digest,
        /// What has to be done.
        text: String,
    },
    /// A person claimed the open item.
    ItemClaimed {
        /// Who.
        by: String,
    },
    /// An item's deadline passed.
    ItemExpired {
        /// The item.
        item: EscalationId,
        /// The stage whose deadline it was.
        stage: u32,
    },
    /// The orchestrator was not there when an item's deadline passed.
    DeadlineMissed {
        /// The item.
        item: EscalationId,
    },
    /// A worker asked to use a grant.
    RedeemRequested {
        /// The request, with what the worker measured.
        request: RedeemRequest,
    },
    /// A worker asked to start an effect.
    EffectClaimed {
        /// The request, with the call.
        request: Box<ClaimRequest>,
    },
    /// A worker said what came of an effect.
    EffectSettled {
        /// What it said.
        settlement: Box<Settlement>,
    },
    /// A worker asked the probe of an effect whose outcome is unknown.
    EffectProbed {
        /// What the probe said.
        settlement: Box<Settlement>,
    },
    /// A person said what came of an effect.
    EffectJudged {
        /// Who.
        by: String,
        /// The effect's idempotency key.
        key: Digest,
        /// Whether it happened.
        done: bool,
        /// How the person knows.
        reason: String,
    },
    /// A budget is used up.
    BudgetHit {
        /// Which.
        budget: String,
    },
    /// A person wants it paused.
    PauseRequested {
        /// Who.
        by: String,
    },
    /// A person wants it to go on.
    ResumeRequested {
        /// Who.
        by: String,
    },
    /// A person wants to take it over.
    TakeoverRequested {
        /// Who.
        by: String,
        /// The folder in which the person will work.
        folder: String,
    },
    /// A person hands it back.
    HandedBack {
        /// Who.
        by: String,
        /// The tree that the person leaves.
        tree: Digest,
        /// The tree that the person started from.
        started_from: Digest,
        /// What the person did.
        note: Option<String>,
    },
    /// A person wants it cancelled.
    CancelRequested {
        /// Who.
        by: String,
    },
    /// A signing key is no longer trusted from a point in time on.
    KeyCompromised {
        /// Whose key.
        reviewer: InstanceId,
        /// From when.
        since: Timestamp,
    },
    /// A person closed a finding.
    FindingClosed {
        /// Who.
        by: String,
        /// The finding.
        finding: FindingId,
        /// Why.
        reason: String,
    },
}

impl EventKind {
    /// The effect that it is about, by its key in the task's ledger.
    pub fn effect_key(&self, task: &TaskId) -> Option<Digest> {
        match self {
            Self::EffectClaimed { request } => Some(request.call.key(task)),
            Self::EffectSettled { settlement } | Self::EffectProbed { settlement } => Some(settlement.key),
            Self::EffectJudged { key, .. } => Some(*key),
            _ => None,
        }
    }

    /// The kind in a word, for logs, pages and the journal.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LeaseTaken { .. } => "lease_taken",
            Self::LeaseExpired { .. } => "lease_expired",
            Self::MessageDied { .. } => "message_died",
            Self::DispatchTimedOut { .. } => "dispatch_timed_out",
            Self::CheckpointWritten { .. } => "checkpoint_written",
            Self::PreconditionsChecked { .. } => "preconditions_checked",
            Self::SavePointTaken { .. } => "save_point_taken",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::VerdictPublished { .. } => "verdict_published",
            Self::ReviewTimedOut { .. } => "review_timed_out",
            Self::TargetDrifted { .. } => "target_drifted",
            Self::Amended { .. } => "amended",
            Self::Approved { .. } => "approved",
            Self::Rejected { .. } => "rejected",
            Self::ChangesRequested { .. } => "changes_requested",
            Self::ItemClaimed { .. } => "item_claimed",
            Self::ItemExpired { .. } => "item_expired",
            Self::DeadlineMissed { .. } => "deadline_missed",
            Self::RedeemRequested { .. } => "redeem_requested",
            Self::EffectClaimed { .. } => "effect_claimed",
            Self::EffectSettled { .. } => "effect_settled",
            Self::EffectProbed { .. } => "effect_probed",
            Self::EffectJudged { .. } => "effect_judged",
            Self::BudgetHit { .. } => "budget_hit",
            Self::PauseRequested { .. } => "pause_requested",
            Self::ResumeRequested { .. } => "resume_requested",
            Self::TakeoverRequested { .. } => "takeover_requested",
            Self::HandedBack { .. } => "handed_back",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::KeyCompromised { .. } => "key_compromised",
            Self::FindingClosed { .. } => "finding_closed",
        }
    }
}
