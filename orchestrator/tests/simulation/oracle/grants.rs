//! Grants: issued, redeemed once for exactly what they are bound to, settled once, and void for ever where something
//! changed.

use checkrein_orchestrator::lifecycle::{EventKind, Grant, GrantStatus, State, Task};
use checkrein_shared::coordinator::RedeemRequest;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{GrantId, TaskId};
use checkrein_shared::records::{Attempt, AttemptOutcome, Bindings, JobKind};

use super::Oracle;
use super::history::History;

impl Oracle {
    pub(super) fn check_may_write(&mut self, id: &TaskId, grant: &GrantId, changeset: Digest, does: &str) {
        let Some((task, history)) = self.book(id) else {
            return self.fail(format!("{id}: a worker {does}, and there is no task"));
        };
        let found = task.grants.iter().find(|found| &found.id == grant).or_else(|| history.grant(grant));
        let may = found.is_some_and(|found| {
            matches!(found.status, GrantStatus::Redeemed {} | GrantStatus::Settled {})
                && found.changeset.hash == changeset
        });
        let stands = found.map(|found| found.status.clone());
        self.check(may, || format!("{id}: a worker {does} with {grant}, which is {stands:?}"));
    }
}

/// What a judgement has to be bound to, by the oracle's own reading of the task.
pub(super) struct InForce<'a> {
    task: &'a Task,
    plan: Digest,
    constraints: Option<Digest>,
}

impl<'a> InForce<'a> {
    pub(super) fn of(task: &'a Task) -> Self {
        let constraints = checkrein_shared::json::digest(&task.spec.constraints).ok();
        Self { task, plan: task.plan.hash(), constraints }
    }

    /// The field in which bindings differ, where they do.
    pub(super) fn holds(&self, bindings: &Bindings) -> Result<(), &'static str> {
        let task = self.task;
        match () {
            () if bindings.spec_hash != task.spec.hash => Err("spec_hash"),
            () if bindings.plan_hash != self.plan => Err("plan_hash"),
            () if bindings.plan_version != task.plan.version => Err("plan_version"),
            () if Some(bindings.constraints_hash) != self.constraints => Err("constraints_hash"),
            () if bindings.policy_digest != task.policy.digest => Err("policy_digest"),
            () if task.drifted.is_some_and(|target| target != bindings.base) => Err("base"),
            () => Ok(()),
        }
    }
}

/// Whether bindings are what is in force.
pub(super) fn in_force(task: &Task, bindings: &Bindings) -> Result<(), &'static str> {
    InForce::of(task).holds(bindings)
}

pub(super) fn check(history: &History, before: &Task, event: &EventKind, next: &Task) -> Option<String> {
    let here = || next.grants.iter().chain(history.fresh_grants());
    if let Some(old) = before.grants.iter().find(|old| here().all(|grant| grant.id != old.id)) {
        return Some(format!("{} has vanished", old.id));
    }
    for grant in here() {
        let id = &grant.id;
        let old = before.grants.iter().find(|old| old.id == *id);
        let Some(old) = old else {
            if grant.status != (GrantStatus::Issued {}) {
                return Some(format!("{id} began as {:?}", grant.status));
            }
            continue;
        };
        if old.bindings != grant.bindings || old.changeset != grant.changeset {
            return Some(format!("{id} is bound to something else than before"));
        }
        if let Err(why) = transition(before, event, old, grant) {
            return Some(format!("{id} went from {:?} to {:?}: {why}", old.status, grant.status));
        }
    }
    check_issued(next).or_else(|| check_redeemed(next)).or_else(|| check_applied(history, before, next))
}

fn transition(before: &Task, event: &EventKind, old: &Grant, new: &Grant) -> Result<(), String> {
    use GrantStatus::{Issued, Redeemed, Settled, Void};
    match (&old.status, &new.status, event) {
        (old, new, _) if old == new => Ok(()),
        (Issued {}, Void { .. }, _) => Ok(()),
        (Issued {}, Redeemed {}, EventKind::RedeemRequested { request }) => may_redeem(before, request, old),
        (Redeemed {}, Settled {}, EventKind::AttemptEnded { attempt }) => match &attempt.outcome {
            AttemptOutcome::Applied { grant, changeset, .. } if *grant == old.id && *changeset == old.changeset => {
                Ok(())
            }
            _ => Err("nobody said that it was carried out".to_owned()),
        },
        (Redeemed {}, Void { .. }, EventKind::AttemptEnded { attempt }) => conflicts(attempt, old),
        _ => Err("that never happens".to_owned()),
    }
}

fn conflicts(attempt: &Attempt, grant: &Grant) -> Result<(), String> {
    match &attempt.outcome {
        AttemptOutcome::ApplyConflict { grant: met, .. } if *met == grant.id => Ok(()),
        _ => Err("what is redeemed is carried out, or met a conflict".to_owned()),
    }
}

fn may_redeem(before: &Task, request: &RedeemRequest, grant: &Grant) -> Result<(), String> {
    let State::Running { job: JobKind::Apply { grant: running, .. }, .. } = &before.state else {
        return Err("no apply is running".to_owned());
    };
    if *running != grant.id || request.grant != grant.id || request.epoch != before.epoch {
        return Err("another attempt asked for it".to_owned());
    }
    if request.changeset_hash != grant.changeset.hash || grant.bindings.changeset_hash != grant.changeset.hash {
        return Err("the worker holds another changeset".to_owned());
    }
    if request.target != grant.bindings.base {
        return Err("the target is not its base".to_owned());
    }
    in_force(before, &grant.bindings).map_err(|field| format!("`{field}` has changed"))
}

/// A permission that nobody has used lives only while its job is queued or running.
fn check_issued(next: &Task) -> Option<String> {
    let open = next.grants.iter().filter(|g| g.status == (GrantStatus::Issued {}));
    let job = match &next.state {
        State::Queued { job } | State::Running { job, .. } => Some(job),
        State::Paused { from, .. } => match from.as_ref() {
            State::Queued { job } => Some(job),
            _ => None,
        },
        _ => None,
    };
    let served = |grant: &&Grant| matches!(job, Some(JobKind::Apply { grant: id, .. }) if *id == grant.id);
    let stray = open.clone().find(|grant| !served(grant));
    stray.map(|grant| format!("{} is still open while the task is {}", grant.id, next.state.name()))
}

/// What was begun is finished before anything else is done: the target is never left half changed.
fn check_redeemed(next: &Task) -> Option<String> {
    let begun = next.grants.iter().find(|g| g.status == (GrantStatus::Redeemed {}))?;
    if let Some(other) = next.grants.iter().rfind(|g| g.id != begun.id && g.status == (GrantStatus::Issued {})) {
        return Some(format!("{} was issued, and {} is half carried out", other.id, begun.id));
    }
    let finishes = match &next.state {
        State::Queued { job } | State::Running { job, .. } => {
            matches!(job, JobKind::Apply { grant, .. } if *grant == begun.id)
        }
        State::Reviewing { .. } | State::Held { .. } => false,
        _ => true,
    };
    (!finishes).then(|| format!("{} is half carried out, and the task is {:?}", begun.id, next.state))
}

/// What reached the target counts once.
fn check_applied(history: &History, before: &Task, next: &Task) -> Option<String> {
    let settled = |grant: &&Grant| grant.status == (GrantStatus::Settled {});
    let was = before.grants.iter().filter(settled).count();
    let is = next.grants.iter().chain(history.fresh_grants()).filter(settled).count();
    if !next.applied.starts_with(&before.applied) {
        return Some("what was applied has changed".to_owned());
    }
    let (new, grown) = (is.saturating_sub(was), next.applied.len() - before.applied.len());
    (new != grown).then(|| format!("{new} grants were settled, and {grown} changes count as applied"))
}
