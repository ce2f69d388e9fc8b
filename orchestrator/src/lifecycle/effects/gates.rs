//! Gates before effects: who agrees to exactly one call, once.
//!
//! A gate opens by a round over the checkpoint that shows the call. What it
//! allows is bound to that checkpoint and to the digest of the call; whatever
//! changes closes it again.

use checkrein_shared::ids::StepId;
use checkrein_shared::records::{
    Allowance, Checkpoint, EffectClass, EffectEntry, EffectGate, EvidenceKind, EvidenceRef, Trigger,
};

use super::super::task::Subject;
use super::super::turn::Turn;
use super::{CallGate, OpenEffect};

impl Turn<'_> {
    /// Uses the permission for a call, where there is one for exactly this; else the gate is closed.
    pub(super) fn pass_gate(&mut self, open: &mut OpenEffect, entry: &EffectEntry) -> Result<Option<Allowance>, ()> {
        if entry.gate == EffectGate::Free {
            open.gate = None;
            return Ok(None);
        }
        let live = self.task.live_bindings();
        let allowed = match &open.gate {
            Some(CallGate::Open { grant, bindings, approved_by, person })
                if open.call == entry.call_hash
                    && live.as_ref() == Some(bindings.as_ref())
                    && (self.task.base, self.task.tree) == (Some(bindings.base), Some(bindings.tree))
                    && (*person || entry.gate != EffectGate::Person) =>
            {
                Some(Allowance {
                    grant: grant.clone(),
                    checkpoint_hash: bindings.checkpoint_hash,
                    approved_by: approved_by.clone(),
                })
            }
            _ => None,
        };
        open.call = entry.call_hash;
        match allowed {
            Some(allowed) => {
                open.gate = None;
                Ok(Some(allowed))
            }
            None => {
                open.gate = Some(CallGate::Closed { person: entry.gate == EffectGate::Person });
                Err(())
            }
        }
    }

    /// Notes what the dry run printed, where the checkpoint before a call names it.
    pub(in super::super) fn note_dry_run(&mut self, checkpoint: &Checkpoint) {
        if checkpoint.trigger != Trigger::ToolBeforeHighRisk {
            return;
        }
        let waiting: Vec<_> = self.task.effects.iter().filter(|open| open.gate.is_some()).cloned().collect();
        for open in waiting {
            let name = EvidenceRef::new(EvidenceKind::Log, &format!("dry-run-{}-e{}", open.step, checkpoint.epoch));
            let printed = name.ok().filter(|name| checkpoint.evidence.artifact_refs.contains(name));
            if let (Some(printed), Some(mut entry)) = (printed, self.entry(&open.key).cloned()) {
                entry.dry_run_output = Some(printed);
                self.put(entry);
            }
        }
    }

    /// Opens the gates that the subject was about, once each.
    pub(in super::super) fn open_call_gates(&mut self, subject: &Subject) {
        if subject.trigger != Trigger::ToolBeforeHighRisk {
            return;
        }
        let hash = subject.checkpoint.hash;
        let approved_by: Vec<String> =
            self.task.approvals.iter().filter(|a| a.checkpoint_hash == hash).map(|a| a.by.clone()).collect();
        let mut grants = self.task.usage.grants;
        let of_subject = |open: &&mut OpenEffect| subject.step.as_ref() == Some(&open.step);
        for open in self.task.effects.iter_mut().filter(of_subject) {
            let Some(CallGate::Closed { person }) = open.gate else { continue };
            grants += 1;
            open.gate = Some(CallGate::Open {
                person,
                grant: self.task.id.grant(grants),
                bindings: Box::new(subject.bindings.clone()),
                approved_by: approved_by.clone(),
            });
        }
        self.task.usage.grants = grants;
    }

    /// Closes the gates that were opened and not passed.
    pub(in super::super) fn close_call_gates(&mut self) {
        for open in &mut self.task.effects {
            if let Some(CallGate::Open { person, .. }) = open.gate {
                open.gate = Some(CallGate::Closed { person });
            }
        }
    }

    /// The calls of the subject's step that wait at their gates.
    fn at_gate(&self, step: Option<&StepId>) -> impl Iterator<Item = &OpenEffect> {
        self.task.effects.iter().filter(move |open| open.gate.is_some() && step == Some(&open.step))
    }

    /// Whether a call that the subject shows wants a person.
    pub(in super::super) fn call_wants_person(&self, trigger: Trigger) -> bool {
        let step = self.task.subject.as_ref().and_then(|s| s.step.as_ref());
        let wants = |open: &OpenEffect| open.gate.as_ref().is_some_and(CallGate::wants_person);
        trigger == Trigger::ToolBeforeHighRisk && self.at_gate(step).any(wants)
    }

    /// Whether a call that the subject shows can't be undone.
    pub(in super::super) fn call_is_irreversible(&self, trigger: Trigger) -> bool {
        let step = self.task.subject.as_ref().and_then(|s| s.step.as_ref());
        trigger == Trigger::ToolBeforeHighRisk && self.at_gate(step).any(|o| o.class == EffectClass::Irreversible)
    }

    /// What the gate of a call is about, for people.
    pub(in super::super) fn call_text(&self, trigger: Trigger) -> Option<String> {
        if trigger != Trigger::ToolBeforeHighRisk {
            return None;
        }
        let step = self.task.subject.as_ref().and_then(|s| s.step.as_ref());
        let open = self.at_gate(step).next()?;
        let entry = self.entry(&open.key)?;
        let argv = entry.call.argv().iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" ");
        let shown: String = argv.chars().take(300).collect();
        let undone = match open.class {
            EffectClass::Irreversible => ", which can't be undone",
            EffectClass::ReadOnly | EffectClass::Effectful => "",
        };
        let dry = entry.dry_run_output.as_ref().map_or_else(String::new, |r| format!("; its dry run printed `{r}`"));
        Some(format!("step `{}` is about to run {shown}{undone}{dry}", open.step))
    }
}
