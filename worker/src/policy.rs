//! What a worker needs of its task's policy, and nothing else of it.
//!
//! The policy decides when checkpoints are written and which of them gate; the
//! worker only asks. It never sees rules or reviews.

use checkrein_shared::policy::{
    self, ApplyTo, ApplyWhen, AttemptFacts, ChangesetFacts, CheckpointFacts, CompiledPolicy, Confinement, Facts,
    PolicyError, RedactionPack, ResolvedPolicy, StepFacts, TaskFacts, Verifier,
};
use checkrein_shared::records::{ConstraintRef, Step, TaskSpec, Trigger};
use checkrein_shared::redact;
use checkrein_shared::time::Span;
use checkrein_shared::tree::RelPath;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::checkpoint;
use crate::desk::Desk;
use crate::jobs::attempt_number;
use crate::propose::Difference;

/// Why a policy can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It can't be read or compiled.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A redaction pattern is none.
    #[error("the policy's redaction can't be used")]
    Redaction(#[from] redact::Error),
    /// A glob of protected paths is none.
    #[error("the policy's `protect` holds an invalid glob")]
    Protect(#[from] globset::Error),
    /// A carried path is no path.
    #[error("the policy's `carry` names `{0}`, which is not a path inside the workspace")]
    Carry(String),
}

/// A task's policy, as its worker sees it.
#[derive(Debug)]
pub(crate) struct JobPolicy {
    compiled: CompiledPolicy,
    carry: Vec<RelPath>,
    protect: GlobSet,
}

impl JobPolicy {
    /// Reads the resolved policy that the task pins.
    pub(crate) fn load(bytes: &[u8]) -> Result<Self, Error> {
        let compiled = ResolvedPolicy::from_bytes(bytes)?.compile()?;
        let path = |text: &String| {
            RelPath::from_bytes(text.trim_end_matches('/').as_bytes()).map_err(|_| Error::Carry(text.clone()))
        };
        let carry = compiled.policy().workspace.carry.iter().map(path).collect::<Result<_, _>>()?;
        let mut protect = GlobSetBuilder::new();
        for pattern in &compiled.policy().workspace.protect {
            protect.add(GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build()?);
        }
        let protect = protect.build()?;
        Ok(Self { compiled, carry, protect })
    }

    fn policy(&self) -> &ResolvedPolicy {
        self.compiled.policy()
    }

    /// The rules that a task's result must keep: its own and the policy's.
    pub(crate) fn constraint_refs(&self, spec: &TaskSpec) -> Vec<ConstraintRef> {
        self.policy().constraint_refs(spec)
    }

    /// Paths that are copied from the target into every scratch.
    pub(crate) fn carry(&self) -> &[RelPath] {
        &self.carry
    }

    /// Whether nothing may run unconfined.
    pub(crate) fn confinement_required(&self) -> bool {
        self.policy().workspace.confinement == Confinement::Required
    }

    /// Whether each completed step is applied by itself.
    pub(crate) fn apply_per_step(&self) -> bool {
        self.policy().workspace.apply == ApplyWhen::PerStep
    }

    /// Whether each applied changeset becomes a commit.
    pub(crate) fn commits(&self) -> bool {
        self.policy().workspace.commit
    }

    /// Whether changes go to the task's own branch and not to the files.
    pub(crate) fn applies_to_branch(&self) -> bool {
        self.policy().workspace.to == ApplyTo::Branch
    }

    /// What is taken out of everything that is stored, before the secrets of the task are added.
    pub(crate) fn redaction(&self) -> Result<redact::Builder, Error> {
        let redaction = &self.policy().redaction;
        let mut builder = redact::Builder::new();
        for name in redaction.packs.iter().flat_map(|pack| shapes_of(*pack)) {
            builder = builder.pack(name)?;
        }
        for pattern in &redaction.extra {
            builder = builder.extra(&pattern.id, &pattern.regex)?;
        }
        Ok(builder)
    }

    /// How long a step may take.
    pub(crate) fn step_wall(&self) -> Option<Span> {
        let budgets = &self.policy().budgets;
        [budgets.step.wall, budgets.task.wall].into_iter().flatten().min()
    }

    /// Checkpoints that are no gates are at least this far apart.
    pub(crate) fn min_interval(&self) -> Span {
        self.policy().triggers.min_interval
    }

    /// Checkpoints are at most this far apart, as far as steps end.
    pub(crate) fn max_interval(&self) -> Span {
        self.policy().triggers.max_interval
    }

    /// A verifier by name.
    pub(crate) fn verifier(&self, name: &str) -> Option<&Verifier> {
        self.policy().verifiers.get(name)
    }

    /// Whether the policy lists a tool, under whatever condition.
    pub(crate) fn lists(&self, tool: &str) -> bool {
        policy::lists_tool(&self.compiled, tool)
    }

    /// Whether a trigger fires, and then whether it gates.
    pub(crate) fn fires(&self, trigger: Trigger, facts: &Facts) -> Option<bool> {
        let decision = policy::trigger_fires(
            &self.compiled,
            trigger,
            &Facts { trigger: trigger.as_str().into(), ..facts.clone() },
        );
        decision.on.then_some(decision.gate)
    }
}

/// The redactor's names of what a policy's pack stands for.
fn shapes_of(pack: RedactionPack) -> &'static [&'static str] {
    match pack {
        RedactionPack::ApiKeys => &["keys"],
        RedactionPack::Tokens => &["tokens", "assignments"],
        RedactionPack::PrivateKeys => &["pem"],
        RedactionPack::ConnectionStrings => &["urls"],
    }
}

/// What the policy's expressions may see of a step that ended.
pub(crate) fn facts(desk: &Desk, step: &Step, difference: &Difference, issues: usize) -> Facts {
    let (job, spec, stats) = (&desk.job, &desk.spec, &difference.text.stats);
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let paths: Vec<String> = difference.changeset.touched().into_iter().map(ToString::to_string).collect();
    Facts {
        task: TaskFacts { id: job.task_id.to_string(), labels: spec.labels.clone(), objective: spec.objective.clone() },
        step: StepFacts { id: step.id.to_string(), risk: step.risk.as_str().to_owned() },
        attempt: AttemptFacts { n: number(attempt_number(job)), failures: i64::from(job.failures), same_error: 0 },
        checkpoint: CheckpointFacts {
            seq: number(checkpoint::next_sequence(job)),
            open_issues: i64::try_from(job.open_issues.len() + issues).unwrap_or(i64::MAX),
            hash: String::new(),
        },
        changeset: ChangesetFacts {
            files: number(stats.files),
            lines: number(stats.lines_added.saturating_add(stats.lines_removed)),
            touched_protected: paths.iter().any(|path| desk.policy.protect.is_match(path)),
            paths,
        },
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pack_of_a_policy_is_known_to_the_redactor() {
        for name in RedactionPack::ALL.iter().flat_map(|pack| shapes_of(*pack)) {
            assert!(redact::PACKS.contains(name), "{name}");
        }
    }
}
