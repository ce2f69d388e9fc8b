//! Verdicts: none vanishes, none that went stale counts again, none counts twice, none counts that somebody else gave.
//! One that no decision needs any more leaves the state, and is found in its history from then on.

use checkrein_orchestrator::lifecycle::{Answer, EventKind, Slot, State, Task, VerdictState};
use checkrein_shared::records::ReviewKind;

use super::Book;
use super::grants::InForce;

pub(super) fn check(book: &Book, before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    for old in &before.verdicts {
        let mut places = next.verdicts.iter().chain(book.history.fresh_verdicts());
        match places.find(|new| same(new, old)) {
            None => return Some(format!("the verdict of {} has vanished", old.id)),
            Some(new) if !old.stale.is_empty() && !old.stale.iter().all(|m| new.stale.contains(m)) => {
                return Some(format!("the verdict of {} was stale and is not any more", old.id));
            }
            Some(new) if (VerdictState { stale: old.stale.clone(), ..new.clone() }) != *old => {
                return Some(format!("the verdict of {} was changed", old.id));
            }
            Some(_) => {}
        }
    }
    let known = |past: &&VerdictState| before.verdicts.iter().any(|old| same(old, past));
    if let Some(verdict) = book.history.fresh_verdicts().iter().find(|past| !known(past) && past.at != next.updated_at)
    {
        return Some(format!("the verdict of {} is history, and was never in the state", verdict.id));
    }
    let in_force = InForce::of(next);
    for verdict in next.verdicts.iter().chain(book.history.fresh_verdicts()) {
        if let Some(what) = check_one(book, next, &in_force, verdict) {
            return Some(what);
        }
    }
    check_keys(event, next).or_else(|| check_answers(before, event, next))
}

pub(super) fn same(one: &VerdictState, other: &VerdictState) -> bool {
    one.id == other.id && one.inherited_from == other.inherited_from && one.at == other.at
}

fn check_one(book: &Book, next: &Task, in_force: &InForce<'_>, verdict: &VerdictState) -> Option<String> {
    let id = &verdict.id;
    let again = book.history.all_verdicts(next).filter(|v| v.id == *id && v.inherited_from.is_none()).count();
    if verdict.inherited_from.is_none() && again > 1 {
        return Some(format!("two verdicts of {id} count"));
    }
    if verdict.kind != ReviewKind::Human {
        let source = verdict.inherited_from.as_ref().unwrap_or(id);
        let known = book
            .taken
            .get(source)
            .is_some_and(|signed| signed.verdict.verdict == verdict.verdict && signed.signer == verdict.reviewer);
        // What was carried over from one that was carried over itself is found by the next condition.
        if !known && verdict.inherited_from.is_none() {
            return Some(format!("{} is said to have judged in {id}, and did not", verdict.reviewer));
        }
    }
    if verdict.stale.is_empty()
        && let Err(field) = in_force.holds(&verdict.bindings)
    {
        return Some(format!("the verdict of {id} counts as current, but `{field}` has changed"));
    }
    None
}

/// What a key has signed since it was given up counts no more. What it signs later is refused at the edge.
fn check_keys(event: &EventKind, next: &Task) -> Option<String> {
    let EventKind::KeyCompromised { reviewer, since } = event else { return None };
    let noted = |v: &VerdictState| v.stale.iter().any(|m| m.field == "reviewer_key");
    let counts = next.verdicts.iter().find(|v| v.reviewer == *reviewer && v.at >= *since && !noted(v));
    counts.map(|verdict| format!("the verdict of {} counts, but its key is compromised", verdict.id))
}

/// An answer is given by the verdict of this event, by a person's word in it, or by inheritance when a round begins.
fn check_answers(before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    for slot in slots(&next.state) {
        let Answer::Given(judgement) = slot.answer else { continue };
        let old = slots(&before.state).iter().find(|old| old.id == slot.id);
        if old.is_some_and(|old| old.answer == slot.answer) {
            continue;
        }
        let subject = next.subject.as_ref()?;
        let verdict = next.verdicts.iter().rev().find(|v| v.id == slot.id);
        let Some(verdict) = verdict else { return Some(format!("{} is answered, and nobody gave a verdict", slot.id)) };
        if verdict.verdict != judgement || verdict.bindings != subject.bindings || verdict.kind != slot.kind {
            return Some(format!("{} is answered by a verdict about something else", slot.id));
        }
        let by_event = match event {
            EventKind::VerdictPublished { verdict, .. } => verdict.review_id == slot.id,
            EventKind::Approved { .. } | EventKind::Rejected { .. } | EventKind::ChangesRequested { .. } => {
                slot.kind == ReviewKind::Human
            }
            _ => false,
        };
        if !by_event && verdict.inherited_from.is_none() {
            return Some(format!("{} was answered by {}", slot.id, event.name()));
        }
    }
    None
}

/// The reviews of the open round, also where it is paused.
pub(super) fn slots(state: &State) -> &[Slot] {
    match state {
        State::Reviewing { slots } => slots,
        State::Paused { from, .. } => slots(from),
        _ => &[],
    }
}
