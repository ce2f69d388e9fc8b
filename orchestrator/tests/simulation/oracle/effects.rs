//! Effects outside: claimed before they begin, by the attempt that holds the task. One that happened is not made again,
//! and one whose outcome nobody knows only where the other side recognises its key, where a probe has said that it did
//! not happen, or where a person decides. What the ledger says is so.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_orchestrator::lifecycle::{EFFECT_TABLE, EventKind, Outcome, State, Task};
use checkrein_orchestrator::store::{Record, RowChange};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{StepId, TaskId};
use checkrein_shared::records::{EffectClass, EffectEntry, EffectGate, EffectStatus, JobKind};
use serde::Deserialize as _;

use super::{Book, Oracle};

/// A worker begins to change the world outside.
pub(crate) struct Start<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) step: &'a StepId,
    pub(crate) key: Digest,
    pub(crate) epoch: u64,
    pub(crate) run: Digest,
}

/// What really goes on outside under one key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outside {
    /// How often it was begun and has not ended.
    pub(crate) under_way: u32,
    /// How often it happened.
    pub(crate) happened: u32,
}

/// What the oracle knows of a task's effects.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// For each key: the attempt that has begun it, where nobody has said since that it did not happen.
    begun: BTreeMap<Digest, u64>,
    /// The key under which each step's command has begun.
    keys: BTreeMap<StepId, Digest>,
    entries: BTreeMap<String, EffectEntry>,
    /// The checkpoints that were accepted.
    pub(super) accepted: BTreeSet<Digest>,
}

impl Oracle {
    pub(crate) fn effect_begins(&mut self, start: &Start<'_>) {
        let Start { task, step, key, epoch, run } = start;
        let recognised = self.idempotent;
        self.outside.entry(*key).or_default().under_way += 1;
        let Some(book) = self.books.get_mut(task) else { return };
        let earlier = book.effects.begun.insert(*key, *epoch);
        let known = *book.effects.keys.entry((*step).clone()).or_insert(*key);
        let status = book.effects.entries.get(&key.to_hex()).map(|entry| entry.status.clone());
        let mine = match &status {
            Some(EffectStatus::Claimed { epoch: claimed, run: by, .. }) => claimed == epoch && by == run,
            // Its lease ran out between the answer and the start.
            Some(EffectStatus::Unknown { epoch: claimed, .. }) => claimed == epoch,
            _ => false,
        };
        self.check(mine, || format!("{task}: an effect begins in epoch {epoch}, and its entry is {status:?}"));
        self.check(known == *key, || format!("{task}: step `{step}` acts under two keys"));
        if let Some(earlier) = earlier.filter(|_| !recognised) {
            self.fail(format!(
                "{task}: an effect is made again in epoch {epoch}; epoch {earlier} has begun it already"
            ));
        }
    }

    pub(crate) fn effect_happens(&mut self, key: Digest) {
        let outside = self.outside.entry(key).or_default();
        outside.happened += 1;
        let twice = outside.happened > 1;
        self.check(!twice || self.idempotent, || "an effect happened twice".to_owned());
    }

    pub(crate) fn effect_ends(&mut self, key: Digest) {
        self.outside.entry(key).or_default().under_way -= 1;
    }

    pub(crate) fn outside(&self, key: Digest) -> Outside {
        self.outside.get(&key).copied().unwrap_or_default()
    }

    /// Follows the ledger.
    pub(super) fn ledger(&self, book: &mut Book, before: &Task, event: &EventKind, record: &Record) -> Option<String> {
        let mut wrong = None;
        for change in &record.rows {
            let RowChange::Put { table, key, value } = change else { continue };
            if table != EFFECT_TABLE {
                continue;
            }
            let Ok(entry) = EffectEntry::deserialize(value) else {
                return Some(format!("the effect {key} can't be read"));
            };
            let old = book.effects.entries.insert(key.clone(), entry.clone());
            let what = self.entry(book, before, event, (old.as_ref(), &entry));
            wrong = wrong.or(what);
            if matches!(entry.status, EffectStatus::Failed { .. } | EffectStatus::Settled { done: false, .. }) {
                book.effects.begun.remove(&entry.key);
            }
        }
        wrong
    }

    fn entry(
        &self,
        book: &Book,
        before: &Task,
        event: &EventKind,
        (old, new): (Option<&EffectEntry>, &EffectEntry),
    ) -> Option<String> {
        let (key, outside) = (new.key.short(), self.outside(new.key));
        let was = old.map(|old| &old.status);
        if was.is_some_and(EffectStatus::is_done) && !new.status.is_done() {
            return Some(format!("the effect {key} had happened, and is {} now", new.status.name()));
        }
        if new.key != new.call.key(&before.id) {
            return Some(format!("the effect {key} has a key that is not its call's"));
        }
        match &new.status {
            EffectStatus::Claimed { .. } if was != Some(&new.status) => self.claimed(book, before, event, (old, new)),
            status if status.is_done() && outside.happened == 0 => {
                Some(format!("the effect {key} counts as done, and never happened"))
            }
            EffectStatus::Failed { .. } | EffectStatus::Settled { done: false, .. } => {
                let may_be = outside.happened + outside.under_way > 0;
                (may_be && !self.idempotent).then(|| format!("the effect {key} counts as not done, and {outside:?}"))
            }
            _ => None,
        }
    }

    /// A claim is for the attempt that holds the task, and for what has not happened as far as can be known.
    fn claimed(
        &self,
        book: &Book,
        before: &Task,
        event: &EventKind,
        (old, new): (Option<&EffectEntry>, &EffectEntry),
    ) -> Option<String> {
        let key = new.key.short();
        let EffectStatus::Claimed { epoch, worker, run, .. } = &new.status else { return None };
        let asked =
            matches!(event, EventKind::EffectClaimed { request } if request.run == *run && request.epoch == *epoch);
        let holds = matches!(&before.state, State::Running { job: JobKind::Step { step, .. }, worker: holder, .. }
            if *step == new.call.step && holder == worker);
        if !asked || !holds || *epoch != before.epoch {
            return Some(format!("the effect {key} is claimed by an attempt that does not hold the task"));
        }
        let same_run = |status: &EffectStatus| matches!(status, EffectStatus::Claimed { epoch: e, run: r, .. } if e == epoch && r == run);
        let open = old.map(|old| &old.status).filter(|status| status.may_have_happened() && !same_run(status));
        if let Some(status) = open.filter(|_| !self.idempotent && new.class != EffectClass::ReadOnly) {
            return Some(format!("the effect {key} is claimed, and was {}", status.name()));
        }
        let allowed = new.allowed_by.as_ref().is_some_and(|by| book.effects.accepted.contains(&by.checkpoint_hash));
        (new.gate != EffectGate::Free && !allowed)
            .then(|| format!("the effect {key} is claimed, and nobody agreed to it"))
    }
}

/// Completed means also: what its steps do outside has happened.
pub(super) fn check_end(effects: &Effects, next: &Task) -> Option<String> {
    if next.state != (State::Done { outcome: Outcome::Completed {} }) {
        return None;
    }
    let acts = next.plan.steps.iter().filter(|step| step.effect != EffectClass::ReadOnly);
    let done = |step: &StepId| effects.entries.values().any(|e| e.call.step == *step && e.status.is_done());
    let missing = acts.map(|step| &step.id).find(|step| !done(step));
    missing.map(|step| format!("it is completed, and what step `{step}` does outside never happened"))
}
