//! Pausing, going on, taking over, handing back and cancelling.

use checkrein_shared::digest::Digest;
use checkrein_shared::records::{Conversation, JobKind, Trigger};

use crate::guards::guard;

use super::decision::Reason;
use super::task::{Answer, Outcome, Slot, State, Wish};
use super::turn::{Handled, Turn};

pub(super) const ENDED: &str = "the task has ended";

impl Turn<'_> {
    pub(super) fn pause_requested(&mut self, by: &str) -> Handled {
        match &mut self.task.state {
            State::Queued { .. } | State::Reviewing { .. } | State::Waiting { .. } => {
                self.pause(by);
                Ok(None)
            }
            State::Running { wish, .. } => match wish {
                None => {
                    *wish = Some(Wish::Pause { by: by.to_owned() });
                    Ok(None)
                }
                Some(_) => self.illegal("something else is to happen as soon as its worker parks"),
            },
            State::Paused { .. } => Ok(Some(Reason::Duplicate)),
            State::Held { by, .. } => {
                let hint = format!("`{by}` has taken it over; it goes on with `handback`");
                self.illegal(hint)
            }
            State::Blocked { .. } => self.illegal("it does nothing until somebody resumes it"),
            State::Cancelling { .. } | State::Done { .. } => self.illegal(ENDED),
        }
    }

    pub(super) fn pause(&mut self, by: &str) {
        let from = Box::new(self.task.state.clone());
        self.enter(State::Paused { by: by.to_owned(), since: self.at, from });
    }

    pub(super) fn resume_requested(&mut self, by: &str) -> Handled {
        match self.task.state.clone() {
            State::Paused { from, since, .. } => self.unpause(*from, since),
            State::Blocked { redo, .. } => {
                self.task.usage.failures = 0;
                self.task.usage.lost_attempts = 0;
                self.task.usage.conflicts = 0;
                tracing::info!(task.id = %self.task.id, by, "an operator lets a blocked task go on");
                if self.task.drifted.is_some() && self.task.tree.is_some() {
                    self.queue(JobKind::Rebase);
                } else if redo {
                    self.redo(Conversation::Same);
                } else {
                    self.go_on();
                }
                Ok(None)
            }
            State::Waiting { .. } => {
                self.illegal("it waits for a person: approve, reject, request changes or take over")
            }
            State::Held { by, .. } => self.illegal(format!("`{by}` has taken it over; it goes on with `handback`")),
            State::Queued { .. } | State::Running { .. } | State::Reviewing { .. } => self.illegal("it is not paused"),
            State::Cancelling { .. } | State::Done { .. } => self.illegal(ENDED),
        }
    }

    fn unpause(&mut self, from: State, since: checkrein_shared::time::Timestamp) -> Handled {
        match from {
            State::Queued { job } => {
                let rebase = self.task.drifted.is_some() && self.task.tree.is_some() && !self.has_redeemed();
                match &job {
                    _ if rebase => self.queue(JobKind::Rebase),
                    // The permission died meanwhile: what there is is measured and judged again.
                    JobKind::Apply { grant, .. } if self.task.open_grant().is_none_or(|g| &g.id != grant) => {
                        self.go_on()
                    }
                    _ => self.queue(self.task_job(job)),
                }
                Ok(None)
            }
            State::Reviewing { .. } if self.task.drifted.is_some() => {
                self.queue(JobKind::Rebase);
                Ok(None)
            }
            State::Reviewing { .. } if !guard!(PausedSubjectUnchanged, !self.subject_differs()) => self.judge_again(),
            State::Reviewing { slots } if self.lost_an_answer(&slots) => {
                let trigger = self.task.subject.as_ref().map_or(Trigger::ChangesetBeforeApply, |s| s.trigger);
                self.start_round(trigger)
            }
            State::Reviewing { mut slots } => {
                // Deadlines stood still while the task was paused, and requests may be lost since.
                for slot in &mut slots {
                    slot.deadline = slot.deadline.plus(self.at.since(since));
                }
                self.enter(State::Reviewing { slots });
                self.request_again()?;
                self.conclude_round()
            }
            State::Waiting { mut item } => {
                // The deadline stood still while the task was paused.
                item.deadline = item.deadline.map(|d| d.plus(self.at.since(since)));
                self.enter(State::Waiting { item });
                Ok(None)
            }
            other => {
                self.enter(other);
                Ok(None)
            }
        }
    }

    /// Whether specification, plan or policy changed since the subject was written.
    fn subject_differs(&self) -> bool {
        let subject = self.task.subject.as_ref().map(|s| &s.bindings);
        subject != self.task.live_bindings().as_ref()
    }

    /// Whether a verdict that has filled a place counts no more.
    fn lost_an_answer(&self, slots: &[Slot]) -> bool {
        let stale = |slot: &Slot| self.task.verdicts.iter().any(|v| v.id == slot.id && !v.stale.is_empty());
        slots.iter().any(|slot| matches!(slot.answer, Answer::Given(_)) && stale(slot))
    }

    pub(super) fn takeover_requested(&mut self, by: &str, folder: &str) -> Handled {
        if self.has_redeemed() {
            return self.illegal("a change is being applied; take over when that is done");
        }
        if self.task.tree.is_none() && !matches!(self.task.state, State::Running { .. }) {
            return self.illegal("there are no files to take over yet: let the first step run, or cancel the task");
        }
        match &mut self.task.state {
            State::Running { wish, .. } => match wish {
                None | Some(Wish::Pause { .. }) => {
                    *wish = Some(Wish::Takeover { by: by.to_owned(), folder: folder.to_owned() });
                    Ok(None)
                }
                Some(_) => self.illegal("something else is to happen as soon as its worker parks"),
            },
            State::Queued { .. }
            | State::Reviewing { .. }
            | State::Waiting { .. }
            | State::Paused { .. }
            | State::Blocked { .. } => {
                self.hold(by.to_owned(), folder.to_owned());
                Ok(None)
            }
            State::Held { by: holder, folder: old, .. } if holder == by => {
                // The same person again, perhaps after a crash: only the folder may be another one.
                *old = folder.to_owned();
                Ok(None)
            }
            State::Held { by: holder, .. } => {
                let hint = format!("`{holder}` has taken it over already");
                self.illegal(hint)
            }
            State::Cancelling { .. } | State::Done { .. } => self.illegal(ENDED),
        }
    }

    /// Gives the task to a person. A late worker is fenced off by the next dispatch's epoch.
    pub(super) fn hold(&mut self, by: String, folder: String) {
        self.control(Trigger::HumanBeforeTakeover);
        self.void_grants("a person took the task over");
        self.task.epoch += 1;
        let started_from = self.task.tree;
        self.enter(State::Held { by, folder, started_from });
    }

    pub(super) fn handed_back(&mut self, by: &str, tree: Digest, from: Digest, note: Option<&str>) -> Handled {
        let State::Held { by: holder, started_from, .. } = self.task.state.clone() else {
            return self.illegal("nobody has taken it over");
        };
        if holder != by {
            return self.illegal(format!("`{holder}` has taken it over, so `{holder}` hands it back"));
        }
        if started_from.is_some_and(|s| s != from) {
            return self.illegal("the folder was made from another tree than the one that was taken over");
        }
        if self.task.base.is_none() {
            self.task.base = Some(from);
        }
        if tree != from {
            self.task.editors.insert(by.to_owned());
        }
        self.task.tree = Some(tree);
        self.ask_for(by, note.unwrap_or("a person edited the files and handed the task back; build on what is there"));
        // A rebase measures the target, takes the person's tree as it is, and gates where the plan is done.
        self.queue(JobKind::Rebase);
        Ok(None)
    }

    pub(super) fn cancel_requested(&mut self, by: &str) -> Handled {
        if self.has_redeemed() {
            // A half-applied change is finished, not left behind.
            return self.illegal("a change is being applied; cancel again when that is done");
        }
        match &self.task.state {
            State::Cancelling { .. } => Ok(Some(Reason::Duplicate)),
            State::Done { .. } => self.illegal(ENDED),
            State::Running { .. } => {
                self.void_grants("the task was cancelled");
                self.enter(State::Cancelling { by: by.to_owned() });
                Ok(None)
            }
            State::Queued { .. }
            | State::Reviewing { .. }
            | State::Waiting { .. }
            | State::Held { .. }
            | State::Paused { .. }
            | State::Blocked { .. } => {
                self.void_grants("the task was cancelled");
                self.enter(State::Done { outcome: Outcome::Cancelled { by: by.to_owned() } });
                Ok(None)
            }
        }
    }
}
