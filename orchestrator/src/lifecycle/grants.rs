//! Grants: issued once, redeemed once, settled or void.

use checkrein_shared::coordinator::RedeemRequest;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::GrantId;
use checkrein_shared::records::{JobKind, Trigger};

use crate::guards::guard;

use super::decision::Reason;
use super::task::{Grant, GrantStatus, State};
use super::turn::{Handled, Turn};

impl Turn<'_> {
    /// After the subject was accepted: applies its changeset, or goes on with the plan.
    pub(super) fn proceed(&mut self) -> Handled {
        let Some(subject) = self.task.subject.clone() else {
            // Nothing was reviewed, so there is nothing that could have been accepted: gate first.
            self.go_on();
            return Ok(None);
        };
        self.task.accepted = Some(subject.checkpoint.clone());
        self.open_call_gates(&subject);
        if subject.trigger != Trigger::ChangesetBeforeApply || subject.empty {
            self.complete_or_go_on();
            return Ok(None);
        }
        self.task.usage.grants += 1;
        let grant = Grant {
            id: self.task.id.grant(self.task.usage.grants),
            bindings: subject.bindings,
            changeset: subject.changeset.clone(),
            status: GrantStatus::Issued {},
        };
        let job = JobKind::Apply { grant: grant.id.clone(), changeset: subject.changeset };
        self.task.grants.push(grant);
        self.queue(job);
        Ok(None)
    }

    /// Voids every grant that was not redeemed yet, and closes the gates of calls that were not passed.
    pub(super) fn void_grants(&mut self, why: &str) {
        self.close_call_gates();
        for grant in self.task.grants.iter_mut() {
            if guard!(UnusedGrantsDie, grant.status != (GrantStatus::Issued {})) {
                continue;
            }
            grant.status = GrantStatus::Void { reason: why.to_owned() };
        }
    }

    pub(super) fn void_grant(&mut self, id: &GrantId, why: &str) {
        let open =
            |g: &&mut Grant| &g.id == id && matches!(g.status, GrantStatus::Issued {} | GrantStatus::Redeemed {});
        if let Some(grant) = self.task.grants.iter_mut().find(open) {
            grant.status = GrantStatus::Void { reason: why.to_owned() };
        }
    }

    /// The apply that a worker has begun, where there is one: it is finished before anything else happens.
    pub(super) fn half_applied(&self) -> Option<JobKind> {
        let grant = self.task.open_grant().filter(|g| g.status == (GrantStatus::Redeemed {}))?;
        Some(JobKind::Apply { grant: grant.id.clone(), changeset: grant.changeset.clone() })
    }

    pub(super) fn finish_first(&self, job: JobKind) -> JobKind {
        match self.half_applied() {
            Some(begun) if !guard!(BegunIsFinished, begun == job) => begun,
            _ => job,
        }
    }

    pub(super) fn has_redeemed(&self) -> bool {
        self.half_applied().is_some()
    }

    /// Uses a grant: the last look at every binding, journaled before the target is touched.
    pub(super) fn redeem_requested(&mut self, request: &RedeemRequest) -> Handled {
        let applies = matches!(
            &self.task.state,
            State::Running { job: JobKind::Apply { grant, .. }, .. } if grant == &request.grant
        );
        if !guard!(GrantOfThisAttempt, applies && request.epoch == self.task.epoch) {
            return self.illegal("the grant does not belong to a running attempt with this epoch; touch nothing");
        }
        let Some(grant) = self.task.grants.iter().find(|g| g.id == request.grant).cloned() else {
            return self.illegal("there is no such grant; touch nothing");
        };
        match grant.status {
            // The worker that redeemed it was lost; this one finishes the same changeset.
            GrantStatus::Redeemed {} if grant.changeset.hash == request.changeset_hash => {
                return Ok(Some(Reason::Duplicate));
            }
            status if guard!(GrantStillOpen, status == (GrantStatus::Issued {})) => {}
            _ => return self.illegal("the grant is void; touch nothing"),
        }
        if !guard!(GrantChangesetEqual, grant.changeset.hash == request.changeset_hash) {
            return self.illegal("the grant is for another changeset; touch nothing");
        }
        if !guard!(GrantBaseIsTarget, request.target == grant.bindings.base) {
            return self.redeem_drifted(&request.grant, request.target);
        }
        let live = self.task.live_bindings();
        // Whatever changes a binding voids the grant, so this looks a second time and has no name.
        if live.as_ref() != Some(&grant.bindings) {
            self.void_grant(&request.grant, "what it is bound to has changed");
            // Whatever the policy says about the trigger: a review needs a checkpoint that holds what changed.
            self.control_always(Trigger::SpecChanged);
            let trigger = self.task.subject.as_ref().map_or(Trigger::ChangesetBeforeApply, |s| s.trigger);
            return self.start_round(trigger);
        }
        if let Some(grant) = self.task.grants.iter_mut().find(|g| g.id == request.grant) {
            grant.status = GrantStatus::Redeemed {};
        }
        Ok(None)
    }

    fn redeem_drifted(&mut self, grant: &GrantId, target: Digest) -> Handled {
        self.void_grant(grant, "the target changed before the change could be applied");
        self.note_drift(target);
        self.queue(JobKind::Rebase);
        Ok(None)
    }
}
