//! Effects whose outcome nobody knows: how claims are lost, and who is asked.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::records::{EffectStatus, Remedy};

use super::super::rules::On;
use super::super::turn::{Handled, Turn};
use super::{Standing, ledger};

impl Turn<'_> {
    /// Nobody will say any more what came of the claims of the attempt that ends.
    pub(in super::super) fn lose_claims(&mut self, why: &str) {
        let claimed = |open: &&super::OpenEffect| matches!(open.standing, Standing::Claimed { .. });
        let keys: Vec<Digest> = self.task.effects.iter().filter(claimed).map(|open| open.key).collect();
        for key in keys {
            // An entry that can't be found is none that a worker was told about.
            if let Some(mut entry) = self.entry(&key).cloned() {
                ledger::lose(&mut entry, self.at, why);
                self.stand(entry);
            }
        }
    }

    /// The effect of the step at hand that only a person can find out about.
    pub(in super::super) fn effect_for_person(&self) -> Option<(StepId, Digest)> {
        let next = self.task.next_step()?;
        let asks = |open: &&super::OpenEffect| {
            open.step == *next && !open.superseded && open.standing == Standing::Unknown { remedy: Remedy::Person }
        };
        self.task.effects.iter().find(asks).map(|open| (open.step.clone(), open.key))
    }

    /// Asks the rules about an effect that only a person can find out about, where there is one.
    pub(in super::super) fn ask_about_effect(&mut self) -> Option<Handled> {
        let (step, key) = self.effect_for_person()?;
        Some(self.ask_rules(On::EffectUnknown { step, key }))
    }

    /// What a person is told, with the command that settles it.
    pub(in super::super) fn unknown_text(&self, step: &StepId, key: &Digest) -> String {
        let why = match self.entry(key).map(|entry| &entry.status) {
            Some(EffectStatus::Unknown { why, probe_failed: true, .. }) => {
                format!("{why}, and its probe could not tell either")
            }
            Some(EffectStatus::Unknown { why, .. }) => why.clone(),
            _ => "its worker did not say".to_owned(),
        };
        let settle = format!("checkrein effects settle {}", key.short());
        format!(
            "nobody knows whether step `{step}` took effect: {why}. Find out, then say so: `{settle} --done --reason '..'` where it did, `{settle} --not-done --reason '..'` where it did not"
        )
    }
}
