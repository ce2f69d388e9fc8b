//! An apply: puts an approved changeset into the target, with a grant for
//! exactly that, or touches nothing.
//!
//! The target is measured and the grant redeemed while the target is locked,
//! right before the first byte is changed. The changeset is the redo log: an
//! attempt that was cut off is found by its traces, and goes on.

use checkrein_shared::blob;
use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{self, RedeemAnswer, RedeemRequest};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::GrantId;
use checkrein_shared::records::{AttemptOutcome, ChangesetRef};
use checkrein_shared::time::Span;
use checkrein_shared::tree::Changeset;

use super::End;
use super::trace::is_own_trace;
use crate::commit::Commit;
use crate::desk::{Desk, JobError};
use crate::ground::{self, Ground, bounded};
use crate::orders::Order;
use crate::propose::Stored;
use crate::submit::Backoff;
use crate::workspace::apply::{self, Apply, Outcome, RootLock};
use crate::{git_head, kept, measure, preconditions};

/// The largest changeset that is read: a million paths.
const CHANGESET_BYTES_MAX: u64 = 1 << 30;

/// How long until an apply is tried again that found the target locked.
const BUSY_AFTER: Span = Span::from_secs(1);

/// Carries out a grant.
pub(crate) async fn run(desk: &Desk, grant: &GrantId, reference: &ChangesetRef) -> Result<End, JobError> {
    let target = preconditions::target(&desk.spec, &desk.job.root_id)?;
    let Some(base) = desk.job.base else {
        return Err(JobError::Nonsense("a changeset without a base can't be applied".to_owned()));
    };
    let changeset = changeset(desk, reference.hash).await?;
    let recorder = desk.recorder(None).await?;
    let rules = ground::base_rules(desk, &recorder, base, &target).await?;
    let base = ground::load(desk, base).await?;
    let git_commit = git_head::commit(&target);
    let ground = Ground { target, tree: base.clone(), base, rules, git_commit };
    let lock = match RootLock::acquire(&ground.target) {
        Ok(lock) => lock,
        Err(apply::Error::Busy(_)) => {
            let reason = "another process is changing the target".to_owned();
            return Ok(End::report(AttemptOutcome::Released { after: BUSY_AFTER, reason }));
        }
        Err(error) => return Err(JobError::Apply(error)),
    };
    match redeem(desk, &ground, grant, &changeset).await? {
        Redeemed::Yes => put(desk, &ground, lock, grant, reference, &changeset).await,
        Redeemed::No(target) => Ok(conflict(grant, target, Vec::new())),
        Redeemed::Over => Ok(super::step_end::interrupted_early(desk, &ground)),
    }
}

async fn changeset(desk: &Desk, hash: Digest) -> Result<Changeset, JobError> {
    let what = "the changeset";
    let bytes = desk.services.blobs.get(hash, CHANGESET_BYTES_MAX).await.map_err(|e| JobError::Blob(what, e))?;
    Changeset::parse(&bytes).map_err(|e| JobError::Record(what, e))
}

/// Whether the grant was redeemed.
enum Redeemed {
    Yes,
    /// It was not, with the target as measured.
    No(Digest),
    /// Orders came first.
    Over,
}

/// Measures the locked target and asks for the permission in one go; as often as it takes to get an answer.
async fn redeem(desk: &Desk, ground: &Ground, grant: &GrantId, changeset: &Changeset) -> Result<Redeemed, JobError> {
    let mut backoff = Backoff::new();
    loop {
        if desk.orders.now() >= Order::Exit {
            return Ok(Redeemed::Over);
        }
        let now = measure::only(&desk.services, &desk.job.root_id, &ground.target, &ground.rules).await?;
        // Traces of this very changeset are no drift: an earlier attempt with this grant was cut off.
        let target =
            if is_own_trace(&ground.base.manifest, &now.manifest, changeset) { ground.base.digest } else { now.digest };
        let request = RedeemRequest {
            task_id: desk.job.task_id.clone(),
            grant: grant.clone(),
            epoch: desk.job.epoch,
            target,
            changeset_hash: changeset.digest(),
        };
        match desk.services.coordinator.redeem(request).await {
            Ok(RedeemAnswer::Redeemed) => return Ok(Redeemed::Yes),
            Ok(RedeemAnswer::Refused { reason }) | Err(coordinator::Error::Refused(reason)) => {
                tracing::warn!(grant.id = %grant, reason, "the grant is refused, and the target stays untouched");
                return Ok(Redeemed::No(now.digest));
            }
            Err(coordinator::Error::Unavailable(reason)) => {
                tracing::warn!(grant.id = %grant, reason, "the grant can't be redeemed yet");
            }
        }
        backoff.wait().await;
    }
}

/// Changes the target.
async fn put(
    desk: &Desk,
    ground: &Ground,
    lock: RootLock,
    grant: &GrantId,
    reference: &ChangesetRef,
    changeset: &Changeset,
) -> Result<End, JobError> {
    let mut request = Apply::new(changeset, &*desk.services.blobs);
    request.scratch = kept::of(&desk.services.cache, &desk.job.task_id);
    match apply::apply(&lock, &request).await {
        Ok(Outcome::Applied(_)) => {
            drop_displaced(&lock, changeset).await;
            kept::forget(&desk.services.cache, &desk.job.task_id);
            let commit = commit(desk, ground, changeset).await?;
            let after = measure_after(desk, ground).await?;
            Ok(End::report(AttemptOutcome::Applied {
                grant: grant.clone(),
                changeset: reference.clone(),
                target: after.digest,
                commit,
            }))
        }
        Ok(Outcome::Conflict { conflicts, not_undone }) => {
            let now = measure::only(&desk.services, &desk.job.root_id, &ground.target, &ground.rules).await?;
            let paths = conflicts.iter().map(|conflict| &conflict.path).chain(&not_undone);
            Ok(conflict(grant, now.digest, bounded(paths.map(ToString::to_string))))
        }
        Err(error) => failed(desk, ground, grant, error).await,
    }
}

/// Commits what was applied, where the policy wants that. The change is in the target whether this works or not.
async fn commit(desk: &Desk, ground: &Ground, changeset: &Changeset) -> Result<Option<String>, JobError> {
    if !desk.policy.commits() {
        return Ok(None);
    }
    let job = &desk.job;
    let room = desk.services.cache.room(job)?;
    let checkpoint = job.head.as_ref().map(|head| head.hash.to_string()).unwrap_or_default();
    let message = format!(
        "{}\n\n{}\n\nCheckrein-Task: {}\nCheckrein-Checkpoint: {checkpoint}\n",
        desk.spec.name, desk.spec.objective, job.task_id
    );
    let (target, blobs) = (ground.target.as_path(), &*desk.services.blobs);
    let commit = Commit { target, changeset, blobs, folder: room.temporary(), message };
    let made = commit.make().await;
    room.close().await;
    match made {
        Ok(commit) => Ok(commit),
        Err(error) => {
            tracing::error!(task.id = %job.task_id, error = with_causes(&error), "the applied change could not be committed");
            Ok(None)
        }
    }
}

/// Nobody needs the displaced files any more. Where that fails, they take up room and do no harm.
async fn drop_displaced(lock: &RootLock, changeset: &Changeset) {
    match apply::finish(lock, changeset).await {
        Ok(finished) => {
            for path in finished.kept {
                tracing::warn!(path = %path.display(), "somebody wrote to a file while it was replaced: it is kept here");
            }
        }
        Err(error) => tracing::warn!(error = with_causes(&error), "the displaced files could not be dropped"),
    }
}

/// Errors that would come again and again go before people as conflicts; the others are tried again.
async fn failed(desk: &Desk, ground: &Ground, grant: &GrantId, error: apply::Error) -> Result<End, JobError> {
    let path = match &error {
        apply::Error::NoContent { path } | apply::Error::OtherFileSystem(path) | apply::Error::Reserved(path) => path,
        apply::Error::Blob { path, source: blob::Error::Missing(_) | blob::Error::Damaged { .. } } => path,
        _ => return Err(JobError::Apply(error)),
    };
    tracing::error!(grant.id = %grant, error = with_causes(&error), "the changeset can't be applied here");
    let now = measure::only(&desk.services, &desk.job.root_id, &ground.target, &ground.rules).await?;
    Ok(conflict(grant, now.digest, vec![path.to_string()]))
}

fn conflict(grant: &GrantId, target: Digest, paths: Vec<String>) -> End {
    End::report(AttemptOutcome::ApplyConflict { grant: grant.clone(), target, paths })
}

/// The target afterwards, by the rules that stand in it now: the base of what comes next.
async fn measure_after(desk: &Desk, ground: &Ground) -> Result<Stored, JobError> {
    let rules = measure::rules_now(&ground.target, desk.policy.carry()).await?;
    let (services, known) = (&desk.services, Some(&ground.base.manifest));
    let after = measure::and_store(services, &desk.job.root_id, &ground.target, &rules, known).await?;
    let stored = rules.store(&*services.blobs).await.map_err(|e| JobError::Blob("the ignore rules", e))?;
    measure::remember(services, after.digest, stored);
    Ok(after)
}
