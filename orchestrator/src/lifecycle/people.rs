//! What people decide: approve, reject, ask for changes, close a finding.

use std::collections::BTreeSet;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{FindingId, InstanceId};
use checkrein_shared::policy::Excluded;
use checkrein_shared::records::{
    ApprovalRef, Conversation, JobKind, Judgement, RequiredAction, ReviewKind, Risk, Trigger,
};

use crate::guards::guard;

use super::decision::Reason;
use super::task::{APPROVALS_MAX, About, Answer, Item, Slot, State, VerdictState, keep_newest};
use super::turn::{Handled, Turn};

const SEEN_SOMETHING_ELSE: &str =
    "what was shown is not what waits for a decision now: look at it again, then decide about the new hash";
const NOTHING_WAITS: &str = "nothing of this task waits for a person now";

impl Turn<'_> {
    pub(super) fn approved(&mut self, by: &str, hash: Digest) -> Handled {
        if self.item_mut(None).is_none() {
            return self.illegal(NOTHING_WAITS);
        }
        let Some(item) = self.item_mut(Some(hash)).cloned() else { return self.illegal(SEEN_SOMETHING_ELSE) };
        if item.approved_by.contains(by) {
            return Ok(Some(Reason::Duplicate));
        }
        if !guard!(ApprovalInTime, item.deadline.is_none_or(|deadline| self.at <= deadline)) {
            return self.illegal("expired: its deadline has passed, so it can't be approved any more; what the policy says about that follows as soon as the task runs");
        }
        if let About::Effect { key, .. } = &item.about {
            return self.illegal(settled_otherwise(key));
        }
        let refusal = self.may_not_approve(&item, by);
        if !guard!(ApproverMayApprove, refusal.is_none()) {
            return self.illegal(refusal.unwrap_or_default());
        }
        if self.has_answered(&item, by) {
            return self
                .illegal(format!("`{by}` has approved for another place of this review; it needs another person"));
        }
        let approval = ApprovalRef { id: self.task.next_approval(), checkpoint_hash: hash, by: by.to_owned() };
        self.task.approvals.push(approval);
        keep_newest(&mut self.task.approvals, APPROVALS_MAX);
        let Some(open) = self.item_mut(Some(hash)) else { return Ok(Some(Reason::Superseded)) };
        open.approved_by.insert(by.to_owned());
        if !guard!(ApproversAreEnough, open.approved_by.len() as u64 >= u64::from(open.approvers)) {
            return Ok(None);
        }
        match self.slot_of(&item) {
            Some(slot) => self.person_answered(&slot, by, Judgement::Approved),
            None => self.item_approved(&item),
        }
    }

    /// Whether `by` has filled another place of the same review in this round.
    fn has_answered(&mut self, item: &Item, by: &str) -> bool {
        let Some(slot) = self.slot_of(item) else { return false };
        let other = |s: &Slot| s.review == slot.review && s.id != slot.id;
        let approved = |s: &Slot| s.item.as_ref().is_some_and(|i| i.approved_by.contains(by));
        self.slots_mut().is_some_and(|slots| slots.iter().any(|s| other(s) && approved(s)))
    }

    /// Why `by` can't approve this item, where that is so.
    fn may_not_approve(&self, item: &Item, by: &str) -> Option<String> {
        let excluded = self.level(Some(&item.level)).1.exclude;
        let author = self.task.submitted_by == by;
        let editor = self.task.editors.contains(by);
        if author && excluded.contains(&Excluded::Author) {
            return Some(format!("`{by}` submitted this task, and level `{}` excludes its author", item.level));
        }
        if editor && excluded.contains(&Excluded::Editor) {
            return Some(format!("`{by}` edited this change, and level `{}` excludes editors", item.level));
        }
        let alone = item.approved_by.iter().all(|other| self.task.editors.contains(other));
        let last = item.approved_by.len() as u64 + 1 >= u64::from(item.approvers);
        let gate = matches!(item.about, About::Gate {});
        (gate && editor && alone && last)
            .then(|| format!("`{by}` edited this change, so somebody else has to approve it too"))
    }

    fn item_approved(&mut self, item: &Item) -> Handled {
        let written = self.control(Trigger::ApprovalAfter);
        if self.has_redeemed() {
            // Whatever the question was: the change that is half in the target comes first.
            self.task.usage.lost_attempts = 0;
            self.go_on();
            return Ok(None);
        }
        match &item.about {
            About::Gate {} | About::Overlap {} if !guard!(ApprovedTargetUnchanged, self.task.drifted.is_none()) => {
                // The consent stands, but what it was about does not: the change is rebased and reviewed again.
                self.queue(JobKind::Rebase);
                Ok(None)
            }
            About::Gate {} if !guard!(ApprovedSubjectUnchanged, item.stale.iter().all(|m| m.field == "findings")) => {
                // Specification or plan changed under the question: what is there now was not judged by anybody.
                if !written {
                    self.control_always(Trigger::SpecChanged);
                }
                self.judge_again()
            }
            About::Gate {} => {
                for open in &mut self.task.findings {
                    open.veto = false;
                }
                self.proceed()
            }
            About::Overlap {} => {
                self.queue(JobKind::Rebase);
                Ok(None)
            }
            About::Effect { key, .. } => self.illegal(settled_otherwise(key)),
            About::Failure { step } => {
                self.task.usage.failures = 0;
                self.task.usage.lost_attempts = 0;
                let (step, conversation) = (step.clone(), Conversation::Same);
                self.queue(JobKind::Step { step, conversation });
                Ok(None)
            }
            About::Budget { .. } => {
                self.raise_budget();
                self.go_on();
                Ok(None)
            }
            About::Interrupted {} => {
                self.go_on();
                Ok(None)
            }
            About::LateVeto {} => {
                self.complete_or_go_on();
                Ok(None)
            }
        }
    }

    pub(super) fn rejected(&mut self, by: &str, hash: Digest, reason: &str) -> Handled {
        let item = match self.shown(hash) {
            Ok(item) => item,
            Err(hint) => return self.illegal(hint),
        };
        match self.slot_of(&item) {
            Some(slot) => {
                self.ask_for(by, reason);
                self.person_answered(&slot, by, Judgement::Rejected)
            }
            None => {
                let redo = item.about.is_the_work();
                self.enter(State::Blocked { reason: format!("rejected by `{by}`: {reason}"), redo });
                Ok(None)
            }
        }
    }

    pub(super) fn changes_requested(&mut self, by: &str, hash: Digest, text: &str) -> Handled {
        let item = match self.shown(hash) {
            Ok(item) => item,
            Err(hint) => return self.illegal(hint),
        };
        if let About::Effect { key, .. } = &item.about {
            return self.illegal(settled_otherwise(key));
        }
        self.ask_for(by, text);
        match self.slot_of(&item) {
            Some(slot) => self.person_answered(&slot, by, Judgement::ChangesRequired),
            None => {
                self.redo(Conversation::Same);
                Ok(None)
            }
        }
    }

    fn shown(&mut self, hash: Digest) -> Result<Item, &'static str> {
        if self.item_mut(None).is_none() {
            return Err(NOTHING_WAITS);
        }
        self.item_mut(Some(hash)).cloned().ok_or(SEEN_SOMETHING_ELSE)
    }

    pub(super) fn ask_for(&mut self, by: &str, text: &str) {
        let (text, from) = (text.to_owned(), by.to_owned());
        self.task.required_actions.push(RequiredAction { text, finding: None, refs: Vec::new(), from });
    }

    fn slot_of(&mut self, item: &Item) -> Option<Slot> {
        let is_it = |s: &&Slot| s.item.as_ref().is_some_and(|i| i.id == item.id);
        self.slots_mut()?.iter().find(is_it).cloned()
    }

    /// Records a person's verdict in a human review's slot.
    fn person_answered(&mut self, slot: &Slot, by: &str, verdict: Judgement) -> Handled {
        let Some(bindings) = self.task.subject.as_ref().map(|s| s.bindings.clone()) else {
            return Ok(Some(Reason::Superseded));
        };
        if let Some(open) = self.slots_mut().and_then(|s| s.iter_mut().find(|s| s.id == slot.id)) {
            open.answer = Answer::Given(verdict);
        }
        self.push_verdict(VerdictState {
            id: slot.id.clone(),
            review: slot.review.clone(),
            kind: ReviewKind::Human,
            round: self.task.round,
            envelope: None,
            verdict,
            risk: Risk::default(),
            coverage_pct: 100,
            bindings,
            reviewer: person(by),
            at: self.at,
            inherited_from: None,
            stale: Vec::new(),
            verifiers: BTreeSet::new(),
        });
        self.conclude_round()
    }

    pub(super) fn finding_closed(&mut self, by: &str, finding: &FindingId, reason: &str) -> Handled {
        if matches!(self.task.state, State::Done { .. }) {
            return self.illegal("the task has ended");
        }
        let before = self.task.findings.len();
        self.task.findings.retain(|f| &f.finding.id != finding);
        if self.task.findings.len() == before {
            return self.illegal(format!("no finding `{finding}` is open"));
        }
        self.task.required_actions.retain(|a| a.finding.as_ref() != Some(finding));
        tracing::info!(task.id = %self.task.id, finding = %finding, by, reason, "a person closed a finding");
        Ok(None)
    }
}

/// How a question about an effect is answered: with a fact, never with a consent.
fn settled_otherwise(key: &Digest) -> String {
    let settle = format!("checkrein effects settle {}", key.short());
    format!("this question is about what happened: answer it with `{settle} --done --reason '..'` or `--not-done`")
}

/// A person's name as a reviewer's identity; characters that an id can't hold become `-`.
fn person(by: &str) -> InstanceId {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let name: String = by.chars().take(80).map(safe).collect();
    format!("person-{name}").parse().expect("made of characters that ids hold, and short enough")
}
