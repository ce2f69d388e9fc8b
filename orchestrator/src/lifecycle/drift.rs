//! Drift: the target is not what the scratch was cut from.

use checkrein_shared::digest::Digest;
use checkrein_shared::records::{JobKind, Mismatch};

use super::decision::Reason;
use super::task::State;
use super::turn::{Handled, Turn};

impl Turn<'_> {
    pub(super) fn target_drifted(&mut self, base: Digest, target: Digest) -> Handled {
        if self.task.base != Some(base) || base == target {
            return Ok(Some(Reason::Superseded));
        }
        if self.task.drifted == Some(target) {
            return Ok(Some(Reason::Duplicate));
        }
        match self.task.state.clone() {
            State::Queued { job } => {
                self.note_drift(target);
                self.void_grants("the target changed");
                // A redeemed grant is finished first: what differs may be its own doing.
                let finishing = matches!(job, JobKind::Apply { .. }) && self.task.open_grant().is_some();
                if self.task.tree.is_some() && !finishing {
                    self.queue(JobKind::Rebase);
                }
                Ok(None)
            }
            State::Running { job: JobKind::Apply { .. }, .. } => Ok(Some(Reason::NotInThisState)),
            State::Running { .. } | State::Held { .. } | State::Paused { .. } | State::Blocked { .. } => {
                self.note_drift(target);
                Ok(None)
            }
            State::Reviewing { .. } => {
                self.note_drift(target);
                self.queue(JobKind::Rebase);
                Ok(None)
            }
            State::Waiting { mut item } => {
                self.note_drift(target);
                item.stale.retain(|m| m.field != "base");
                item.stale.push(Mismatch { field: "base".into(), old: base.to_string(), new: target.to_string() });
                self.task.state = State::Waiting { item };
                Ok(None)
            }
            State::Cancelling { .. } | State::Done { .. } => Ok(Some(Reason::NotInThisState)),
        }
    }

    /// Remembers what the target is now; every verdict that rests on the old base turns stale.
    pub(super) fn note_drift(&mut self, target: Digest) {
        if self.task.base != Some(target) {
            self.task.drifted = Some(target);
        }
        self.mark_stale();
    }
}
