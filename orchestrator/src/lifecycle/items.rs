//! Inbox items: asking a person, moving to the next level, and expiring.

use std::collections::BTreeSet;
use std::time::Duration;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::EscalationId;
use checkrein_shared::policy::OnTimeout;

use crate::guards::guard;

use super::decision::{Reason, Timer};
use super::task::{About, Answer, Item, Outcome, Slot, State};
use super::turn::{Handled, Turn};
use super::verdicts::KEY_FIELD;

/// How long people have after a reminder.
const REMINDER: Duration = Duration::from_secs(5 * 60);

impl Turn<'_> {
    /// Asks a person of a level, or of the policy's first one.
    pub(super) fn escalate(&mut self, level: Option<&str>, about: About, reason: String) {
        let item = self.new_item(level, about, reason);
        self.void_grants("a person was asked");
        self.enter(State::Waiting { item });
    }

    pub(super) fn new_item(&mut self, level: Option<&str>, about: About, reason: String) -> Item {
        self.task.usage.items += 1;
        let id = self.task.id.escalation(self.task.usage.items);
        let (name, wanted) = self.level(level);
        let checkpoint = self.task.head.clone();
        let hash = checkpoint.as_ref().map_or_else(|| Digest::of(id.as_str()), |c| c.hash);
        Item {
            id,
            level: name,
            reason,
            about,
            hash,
            checkpoint,
            opened_at: self.at,
            deadline: Some(wanted.due(self.at)),
            stage: 0,
            claimed_by: None,
            approvers: wanted.approvers.max(1),
            approved_by: BTreeSet::new(),
            stale: Vec::new(),
        }
    }

    /// The open item that waits for `hash`, or for anything where `hash` is `None`.
    pub(super) fn item_mut(&mut self, hash: Option<Digest>) -> Option<&mut Item> {
        let wanted = |item: &&mut Item| hash.is_none_or(|h| guard!(ApprovalNamesHash, item.hash == h));
        match &mut self.task.state {
            State::Waiting { item } => Some(item).filter(wanted),
            State::Reviewing { slots } => {
                slots.iter_mut().filter(|s| s.answer == Answer::Awaited).filter_map(|s| s.item.as_mut()).find(wanted)
            }
            _ => None,
        }
    }

    /// The item about which a person is asked, also where the task is paused.
    pub(super) fn asked_mut(&mut self) -> Option<&mut Item> {
        match &mut self.task.state {
            State::Waiting { item } => Some(item),
            State::Paused { from, .. } => match from.as_mut() {
                State::Waiting { item } => Some(item),
                _ => None,
            },
            _ => None,
        }
    }

    /// Says on the open item in what the subject differs from what is in force now.
    pub(super) fn note_differences(&mut self) {
        let (Some(live), Some(subject)) = (self.task.live_bindings(), self.task.subject.clone()) else { return };
        let differences = subject.bindings.differences(&live);
        if let Some(item) = self.asked_mut() {
            // What is no binding was not compared, so it stays.
            item.stale.retain(|m| m.field == "findings" || m.field == KEY_FIELD);
            item.stale.extend(differences);
        }
    }

    pub(super) fn item_claimed(&mut self, by: &str) -> Handled {
        let Some(item) = self.item_mut(None) else {
            return self.illegal("nothing of this task waits for a person now");
        };
        match item.claimed_by.clone() {
            Some(other) if other == by => Ok(Some(Reason::Duplicate)),
            Some(other) => self.illegal(format!("`{other}` has claimed it already")),
            None => {
                item.claimed_by = Some(by.to_owned());
                Ok(None)
            }
        }
    }

    pub(super) fn item_expired(&mut self, id: &EscalationId, stage: u32) -> Handled {
        let State::Waiting { item } = self.task.state.clone() else { return Ok(Some(Reason::NotInThisState)) };
        if &item.id != id || item.stage != stage {
            return Ok(Some(Reason::Superseded));
        }
        let (_, level) = self.level(Some(&item.level));
        if let Some(next) = &level.next {
            self.next_level(item, next);
            return Ok(None);
        }
        let reason = format!("expired: nobody at level `{}` answered in time ({})", item.level, item.reason);
        match level.on_timeout {
            OnTimeout::Refuse | OnTimeout::Block => {
                self.enter(State::Blocked { reason, redo: item.about.is_the_work() });
            }
            OnTimeout::Abort => self.enter(State::Done { outcome: Outcome::Failed { reason } }),
        }
        Ok(None)
    }

    /// Nobody could answer while nothing ran: people are reminded, and have a little time before the deadline counts.
    pub(super) fn deadline_missed(&mut self, id: &EscalationId) -> Handled {
        let (at, until) = (self.at, self.at.plus(REMINDER));
        let is_overdue = |item: &Item| &item.id == id && item.deadline.is_some_and(|deadline| deadline <= at);
        match &mut self.task.state {
            State::Waiting { item } if is_overdue(item) => {
                item.deadline = Some(until);
                let timer = Timer::Item { item: item.id.clone(), stage: item.stage };
                self.set(timer, until);
                Ok(None)
            }
            State::Reviewing { slots } => {
                let asked =
                    |slot: &&mut Slot| slot.answer == Answer::Awaited && slot.item.as_ref().is_some_and(is_overdue);
                let Some(slot) = slots.iter_mut().find(asked) else { return Ok(Some(Reason::Superseded)) };
                slot.deadline = slot.deadline.max(until);
                if let Some(item) = &mut slot.item {
                    item.deadline = Some(until);
                }
                self.await_next();
                Ok(None)
            }
            State::Waiting { .. } => Ok(Some(Reason::Superseded)),
            _ => Ok(Some(Reason::NotInThisState)),
        }
    }

    fn next_level(&mut self, mut item: Item, next: &str) {
        let (name, level) = self.level(Some(next));
        item.level = name;
        item.stage += 1;
        item.claimed_by = None;
        item.deadline = Some(level.due(self.at));
        item.approvers = level.approvers.max(1);
        self.enter(State::Waiting { item });
    }
}
