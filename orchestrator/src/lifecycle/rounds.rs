//! Review rounds: which reviews a gate asks for, what came of them, and when
//! the round is over.

use std::collections::BTreeSet;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::ReviewId;
use checkrein_shared::policy::{CheckMode, CheckName, ReviewRequirement, gate_cover};
use checkrein_shared::records::{
    Bindings, Checkpoint, CheckpointRef, Judgement, ReviewKind, ReviewRequest, Step, Trigger,
};
use checkrein_shared::time::Timestamp;

use crate::guards::guard;

use super::decision::{Destination, Effect, Reason, Timer};
use super::rules::On;
use super::task::{About, Answer, Slot, State, Subject};
use super::turn::{Handled, Turn};

/// The name of the review that is asked for where nobody else judges.
const PERSON: &str = "person";

impl Turn<'_> {
    /// Opens a round over the head.
    pub(super) fn start_round(&mut self, trigger: Trigger) -> Handled {
        let Some(checkpoint) = self.task.head.clone() else {
            return self.illegal("there is no checkpoint to review yet");
        };
        self.set_subject(checkpoint.clone(), trigger);
        self.task.round += 1;
        self.task.required_actions.clear();
        self.task.verifiers.clear();
        self.mark_stale();
        self.void_grants("a newer checkpoint is under review");
        if let Some(limit) = self.round_limit()
            && u64::from(self.task.round) > limit
        {
            let reason = format!("{limit} review rounds did not lead to an accepted change");
            self.escalate(None, About::Gate {}, reason);
            return Ok(None);
        }
        let wanted = self.required_reviews(trigger);
        let mut slots = Vec::new();
        for requirement in &wanted {
            for instance in 1..=requirement.review.count {
                slots.push(self.open_slot(requirement, instance, &checkpoint));
            }
        }
        if self.needs_person(&wanted, trigger) || (self.call_wants_person() && !asks_people(&wanted)) {
            slots.push(self.person_slot(&checkpoint));
        }
        self.enter(State::Reviewing { slots });
        self.conclude_round()
    }

    fn set_subject(&mut self, checkpoint: CheckpointRef, trigger: Trigger) {
        let Some(head) = &self.head else { return };
        let step = match trigger {
            // This gate stands before the step that comes next, whoever opened it.
            Trigger::ToolBeforeHighRisk => self.task.next_step().cloned(),
            _ => head.plan.current_step_id.clone().or_else(|| self.task.completed().pop()),
        };
        self.task.subject = Some(Subject {
            checkpoint,
            bindings: head.bindings(),
            trigger,
            changeset: head.changesets.proposed.clone(),
            empty: head.workspace.base == head.workspace.tree,
            step,
        });
    }

    fn open_slot(&mut self, wanted: &ReviewRequirement, instance: u32, checkpoint: &CheckpointRef) -> Slot {
        let mut slot = self.slot(wanted, instance, checkpoint);
        if self.inherit(&mut slot) {
            return slot;
        }
        match slot.kind {
            ReviewKind::Human => {
                let reason = format!("the policy's review `{}` is a person's", slot.review);
                let reason = self.with_call(reason);
                slot.item = Some(self.new_item(wanted.review.level.as_deref(), About::Gate {}, reason));
            }
            ReviewKind::Rules | ReviewKind::Model | ReviewKind::Command => self.request_head(&slot, checkpoint),
        }
        slot
    }

    fn request_head(&mut self, slot: &Slot, checkpoint: &CheckpointRef) {
        if let Some(bindings) = self.head.as_ref().map(Checkpoint::bindings) {
            self.request(slot, checkpoint, bindings);
        }
    }

    /// Asks again for the reviews that are still awaited: their messages may be lost.
    pub(super) fn request_again(&mut self) -> Handled {
        let (State::Reviewing { slots }, Some(subject)) = (self.task.state.clone(), self.task.subject.clone()) else {
            return Ok(Some(Reason::NotInThisState));
        };
        for slot in slots.iter().filter(|s| s.answer == Answer::Awaited && s.item.is_none()) {
            self.request(slot, &subject.checkpoint, subject.bindings.clone());
        }
        Ok(None)
    }

    fn slot(&self, wanted: &ReviewRequirement, instance: u32, checkpoint: &CheckpointRef) -> Slot {
        let review = &wanted.review;
        Slot {
            id: self.review_id(checkpoint, &review.name, instance),
            review: review.name.clone(),
            kind: review.kind,
            blocking: review.blocking,
            quorum: wanted.quorum,
            veto: review.veto,
            deadline: self.at.plus(review.timeout.to_duration()),
            answer: Answer::Awaited,
            item: None,
        }
    }

    fn review_id(&self, checkpoint: &CheckpointRef, review: &str, instance: u32) -> ReviewId {
        let id = self.task.id.review(checkpoint.sequence, self.task.round, review, instance);
        id.expect("the policy loader accepts only review names that fit into an id")
    }

    /// Whether nobody and nothing would have judged the change itself before it reaches the target.
    fn needs_person(&self, wanted: &[ReviewRequirement], trigger: Trigger) -> bool {
        let cover = gate_cover(wanted, self.verifiers_in_force().len());
        let leads_outside = trigger == Trigger::ChangesetBeforeApply || self.call_is_irreversible();
        cover.blocking == 0 || (leads_outside && cover.asks_person())
    }

    /// The verifiers that run for the subject: those of the steps that were done so far, none where the check is off.
    pub(super) fn verifiers_in_force(&self) -> BTreeSet<String> {
        if self.context.policy.policy().checks.mode(CheckName::Verifiers) == CheckMode::Off {
            return BTreeSet::new();
        }
        let done = self.task.completed();
        let current = self.task.subject.as_ref().and_then(|s| s.step.as_ref());
        let counts = |s: &&Step| done.contains(&s.id) || current == Some(&s.id);
        self.task.plan.steps.iter().filter(counts).flat_map(|s| s.verify.iter().cloned()).collect()
    }

    fn person_slot(&mut self, checkpoint: &CheckpointRef) -> Slot {
        let trigger = self.task.subject.as_ref().map(|s| s.trigger);
        let reason = match trigger {
            Some(Trigger::ToolBeforeHighRisk) => "a person has to agree to what a step does outside",
            _ => "no verifier and no reviewer judges this change, so a person has to look at it",
        };
        let reason = self.with_call(reason.to_owned());
        let item = self.new_item(None, About::Gate {}, reason);
        Slot {
            id: self.review_id(checkpoint, PERSON, 1),
            review: PERSON.to_owned(),
            kind: ReviewKind::Human,
            blocking: true,
            quorum: 1,
            veto: true,
            deadline: item.deadline.unwrap_or(Timestamp::from_millis(i64::MAX)),
            answer: Answer::Awaited,
            item: Some(item),
        }
    }

    /// Adds what would run, where the gate is before a call.
    fn with_call(&self, reason: String) -> String {
        let text = self.call_text();
        text.map_or_else(|| reason.clone(), |text| format!("{reason}: {text}"))
    }

    fn request(&mut self, slot: &Slot, checkpoint: &CheckpointRef, bindings: Bindings) {
        let findings: Vec<_> =
            self.task.findings.iter().filter(|f| f.review == slot.review).map(|f| f.finding.clone()).collect();
        let open_findings: Digest = self.store(&findings);
        let request = ReviewRequest {
            review_id: slot.id.clone(),
            task_id: self.task.id.clone(),
            review: slot.review.clone(),
            kind: slot.kind,
            round: self.task.round,
            bindings,
            checkpoint: checkpoint.clone(),
            accepted: self.task.accepted.clone(),
            spec: self.task.spec.record,
            policy: self.task.policy.digest,
            open_findings,
            deadline: slot.deadline,
        };
        let body = serde_json::to_value(request).expect("a review request is plain data");
        self.effect(Effect::Publish { id: slot.id.to_string(), kind: "review".into(), to: Destination::Reviews, body });
    }

    /// Asks for the reviews of a checkpoint that does not gate: they watch while work goes on.
    pub(super) fn request_witnesses(&mut self, trigger: Trigger) {
        let Some(checkpoint) = self.task.head.clone() else { return };
        for requirement in self.required_reviews(trigger) {
            if requirement.review.kind != ReviewKind::Human {
                let slot = self.slot(&requirement, 1, &checkpoint);
                self.request_head(&slot, &checkpoint);
            }
        }
    }

    /// Asks the rules where every blocking review has been answered.
    pub(super) fn conclude_round(&mut self) -> Handled {
        let State::Reviewing { slots } = &self.task.state else { return Ok(None) };
        if slots.iter().any(|s| s.blocking && s.answer == Answer::Awaited) {
            return Ok(None);
        }
        let late = slots.iter().any(|s| s.blocking && s.answer == Answer::TimedOut);
        self.ask_rules(if late { On::Timeout } else { On::Round })
    }

    /// Each review has its own deadline: one that is overdue does not wait for a person who has hours left.
    pub(super) fn review_timed_out(&mut self, round: u32) -> Handled {
        let (current, at) = (round == self.task.round, self.at);
        match &mut self.task.state {
            State::Reviewing { slots } if current => {
                for slot in slots.iter_mut().filter(|s| s.answer == Answer::Awaited && s.deadline <= at) {
                    slot.answer = Answer::TimedOut;
                }
                self.await_next();
                self.conclude_round()
            }
            State::Reviewing { .. } => Ok(Some(Reason::Superseded)),
            _ => Ok(Some(Reason::NotInThisState)),
        }
    }

    /// Sets the timer of the review that is due next.
    pub(super) fn await_next(&mut self) {
        let State::Reviewing { slots } = &self.task.state else { return };
        if let Some(deadline) = next_deadline(slots) {
            self.set(Timer::Review { round: self.task.round }, deadline);
        }
    }

    /// The slots of the open round, also where it is paused.
    pub(super) fn slots_mut(&mut self) -> Option<&mut Vec<Slot>> {
        match &mut self.task.state {
            State::Reviewing { slots } => Some(slots),
            State::Paused { from, .. } => match from.as_mut() {
                State::Reviewing { slots } => Some(slots),
                _ => None,
            },
            _ => None,
        }
    }
}

/// When the next of the reviews that the round waits for is overdue.
pub(super) fn next_deadline(slots: &[Slot]) -> Option<Timestamp> {
    slots.iter().filter(|s| s.blocking && s.answer == Answer::Awaited).map(|s| s.deadline).min()
}

/// Whether a person reviews anyway, and the round waits for the answer.
fn asks_people(wanted: &[ReviewRequirement]) -> bool {
    wanted.iter().any(|w| w.review.blocking && w.review.kind == ReviewKind::Human)
}

/// Whether every blocking review has its quorum of approvals and no veto stands.
pub(super) fn is_complete(slots: &[Slot]) -> bool {
    let approved = |name: &str| {
        slots.iter().filter(|s| s.review == name && s.answer == Answer::Given(Judgement::Approved)).count()
    };
    let vetoed = |slot: &Slot| {
        slot.veto
            && slots.iter().any(|s| {
                s.review == slot.review && matches!(s.answer, Answer::Given(judgement) if judgement.is_negative())
            })
    };
    let mut blocking = slots.iter().filter(|s| s.blocking).peekable();
    blocking.peek().is_some()
        && blocking.all(|s| {
            guard!(QuorumIsReached, approved(&s.review) >= s.quorum as usize) && guard!(NoVetoInRound, !vetoed(s))
        })
}
