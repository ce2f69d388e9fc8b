//! Who may say that something is accepted: a complete round of current verdicts without a veto, or a person who saw
//! exactly this. The oracle counts for itself.

use checkrein_orchestrator::lifecycle::{About, Answer, EventKind, GrantStatus, Item, Slot, State, Task, VerdictState};
use checkrein_shared::policy::{Excluded, InheritBase};
use checkrein_shared::records::{Judgement, ReviewKind};

use super::Book;
use super::grants::in_force;
use super::verdicts::slots;
use crate::policies::Policy;

pub(super) fn check(policy: &Policy, book: &Book, before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    let grants = |task: &Task| task.usage.grants;
    let accepts = next.accepted != before.accepted || grants(next) > grants(before);
    if accepts && let Err(why) = accepted(policy, book, before, event, next) {
        return Some(format!("it was accepted, but {why}"));
    }
    let issued = next.grants.iter().filter(|g| g.status == (GrantStatus::Issued {}));
    for grant in issued.filter(|g| !before.grants.iter().any(|old| old.id == g.id)) {
        let subject = next.subject.as_ref().map(|s| (&s.bindings, &s.changeset));
        if subject != Some((&grant.bindings, &grant.changeset)) {
            return Some(format!("{} is bound to something that was not accepted", grant.id));
        }
        if let Err(field) = in_force(next, &grant.bindings) {
            return Some(format!("{} was issued although `{field}` has changed", grant.id));
        }
    }
    approvals(policy, before, event, next)
}

fn accepted(policy: &Policy, book: &Book, before: &Task, event: &EventKind, next: &Task) -> Result<(), String> {
    let subject = next.subject.as_ref().ok_or("nothing was reviewed")?;
    if next.accepted.as_ref() != Some(&subject.checkpoint) {
        return Err("another checkpoint is".to_owned());
    }
    let by_person = matches!((&before.state, event), (State::Waiting { item }, EventKind::Approved { .. })
        if item.about == About::Gate {});
    // Where what the person saw had changed, it is judged again in the same turn: then that round has to hold.
    if by_person && next.round == before.round {
        let State::Waiting { item } = &before.state else { return Ok(()) };
        let unchanged = before.drifted.is_none() && in_force(before, &subject.bindings).is_ok();
        return if unchanged && item.stale.iter().all(|m| m.field == "findings") {
            Ok(())
        } else {
            Err("what the person saw had changed".to_owned())
        };
    }
    if next.findings.iter().any(|finding| finding.veto) {
        return Err("findings of a negative verdict are open".to_owned());
    }
    complete(policy, book, before, event, next)
}

/// Whether the round that is being closed is complete, by the verdicts themselves.
fn complete(policy: &Policy, book: &Book, before: &Task, event: &EventKind, next: &Task) -> Result<(), String> {
    let subject = next.subject.as_ref().ok_or("nothing was reviewed")?;
    let current = |v: &&VerdictState| v.round == next.round && v.bindings == subject.bindings && v.stale.is_empty();
    let given: Vec<&VerdictState> = book.history.all_verdicts(next).filter(current).collect();
    let reviews = policy.compiled.policy().reviews.iter().filter(|r| r.blocking && r.on.contains(&subject.trigger));
    // Reviews with a condition may have been left out; those that were asked for are in the round.
    let open: Vec<&Slot> = slots(&before.state).iter().collect();
    let mut blocking = 0;
    for review in reviews.filter(|r| r.when.is_none() || open.iter().any(|s| s.review == r.name)) {
        blocking += 1;
        let mine: Vec<_> = given.iter().filter(|v| v.review == review.name && genuine(policy, book, next, v)).collect();
        let approvals = mine.iter().filter(|v| v.verdict == Judgement::Approved).count();
        let quorum = review.quorum.of(review.count) as usize;
        if approvals < quorum {
            return Err(format!("`{}` has {approvals} of {quorum} approvals", review.name));
        }
        if review.veto && mine.iter().any(|v| v.verdict.is_negative()) {
            return Err(format!("`{}` has a veto", review.name));
        }
    }
    let person = open.iter().find(|slot| slot.review == "person");
    if let Some(person) = person {
        blocking += 1;
        let said = given.iter().any(|v| v.id == person.id && v.verdict == Judgement::Approved);
        if !said {
            return Err("no person has approved".to_owned());
        }
    }
    if blocking == 0 {
        return Err("nobody was asked".to_owned());
    }
    let waits = open.iter().any(|s| s.blocking && s.answer == Answer::Awaited);
    let by_answer = matches!(event, EventKind::VerdictPublished { .. } | EventKind::Approved { .. });
    let at_once = matches!(event, EventKind::CheckpointWritten { .. }) || !waits;
    if by_answer || at_once { Ok(()) } else { Err(format!("`{}` is no judgement", event.name())) }
}

/// Whether a trusted reviewer really signed it, or a person really said it.
fn genuine(policy: &Policy, book: &Book, task: &Task, verdict: &VerdictState) -> bool {
    if verdict.kind == ReviewKind::Human {
        return verdict.inherited_from.is_none();
    }
    if verdict.inherited_from.is_some() {
        let relevant = policy.compiled.policy().inherit.base == InheritBase::Relevant;
        return inherited(book, task, verdict, relevant);
    }
    book.taken.get(&verdict.id).is_some_and(|signed| signed.verdict.bindings == verdict.bindings)
}

/// Follows an inherited approval to the one that was signed, and compares what has to be the same.
fn inherited(book: &Book, task: &Task, verdict: &VerdictState, relevant: bool) -> bool {
    let mut source = verdict.inherited_from.clone();
    for _ in 0..book.history.all_verdicts(task).count() + 1 {
        let Some(id) = source.take() else { return false };
        if let Some(signed) = book.taken.get(&id) {
            let (old, now) = (&signed.verdict.bindings, &verdict.bindings);
            let key = book.compromised.get(&signed.signer);
            let trusted = key.is_none();
            return (trusted
                || !book
                    .history
                    .all_verdicts(task)
                    .any(|v| v.id == id && v.stale.iter().any(|m| m.field == "reviewer_key")))
                && signed.verdict.verdict == Judgement::Approved
                && (relevant
                    || (old.base == now.base && old.tree == now.tree && old.changeset_hash == now.changeset_hash))
                && old.spec_hash == now.spec_hash
                && old.constraints_hash == now.constraints_hash
                && old.plan_hash == now.plan_hash
                && old.policy_digest == now.policy_digest
                && old.tool_schema_fingerprint == now.tool_schema_fingerprint
                && old.runtime_version == now.runtime_version;
        }
        source = book.history.all_verdicts(task).find(|v| v.id == id).and_then(|v| v.inherited_from.clone());
    }
    false
}

/// A person approves what was shown, in time, and is not excluded.
fn approvals(policy: &Policy, before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    let EventKind::Approved { by, hash, .. } = event else {
        let more = next.usage.approvals > before.usage.approvals;
        return more.then(|| "an approval was counted that nobody gave".to_owned());
    };
    let items: Vec<&Item> = before.items();
    let Some(item) = items.iter().find(|item| item.hash == *hash) else {
        return Some(format!("`{by}` approved a hash that was not the one to be shown"));
    };
    if item.deadline.is_some_and(|deadline| next.updated_at > deadline) {
        return Some(format!("`{by}` approved after the deadline"));
    }
    let level = policy.compiled.policy().level(&item.level);
    let author = level.exclude.contains(&Excluded::Author) && before.submitted_by == *by;
    let editor = level.exclude.contains(&Excluded::Editor) && before.editors.contains(by);
    if author || editor {
        return Some(format!("`{by}` approved and is excluded"));
    }
    let decided = next.items().iter().all(|open| open.id != item.id);
    let so_far = item.approved_by.len() + usize::from(!item.approved_by.contains(by));
    if decided && so_far < item.approvers as usize {
        return Some(format!("{so_far} of {} approvals were enough", item.approvers));
    }
    let alone = item.approved_by.iter().chain([by]).all(|who| before.editors.contains(who));
    (decided && alone && item.about == About::Gate {}).then(|| format!("`{by}` approved nothing but own work"))
}
