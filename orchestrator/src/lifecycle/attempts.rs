//! Leases, attempts and their ends.

use checkrein_shared::coordinator::Directive;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{GrantId, InstanceId, JobId, StepId};
use checkrein_shared::records::{
    Attempt, AttemptOutcome, ChangesetRef, Conversation, EvidenceRef, JobKind, RequiredAction, Trigger,
};
use checkrein_shared::time::Span;

use crate::guards::guard;

use super::decision::{Reason, Timer};
use super::rules::On;
use super::task::{About, GrantStatus, Outcome, State, StepStatus, Task, Wish};
use super::turn::{DISPATCH_TIMEOUT, Handled, Turn};

/// Attempts that may be lost in a row before the rules are asked.
pub(super) const LOST_ATTEMPTS_MAX: u32 = 5;

/// Times that a target may be found changed at the last moment before a person is asked.
pub(super) const CONFLICTS_MAX: u32 = 3;

/// What a worker with a lease of `epoch` has to do.
pub fn directive(task: &Task, epoch: u64) -> Directive {
    match &task.state {
        State::Running { wish: None, .. } if task.epoch == epoch => Directive::Continue,
        State::Running { wish: Some(_), .. } if task.epoch == epoch => Directive::Park,
        State::Cancelling { .. } if task.epoch == epoch => Directive::Stop,
        _ => Directive::Lost,
    }
}

impl Turn<'_> {
    pub(super) fn lease_taken(&mut self, job_id: &JobId, epoch: u64, worker: &InstanceId) -> Handled {
        let State::Queued { job } = &self.task.state else { return Ok(Some(Reason::NotInThisState)) };
        if !guard!(LeaseOfThisEpoch, epoch == self.task.epoch && job_id == &self.task.id.job(epoch)) {
            return Ok(Some(Reason::StaleEpoch));
        }
        let job = job.clone();
        self.enter(State::Running { job, worker: worker.clone(), since: self.at, wish: None, outdated: false });
        Ok(None)
    }

    pub(super) fn dispatch_timed_out(&mut self, epoch: u64) -> Handled {
        if epoch != self.task.epoch {
            return Ok(Some(Reason::StaleEpoch));
        }
        match self.task.state {
            State::Queued { .. } => {
                self.publish_job();
                self.set(Timer::Dispatch { epoch }, self.at.plus(DISPATCH_TIMEOUT));
                Ok(None)
            }
            State::Reviewing { .. } => self.request_again(),
            _ => Ok(Some(Reason::NotInThisState)),
        }
    }

    /// A job or a request that nobody can handle would come back for ever: a person has to look.
    pub(super) fn message_died(&mut self, message: &str, epoch: u64, reason: &str) -> Handled {
        if epoch != self.task.epoch {
            return Ok(Some(Reason::StaleEpoch));
        }
        let about = match (&self.task.state, self.task.next_step()) {
            (State::Queued { job: JobKind::Step { .. } }, Some(step)) => About::Failure { step: step.clone() },
            (State::Queued { .. } | State::Reviewing { .. }, _) => About::Gate {},
            _ => return Ok(Some(Reason::NotInThisState)),
        };
        let why = format!("a message of kind `{message}` could not be handled by anybody: {reason}");
        self.escalate(None, about, why);
        Ok(None)
    }

    pub(super) fn lease_expired(&mut self, epoch: u64) -> Handled {
        if epoch != self.task.epoch {
            return Ok(Some(Reason::StaleEpoch));
        }
        match self.task.state.clone() {
            State::Running { job, wish, .. } => {
                self.task.usage.lost_attempts += 1;
                self.lose_claims("its worker was lost while it was under way");
                if let Some(asked) = self.ask_about_effect() {
                    return asked;
                }
                if self.task.usage.lost_attempts >= LOST_ATTEMPTS_MAX {
                    return self.ask_rules(On::Failed);
                }
                let job = self.task_job(job);
                self.grant_wish(wish, job)
            }
            State::Cancelling { by } => {
                self.enter(State::Done { outcome: Outcome::Cancelled { by } });
                Ok(None)
            }
            _ => Ok(Some(Reason::NotInThisState)),
        }
    }

    /// After a worker has let go: does what somebody wished, else queues `job` again.
    pub(super) fn grant_wish(&mut self, wish: Option<Wish>, job: JobKind) -> Handled {
        match wish {
            None | Some(Wish::Amended {}) => {
                self.queue(job);
                Ok(None)
            }
            Some(Wish::Pause { by }) => {
                let from = Box::new(State::Queued { job });
                self.enter(State::Paused { by, since: self.at, from });
                Ok(None)
            }
            // Without a scratch there are no files that a person could take, and a half-applied change is finished.
            Some(Wish::Takeover { .. }) if self.task.tree.is_none() || self.has_redeemed() => {
                self.queue(job);
                Ok(None)
            }
            Some(Wish::Takeover { by, folder }) => {
                self.hold(by, folder);
                Ok(None)
            }
            Some(Wish::Budget { budget }) => self.ask_rules(On::Budget { budget }),
        }
    }

    pub(super) fn attempt_ended(&mut self, attempt: &Attempt) -> Handled {
        if let AttemptOutcome::Applied { grant, changeset, target, .. } = &attempt.outcome {
            // What reached the target did so whatever has happened since; even an old attempt's word is taken.
            return self.applied(grant, changeset, *target, attempt.epoch);
        }
        if !guard!(ReportOfThisAttempt, attempt.epoch == self.task.epoch) {
            return Ok(Some(Reason::StaleEpoch));
        }
        match self.task.state.clone() {
            State::Running { job, wish, .. } => self.running_ended(&attempt.outcome, job, wish),
            State::Cancelling { by } => {
                self.enter(State::Done { outcome: Outcome::Cancelled { by } });
                Ok(None)
            }
            _ => Ok(Some(Reason::NotInThisState)),
        }
    }

    fn running_ended(&mut self, outcome: &AttemptOutcome, job: JobKind, wish: Option<Wish>) -> Handled {
        match outcome {
            AttemptOutcome::StepDone { step, base, tree, evidence_index } => {
                self.left_behind(Some(*base), Some(*tree), Some(*evidence_index));
                self.complete_unless_outdated(step);
                self.next(wish)
            }
            AttemptOutcome::Rebased { base, tree, evidence_index } => {
                self.left_behind(Some(*base), Some(*tree), Some(*evidence_index));
                self.task.drifted = None;
                self.next(wish)
            }
            AttemptOutcome::StepFailed { error, .. } if matches!(job, JobKind::Apply { .. } | JobKind::Rebase) => {
                // No step has failed: a half-applied change, or one that can't be rebased, is for a person to look at.
                self.escalate(None, About::Interrupted {}, error.text.clone());
                Ok(None)
            }
            AttemptOutcome::StepFailed { step, error, error_hash, base, tree, evidence_index } => {
                self.left_behind(*base, *tree, *evidence_index);
                self.step_failed(step, &error.text, *error_hash, &error.refs);
                self.lose_claims("its attempt failed without saying what came of it");
                match wish {
                    None => self.ask_about_effect().unwrap_or_else(|| self.ask_rules(On::Failed)),
                    Some(Wish::Budget { budget }) => {
                        self.ask_rules(On::Budget { budget })?;
                        // Where the budget lets it go on, the failure still counts as one.
                        let goes_on = matches!(self.task.state, State::Queued { .. });
                        if goes_on { self.ask_rules(On::Failed) } else { Ok(None) }
                    }
                    Some(_) => {
                        // The step may have been taken out of the plan meanwhile.
                        let job = self.task_job(job);
                        self.grant_wish(wish, job)
                    }
                }
            }
            AttemptOutcome::ApplyConflict { grant, target, .. } => self.apply_conflict(grant, *target),
            AttemptOutcome::RebaseOverlap { target, paths, evidence } => {
                self.rebase_overlap(*target, paths, evidence.clone().into_iter().collect());
                self.ask_rules(On::Drift)
            }
            AttemptOutcome::Released { after, .. } => {
                let job = self.task_job(job);
                match wish {
                    None => self.queue_later(job, bounded(*after).to_duration()),
                    Some(_) => return self.grant_wish(wish, job),
                }
                Ok(None)
            }
            AttemptOutcome::Stopped { base, tree } => {
                self.left_behind(*base, *tree, None);
                let job = self.task_job(job);
                self.grant_wish(wish, job)
            }
            AttemptOutcome::Applied { .. } => unreachable!("taken by the caller whatever the state"),
        }
    }

    fn left_behind(&mut self, base: Option<Digest>, tree: Option<Digest>, evidence: Option<Digest>) {
        self.task.base = base.or(self.task.base);
        self.task.tree = tree.or(self.task.tree);
        self.task.evidence_index = evidence.or(self.task.evidence_index);
        if tree.is_some() {
            self.task.usage.lost_attempts = 0;
        }
    }

    /// Marks a step as completed.
    pub(super) fn complete(&mut self, step: &StepId) {
        if self.task.plan.step(step).is_some() {
            self.task.steps.insert(step.clone(), StepStatus::Completed);
        }
        self.task.usage.failures = 0;
        self.task.usage.same_error = 0;
        self.task.usage.last_error = None;
    }

    /// Marks the step that the running attempt is at as completed, unless it was amended since: what ran was the old one.
    pub(super) fn complete_unless_outdated(&mut self, step: &StepId) {
        if !matches!(self.task.state, State::Running { outdated: true, .. }) {
            self.complete(step);
        }
    }

    fn step_failed(&mut self, step: &StepId, text: &str, error: Digest, refs: &[EvidenceRef]) {
        let usage = &mut self.task.usage;
        usage.failures += 1;
        usage.same_error = if usage.last_error == Some(error) { usage.same_error + 1 } else { 1 };
        usage.last_error = Some(error);
        self.task.steps.insert(step.clone(), StepStatus::Failed);
        self.task.required_actions = vec![RequiredAction {
            text: format!("the last attempt at step `{step}` failed: {text}"),
            finding: None,
            refs: refs.to_vec(),
            from: "policy".into(),
        }];
    }

    /// Queues the next step, or, where the plan is done, what opens the gate.
    fn next(&mut self, wish: Option<Wish>) -> Handled {
        let job = self.unfinished();
        self.grant_wish(wish, job)
    }

    /// What there is to do for a task that is not through its gates: what was granted and is not applied first, then
    /// the next step, then a rebase, which measures the target and gates.
    pub(super) fn unfinished(&self) -> JobKind {
        match (self.task.open_grant(), self.task.next_step()) {
            (Some(grant), _) => JobKind::Apply { grant: grant.id.clone(), changeset: grant.changeset.clone() },
            (None, Some(step)) => JobKind::Step { step: step.clone(), conversation: Conversation::Same },
            (None, None) => JobKind::Rebase,
        }
    }

    /// Goes on with a task that is not through its gates. It never completes it.
    pub(super) fn go_on(&mut self) {
        let job = self.unfinished();
        self.queue(job);
    }

    /// After the last gate was passed: the next step, or the end.
    pub(super) fn complete_or_go_on(&mut self) {
        match self.task.next_step() {
            Some(_) => self.go_on(),
            None => self.enter(State::Done { outcome: Outcome::Completed {} }),
        }
    }

    fn applied(&mut self, grant: &GrantId, changeset: &ChangesetRef, target: Digest, epoch: u64) -> Handled {
        let redeemed = |g: &&mut super::task::Grant| &g.id == grant && &g.changeset == changeset;
        let Some(found) = self.task.grants.iter_mut().find(redeemed) else { return Ok(Some(Reason::Superseded)) };
        match found.status {
            GrantStatus::Settled {} => return Ok(Some(Reason::Duplicate)),
            ref status if guard!(GrantWasRedeemed, *status == (GrantStatus::Redeemed {})) => {}
            // Nobody was allowed to: whatever is in the target is drift, and is found by measuring it.
            _ => return Ok(Some(Reason::Superseded)),
        }
        found.status = GrantStatus::Settled {};
        self.task.applied.push(changeset.clone());
        self.task.base = Some(target);
        self.task.tree = Some(target);
        self.task.drifted = None;
        self.task.required_actions.clear();
        self.task.editors.clear();
        self.task.applied_steps = self.task.completed().into_iter().collect();
        match self.task.state.clone() {
            State::Running { wish, .. } if epoch == self.task.epoch => {
                self.control(Trigger::ChangesetAfterApply);
                if std::mem::take(&mut self.task.late_veto) {
                    let reason = "a reviewer objected while the change was being applied; it is in the target".into();
                    self.escalate(None, About::LateVeto {}, reason);
                    return Ok(None);
                }
                match (self.task.next_step().cloned(), wish) {
                    (Some(step), wish) => {
                        self.grant_wish(wish, JobKind::Step { step, conversation: Conversation::Same })
                    }
                    (None, _) => {
                        self.enter(State::Done { outcome: Outcome::Completed {} });
                        Ok(None)
                    }
                }
            }
            State::Cancelling { by } => {
                self.control(Trigger::ChangesetAfterApply);
                self.enter(State::Done { outcome: Outcome::Cancelled { by } });
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn apply_conflict(&mut self, grant: &GrantId, target: Digest) -> Handled {
        self.void_grant(grant, "the target changed before the change could be applied");
        self.note_drift(target);
        self.task.usage.conflicts += 1;
        if self.task.usage.conflicts >= CONFLICTS_MAX {
            let reason =
                format!("the target kept changing: {CONFLICTS_MAX} attempts to apply the change met other edits");
            self.escalate(None, About::Overlap {}, reason);
        } else {
            self.queue(JobKind::Rebase);
        }
        Ok(None)
    }

    fn rebase_overlap(&mut self, target: Digest, paths: &[String], refs: Vec<EvidenceRef>) {
        self.note_drift(target);
        let shown = paths.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
        self.task.required_actions = vec![RequiredAction {
            text: format!(
                "somebody else changed files that this task changes too: {shown}; do the work again on top of their version"
            ),
            finding: None,
            refs,
            from: "policy".into(),
        }];
    }
}

/// A worker's back-off, kept between a tenth of a second and ten minutes.
fn bounded(after: Span) -> Span {
    Span::from_millis(after.as_millis().clamp(100, 600_000))
}
