//! The chain: taking workers' checkpoints into it, and writing control
//! checkpoints where no worker holds the task.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::json;
use checkrein_shared::records::{
    Author, ChangesetState, Checkpoint, CheckpointRef, Conversation, EvidenceState, Integrity, IssueRef, JobKind,
    Objective, PlanProgress, Resume, Role, SourceRef, Summary, Trigger, WorkspaceState,
};
use checkrein_shared::tree::{Changeset, Manifest};

use crate::guards::guard;

use super::decision::Reason;
use super::task::{State, Wish};
use super::turn::{Handled, Turn};

impl Turn<'_> {
    pub(super) fn checkpoint_written(
        &mut self,
        checkpoint: &Checkpoint,
        record: Digest,
        completes: Option<&StepId>,
    ) -> Handled {
        if !guard!(CheckpointOfThisAttempt, checkpoint.epoch == self.task.epoch) {
            return Ok(Some(Reason::StaleEpoch));
        }
        if self.task.head.as_ref().is_some_and(|h| h.hash == checkpoint.integrity.checkpoint_hash) {
            return Ok(Some(Reason::Duplicate));
        }
        if !matches!(self.task.state, State::Running { .. } | State::Cancelling { .. }) {
            return Ok(Some(Reason::NotInThisState));
        }
        let follows = checkpoint.check_follows(self.task.head.as_ref()).map_err(|error| error.to_string());
        if !guard!(CheckpointFollowsHead, follows.is_ok()) {
            return Ok(Some(Reason::NotInChain(follows.err().unwrap_or_default())));
        }
        let old_base = self.task.base;
        self.append(checkpoint.clone(), record);
        self.note_shown(checkpoint);
        if let Some(step) = completes {
            self.complete_unless_outdated(step);
        }
        match self.task.state.clone() {
            State::Running { job, wish, .. } if checkpoint.gate => {
                let reached = self.task.base;
                // What a rebase starts from was measured just now, also where the target has come back.
                let measured = matches!(job, JobKind::Rebase);
                if measured || self.task.drifted == reached || old_base != reached {
                    self.task.drifted = None;
                }
                self.gate_reached(checkpoint, job, wish)
            }
            State::Running { .. } => {
                self.request_witnesses(checkpoint.trigger);
                Ok(None)
            }
            State::Cancelling { by } if checkpoint.gate => {
                self.enter(State::Done { outcome: super::task::Outcome::Cancelled { by } });
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn gate_reached(&mut self, checkpoint: &Checkpoint, job: JobKind, wish: Option<Wish>) -> Handled {
        let parked_only = checkpoint.trigger == Trigger::TaskBeforePause;
        match wish {
            // A change that is ready is reviewed first; the budget is asked about when work goes on.
            Some(Wish::Budget { .. }) if !parked_only => self.gate_reached(checkpoint, job, None),
            Some(Wish::Pause { by }) if !parked_only => {
                self.gate_reached(checkpoint, job, None)?;
                // Where the gate has blocked or ended the task, there is nothing left to pause.
                if let State::Queued { .. } | State::Reviewing { .. } | State::Waiting { .. } = &self.task.state {
                    self.pause(&by);
                }
                Ok(None)
            }
            None if !parked_only => {
                if self.task.drifted.is_some() {
                    self.queue(JobKind::Rebase);
                    return Ok(None);
                }
                self.start_round(checkpoint.trigger)
            }
            wish => self.grant_wish(wish, self.task_job(job)),
        }
    }

    /// The job that a parked task goes on with: its step, unless that step has just been completed.
    pub(super) fn task_job(&self, job: JobKind) -> JobKind {
        match &job {
            JobKind::Step { step, .. } if self.task.next_step() != Some(step) => match self.task.next_step() {
                Some(next) => JobKind::Step { step: next.clone(), conversation: Conversation::Same },
                // Everything is done but not reviewed: a rebase measures the target and gates again.
                None => JobKind::Rebase,
            },
            _ => self.going_on(job),
        }
    }

    /// Makes a checkpoint the head. The caller has checked that it follows.
    fn append(&mut self, checkpoint: Checkpoint, record: Digest) {
        self.task.head = Some(CheckpointRef {
            id: checkpoint.checkpoint_id.clone(),
            hash: checkpoint.integrity.checkpoint_hash,
            sequence: checkpoint.sequence,
            record,
        });
        self.task.base = Some(checkpoint.workspace.base);
        self.task.tree = Some(checkpoint.workspace.tree);
        self.task.evidence_index = Some(checkpoint.evidence.index);
        self.task.usage.lost_attempts = 0;
        self.head = Some(checkpoint);
    }

    /// Writes a control checkpoint, where the policy has the trigger on; says whether it did. One turn writes at most
    /// one: only the newest is named by the journal's record.
    pub(super) fn control(&mut self, trigger: Trigger) -> bool {
        let on = self.trigger_is_on(trigger);
        if on {
            self.control_always(trigger);
        }
        on
    }

    /// Writes a control checkpoint: where the files stand comes from the head, everything else from the task.
    /// Before the first checkpoint of a worker it writes none.
    pub(super) fn control_always(&mut self, trigger: Trigger) {
        let Some(head) = self.head.clone() else { return };
        let unsealed = self.control_record(&head, trigger);
        let Ok(sealed) = unsealed.seal() else {
            unreachable!("a control checkpoint holds only values that its predecessor or the task could hash")
        };
        let record = self.store(&sealed);
        self.append(sealed, record);
    }

    fn control_record(&mut self, head: &Checkpoint, trigger: Trigger) -> Checkpoint {
        let sequence = head.sequence + 1;
        let previous = head.integrity.checkpoint_hash;
        let base = self.task.base.unwrap_or(head.workspace.base);
        let tree = self.task.tree.unwrap_or(head.workspace.tree);
        let mut proposed = head.changesets.proposed.clone();
        if base == tree {
            // After an apply nothing is proposed any more.
            proposed.id = self.task.id.changeset(sequence);
            proposed.hash = self.store(&Changeset::between(&Manifest::default(), &Manifest::default()));
        }
        Checkpoint {
            format: checkrein_shared::records::CHECKPOINT_FORMAT,
            checkpoint_id: self.task.id.checkpoint(sequence),
            task_id: self.task.id.clone(),
            sequence,
            created_at: self.at,
            runtime_version: head.runtime_version.clone(),
            state_version: self.context.version,
            epoch: self.task.epoch,
            trigger,
            gate: false,
            policy_digest: self.task.policy.digest,
            tool_schema_fingerprint: head.tool_schema_fingerprint,
            author: Author { role: Role::Orchestrator, instance: self.context.orchestrator.clone() },
            workspace: WorkspaceState { base, tree, ..head.workspace.clone() },
            objective: Objective {
                spec_ref: self.task.spec.spec_ref.clone(),
                spec_hash: self.task.spec.hash,
                text: self.task.spec.objective.clone(),
            },
            constraints: self.task.spec.constraints.clone(),
            plan: PlanProgress {
                version: self.task.plan.version,
                hash: self.task.plan.hash(),
                current_step_id: self.task.next_step().cloned(),
                completed_step_ids: self.task.completed(),
                pending_step_ids: self.task.pending(),
            },
            changesets: ChangesetState { proposed, applied: self.task.applied.clone() },
            evidence: EvidenceState {
                index: self.task.evidence_index.unwrap_or(head.evidence.index),
                test_run_ids: Vec::new(),
                tool_event_ids: Vec::new(),
                artifact_refs: Vec::new(),
            },
            approvals: self.task.approvals.clone(),
            open_issues: self.open_issues(),
            open_errors: head.open_errors.clone(),
            resume: Resume {
                idempotency_key: json::digest(&(self.task.id.as_str(), sequence, previous))
                    .expect("an id, a sequence and a digest have a canonical form"),
                preconditions: head.resume.preconditions.clone(),
                // A run state goes with its tree.
                run_state: head.resume.run_state.filter(|_| tree == head.workspace.tree),
            },
            summary: Summary::default(),
            integrity: Integrity { previous_checkpoint_hash: Some(previous), checkpoint_hash: previous },
        }
    }

    /// The open findings as checkpoints and jobs list them, the first hundred.
    fn open_issues(&self) -> Vec<IssueRef> {
        open_issues(&self.task)
    }
}

/// The open findings of a task as checkpoints and jobs list them, the first hundred.
pub fn open_issues(task: &super::task::Task) -> Vec<IssueRef> {
    let evidence = |r: &SourceRef| match r {
        SourceRef::Evidence(reference) => Some(reference.clone()),
        SourceRef::File { .. } | SourceRef::Checkpoint(_) => None,
    };
    task.findings
        .iter()
        .take(100)
        .map(|open| IssueRef {
            id: open.finding.id.to_string(),
            severity: open.finding.severity,
            text: open.finding.claim.clone(),
            refs: open.finding.source_refs.iter().filter_map(evidence).collect(),
        })
        .collect()
}
