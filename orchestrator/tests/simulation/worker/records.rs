//! The records that a worker writes: real ones, with everything stored that they name.

use std::collections::BTreeMap;

use checkrein_orchestrator::Clock as _;
use checkrein_shared::bus::{Message, Queue};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{MessageId, StepId, TaskId};
use checkrein_shared::json;
use checkrein_shared::records::{
    Attempt as AttemptRecord, AttemptOutcome, Author, ChangesetRef, ChangesetState, Checkpoint, CheckpointMessage,
    ConstraintRef, Evidence, EvidenceIndex, EvidenceKind, EvidenceRef, EvidenceState, Integrity, Objective,
    PlanProgress, Producer, Resume, Role, Summary, TaskSpec, Trigger, WorkspaceState,
};
use checkrein_shared::tree::{Changeset, Manifest};
use serde::Serialize;

use super::Attempt;
use crate::world::World;

/// A tree that is stored, with its name.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) manifest: Manifest,
    pub(crate) digest: Digest,
}

/// A checkpoint that is ready to be sent.
pub(crate) struct Ready {
    pub(crate) message: CheckpointMessage,
    pub(crate) record: Checkpoint,
}

pub(crate) fn envelope<T: Serialize>(kind: &str, task: &TaskId, epoch: u64, record: &T) -> Message {
    let queue = if kind == "verdict" { Queue::InReviewer } else { Queue::InWorker };
    let placeholder: MessageId = "m".parse().expect("an id");
    let mut message = Message::new(placeholder, kind, task.clone(), epoch, queue, record).expect("a small record");
    message.id = format!("m-{kind}-{}", Digest::of(&message.body).to_hex()).parse().expect("an id");
    message
}

pub(crate) fn attempt(attempt: &Attempt, outcome: AttemptOutcome) -> Message {
    let job = &attempt.job;
    let record = AttemptRecord {
        job_id: job.job_id.clone(),
        task_id: job.task_id.clone(),
        epoch: job.epoch,
        worker: attempt.me.clone(),
        outcome,
    };
    envelope("attempt", &job.task_id, job.epoch, &record)
}

/// Reads a record that is known to be there.
pub(crate) fn read<T: serde::de::DeserializeOwned>(world: &World, digest: Digest) -> T {
    let bytes = world.blobs.bytes(digest).expect("it is stored before it is named");
    json::parse_as("record", &bytes).expect("it was written as one")
}

/// An evidence index with one new entry.
pub(crate) fn index(attempt: &Attempt, changeset: Digest, name: &str) -> Digest {
    let reference = EvidenceRef::new(EvidenceKind::Changeset, name).expect("a name");
    let entry = Evidence {
        digest: changeset,
        size: 1,
        media_type: "application/json".into(),
        produced_by: Producer { role: Role::Worker, instance: attempt.me.clone() },
        step: None,
        created_at: attempt.world.clock.now(),
        redactions: BTreeMap::new(),
        dropped_bytes: 0,
    };
    let index = EvidenceIndex { previous: attempt.job.evidence_index, entries: [(reference, entry)].into() };
    attempt.world.blobs.keep(&json::canonical(&index).expect("an index"))
}

/// Writes a checkpoint of the attempt's work so far, and stores everything that it names.
pub(crate) fn checkpoint(
    attempt: &Attempt,
    (trigger, gate): (Trigger, bool),
    base: &Tree,
    tree: &Tree,
    completes: Option<&StepId>,
) -> Ready {
    let (job, world) = (&attempt.job, &attempt.world);
    let changeset = Changeset::between(&base.manifest, &tree.manifest);
    let hash = world.blobs.keep(&changeset.to_bytes());
    let (sequence, previous) = job.head.as_ref().map_or((1, None), |h| (h.sequence + 1, Some(h.hash)));
    let proposed = ChangesetRef { id: job.task_id.changeset(sequence), hash };
    let spec: TaskSpec = read(world, job.spec);
    let mut completed = job.completed.clone();
    completed.extend(completes.cloned().filter(|step| !job.completed.contains(step)));
    let constraint = |c: &checkrein_shared::records::Constraint| ConstraintRef {
        id: c.id.clone(),
        version: c.version,
        hash: c.hash(),
    };
    let record = Checkpoint {
        format: 1,
        checkpoint_id: job.task_id.checkpoint(sequence),
        task_id: job.task_id.clone(),
        sequence,
        created_at: world.clock.now(),
        runtime_version: "command/1".into(),
        state_version: job.state_version,
        epoch: job.epoch,
        trigger,
        gate,
        policy_digest: job.policy,
        tool_schema_fingerprint: Digest::of("tools"),
        author: Author { role: Role::Worker, instance: attempt.me.clone() },
        workspace: WorkspaceState {
            root_id: job.root_id.clone(),
            git_commit: None,
            base: base.digest,
            tree: tree.digest,
            confinement: "none: simulated".into(),
        },
        objective: Objective {
            spec_ref: spec.spec_ref().to_owned(),
            spec_hash: spec.spec_hash(),
            text: spec.objective.clone(),
        },
        constraints: spec.constraints.iter().map(constraint).collect(),
        plan: PlanProgress {
            version: job.plan.version,
            hash: job.plan.hash(),
            current_step_id: completes.cloned(),
            pending_step_ids: job.plan.order().into_iter().filter(|s| !completed.contains(s)).cloned().collect(),
            completed_step_ids: completed,
        },
        changesets: ChangesetState { proposed: proposed.clone(), applied: job.applied.clone() },
        evidence: EvidenceState {
            index: index(attempt, hash, proposed.id.as_str()),
            test_run_ids: Vec::new(),
            tool_event_ids: Vec::new(),
            artifact_refs: Vec::new(),
        },
        approvals: job.approvals.clone(),
        open_issues: Vec::new(),
        open_errors: Vec::new(),
        resume: Resume { idempotency_key: hash, preconditions: Vec::new(), run_state: None },
        summary: Summary::default(),
        integrity: Integrity { previous_checkpoint_hash: previous, checkpoint_hash: hash },
    };
    seal(attempt, record, completes)
}

/// Seals a checkpoint, stores it, and writes the message that submits it.
pub(crate) fn seal(attempt: &Attempt, unsealed: Checkpoint, completes: Option<&StepId>) -> Ready {
    let record = unsealed.seal().expect("only small numbers");
    let blob = attempt.world.blobs.keep(&json::canonical(&record).expect("a sealed record"));
    let message = CheckpointMessage {
        task_id: record.task_id.clone(),
        checkpoint_id: record.checkpoint_id.clone(),
        epoch: record.epoch,
        record: blob,
        completes: completes.cloned(),
    };
    Ready { message, record }
}
