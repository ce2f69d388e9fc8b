//! How an entry of the ledger may change. `done` never goes back, and nothing
//! leads from `unknown` to a start but a key, a probe or a person.
//!
//! Pure: an entry, an event, and the entry afterwards. Who may ask is decided
//! by the callers.

use checkrein_shared::coordinator::{ClaimRequest, ProbeAnswer, START_WINDOW, Settled, Settlement};
use checkrein_shared::ids::InstanceId;
use checkrein_shared::records::{Allowance, EffectClass, EffectEntry, EffectStatus, Remedy, Witness};
use checkrein_shared::time::Timestamp;

use crate::guards::guard;

use super::super::decision::Reason;

/// What a claim finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing stands in the way of a start.
    Startable,
    /// The same run of the job asks again, so it has not started.
    OwnClaim,
    /// It happened.
    Done,
    /// Nobody knows whether it happened.
    Unknown(Remedy),
}

/// Looks at an entry for a claim. A claim of an older run is lost first: whatever became of it, nobody said so.
pub(super) fn look(entry: &mut EffectEntry, request: &ClaimRequest, at: Timestamp) -> Found {
    if let EffectStatus::Claimed { epoch, run, .. } = &entry.status {
        if *epoch == request.epoch && *run == request.run {
            return Found::OwnClaim;
        }
        lose(entry, at, "an earlier attempt started it and did not say what came of it");
    }
    match &entry.status {
        status if status.is_done() => Found::Done,
        EffectStatus::Unknown { .. } => Found::Unknown(entry.remedy()),
        _ => Found::Startable,
    }
}

/// Lets a worker start it.
pub(super) fn start(entry: &mut EffectEntry, request: &ClaimRequest, at: Timestamp, allowed: Option<Allowance>) {
    let (epoch, worker, run) = (request.epoch, request.worker.clone(), request.run);
    entry.claims = entry.claims.saturating_add(1);
    entry.allowed_by = allowed;
    entry.status = EffectStatus::Claimed { epoch, worker, run, at, start_by: at.plus(START_WINDOW.to_duration()) };
}

/// Nobody will say any more what came of a claim.
pub(super) fn lose(entry: &mut EffectEntry, at: Timestamp, why: &str) {
    let EffectStatus::Claimed { epoch, at: claimed, start_by, .. } = &entry.status else { return };
    // Until then it may still start, or be under way.
    let probe_after = start_by.plus(entry.time_limit.to_duration()).max(*claimed);
    let (epoch, why) = (*epoch, why.to_owned());
    entry.status = EffectStatus::Unknown { since: at, epoch, why, probe_after, probe_failed: false };
}

/// Takes what a worker says about what it started. `None`: taken.
pub(super) fn settle(entry: &mut EffectEntry, settlement: &Settlement, at: Timestamp) -> Option<Reason> {
    let by = Witness::Worker(settlement.worker.clone());
    match &settlement.outcome {
        Settled::Done(result) => {
            if let EffectStatus::Done { by: before, result: known, .. } = &mut entry.status {
                let tells_more = known.as_ref().is_none_or(|known| known.tree.is_none() && result.tree.is_some());
                if !tells_more || *before != by {
                    return Some(Reason::Duplicate);
                }
                *known = Some(result.clone());
                return None;
            }
            // What happened, happened: whatever was thought of it before.
            entry.status = EffectStatus::Done { at, by, result: Some(result.clone()) };
            None
        }
        Settled::Failed { why } if is_of(entry, settlement.epoch) => {
            if entry.class == EffectClass::Irreversible {
                // A command that says that it failed may have done half of what can't be undone.
                return unknown(entry, at, why);
            }
            entry.status = EffectStatus::Failed { at, by, why: why.clone() };
            None
        }
        Settled::NotStarted { why } if is_of(entry, settlement.epoch) => {
            entry.status = EffectStatus::Failed { at, by, why: format!("it never started: {why}") };
            None
        }
        Settled::Unknown { why } if is_of(entry, settlement.epoch) => unknown(entry, at, why),
        Settled::Failed { .. } | Settled::NotStarted { .. } | Settled::Unknown { .. } => {
            Some(if entry.status.is_done() { Reason::EffectDone } else { Reason::Superseded })
        }
        Settled::Probed(answer) => probed(entry, &settlement.worker, *answer, at),
    }
}

fn unknown(entry: &mut EffectEntry, at: Timestamp, why: &str) -> Option<Reason> {
    if !matches!(entry.status, EffectStatus::Claimed { .. }) {
        return Some(Reason::Duplicate);
    }
    lose(entry, at, why);
    None
}

/// Whether the newest start, or the unknown end of it, is that of `epoch`.
fn is_of(entry: &EffectEntry, of: u64) -> bool {
    matches!(&entry.status, EffectStatus::Claimed { epoch, .. } | EffectStatus::Unknown { epoch, .. } if *epoch == of)
}

/// Takes what a probe says. Its `not done` counts only when the effect can no longer be under way.
fn probed(entry: &mut EffectEntry, worker: &InstanceId, answer: ProbeAnswer, at: Timestamp) -> Option<Reason> {
    let by = Witness::Probe(worker.clone());
    match (&mut entry.status, answer) {
        (status, _) if status.is_done() => Some(Reason::EffectDone),
        (EffectStatus::Unknown { .. } | EffectStatus::Claimed { .. }, ProbeAnswer::Done) => {
            entry.status = EffectStatus::Done { at, by, result: None };
            None
        }
        (EffectStatus::Unknown { probe_after, .. }, ProbeAnswer::NotDone)
            if !guard!(ProbeIsNotTooEarly, at >= *probe_after) =>
        {
            Some(Reason::TooEarly)
        }
        (EffectStatus::Unknown { .. }, ProbeAnswer::NotDone) => {
            let why = "the probe says that it did not happen".to_owned();
            entry.status = EffectStatus::Failed { at, by, why };
            None
        }
        (EffectStatus::Unknown { probe_failed, .. }, ProbeAnswer::Unclear) if !*probe_failed => {
            *probe_failed = true;
            None
        }
        _ => Some(Reason::Superseded),
    }
}

/// Takes a person's word.
pub(super) fn judge(
    entry: &mut EffectEntry,
    (by, done, reason): (&str, bool, &str),
    at: Timestamp,
) -> Result<Option<Reason>, String> {
    let settled = EffectStatus::Settled { at, by: by.to_owned(), done, reason: reason.to_owned() };
    match &entry.status {
        status if status.is_done() && done => Ok(Some(Reason::Duplicate)),
        status if status.is_done() => {
            Err("it is known to have happened, and that never changes: `checkrein effects show` says how".to_owned())
        }
        EffectStatus::Settled { .. } if !done => Ok(Some(Reason::Duplicate)),
        EffectStatus::Unknown { .. } | EffectStatus::Settled { .. } => {
            entry.status = settled;
            Ok(None)
        }
        // That a command failed does not mean that nothing happened.
        EffectStatus::Failed { .. } if done => {
            entry.status = settled;
            Ok(None)
        }
        EffectStatus::Failed { .. } => Ok(Some(Reason::Duplicate)),
        EffectStatus::Claimed { .. } => {
            Err("a worker is at it now: wait until its attempt is over, or cancel the task".to_owned())
        }
        EffectStatus::Proposed { .. } | EffectStatus::Done { .. } => {
            Err("it never started, so there is nothing to settle".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
