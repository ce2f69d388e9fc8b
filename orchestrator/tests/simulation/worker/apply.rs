//! Applying a changeset: measure under the lock, redeem, write file by file. Whatever is written, the oracle sees.

use checkrein_shared::coordinator::{self, Directive, RedeemAnswer, RedeemRequest};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::GrantId;
use checkrein_shared::records::{AttemptOutcome, ChangesetRef};
use checkrein_shared::tree::{Changeset, Entry, Manifest};

use super::records::{self, Tree};
use super::{Attempt, jobs};

enum Redeemed {
    Yes,
    No,
    Over,
}

pub(super) async fn run(attempt: &Attempt, grant: &GrantId, reference: &ChangesetRef) {
    let (world, root) = (&attempt.world, &attempt.job.root_id);
    let Some(base) = attempt.job.base else { return };
    let base = jobs::stored(attempt, base).await;
    let changeset: Changeset = records::read(world, reference.hash);
    // Others may hold the target for a while.
    let wait = if world.rng.once_in(3) { 30_000 } else { 2_000 };
    if attempt.work(world.rng.between(50, wait)).await == Directive::Lost {
        return;
    }
    if breaks(attempt) {
        return attempt.report(jobs::broken(attempt)).await;
    }
    if !lock(attempt) {
        return jobs::release(attempt, 1_000).await;
    }
    let redeemed = redeem(attempt, grant, &base, &changeset).await;
    let outcome = match redeemed {
        Redeemed::Yes => put(attempt, grant, reference, &changeset).await,
        Redeemed::No => Some(conflict(attempt, grant)),
        Redeemed::Over => None,
    };
    if let Some(target) = world.targets.borrow_mut().get_mut(root) {
        target.locked_by = None;
    }
    if let Some(outcome) = outcome {
        attempt.report(outcome).await;
    }
}

/// Whether the disk is full, or something of the kind.
fn breaks(attempt: &Attempt) -> bool {
    attempt.world.fault(attempt.world.scenario.misconduct / 3)
}

/// A file lock: it is free again when its holder is dead.
fn lock(attempt: &Attempt) -> bool {
    let mut targets = attempt.world.targets.borrow_mut();
    let Some(target) = targets.get_mut(&attempt.job.root_id) else { return false };
    let free = target.locked_by.is_none();
    if free {
        target.locked_by = Some(attempt.process);
    }
    free
}

async fn redeem(attempt: &Attempt, grant: &GrantId, base: &Tree, changeset: &Changeset) -> Redeemed {
    for _ in 0..40 {
        let now = jobs::measured(attempt);
        let target = if is_own_trace(&base.manifest, &now.manifest, changeset) { base.digest } else { now.digest };
        match ask(attempt, attempt.job.epoch, grant, target, changeset.digest()).await {
            Some(Ok(RedeemAnswer::Redeemed)) => {
                attempt.world.oracle.borrow_mut().redeemed(&attempt.job.task_id, grant, changeset.digest());
                return Redeemed::Yes;
            }
            Some(Ok(RedeemAnswer::Refused { .. }) | Err(coordinator::Error::Refused(_))) => return Redeemed::No,
            Some(Err(coordinator::Error::Unavailable(_))) | None => attempt.world.sleep(500).await,
        }
        attempt.beat().await;
        if attempt.order() == Directive::Lost {
            return Redeemed::Over;
        }
    }
    Redeemed::Over
}

/// Asks once.
pub(super) async fn ask(
    attempt: &Attempt,
    epoch: u64,
    grant: &GrantId,
    target: Digest,
    changeset_hash: Digest,
) -> Option<Result<RedeemAnswer, coordinator::Error>> {
    let request =
        RedeemRequest { task_id: attempt.job.task_id.clone(), grant: grant.clone(), epoch, target, changeset_hash };
    attempt.world.call(|o| async move { o.coordinator().redeem(request).await }).await.ok()
}

/// Whether the target differs from the base only by what this changeset writes.
fn is_own_trace(base: &Manifest, now: &Manifest, changeset: &Changeset) -> bool {
    let ours = changeset.path_changes();
    Changeset::between(base, now)
        .path_changes()
        .iter()
        .all(|seen| ours.iter().any(|our| our.path == seen.path && same(our.new, seen.new)))
}

fn same(one: Option<&Entry>, other: Option<&Entry>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.same(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Writes what is not written yet; on a conflict takes back what it wrote itself.
async fn put(
    attempt: &Attempt,
    grant: &GrantId,
    reference: &ChangesetRef,
    changeset: &Changeset,
) -> Option<AttemptOutcome> {
    let world = &attempt.world;
    let mut written = Vec::new();
    for change in changeset.path_changes() {
        world.sleep(world.rng.below(20)).await;
        let now = jobs::measured(attempt);
        let stands = now.manifest.get(change.path);
        if same(stands, change.new) {
            continue;
        }
        if !same(stands, change.old) {
            undo(attempt, &written);
            return Some(conflict(attempt, grant));
        }
        world.oracle.borrow_mut().writes(&attempt.job.task_id, grant, reference.hash);
        if breaks(attempt) {
            return Some(jobs::broken(attempt));
        }
        write(attempt, &change.path.to_string(), change.new);
        written.push((change.path.to_string(), change.old.cloned(), change.new.cloned()));
        if world.fault(world.scenario.misconduct / 3) {
            world.say(|| format!("{} stops in the middle of an apply", attempt.me));
            world.sleep(world.rng.between(10_000, 60_000)).await;
        }
    }
    let target = jobs::measured(attempt).digest;
    Some(AttemptOutcome::Applied { grant: grant.clone(), changeset: reference.clone(), target, commit: None })
}

fn write(attempt: &Attempt, path: &str, entry: Option<&Entry>) {
    let content = entry.map(|entry| {
        let bytes = attempt.world.blobs.bytes(entry.content_digest()).expect("contents are stored before trees");
        String::from_utf8(bytes).expect("simulated files are text")
    });
    let mut targets = attempt.world.targets.borrow_mut();
    let Some(target) = targets.get_mut(&attempt.job.root_id) else { return };
    match content {
        Some(content) => drop(target.files.insert(path.to_owned(), content)),
        None => drop(target.files.remove(path)),
    }
}

fn undo(attempt: &Attempt, written: &[(String, Option<Entry>, Option<Entry>)]) {
    for (path, old, new) in written {
        let now = jobs::measured(attempt);
        let stands = now.manifest.iter().find(|(p, _)| p.to_string() == *path).map(|(_, entry)| entry);
        if same(stands, new.as_ref()) {
            write(attempt, path, old.as_ref());
        }
    }
}

fn conflict(attempt: &Attempt, grant: &GrantId) -> AttemptOutcome {
    let target = jobs::measured(attempt).digest;
    AttemptOutcome::ApplyConflict { grant: grant.clone(), target, paths: Vec::new() }
}
