//! The effects ledger's entries: one for each thing that a task does outside
//! its scratch, named by its idempotency key.
//!
//! An entry is written before the effect is started and again when it is known
//! what came of it. Which entry may follow which is decided by the
//! orchestrator's core; these are shapes and names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::{EvidenceKind, EvidenceRef};
use super::handling::Handling;
use super::plan::{EffectClass, StepAction};
use crate::digest::Digest;
use crate::ids::{GrantId, InstanceId, StepId, TaskId};
use crate::json;
use crate::time::{Span, Timestamp};

/// The format of the entries that this version writes.
pub const EFFECT_FORMAT: u32 = 1;

/// The longest text of a call, as canonical JSON.
pub const CALL_BYTES_MAX: usize = 512 * 1024;

/// Why a call can always be hashed.
const CANONICAL: &str = "a call holds texts, digests and a small number only, which always have a canonical form";

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CallArguments {
    /// A command, as an argument vector.
    Command(Vec<String>),
    /// Named values, as the text of a JSON object in canonical form.
    Values(String),
}

/// One call of a tool, as it would be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectCall {
    /// The step that it belongs to.
    pub step: StepId,
    /// The tool: `step:<id>` for the command of a step, `agent:<id>` for its agent as a whole, else such as
    /// `mcp:payments/transfer`.
    pub tool: String,
    /// What it is called with.
    pub arguments: CallArguments,
    /// How many identical calls the step made before.
    pub ordinal: u32,
    /// The directory, relative to the scratch.
    pub cwd: String,
    /// The environment: each name with the digest of its value; `None` where the value differs from attempt to attempt.
    pub environment: BTreeMap<String, Option<Digest>>,
}

impl EffectCall {
    /// The tool under which the command of a step is known to policies.
    pub fn tool_of(step: &StepId) -> String {
        format!("step:{step}")
    }

    /// The tool under which a whole run of a step's agent is known, where its calls are not seen one by one.
    pub fn agent_of(step: &StepId) -> String {
        format!("agent:{step}")
    }

    /// The idempotency key: the same for the same call in every attempt, so that the other side can tell a repetition.
    pub fn key(&self, task: &TaskId) -> Digest {
        json::digest(&(task, &self.step, &self.tool, &self.arguments, self.ordinal)).expect(CANONICAL)
    }

    /// The digest of exactly what would run: tool, arguments, directory and environment. Approvals are bound to it.
    pub fn hash(&self) -> Digest {
        json::digest(&(&self.tool, &self.arguments, &self.cwd, &self.environment)).expect(CANONICAL)
    }

    /// Whether it is the command of the step, and nothing else.
    pub fn is_action(&self, action: &StepAction) -> bool {
        let StepAction::Run(argv) = action else { return false };
        let same = matches!(&self.arguments, CallArguments::Command(command) if command == argv);
        same && self.ordinal == 0 && self.tool == Self::tool_of(&self.step)
    }

    /// Whether it is a run of the step's agent as a whole.
    pub fn is_agent_run(&self) -> bool {
        self.tool == Self::agent_of(&self.step)
    }

    /// The ref under which evidence shows the call of a step with this hash to those who have to agree.
    pub fn shown_as(step: &StepId, hash: Digest) -> EvidenceRef {
        EvidenceRef::new(EvidenceKind::Tool, &format!("call-{step}-{}", hash.short()))
            .expect("ids are short, not empty and hold no control characters")
    }

    /// The command, where it is one.
    pub fn argv(&self) -> &[String] {
        match &self.arguments {
            CallArguments::Command(argv) => argv,
            CallArguments::Values(_) => &[],
        }
    }
}

/// Who has to agree before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectGate {
    /// Nobody.
    Free,
    /// The reviews of a checkpoint before it.
    Review,
    /// A person, besides the reviews.
    Person,
}

/// What allowed it to start, where somebody had to agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// The permission; it is used up.
    pub grant: GrantId,
    /// The hash of the checkpoint that was judged.
    pub checkpoint_hash: Digest,
    /// The people who approved that checkpoint; empty where reviewers alone decided.
    pub approved_by: Vec<String>,
}

/// What a command left that took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectResult {
    /// Its exit code.
    pub exit_code: i64,
    /// The blob of what it printed, where it was stored before the worker was lost.
    pub output: Option<Digest>,
    /// The tree that it started from.
    pub from: Option<Digest>,
    /// The scratch afterwards, where it was stored before the worker was lost.
    pub tree: Option<Digest>,
}

/// Who saw what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Witness {
    /// The worker that ran it.
    Worker(InstanceId),
    /// The probe, run by this worker.
    Probe(InstanceId),
}

/// Where an effect stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EffectStatus {
    /// It waits for its gate; it never started.
    Proposed {
        /// Since when.
        since: Timestamp,
    },
    /// A worker may start it, or has started it.
    Claimed {
        /// The attempt.
        epoch: u64,
        /// The worker.
        worker: InstanceId,
        /// The run of the job that claimed it.
        run: Digest,
        /// When.
        at: Timestamp,
        /// The last moment at which it may be started.
        start_by: Timestamp,
    },
    /// It happened. This never changes again.
    Done {
        /// When that was known.
        at: Timestamp,
        /// Who saw it.
        by: Witness,
        /// What it left, where that is known.
        result: Option<EffectResult>,
    },
    /// It did not happen, or failed in a way that its command told.
    Failed {
        /// When that was known.
        at: Timestamp,
        /// Who saw it.
        by: Witness,
        /// How.
        why: String,
    },
    /// Nobody knows whether it happened.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// The attempt that left it so.
        epoch: u64,
        /// Why nobody knows.
        why: String,
        /// From when on a probe's `not done` counts: earlier, it may still be under way.
        probe_after: Timestamp,
        /// Whether a probe was asked and could not tell.
        probe_failed: bool,
    },
    /// A person said what came of it.
    Settled {
        /// When.
        at: Timestamp,
        /// Who.
        by: String,
        /// Whether it happened.
        done: bool,
        /// How the person knows.
        reason: String,
    },
}

impl EffectStatus {
    /// The status in a word, or a few.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Proposed { .. } => "proposed",
            Self::Claimed { .. } => "claimed",
            Self::Done { .. } | Self::Settled { done: true, .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Unknown { .. } => "unknown",
            Self::Settled { done: false, .. } => "not done",
        }
    }

    /// Whether it happened, as far as anybody knows.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Settled { done: true, .. })
    }

    /// Whether doing it once more could be the second time.
    pub fn may_have_happened(&self) -> bool {
        self.is_done() || matches!(self, Self::Claimed { .. } | Self::Unknown { .. })
    }
}

/// What can be done about an effect whose outcome nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// It runs again with the same key: the other side tells the repetition.
    Key,
    /// A command tells whether it happened.
    Probe,
    /// A person has to find out.
    Person,
}

/// One entry of the effects ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectEntry {
    /// [`EFFECT_FORMAT`].
    pub format: u32,
    /// The idempotency key.
    pub key: Digest,
    /// The task.
    pub task_id: TaskId,
    /// What was, or would be, called.
    pub call: EffectCall,
    /// The digest of exactly that.
    pub call_hash: Digest,
    /// What it does outside the scratch.
    pub class: EffectClass,
    /// Who has to agree before it starts.
    pub gate: EffectGate,
    /// How long it may take.
    pub time_limit: Span,
    /// How it is handled: what the plan says, and what the policy adds.
    pub handling: Handling,
    /// What the dry run printed, where there was one.
    pub dry_run_output: Option<EvidenceRef>,
    /// What allowed the newest start, where somebody had to agree.
    pub allowed_by: Option<Allowance>,
    /// How often it was claimed.
    pub claims: u32,
    /// When it was first asked for.
    pub created_at: Timestamp,
    /// Where it stands.
    pub status: EffectStatus,
}

impl EffectEntry {
    /// What can be done about it while its outcome is unknown.
    pub fn remedy(&self) -> Remedy {
        let probe_failed = matches!(self.status, EffectStatus::Unknown { probe_failed: true, .. });
        match &self.handling {
            // What does nothing outside the scratch can't do it twice.
            _ if self.class == EffectClass::ReadOnly => Remedy::Key,
            Handling { idempotent: true, .. } => Remedy::Key,
            Handling { probe: Some(_), .. } if !probe_failed => Remedy::Probe,
            _ => Remedy::Person,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(argv: &[&str]) -> EffectCall {
        EffectCall {
            step: "deploy".parse().unwrap(),
            tool: "step:deploy".into(),
            arguments: CallArguments::Command(argv.iter().map(ToString::to_string).collect()),
            ordinal: 0,
            cwd: ".".into(),
            environment: BTreeMap::from([("PATH".into(), Some(Digest::of("/bin"))), ("HOME".into(), None)]),
        }
    }

    #[test]
    fn the_key_names_the_call_and_the_hash_also_where_and_with_what_it_runs() {
        let (one, task) = (call(&["make", "publish"]), TaskId::from_random([1; 5]));
        let other_task = TaskId::from_random([2; 5]);
        let key = one.key(&task);
        assert_ne!(key, one.key(&other_task));
        let mut changed = one.clone();
        changed.environment.insert("PATH".into(), Some(Digest::of("/other")));
        assert_eq!(changed.key(&task), key, "the environment does not make it another effect");
        assert_ne!(changed.hash(), one.hash(), "but another call");
        for other in [call(&["make", "publish", "now"]), EffectCall { ordinal: 1, ..one.clone() }] {
            assert_ne!(other.key(&task), key);
        }
        assert_ne!(EffectCall { cwd: "docs".into(), ..one.clone() }.hash(), one.hash());
    }

    #[test]
    fn only_the_steps_own_command_is_its_action() {
        let action = StepAction::Run(vec!["make".into(), "publish".into()]);
        assert!(call(&["make", "publish"]).is_action(&action));
        assert!(!call(&["make"]).is_action(&action));
        assert!(!EffectCall { ordinal: 1, ..call(&["make", "publish"]) }.is_action(&action));
        assert!(!EffectCall { tool: "step:other".into(), ..call(&["make", "publish"]) }.is_action(&action));
        assert!(!call(&["make", "publish"]).is_action(&StepAction::Prompt("make publish".into())));
    }
}
