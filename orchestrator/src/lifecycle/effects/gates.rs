//! Gates before effects: who agrees to exactly one call, once.
//!
//! A gate opens by a round over the checkpoint that shows the call. What it
//! allows is bound to that checkpoint and to the digest of the call; whatever
//! changes closes it again.

use std::collections::BTreeSet;

use checkrein_shared::records::{
    Allowance, Checkpoint, EffectCall, EffectClass, EffectEntry, EffectGate, EvidenceKind, EvidenceRef, Trigger,
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
        match allowed {
            Some(allowed) => {
                open.gate = None;
                Ok(Some(allowed))
            }
            None => {
                open.gate = Some(CallGate::Closed { person: entry.gate == EffectGate::Person });
                (open.call, open.shown) = (entry.call_hash, None);
                Err(())
            }
        }
    }

    /// Notes that a checkpoint before a call shows exactly this call, and what its dry run printed.
    pub(in super::super) fn note_shown(&mut self, checkpoint: &Checkpoint) {
        if checkpoint.trigger != Trigger::ToolBeforeHighRisk {
            return;
        }
        let named: BTreeSet<&EvidenceRef> = checkpoint.summary.completed.iter().flat_map(|claim| &claim.refs).collect();
        for at in 0..self.task.effects.len() {
            let open = &self.task.effects[at];
            let call = EffectCall::shown_as(&open.step, open.call);
            if open.gate.is_none() || !named.contains(&call) {
                continue;
            }
            let (key, prefix) = (open.key, format!("dry-run-{}-", open.step));
            self.task.effects[at].shown = Some(checkpoint.integrity.checkpoint_hash);
            let is_dry_run = |r: &&&EvidenceRef| r.kind() == EvidenceKind::Log && r.name().starts_with(&prefix);
            let printed = named.iter().find(is_dry_run).map(|r| (*r).clone());
            if let Some(mut entry) = self.entry(&key).cloned() {
                entry.dry_run_output = printed;
                self.put(entry);
            }
        }
    }

    /// Opens the gates of the calls that the subject shows, once each.
    pub(in super::super) fn open_call_gates(&mut self, subject: &Subject) {
        let hash = subject.checkpoint.hash;
        let approved_by: Vec<String> =
            self.task.approvals.iter().filter(|a| a.checkpoint_hash == hash).map(|a| a.by.clone()).collect();
        let mut grants = self.task.usage.grants;
        for open in self.task.effects.iter_mut().filter(|open| open.shown == Some(hash)) {
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

    /// Whether somebody has agreed to a call that has not started.
    pub(in super::super) fn is_call_allowed(&self) -> bool {
        self.task.effects.iter().any(|open| matches!(open.gate, Some(CallGate::Open { .. })))
    }

    /// The calls that the subject shows and that wait at their gates.
    fn at_gate(&self) -> impl Iterator<Item = &OpenEffect> {
        let hash = self.task.subject.as_ref().map(|subject| subject.checkpoint.hash);
        self.task.effects.iter().filter(move |open| open.gate.is_some() && hash.is_some() && open.shown == hash)
    }

    /// Whether a call that the subject shows wants a person.
    pub(in super::super) fn call_wants_person(&self) -> bool {
        self.at_gate().any(|open| open.gate.as_ref().is_some_and(CallGate::wants_person))
    }

    /// Whether a call that the subject shows can't be undone.
    pub(in super::super) fn call_is_irreversible(&self) -> bool {
        self.at_gate().any(|open| open.class == EffectClass::Irreversible)
    }

    /// What the subject's gate is about, for people, where it is before a call.
    pub(in super::super) fn call_text(&self) -> Option<String> {
        let open = self.at_gate().next()?;
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
