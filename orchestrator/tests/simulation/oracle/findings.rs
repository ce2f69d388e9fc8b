//! Findings: a negative verdict's stay open and in the way until they are closed in one of the three ways.

use checkrein_orchestrator::lifecycle::{About, EventKind, State, Task, VerdictState};
use checkrein_shared::records::{FindingStatus, Verdict};

use super::Book;
use super::grants::in_force;

/// How many findings a state keeps.
const KEPT: usize = 500;

pub(super) fn check(book: &Book, before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    for old in before.findings.iter().filter(|finding| finding.veto) {
        let id = &old.finding.id;
        let new = next.findings.iter().find(|new| new.finding.id == *id && new.review == old.review);
        if new.is_some_and(|new| new.veto) {
            continue;
        }
        let closed = match event {
            EventKind::FindingClosed { finding, .. } => finding == id,
            // A person who has looked at everything decides over it; it stays visible.
            EventKind::Approved { .. } => new.is_some() && is_about_gate(before),
            EventKind::VerdictPublished { verdict, .. } => {
                closes(before, verdict, &old.review, id.as_str(), new.is_some())
            }
            _ => false,
        };
        if !closed {
            return Some(format!("the finding {id} of `{}` stands in the way no more", old.review));
        }
    }
    check_opened(book, before, event, next)
}

fn is_about_gate(task: &Task) -> bool {
    matches!(&task.state, State::Waiting { item } if item.about == About::Gate {})
}

/// The same review says so about the newest bytes: it is fixed and here is where to see it, or it stands and may.
fn closes(before: &Task, verdict: &Verdict, review: &str, finding: &str, still_open: bool) -> bool {
    let same = verdict.review_id.as_str().contains(&format!("-{review}-"));
    let current = before.subject.as_ref().is_some_and(|s| s.bindings == verdict.bindings)
        && in_force(before, &verdict.bindings).is_ok();
    let said = verdict.findings.iter().find(|said| said.id.as_str() == finding);
    let fixed = said.is_some_and(|s| s.status == FindingStatus::Fixed && !s.source_refs.is_empty());
    let tolerated =
        still_open && said.is_some_and(|s| s.status != FindingStatus::Fixed) && !verdict.verdict.is_negative();
    same && current && (fixed || tolerated)
}

/// Whatever its currency, a negative verdict opens what it found.
fn check_opened(book: &Book, before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    let EventKind::VerdictPublished { verdict, .. } = event else { return None };
    if !verdict.verdict.is_negative() || next.findings.len() >= KEPT {
        return None;
    }
    debug_assert!(book.taken.contains_key(&verdict.review_id));
    let fresh = verdict.findings.iter().filter(|finding| finding.status != FindingStatus::Fixed);
    let lost = fresh.clone().find(|f| !next.findings.iter().any(|open| open.finding.id == f.id && open.veto));
    // A verdict for a review that has one already is a duplicate, and changes nothing.
    let given = |v: &VerdictState| v.id == verdict.review_id && v.inherited_from.is_none();
    let duplicate = before.verdicts.iter().chain(&book.history.verdicts).any(given);
    lost.filter(|_| !duplicate).map(|finding| format!("the finding {} of a negative verdict is not open", finding.id))
}
