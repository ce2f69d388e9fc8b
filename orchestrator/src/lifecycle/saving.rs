//! Save points and the conditions of an attempt's start.
//!
//! A save point moves where the files of the task stand, together with the run
//! state that belongs to them, so that the two can't come apart. Who may resume
//! with it is decided here; restoring is the worker's. Of the conditions, those
//! about approvals and effects are judged here: no worker knows them.

use checkrein_shared::ids::InstanceId;
use checkrein_shared::records::{
    CheckOutcome, Checked, Conversation, JobKind, Precondition, REASON_CHARS_MAX, SavePoint, StepBegan,
};
use serde::{Deserialize, Serialize};

use super::decision::{Effect, Reason};
use super::effects::{OpenEffect, Standing};
use super::task::{State, Task};
use super::turn::{Handled, Turn};

/// What was looked at before the newest attempt, under [`CONDITIONS_KEY`].
pub const ATTEMPT_TABLE: &str = "attempt";
/// The key of the conditions.
pub const CONDITIONS_KEY: &str = "conditions";

/// What was looked at before an attempt, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The attempt.
    pub epoch: u64,
    /// Each condition.
    pub checks: Vec<Checked>,
}

impl Task {
    /// The save point that a step's job goes on from: only that of the same step and conversation, and only while
    /// nobody else has moved the files since.
    pub fn resume_point(&self, job: &JobKind) -> Option<&SavePoint> {
        let JobKind::Step { step, conversation: Conversation::Same } = job else { return None };
        let saved = self.save_point.as_ref()?;
        let mine = &saved.step == step && Some(saved.base) == self.base && Some(saved.tree) == self.tree;
        mine.then_some(saved)
    }
}

impl Turn<'_> {
    pub(super) fn save_point_taken(&mut self, worker: &InstanceId, saved: &SavePoint) -> Handled {
        if saved.epoch != self.task.epoch {
            return Ok(Some(Reason::StaleEpoch));
        }
        let State::Running { job: JobKind::Step { step, .. }, worker: holder, .. } = &self.task.state else {
            return Ok(Some(Reason::NotInThisState));
        };
        if step != &saved.step || holder != worker || self.task.base.is_some_and(|base| base != saved.base) {
            return Ok(Some(Reason::Superseded));
        }
        let same = |old: &SavePoint| old.run_state.digest == saved.run_state.digest && old.tree == saved.tree;
        if self.task.save_point.as_ref().is_some_and(|old| old.step == saved.step && same(old)) {
            return Ok(Some(Reason::Duplicate));
        }
        let began = self.step_began(saved);
        self.task.base = Some(saved.base);
        self.task.tree = Some(saved.tree);
        self.task.evidence_index = saved.evidence_index.or(self.task.evidence_index);
        self.task.usage.lost_attempts = 0;
        self.task.save_point = Some(SavePoint { began: Some(began), ..saved.clone() });
        Ok(None)
    }

    /// Where the step stood before its first save point. Whoever moved the files in between, as a person does, moved
    /// the beginning too: going back further would lose that.
    fn step_began(&self, saved: &SavePoint) -> StepBegan {
        let task = &self.task;
        let mine =
            |old: &&SavePoint| old.step == saved.step && Some(old.base) == task.base && Some(old.tree) == task.tree;
        let before = task.save_point.as_ref().filter(mine).and_then(|old| old.began);
        before.unwrap_or(StepBegan { epoch: saved.epoch, tree: task.tree.unwrap_or(saved.base) })
    }

    pub(super) fn preconditions_checked(&mut self, epoch: u64, worker: &InstanceId, checks: &[Checked]) -> Handled {
        if epoch != self.task.epoch {
            return Ok(Some(Reason::StaleEpoch));
        }
        match &self.task.state {
            State::Running { worker: holder, .. } if holder == worker => {}
            _ => return Ok(Some(Reason::NotInThisState)),
        }
        let mut checks = checks.to_vec();
        for Checked { condition, outcome } in &mut checks {
            match condition {
                Precondition::ApprovalsStillValid => *outcome = approvals(&self.task),
                Precondition::LedgerConsulted => *outcome = ledger(&self.task),
                _ => {}
            }
        }
        let value = serde_json::to_value(Conditions { epoch, checks });
        let value = value.expect("conditions are plain data");
        self.effect(Effect::PutRow { table: ATTEMPT_TABLE.to_owned(), key: CONDITIONS_KEY.to_owned(), value });
        Ok(None)
    }

    /// A fresh conversation that has saved something goes on with that.
    pub(super) fn going_on(&self, job: JobKind) -> JobKind {
        match (job, &self.task.save_point) {
            (JobKind::Step { step, conversation: Conversation::Fresh }, Some(saved))
                if saved.step == step && saved.epoch == self.task.epoch =>
            {
                JobKind::Step { step, conversation: Conversation::Same }
            }
            (job, _) => job,
        }
    }

    /// What a conversation has saved is over where another one begins.
    pub(super) fn end_conversation(&mut self, job: &JobKind) {
        if matches!(job, JobKind::Step { conversation: Conversation::Fresh | Conversation::Agent(_), .. }) {
            self.task.save_point = None;
        }
    }
}

/// Whether every approval is about what stands now: one for an older state says nothing about what follows.
fn approvals(task: &Task) -> CheckOutcome {
    let now = [task.head.as_ref(), task.subject.as_ref().map(|subject| &subject.checkpoint)];
    let is_now = |hash| now.iter().flatten().any(|checkpoint| checkpoint.hash == hash);
    let older = task.approvals.iter().filter(|approval| !is_now(approval.checkpoint_hash));
    match older.map(|approval| approval.id.as_str()).collect::<Vec<_>>().as_slice() {
        [] => CheckOutcome::Pass {},
        ids => CheckOutcome::Explained {
            why: shortened(format!(
                "given for an earlier checkpoint, and every permission is bound to its own: {}",
                ids.join(", ")
            )),
        },
    }
}

/// Whether the ledger knows of an effect that is not settled.
fn ledger(task: &Task) -> CheckOutcome {
    let open = |effect: &&OpenEffect| !matches!(effect.standing, Standing::NotStarted {});
    let open = task.effects.iter().filter(open).map(|effect| match effect.standing {
        Standing::Unknown { .. } => format!("nobody knows what became of step `{}`", effect.step),
        _ => format!("step `{}` may have started it", effect.step),
    });
    match open.collect::<Vec<_>>().as_slice() {
        [] => CheckOutcome::Pass {},
        open => CheckOutcome::Explained {
            why: shortened(format!("the claim decides before anything is done again: {}", open.join("; "))),
        },
    }
}

fn shortened(why: String) -> String {
    if why.len() <= REASON_CHARS_MAX { why } else { why.chars().take(REASON_CHARS_MAX).collect() }
}
