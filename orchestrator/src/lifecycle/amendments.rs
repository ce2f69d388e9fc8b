//! Amendments: a person changes specification, constraints or plan.

use std::collections::BTreeMap;

use checkrein_shared::records::{Conversation, JobKind, Plan, Trigger};

use super::decision::Reason;
use super::holds::ENDED;
use super::task::{About, SpecState, State, StepStatus, Wish};
use super::turn::{Handled, Turn};

impl Turn<'_> {
    pub(super) fn amended(&mut self, by: &str, spec: Option<&SpecState>, plan: Option<&Plan>) -> Handled {
        if matches!(self.task.state, State::Done { .. }) {
            return self.illegal(ENDED);
        }
        if matches!(self.task.state, State::Cancelling { .. }) {
            return Ok(Some(Reason::NotInThisState));
        }
        tracing::info!(task.id = %self.task.id, by, "amended");
        if let Some(spec) = spec {
            self.task.spec = spec.clone();
        }
        if let Some(plan) = plan {
            self.adopt(plan);
        }
        self.mark_stale();
        self.void_grants("specification or plan changed");
        self.after_amendment()
    }

    fn after_amendment(&mut self) -> Handled {
        match self.task.state.clone() {
            State::Running { job, worker, since, wish, outdated } => {
                let wish = wish.or(Some(Wish::Amended {}));
                self.task.state = State::Running { job, worker, since, wish, outdated };
                Ok(None)
            }
            State::Reviewing { .. } => {
                self.control_always(Trigger::SpecChanged);
                self.judge_again()
            }
            State::Queued { .. } => {
                self.control_always(Trigger::SpecChanged);
                match self.task.next_step().cloned() {
                    Some(step) => self.queue(JobKind::Step { step, conversation: Conversation::Same }),
                    // What was accepted was accepted for another specification: measure and gate again.
                    None => self.queue(JobKind::Rebase),
                }
                Ok(None)
            }
            // The plan may say now how to find out, or want something else: the ledger is asked again.
            State::Waiting { item } if matches!(item.about, About::Effect { .. }) => {
                self.control_always(Trigger::SpecChanged);
                self.go_on();
                Ok(None)
            }
            State::Waiting { .. } | State::Held { .. } | State::Paused { .. } | State::Blocked { .. } => {
                self.note_differences();
                self.control_always(Trigger::SpecChanged);
                Ok(None)
            }
            State::Cancelling { .. } | State::Done { .. } => Ok(None),
        }
    }

    /// What was under review is not what is wanted any more: judges what there is, or goes on with the plan.
    pub(super) fn judge_again(&mut self) -> Handled {
        match (self.task.next_step(), self.task.subject.as_ref().map(|s| s.trigger)) {
            (None, Some(trigger)) => self.start_round(trigger),
            _ => {
                self.go_on();
                Ok(None)
            }
        }
    }

    /// Takes a new plan. Steps that are the same stay completed; what follows a changed one is looked at again.
    fn adopt(&mut self, plan: &Plan) {
        let old = std::mem::replace(&mut self.task.plan, plan.clone());
        let mut steps = BTreeMap::new();
        for step in &plan.steps {
            let same = old.step(&step.id) == Some(step);
            let status = if same { self.task.steps.get(&step.id).copied() } else { None };
            steps.insert(step.id.clone(), status.unwrap_or(StepStatus::Pending));
        }
        let changed: Vec<_> = plan.steps.iter().filter(|s| old.step(&s.id) != Some(s)).map(|s| s.id.clone()).collect();
        for step in changed {
            for below in plan.downstream(&step) {
                if steps.get(&below) == Some(&StepStatus::Completed) {
                    steps.insert(below, StepStatus::PendingReview);
                }
            }
        }
        self.task.steps = steps;
        if let State::Running { job: JobKind::Step { step, .. }, outdated, .. } = &mut self.task.state {
            *outdated |= old.step(step) != plan.step(step);
        }
    }
}
