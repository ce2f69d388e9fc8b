//! Effects outside: one that happened is not made again, and one whose outcome nobody knows only where the other side
//! recognises its key, a probe has said that it did not happen, or a person decides.

use std::collections::BTreeMap;

use checkrein_orchestrator::lifecycle::EventKind;
use checkrein_shared::coordinator::{ProbeAnswer, Settled};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;

use super::Oracle;

/// For each key: the attempt that has begun it, and that nobody has said since that it did not happen.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    begun: BTreeMap<Digest, u64>,
}

impl Oracle {
    /// A worker begins to change the world outside.
    pub(crate) fn effect_begins(&mut self, task: &TaskId, key: Digest, epoch: u64) {
        let recognised = self.idempotent;
        let Some(book) = self.books.get_mut(task) else { return };
        let earlier = book.effects.begun.insert(key, epoch);
        if let Some(earlier) = earlier.filter(|_| !recognised) {
            self.fail(format!("{task}: an effect is made again in epoch {epoch}; it was begun in epoch {earlier} already"));
        }
    }
}

impl Effects {
    /// Somebody who can know said that it did not happen, or a person answers for it.
    pub(super) fn follow(&mut self, event: &EventKind) {
        match event {
            EventKind::EffectSettled { settlement } | EventKind::EffectProbed { settlement } => {
                let not_done = matches!(
                    settlement.outcome,
                    Settled::Failed { .. } | Settled::NotStarted { .. } | Settled::Probed(ProbeAnswer::NotDone)
                );
                if not_done {
                    self.begun.remove(&settlement.key);
                }
            }
            EventKind::EffectJudged { key, done: false, .. } => drop(self.begun.remove(key)),
            _ => {}
        }
    }
}
