//! The task as the core sees it: everything that decides what may happen next.
//!
//! It is plain data, kept whole in every journal record. Data that only one
//! state needs lives in that state's variant (see [`State`]); what grows is
//! bounded here. Texts, files and records are named by digest only.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{
    ApprovalId, EscalationId, FindingId, GrantId, InstanceId, ReviewId, RootId, StepId, TaskId,
};
use checkrein_shared::records::{
    ApprovalRef, Bindings, Budgets, ChangesetRef, CheckpointRef, ConstraintRef, Finding, JobKind, Judgement, Mismatch,
    Plan, RequiredAction, ReviewKind, Risk, SavePoint, Trigger, VerifierOutcome,
};
use checkrein_shared::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::effects::OpenEffect;

/// The most findings that may be open at once; more are counted, not kept.
pub(super) const FINDINGS_MAX: usize = 500;
/// The most approvals that are kept in the state; the journal has them all.
pub(super) const APPROVALS_MAX: usize = 16;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its name, for people.
    pub name: String,
    /// The task file that it came from.
    pub origin: Option<String>,
    /// Who submitted it.
    pub submitted_by: String,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// What is wanted.
    pub spec: SpecState,
    /// The policy that it pins.
    pub policy: PolicyPin,
    /// The plan in force.
    pub plan: Plan,
    /// How far each step got.
    pub steps: BTreeMap<StepId, StepStatus>,
    /// The target.
    pub root_id: RootId,
    /// What is happening.
    pub state: State,
    /// Grows with each dispatch.
    pub epoch: u64,
    /// The newest checkpoint.
    pub head: Option<CheckpointRef>,
    /// The newest accepted checkpoint.
    pub accepted: Option<CheckpointRef>,
    /// The target when the scratch was cut.
    pub base: Option<Digest>,
    /// The scratch as it was left.
    pub tree: Option<Digest>,
    /// The evidence index.
    pub evidence_index: Option<Digest>,
    /// Where the newest attempt that saved anything can go on from, with the tree that belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save_point: Option<SavePoint>,
    /// The newest gating checkpoint and what it is about.
    pub subject: Option<Subject>,
    /// The number of the newest review round.
    pub round: u32,
    /// The newest verdicts of each review, oldest first; what was before is history.
    pub verdicts: Vec<VerdictState>,
    /// The names of verdicts that are history, the newest of them: each counts once, however often it comes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged: Vec<ReviewId>,
    /// Findings that are open.
    pub findings: Vec<OpenFinding>,
    /// Verifier outcomes of the newest round, by name.
    pub verifiers: BTreeMap<String, VerifierOutcome>,
    /// Permissions that may still be used, and the newest spent ones, oldest first.
    pub grants: Vec<Grant>,
    /// People's approvals, oldest first.
    pub approvals: Vec<ApprovalRef>,
    /// People who edited the tree since the last accepted checkpoint.
    pub editors: BTreeSet<String>,
    /// What has to be done before the change can be accepted.
    pub required_actions: Vec<RequiredAction>,
    /// Effects that are open: of the step at hand, or with an unknown outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<OpenEffect>,
    /// What reached the target.
    pub applied: Vec<ChangesetRef>,
    /// Steps whose work is in the target: nothing ever runs them again.
    pub applied_steps: BTreeSet<StepId>,
    /// The target as last reported, where it is not the base.
    pub drifted: Option<Digest>,
    /// Whether a negative verdict came while a redeemed grant was being carried out.
    pub late_veto: bool,
    /// Counters and budgets.
    pub usage: Usage,
    /// How often each rule has fired, by rule id.
    pub rule_counts: BTreeMap<String, u32>,
    /// What was decided of late, newest last.
    pub rulings: Vec<Ruling>,
}

/// What is wanted, by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecState {
    /// The blob of the specification in force.
    pub record: Digest,
    /// The digest of objective and specification text.
    pub hash: Digest,
    /// The specification's name.
    pub spec_ref: String,
    /// The objective.
    pub objective: String,
    /// The target's path.
    pub workspace: String,
    /// The rules that the result must keep: the task's and the policy's.
    pub constraints: Vec<ConstraintRef>,
    /// Labels, for policies.
    pub labels: BTreeMap<String, String>,
    /// The task's own limits; the policy's count besides.
    pub budgets: Budgets,
}

/// The policy that a task pins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyPin {
    /// As the person named it.
    pub name: String,
    /// The blob of the resolved policy.
    pub digest: Digest,
}

/// How far a step got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Still to come.
    Pending,
    /// It ended well.
    Completed,
    /// It ended well, but something before it changed since.
    PendingReview,
    /// Its last attempt failed.
    Failed,
}

/// What is happening to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    /// A job waits for a worker.
    Queued {
        /// The job.
        job: JobKind,
    },
    /// A worker has the job.
    Running {
        /// The job.
        job: JobKind,
        /// The worker.
        worker: InstanceId,
        /// Since when its time is to be counted: the lease, or the last event.
        since: Timestamp,
        /// What somebody wants as soon as the worker parks.
        wish: Option<Wish>,
        /// Whether the step was amended since: what runs is not what is planned, so its end completes nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        outdated: bool,
    },
    /// Reviewers are at the subject.
    Reviewing {
        /// The reviews of this round.
        slots: Vec<Slot>,
    },
    /// A person is asked.
    Waiting {
        /// The inbox item.
        item: Item,
    },
    /// A person has taken over.
    Held {
        /// Who.
        by: String,
        /// The folder in which the person works.
        folder: String,
        /// The tree that the person started from; `None` where there was no scratch yet.
        started_from: Option<Digest>,
    },
    /// Somebody paused it.
    Paused {
        /// Who.
        by: String,
        /// When.
        since: Timestamp,
        /// What it goes back to.
        from: Box<State>,
    },
    /// A rule or a person blocked it; an operator may let it go on.
    Blocked {
        /// Why.
        reason: String,
        /// Whether the work itself was found wanting: then going on means to do it again.
        redo: bool,
    },
    /// It ends as soon as its worker has stopped.
    Cancelling {
        /// Who wants it.
        by: String,
    },
    /// Nothing more will happen.
    Done {
        /// How it ended.
        outcome: Outcome,
    },
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// Everything was done, reviewed and applied.
    Completed {},
    /// It can't be done.
    Failed {
        /// Why.
        reason: String,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// Who.
        by: String,
    },
}

/// What somebody wants as soon as a worker parks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// Pause.
    Pause {
        /// Who.
        by: String,
    },
    /// Take over.
    Takeover {
        /// Who.
        by: String,
        /// The folder in which the person will work.
        folder: String,
    },
    /// Start again with the amended specification or plan.
    Amended {},
    /// Ask the rules about a budget.
    Budget {
        /// Which.
        budget: String,
    },
}

/// The gating checkpoint that reviews, approvals and grants are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The checkpoint.
    pub checkpoint: CheckpointRef,
    /// What judgements of it are bound to.
    pub bindings: Bindings,
    /// Why it was written.
    pub trigger: Trigger,
    /// The changeset that it proposes.
    pub changeset: ChangesetRef,
    /// Whether base and tree are the same.
    pub empty: bool,
    /// The step at work when it was written.
    pub step: Option<StepId>,
}

/// One review of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// The review.
    pub id: ReviewId,
    /// Its name in the policy.
    pub review: String,
    /// Its kind.
    pub kind: ReviewKind,
    /// Whether the round waits for it.
    pub blocking: bool,
    /// How many approvals of this name are needed.
    pub quorum: u32,
    /// Whether one negative verdict of this name is enough to refuse.
    pub veto: bool,
    /// When it counts as timed out.
    pub deadline: Timestamp,
    /// What came of it.
    pub answer: Answer,
    /// The inbox item, where a person reviews.
    pub item: Option<Item>,
}

/// What came of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Nothing yet.
    Awaited,
    /// A current verdict.
    Given(Judgement),
    /// Nothing until its deadline.
    TimedOut,
}

/// A verdict and whether it still counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictState {
    /// The review.
    pub id: ReviewId,
    /// Its name in the policy.
    pub review: String,
    /// Its kind.
    pub kind: ReviewKind,
    /// The round.
    pub round: u32,
    /// The signed envelope's blob; `None` for a person's verdict, which the journal holds.
    pub envelope: Option<Digest>,
    /// The judgement.
    pub verdict: Judgement,
    /// The risk as the reviewer sees it.
    pub risk: Risk,
    /// How much of what it had to read it did read, in per cent.
    pub coverage_pct: u64,
    /// What it is bound to.
    pub bindings: Bindings,
    /// Who signed.
    pub reviewer: InstanceId,
    /// When.
    pub at: Timestamp,
    /// The verdict that this one carries over.
    pub inherited_from: Option<ReviewId>,
    /// What changed under it; empty while it is current. Once stale, always stale.
    pub stale: Vec<Mismatch>,
    /// The verifiers that its reviewer ran.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub verifiers: BTreeSet<String>,
}

/// A finding that is open, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFinding {
    /// The finding.
    pub finding: Finding,
    /// The review that raised it, by its name in the policy.
    pub review: String,
    /// The round in which it was raised.
    pub since_round: u32,
    /// Whether it stands in the way of any `continue`: it was raised by a negative verdict and not resolved since.
    pub veto: bool,
}

/// A one-time permission to apply one changeset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// What it is bound to.
    pub bindings: Bindings,
    /// What may be applied.
    pub changeset: ChangesetRef,
    /// Where it stands.
    pub status: GrantStatus,
}

/// Where a grant stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GrantStatus {
    /// It may be redeemed.
    Issued {},
    /// A worker is carrying it out.
    Redeemed {},
    /// It was carried out.
    Settled {},
    /// It may never be used.
    Void {
        /// Why.
        reason: String,
    },
}

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its id.
    pub id: EscalationId,
    /// The policy's level.
    pub level: String,
    /// Why a person is asked.
    pub reason: String,
    /// What the person decides about.
    pub about: About,
    /// The hash that an approval must name: the checkpoint's, or the item's own where there is no checkpoint.
    pub hash: Digest,
    /// The checkpoint in question.
    pub checkpoint: Option<CheckpointRef>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it expires.
    pub deadline: Option<Timestamp>,
    /// How many levels it has gone through.
    pub stage: u32,
    /// Who has claimed it.
    pub claimed_by: Option<String>,
    /// How many approvals it needs.
    pub approvers: u32,
    /// Who approved so far.
    pub approved_by: BTreeSet<String>,
    /// What changed since it was opened.
    pub stale: Vec<Mismatch>,
}

/// What a person decides about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum About {
    /// Whether the subject may go on.
    Gate {},
    /// Whether a failed step is tried again.
    Failure {
        /// The step.
        step: StepId,
    },
    /// Whether an effect happened. It is answered with what a person found out, not with an approval.
    Effect {
        /// The step.
        step: StepId,
        /// The effect's idempotency key.
        key: Digest,
    },
    /// Whether the task may go on beyond a budget.
    Budget {
        /// Which.
        budget: String,
    },
    /// What to do about a target that changed where the task changes it too.
    Overlap {},
    /// Whether an apply or a rebase that could not be carried out is tried again.
    Interrupted {},
    /// What to do about a negative verdict that came after the change was applied.
    LateVeto {},
}

impl About {
    /// Whether it is the work itself that somebody looks at, not what became of a step, an effect or a budget.
    pub fn is_the_work(&self) -> bool {
        match self {
            Self::Gate {} | Self::Overlap {} | Self::LateVeto {} => true,
            Self::Failure { .. } | Self::Effect { .. } | Self::Budget { .. } | Self::Interrupted {} => false,
        }
    }
}

/// Counters and what is used up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Time under lease so far, in milliseconds.
    pub wall_ms: u64,
    /// How much more wall time than the budget says a person has allowed, in milliseconds.
    pub wall_extra_ms: u64,
    /// Failed attempts at the current step.
    pub failures: u32,
    /// How many of them, counted from the last, failed in the same way.
    pub same_error: u32,
    /// The last failure.
    pub last_error: Option<Digest>,
    /// Attempts that were lost since the last checkpoint, save point or step.
    pub lost_attempts: u32,
    /// Times that the target was found changed when a grant was to be carried out.
    pub conflicts: u32,
    /// Grants so far.
    pub grants: u64,
    /// Inbox items so far.
    pub items: u64,
    /// Approvals so far.
    pub approvals: u64,
}

/// What was decided, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    /// The number of the task's event that led to it.
    pub version: u64,
    /// When.
    pub at: Timestamp,
    /// What the rules were asked about.
    pub on: String,
    /// The rule.
    pub rule: String,
    /// Where it stands.
    pub origin: String,
    /// What it says.
    pub action: String,
    /// What it tells people.
    pub message: Option<String>,
    /// The values that it saw.
    pub values: BTreeMap<String, String>,
    /// The checkpoint that was decided about.
    pub checkpoint: Option<CheckpointRef>,
}

impl Task {
    /// The next step that can run: the first in order that is not completed.
    pub fn next_step(&self) -> Option<&StepId> {
        self.plan.order().into_iter().find(|id| self.steps.get(*id) != Some(&StepStatus::Completed))
    }

    /// The steps that ended well, in the plan's order.
    pub fn completed(&self) -> Vec<StepId> {
        let done = |id: &&StepId| self.steps.get(*id) == Some(&StepStatus::Completed);
        self.plan.order().into_iter().filter(done).cloned().collect()
    }

    /// The steps still to come, in the plan's order.
    pub fn pending(&self) -> Vec<StepId> {
        let open = |id: &&StepId| self.steps.get(*id) != Some(&StepStatus::Completed);
        self.plan.order().into_iter().filter(open).cloned().collect()
    }

    /// What a judgement must be bound to now: the subject's bindings with what has changed since.
    pub fn live_bindings(&self) -> Option<Bindings> {
        let mut bindings = self.subject.as_ref()?.bindings.clone();
        bindings.plan_version = self.plan.version;
        bindings.plan_hash = self.plan.hash();
        bindings.spec_hash = self.spec.hash;
        bindings.constraints_hash = checkrein_shared::json::digest(&self.spec.constraints)
            .expect("constraint versions were checked when the task was submitted");
        bindings.policy_digest = self.policy.digest;
        if let Some(target) = self.drifted {
            bindings.base = target;
        }
        Some(bindings)
    }

    /// The grant that may still be used, where there is one.
    pub fn open_grant(&self) -> Option<&Grant> {
        self.grants.iter().rev().find(|g| matches!(g.status, GrantStatus::Issued {} | GrantStatus::Redeemed {}))
    }

    /// The inbox items that are open.
    pub fn items(&self) -> Vec<&Item> {
        match &self.state {
            State::Waiting { item } => vec![item],
            State::Reviewing { slots } => {
                slots.iter().filter(|s| s.answer == Answer::Awaited).filter_map(|s| s.item.as_ref()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The id of the next approval.
    pub fn next_approval(&mut self) -> ApprovalId {
        self.usage.approvals += 1;
        self.id.approval(self.usage.approvals)
    }

    /// Whether a finding with this id is open.
    pub fn has_open(&self, id: &FindingId) -> bool {
        self.findings.iter().any(|f| &f.finding.id == id)
    }
}

/// Keeps the newest `max` of a list that grows at its end.
pub(super) fn keep_newest<T>(list: &mut Vec<T>, max: usize) {
    if list.len() > max {
        list.drain(..list.len() - max);
    }
}
