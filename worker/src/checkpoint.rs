//! Writes the checkpoint record from a job and what came of it.
//!
//! Pure: it gets every fact as an argument, and stores and sends nothing.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{InstanceId, StepId};
use checkrein_shared::json;
use checkrein_shared::records::{
    Author, Basis, CHECKPOINT_FORMAT, ChangesetRef, ChangesetState, Checkpoint, Claim, ConstraintRef, EffectClass,
    EvidenceKind, EvidenceRef, EvidenceState, Integrity, IntegrityError, IssueRef, Job, JobKind, Objective,
    PlanProgress, Precondition, Resume, Role, Summary, TaskSpec, WorkspaceState,
};
use checkrein_shared::time::Timestamp;

use crate::trigger::Occasion;

/// All that a checkpoint says beyond its job.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) job: &'a Job,
    pub(crate) spec: &'a TaskSpec,
    /// The rules that the result must keep: the task's and the policy's.
    pub(crate) constraints: Vec<ConstraintRef>,
    pub(crate) occasion: Occasion,
    pub(crate) now: Timestamp,
    pub(crate) instance: &'a InstanceId,
    pub(crate) base: Digest,
    pub(crate) tree: Digest,
    pub(crate) git_commit: Option<String>,
    pub(crate) confinement: String,
    pub(crate) proposed: ChangesetRef,
    /// The step that this checkpoint completes.
    pub(crate) completes: Option<&'a StepId>,
    /// The run state that belongs to exactly this tree.
    pub(crate) run_state: Option<Digest>,
    /// The evidence index, and the refs that are new in it.
    pub(crate) index: Digest,
    pub(crate) fresh: &'a [EvidenceRef],
    pub(crate) claims: Vec<Claim>,
    pub(crate) issues: Vec<IssueRef>,
    pub(crate) errors: Vec<IssueRef>,
}

/// The sequence of the checkpoint that this job writes next.
pub(crate) fn next_sequence(job: &Job) -> u64 {
    job.head.as_ref().map_or(1, |head| head.sequence + 1)
}

/// What a task's steps are run by: the agent's command, what it is given and its home. Not Checkrein's own version,
/// which would make every waiting approval stale with each upgrade.
pub(crate) fn runtime_version(spec: &TaskSpec) -> String {
    match &spec.agent {
        None => "run".to_owned(),
        Some(agent) => {
            let print = json::digest(agent).expect("strings always have a canonical form");
            format!("command-{}", print.short())
        }
    }
}

/// The fingerprint of the tools that Checkrein gives to a command agent: none.
pub(crate) fn no_tools() -> Digest {
    json::digest::<[String; 0]>(&[]).expect("an empty list has a canonical form")
}

/// Writes and seals the record.
pub(crate) fn author(draft: Draft<'_>) -> Result<Checkpoint, IntegrityError> {
    let Draft { job, spec, occasion, .. } = draft;
    let sequence = next_sequence(job);
    let checkpoint_id = job.task_id.checkpoint(sequence);
    let plan = progress(job, draft.completes);
    let key = (&job.task_id, &checkpoint_id, draft.base, draft.tree);
    let idempotency_key = json::digest(&key).expect("ids and digests always have a canonical form");
    let next = plan.pending_step_ids.iter().map(|step| inferred(format!("step `{step}` is still to come"))).collect();
    Checkpoint {
        format: CHECKPOINT_FORMAT,
        checkpoint_id,
        task_id: job.task_id.clone(),
        sequence,
        created_at: draft.now,
        runtime_version: runtime_version(spec),
        state_version: job.state_version,
        epoch: job.epoch,
        trigger: occasion.trigger,
        gate: occasion.gate,
        policy_digest: job.policy,
        tool_schema_fingerprint: no_tools(),
        author: Author { role: Role::Worker, instance: draft.instance.clone() },
        workspace: WorkspaceState {
            root_id: job.root_id.clone(),
            git_commit: draft.git_commit,
            base: draft.base,
            tree: draft.tree,
            confinement: draft.confinement,
        },
        objective: objective(spec),
        constraints: draft.constraints,
        plan,
        changesets: ChangesetState { proposed: draft.proposed, applied: job.applied.clone() },
        evidence: evidence(draft.index, draft.fresh),
        approvals: job.approvals.clone(),
        open_issues: merged(&job.open_issues, draft.issues),
        open_errors: draft.errors,
        resume: Resume { idempotency_key, preconditions: preconditions(job, spec), run_state: draft.run_state },
        summary: Summary { completed: draft.claims, next },
        integrity: Integrity {
            previous_checkpoint_hash: job.head.as_ref().map(|head| head.hash),
            checkpoint_hash: Digest::of(""),
        },
    }
    .seal()
}

fn objective(spec: &TaskSpec) -> Objective {
    Objective { spec_ref: spec.spec_ref().to_owned(), spec_hash: spec.spec_hash(), text: spec.objective.clone() }
}

fn inferred(text: String) -> Claim {
    Claim { text, refs: Vec::new(), basis: Basis::Inferred }
}

/// The plan's progress when `completes` is done too.
fn progress(job: &Job, completes: Option<&StepId>) -> PlanProgress {
    let mut completed = job.completed.clone();
    completed.extend(completes.filter(|step| !job.completed.contains(step)).cloned());
    let pending: Vec<StepId> = job.plan.order().into_iter().filter(|s| !completed.contains(s)).cloned().collect();
    let at_work = match &job.kind {
        JobKind::Step { step, .. } => Some(step).filter(|step| pending.contains(step)),
        JobKind::Apply { .. } | JobKind::Rebase | JobKind::Evidence { .. } => None,
    };
    PlanProgress {
        version: job.plan.version,
        hash: job.plan.hash(),
        current_step_id: at_work.cloned(),
        completed_step_ids: completed,
        pending_step_ids: pending,
    }
}

fn evidence(index: Digest, fresh: &[EvidenceRef]) -> EvidenceState {
    let of = |wanted: &dyn Fn(EvidenceKind) -> bool| fresh.iter().filter(|r| wanted(r.kind())).cloned().collect();
    EvidenceState {
        index,
        test_run_ids: of(&|kind| kind == EvidenceKind::Test),
        tool_event_ids: of(&|kind| kind == EvidenceKind::Tool),
        artifact_refs: of(&|kind| !matches!(kind, EvidenceKind::Test | EvidenceKind::Tool)),
    }
}

/// What was open, and what is new; the newer wording of the same thing wins.
fn merged(open: &[IssueRef], new: Vec<IssueRef>) -> Vec<IssueRef> {
    let mut issues: Vec<IssueRef> =
        open.iter().filter(|issue| !new.iter().any(|n| n.id == issue.id)).cloned().collect();
    issues.extend(new);
    issues
}

/// What must hold before anybody goes on from here.
fn preconditions(job: &Job, spec: &TaskSpec) -> Vec<Precondition> {
    let effects = job.plan.steps.iter().any(|step| step.effect != EffectClass::ReadOnly);
    let secrets = spec.agent.as_ref().is_some_and(|agent| !agent.env.is_empty());
    [
        (Precondition::WorkspacePresent, true),
        (Precondition::BaseUnchanged, true),
        (Precondition::RuntimeCompatible, true),
        (Precondition::ApprovalsStillValid, true),
        (Precondition::LedgerConsulted, effects),
        (Precondition::SecretsResolvable, secrets),
    ]
    .into_iter()
    .filter_map(|(condition, wanted)| wanted.then_some(condition))
    .collect()
}
