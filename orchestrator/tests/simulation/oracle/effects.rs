//! Effects outside: one whose outcome nobody knows is not made again unless a person says so.

use std::collections::BTreeMap;

use checkrein_orchestrator::lifecycle::{EventKind, Task};
use checkrein_shared::ids::{StepId, TaskId};
use checkrein_shared::records::AttemptOutcome;

use super::Oracle;

/// For each step: the attempt whose effect began and of which nobody has heard since.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    unknown: BTreeMap<StepId, u64>,
}

impl Oracle {
    /// A worker begins to change the world outside.
    pub(crate) fn effect_begins(&mut self, task: &TaskId, step: &StepId, epoch: u64) {
        let Some(book) = self.books.get_mut(task) else { return };
        if let Some(earlier) = book.effects.unknown.insert(step.clone(), epoch).filter(|earlier| *earlier != epoch) {
            self.fail(format!(
                "{task}: the effect of step `{step}` is made again in epoch {epoch}, and nobody knows what came of it in epoch {earlier}"
            ));
        }
    }
}

impl Effects {
    /// Somebody said what came of it, or a person decided to go on.
    pub(super) fn follow(&mut self, before: &Task, event: &EventKind, _next: &Task) {
        match event {
            EventKind::AttemptEnded { attempt } if attempt.epoch == before.epoch => match &attempt.outcome {
                AttemptOutcome::StepDone { step, .. } | AttemptOutcome::StepFailed { step, .. } => {
                    self.unknown.remove(step);
                }
                _ => {}
            },
            EventKind::CheckpointWritten { completes: Some(step), .. } => drop(self.unknown.remove(step)),
            EventKind::Approved { .. }
            | EventKind::Rejected { .. }
            | EventKind::ChangesRequested { .. }
            | EventKind::ResumeRequested { .. }
            | EventKind::HandedBack { .. } => self.unknown.clear(),
            _ => {}
        }
    }
}
