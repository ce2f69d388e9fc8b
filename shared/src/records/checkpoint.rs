//! The checkpoint: a versioned, hash-chained record of a task's state.
//!
//! Its summary is for finding one's way; what counts is what the refs name.
//! This module checks the record against its own hash and its predecessor. It
//! does not fetch evidence, and it does not decide whether the state is good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binding::Bindings;
use super::evidence::EvidenceRef;
use super::scale::{Basis, Role, Severity};
use crate::digest::Digest;
use crate::ids::{ApprovalId, ChangesetId, CheckpointId, InstanceId, RootId, StepId, TaskId};
use crate::json;
use crate::time::Timestamp;

/// The version of the checkpoint record that this build writes.
pub const FORMAT: u32 = 1;

macro_rules! triggers {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a checkpoint was written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Trigger {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Trigger {
            /// Every trigger.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name as policies write it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The trigger with this name.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|t| t.as_str() == text)
            }
        }
    };
}

triggers! {
    /// Before a changeset is applied to the target.
    ChangesetBeforeApply = "changeset.before_apply",
    /// After it was applied.
    ChangesetAfterApply = "changeset.after_apply",
    /// Before a tool call that can do harm.
    ToolBeforeHighRisk = "tool.before_high_risk",
    /// After a person approved.
    ApprovalAfter = "approval.after",
    /// Before the conversation is compacted.
    CompactionBefore = "compaction.before",
    /// Before runtime, provider or tool schema change.
    RuntimeBeforeSwitch = "runtime.before_switch",
    /// Before the task pauses or its process exits.
    TaskBeforePause = "task.before_pause",
    /// When no retry is left.
    RetryExhausted = "retry.exhausted",
    /// Before a person takes over.
    HumanBeforeTakeover = "human.before_takeover",
    /// When a part of the plan is done.
    PlanSubgraphDone = "plan.subgraph_done",
    /// When the plan gained a dependency.
    PlanDependencyFound = "plan.dependency_found",
    /// When the plan lost a step or a check.
    PlanChanged = "plan.changed",
    /// When specification or objective changed.
    SpecChanged = "spec.changed",
    /// When a test that passed fails.
    TestRegressed = "test.regressed",
    /// When the context window runs full.
    ContextHealthLow = "context.health_low",
    /// When cost or time reach a threshold.
    BudgetThreshold = "budget.threshold",
}

/// The record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The version of this record; 1.
    pub format: u32,
    /// Its name, made from task and sequence.
    pub checkpoint_id: CheckpointId,
    /// The task.
    pub task_id: TaskId,
    /// Its place in the chain, from 1.
    pub sequence: u64,
    /// When it was written.
    pub created_at: Timestamp,
    /// Agent kind and version, provider and model.
    pub runtime_version: String,
    /// The number of the task's event on which its author's job was based.
    pub state_version: u64,
    /// The attempt that wrote it.
    pub epoch: u64,
    /// Why it was written.
    pub trigger: Trigger,
    /// Whether its author parks until a decision.
    pub gate: bool,
    /// The resolved policy that the task pins.
    pub policy_digest: Digest,
    /// The tools that the agent had.
    pub tool_schema_fingerprint: Digest,
    /// Who wrote it.
    pub author: Author,
    /// Where the files stand.
    pub workspace: WorkspaceState,
    /// What is to be achieved.
    pub objective: Objective,
    /// The rules that the result must keep.
    pub constraints: Vec<ConstraintRef>,
    /// The plan and how far it got.
    pub plan: PlanProgress,
    /// Changes proposed and applied.
    pub changesets: ChangesetState,
    /// What the claims rest on.
    pub evidence: EvidenceState,
    /// People's approvals so far.
    pub approvals: Vec<ApprovalRef>,
    /// What is known to be open.
    pub open_issues: Vec<IssueRef>,
    /// Errors that nobody has dealt with.
    pub open_errors: Vec<IssueRef>,
    /// What must hold before the task goes on from here.
    pub resume: Resume,
    /// What its author says; navigation, never proof.
    pub summary: Summary,
    /// The chain.
    pub integrity: Integrity,
}

/// Who wrote a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Author {
    /// Worker, or orchestrator for control checkpoints.
    pub role: Role,
    /// The process.
    pub instance: InstanceId,
}

/// Where the files stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceState {
    /// The target.
    pub root_id: RootId,
    /// The target's git commit, where it is a repository with one.
    pub git_commit: Option<String>,
    /// The target when the scratch was cut.
    pub base: Digest,
    /// The scratch.
    pub tree: Digest,
    /// What confined the agent, such as `landlock-v6`, or `none: <why>`.
    pub confinement: String,
}

/// What is to be achieved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// The specification's name.
    pub spec_ref: String,
    /// The digest of objective and specification.
    pub spec_hash: Digest,
    /// The objective.
    pub text: String,
}

/// A rule that the result must keep, by hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConstraintRef {
    /// Its name.
    pub id: String,
    /// Its version.
    pub version: u64,
    /// The digest of its text.
    pub hash: Digest,
}

/// The plan and how far it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanProgress {
    /// The plan's version.
    pub version: u64,
    /// Its hash.
    pub hash: Digest,
    /// The step at work.
    pub current_step_id: Option<StepId>,
    /// Steps that ended well.
    pub completed_step_ids: Vec<StepId>,
    /// Steps still to come.
    pub pending_step_ids: Vec<StepId>,
}

/// A changeset by name and digest; the blob with that digest is its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesetRef {
    /// Its name.
    pub id: ChangesetId,
    /// Its digest.
    pub hash: Digest,
}

/// Changes proposed and applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesetState {
    /// The difference from base to tree: always there, empty or not.
    pub proposed: ChangesetRef,
    /// What reached the target so far.
    pub applied: Vec<ChangesetRef>,
}

/// What the claims rest on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceState {
    /// The evidence index.
    pub index: Digest,
    /// Test runs since the last checkpoint.
    pub test_run_ids: Vec<EvidenceRef>,
    /// Tool calls since the last checkpoint.
    pub tool_event_ids: Vec<EvidenceRef>,
    /// Other artifacts since the last checkpoint.
    pub artifact_refs: Vec<EvidenceRef>,
}

/// A person's approval, by name and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRef {
    /// Its name.
    pub id: ApprovalId,
    /// The checkpoint hash that it was given for.
    pub checkpoint_hash: Digest,
    /// Who gave it.
    pub by: String,
}

/// Something that is known to be open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssueRef {
    /// Its name.
    pub id: String,
    /// How grave it is.
    pub severity: Severity,
    /// What it is.
    pub text: String,
    /// What it rests on.
    pub refs: Vec<EvidenceRef>,
}

/// A condition for going on from a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// The target exists.
    WorkspacePresent,
    /// The target equals the base, or the difference is recorded.
    BaseUnchanged,
    /// Agent, provider and tools are compatible.
    RuntimeCompatible,
    /// Approvals that the next action needs are still valid.
    ApprovalsStillValid,
    /// The effects ledger was asked about what may have happened.
    LedgerConsulted,
    /// Every secret that the task names can be resolved; none is stored.
    SecretsResolvable,
}

impl Precondition {
    /// The name as written in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkspacePresent => "workspace_present",
            Self::BaseUnchanged => "base_unchanged",
            Self::RuntimeCompatible => "runtime_compatible",
            Self::ApprovalsStillValid => "approvals_still_valid",
            Self::LedgerConsulted => "ledger_consulted",
            Self::SecretsResolvable => "secrets_resolvable",
        }
    }
}

/// What must hold before the task goes on from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Names this point, so that going on twice is noticed.
    pub idempotency_key: Digest,
    /// The conditions.
    pub preconditions: Vec<Precondition>,
    /// The agent's conversation, where there is one.
    pub run_state: Option<Digest>,
}

/// One statement and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement.
    pub text: String,
    /// The evidence that it names.
    pub refs: Vec<EvidenceRef>,
    /// What it rests on; nothing is ever shown as more.
    pub basis: Basis,
}

/// What the author says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// What was done.
    pub completed: Vec<Claim>,
    /// What comes next.
    pub next: Vec<Claim>,
}

/// The chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Integrity {
    /// The hash of the checkpoint before; `None` for the first.
    pub previous_checkpoint_hash: Option<Digest>,
    /// The hash of this record without this field.
    pub checkpoint_hash: Digest,
}

/// A checkpoint by name, hash and blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointRef {
    /// Its name.
    pub id: CheckpointId,
    /// Its hash.
    pub hash: Digest,
    /// Its place in the chain.
    pub sequence: u64,
    /// The blob that holds the record.
    pub record: Digest,
}

/// Why a checkpoint can't stand in the chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityError {
    /// It was written by a newer build.
    #[error("checkpoint {id} has format {found}; this build reads format {FORMAT}: use a newer Checkrein")]
    Format {
        /// The checkpoint.
        id: CheckpointId,
        /// Its format.
        found: u32,
    },
    /// Its content does not have the hash that it says.
    #[error("checkpoint {id} says its hash is {stated}, but its content hashes to {found}")]
    Hash {
        /// The checkpoint.
        id: CheckpointId,
        /// The hash in the record.
        stated: Digest,
        /// The hash of the record.
        found: Digest,
    },
    /// It does not follow its predecessor.
    #[error("checkpoint {id} does not follow its predecessor: {why}")]
    Chain {
        /// The checkpoint.
        id: CheckpointId,
        /// What does not fit.
        why: String,
    },
    /// It can't be written in canonical form.
    #[error("checkpoint {id} has no canonical form: {why}")]
    Canonical {
        /// The checkpoint.
        id: CheckpointId,
        /// Why.
        why: String,
    },
}

impl Checkpoint {
    /// The hash of the record without `integrity.checkpoint_hash`.
    ///
    /// # Errors
    ///
    /// [`IntegrityError::Canonical`] where a number in it is out of range.
    pub fn compute_hash(&self) -> Result<Digest, IntegrityError> {
        let failed = |why: String| IntegrityError::Canonical { id: self.checkpoint_id.clone(), why };
        let mut value = serde_json::to_value(self).map_err(|e| failed(e.to_string()))?;
        if let Some(Value::Object(integrity)) = value.get_mut("integrity") {
            integrity.remove("checkpoint_hash");
        }
        json::digest(&value).map_err(|e| failed(e.to_string()))
    }

    /// Sets the hash from the content.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::compute_hash`].
    pub fn seal(mut self) -> Result<Self, IntegrityError> {
        self.integrity.checkpoint_hash = self.compute_hash()?;
        Ok(self)
    }

    /// Checks format, name and hash.
    ///
    /// # Errors
    ///
    /// The first [`IntegrityError`] found.
    pub fn check_hash(&self) -> Result<(), IntegrityError> {
        let id = self.checkpoint_id.clone();
        if self.format != FORMAT {
            return Err(IntegrityError::Format { id, found: self.format });
        }
        if self.sequence == 0 || self.checkpoint_id != self.task_id.checkpoint(self.sequence) {
            let why = format!("its name does not belong to sequence {} of {}", self.sequence, self.task_id);
            return Err(IntegrityError::Chain { id, why });
        }
        let found = self.compute_hash()?;
        if found != self.integrity.checkpoint_hash {
            return Err(IntegrityError::Hash { id, stated: self.integrity.checkpoint_hash, found });
        }
        Ok(())
    }

    /// Checks that this record follows `head`: the next sequence, with the head's hash inside.
    ///
    /// # Errors
    ///
    /// [`IntegrityError::Chain`] that says what does not fit.
    pub fn check_follows(&self, head: Option<&CheckpointRef>) -> Result<(), IntegrityError> {
        let (sequence, previous) = head.map_or((1, None), |h| (h.sequence + 1, Some(h.hash)));
        let fail = |why| Err(IntegrityError::Chain { id: self.checkpoint_id.clone(), why });
        if self.sequence != sequence {
            return fail(format!("its sequence is {}, the next one is {sequence}", self.sequence));
        }
        if self.integrity.previous_checkpoint_hash != previous {
            return fail("the hash of its predecessor is not the head's".to_owned());
        }
        Ok(())
    }

    /// The digest of the constraints with their versions.
    pub fn constraints_hash(&self) -> Digest {
        json::digest(&self.constraints).expect("versions are checked when the record is hashed")
    }

    /// What a judgement of this checkpoint is bound to.
    pub fn bindings(&self) -> Bindings {
        Bindings {
            task_id: self.task_id.clone(),
            checkpoint_id: self.checkpoint_id.clone(),
            checkpoint_hash: self.integrity.checkpoint_hash,
            base: self.workspace.base,
            tree: self.workspace.tree,
            plan_version: self.plan.version,
            plan_hash: self.plan.hash,
            changeset_hash: self.changesets.proposed.hash,
            spec_hash: self.objective.spec_hash,
            constraints_hash: self.constraints_hash(),
            policy_digest: self.policy_digest,
            tool_schema_fingerprint: self.tool_schema_fingerprint,
            runtime_version: self.runtime_version.clone(),
            evidence_root: self.evidence.index,
            sequence: self.sequence,
            epoch: self.epoch,
        }
    }
}
