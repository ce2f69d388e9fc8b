//! Review rounds: which reviews a gate asks for, what came of them, and when
//! the round is over.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::policy::ReviewRequirement;
use checkrein_shared::records::{CheckpointRef, Judgement, ReviewKind, ReviewRequest, Trigger};

use super::decision::{Destination, Effect, Reason};
use super::rules::On;
use super::task::{About, Answer, Slot, State, Subject};
use super::turn::{Handled, Turn};

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
        let wanted = match self.required_reviews(trigger) {
            Ok(wanted) => wanted,
            Err(reason) => {
                self.escalate(None, About::Gate {}, reason);
                return Ok(None);
            }
        };
        let mut slots = Vec::new();
        for requirement in &wanted {
            for instance in 1..=requirement.count {
                slots.push(self.open_slot(requirement, instance, &checkpoint)?);
            }
        }
        if !slots.iter().any(|s| s.blocking) {
            let reason = "the policy asks for no blocking review here, so a person has to look".to_owned();
            self.escalate(None, About::Gate {}, reason);
            return Ok(None);
        }
        self.enter(State::Reviewing { slots });
        self.conclude_round()
    }

    fn set_subject(&mut self, checkpoint: CheckpointRef, trigger: Trigger) {
        let Some(head) = &self.head else { return };
        self.task.subject = Some(Subject {
            checkpoint,
            bindings: head.bindings(),
            trigger,
            changeset: head.changesets.proposed.clone(),
            empty: head.workspace.base == head.workspace.tree,
            step: head.plan.current_step_id.clone().or_else(|| last(&head.plan.completed_step_ids)),
        });
    }

    fn open_slot(
        &mut self,
        wanted: &ReviewRequirement,
        instance: u32,
        checkpoint: &CheckpointRef,
    ) -> Result<Slot, super::decision::IllegalTransition> {
        let id = self.task.id.review(checkpoint.sequence, self.task.round, &wanted.name, instance);
        let Ok(id) = id else {
            unreachable!("the policy loader accepts only review names that fit into an id")
        };
        let deadline = self.at.plus(wanted.timeout.to_duration());
        let mut slot = Slot {
            id,
            review: wanted.name.clone(),
            kind: wanted.kind,
            blocking: wanted.blocking,
            quorum: wanted.quorum,
            veto: wanted.veto,
            deadline,
            answer: Answer::Awaited,
            item: None,
        };
        if self.inherit(&mut slot) {
            return Ok(slot);
        }
        match wanted.kind {
            ReviewKind::Human => {
                let reason = format!("the policy's review `{}` is a person's", wanted.name);
                slot.item = Some(self.new_item(wanted.level.as_deref(), About::Gate {}, reason));
            }
            ReviewKind::Rules | ReviewKind::Model | ReviewKind::Command => self.request(&slot, checkpoint),
        }
        Ok(slot)
    }

    fn request(&mut self, slot: &Slot, checkpoint: &CheckpointRef) {
        let findings: Vec<_> =
            self.task.findings.iter().filter(|f| f.review == slot.review).map(|f| f.finding.clone()).collect();
        let open_findings: Digest = self.store(&findings);
        let Some(head) = &self.head else { return };
        let request = ReviewRequest {
            review_id: slot.id.clone(),
            task_id: self.task.id.clone(),
            review: slot.review.clone(),
            kind: slot.kind,
            round: self.task.round,
            bindings: head.bindings(),
            checkpoint: checkpoint.clone(),
            accepted: self.task.accepted.clone(),
            spec: self.task.spec.record,
            policy: self.task.policy.digest,
            open_findings,
            deadline: slot.deadline,
        };
        let body = serde_json::to_value(request).expect("a review request is plain data");
        self.effect(Effect::Publish {
            id: slot.id.to_string(),
            kind: "review".into(),
            to: Destination::Reviews,
            body,
        });
    }

    /// Asks for the reviews of a checkpoint that does not gate: they watch while work goes on.
    pub(super) fn request_witnesses(&mut self, trigger: Trigger) {
        let Some(checkpoint) = self.task.head.clone() else { return };
        let Ok(wanted) = self.required_reviews(trigger) else { return };
        for requirement in wanted.iter().filter(|r| r.kind != ReviewKind::Human) {
            let id = self.task.id.review(checkpoint.sequence, self.task.round, &requirement.name, 1);
            let Ok(id) = id else { continue };
            let slot = Slot {
                id,
                review: requirement.name.clone(),
                kind: requirement.kind,
                blocking: false,
                quorum: 1,
                veto: false,
                deadline: self.at.plus(requirement.timeout.to_duration()),
                answer: Answer::Awaited,
                item: None,
            };
            self.request(&slot, &checkpoint);
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

    pub(super) fn review_timed_out(&mut self, round: u32) -> Handled {
        let current = round == self.task.round;
        match &mut self.task.state {
            State::Reviewing { slots } if current => {
                for slot in slots.iter_mut().filter(|s| s.answer == Answer::Awaited) {
                    slot.answer = Answer::TimedOut;
                }
                self.conclude_round()
            }
            State::Reviewing { .. } => Ok(Some(Reason::Superseded)),
            _ => Ok(Some(Reason::NotInThisState)),
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

/// Whether every blocking review has its quorum of approvals and no veto stands.
pub fn is_complete(slots: &[Slot]) -> bool {
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
    blocking.peek().is_some() && blocking.all(|s| approved(&s.review) >= s.quorum as usize && !vetoed(s))
}

fn last(steps: &[StepId]) -> Option<StepId> {
    steps.last().cloned()
}
