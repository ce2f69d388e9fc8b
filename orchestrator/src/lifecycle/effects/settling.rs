//! Settling: what came of an effect, from workers, probes and people.
//!
//! Workers are believed in every state and from every epoch: what happened,
//! happened. A task that waits for the answer goes on with its step, which asks
//! the ledger again.

use checkrein_shared::coordinator::{ProbeAnswer, Settled, Settlement};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{EffectEntry, EffectStatus};

use super::super::decision::Reason;
use super::super::task::{About, State};
use super::super::turn::{Handled, Turn};
use super::{Standing, ledger};

impl Turn<'_> {
    /// Takes what a worker or its probe says.
    pub(in super::super) fn effect_settled(&mut self, settlement: &Settlement) -> Handled {
        let Some(mut entry) = self.entry(&settlement.key).cloned() else {
            return self.illegal("its ledger has no such effect");
        };
        let probed = matches!(settlement.outcome, Settled::Probed(ProbeAnswer::NotDone | ProbeAnswer::Unclear));
        if probed && settlement.epoch != self.task.epoch {
            // It may be about an earlier start than the newest. That something happened is true whenever it comes.
            return Ok(Some(Reason::StaleEpoch));
        }
        if let Some(reason) = ledger::settle(&mut entry, settlement, self.at) {
            return Ok(Some(reason));
        }
        self.stand(entry);
        self.effect_known(&settlement.key);
        Ok(None)
    }

    /// Takes a person's word.
    pub(in super::super) fn effect_judged(&mut self, key: &Digest, by: &str, done: bool, reason: &str) -> Handled {
        let Some(mut entry) = self.entry(key).cloned() else {
            return self.illegal("its ledger has no such effect");
        };
        match ledger::judge(&mut entry, (by, done, reason), self.at) {
            Err(why) => self.illegal(why),
            Ok(Some(ignored)) => Ok(Some(ignored)),
            Ok(None) => {
                self.stand(entry);
                self.effect_known(key);
                Ok(None)
            }
        }
    }

    /// Writes an entry, and what the task keeps of it.
    pub(super) fn stand(&mut self, entry: EffectEntry) {
        let at = self.task.effects.iter().position(|open| open.key == entry.key);
        if let Some(at) = at {
            match &entry.status {
                EffectStatus::Unknown { .. } => {
                    self.task.effects[at].standing = Standing::Unknown { remedy: entry.remedy() };
                }
                EffectStatus::Claimed { .. } | EffectStatus::Proposed { .. } => {}
                EffectStatus::Done { .. } | EffectStatus::Failed { .. } | EffectStatus::Settled { .. } => {
                    self.task.effects.remove(at);
                }
            }
        }
        self.put(entry);
    }

    /// Lets a task go on that waits for nothing but this.
    fn effect_known(&mut self, key: &Digest) {
        if self.entry(key).is_some_and(|entry| matches!(entry.status, EffectStatus::Unknown { .. })) {
            return;
        }
        let waits = |state: &State| matches!(state, State::Waiting { item } if matches!(&item.about, About::Effect { key: asked, .. } if asked == key));
        if waits(&self.task.state) {
            return self.go_on();
        }
        let job = self.unfinished();
        if let State::Paused { from, .. } = &mut self.task.state
            && waits(from)
        {
            **from = State::Queued { job };
        }
    }
}
