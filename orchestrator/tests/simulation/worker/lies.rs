//! What a worker says that is not so, or that is not for it to say. The orchestrator has to notice all of it.

use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{AttemptOutcome, JobKind, Role, Trigger, VerdictMessage};
use checkrein_shared::signing::PayloadType;

use super::records::{self, Ready};
use super::{Attempt, apply, jobs};
use crate::keys::KEYS;
use crate::reviewer;

/// Says something wrong. True where the worker does nothing else with its job.
pub(super) async fn tell(attempt: &Attempt) -> bool {
    let world = &attempt.world;
    let lie = world.rng.below(12);
    world.say(|| format!("{} lies, in its way number {lie}", attempt.me));
    match lie {
        0..=5 => forge_checkpoint(attempt, lie).await,
        6 | 7 => forge_verdict(attempt, lie == 6).await,
        8 => claim_applied(attempt).await,
        9 => redeem_wrongly(attempt).await,
        10 => speak_too_late(attempt).await,
        // Dies at once, with the lease in its hands.
        _ => world.sleep(world.rng.between(40_000, 70_000)).await,
    }
    world.rng.percent(50)
}

async fn forge_checkpoint(attempt: &Attempt, lie: u64) {
    let base = jobs::measured(attempt);
    let gate = (Trigger::ChangesetBeforeApply, true);
    let ready = records::checkpoint(attempt, gate, &base, &base, None);
    let mut record = ready.record;
    match lie {
        0 => record.integrity.previous_checkpoint_hash = Some(Digest::of("another chain")),
        1 => record.epoch += 1,
        2 => record.evidence.index = Digest::of("stored nowhere"),
        3 => record.author.role = Role::Orchestrator,
        4 => record.workspace.tree = Digest::of("no tree at all"),
        _ => {
            record.sequence += 1;
            record.checkpoint_id = record.task_id.checkpoint(record.sequence);
        }
    }
    let Ready { mut message, .. } = records::seal(attempt, record, None);
    if lie == 1 && attempt.world.rng.percent(50) {
        message.epoch = attempt.job.epoch;
    }
    let envelope = records::envelope("checkpoint", &message.task_id, message.epoch, &message);
    attempt.world.publish(envelope).await;
}

/// Judges its own work.
async fn forge_verdict(attempt: &Attempt, with_own_key: bool) {
    let Some(request) = reviewer::newest_request(&attempt.world, &attempt.job.task_id) else { return };
    let verdict = reviewer::praise(&attempt.world, &request, &attempt.me);
    let payload = json::canonical(&verdict).expect("a verdict");
    let key = if with_own_key { &KEYS.worker } else { &KEYS.stranger };
    let envelope = key.sign(PayloadType::Verdict, &payload);
    let envelope = attempt.world.blobs.keep(&json::canonical(&envelope).expect("an envelope"));
    let message = VerdictMessage { task_id: request.task_id.clone(), review_id: request.review_id.clone(), envelope };
    let envelope = records::envelope("verdict", &request.task_id, request.bindings.epoch, &message);
    attempt.world.publish(envelope).await;
}

/// Says that a change is in the target which it never wrote, nor was allowed to.
async fn claim_applied(attempt: &Attempt) {
    let JobKind::Apply { grant, changeset } = &attempt.job.kind else { return };
    let target = jobs::measured(attempt).digest;
    let (grant, changeset) = (grant.clone(), changeset.clone());
    attempt.report(AttemptOutcome::Applied { grant, changeset, target, commit: None }).await;
}

/// Asks for the permission with what is not so.
async fn redeem_wrongly(attempt: &Attempt) {
    let JobKind::Apply { grant, changeset } = &attempt.job.kind else { return };
    let target = jobs::measured(attempt).digest;
    let other = Digest::of("another change");
    let epoch = attempt.job.epoch;
    let answer = match attempt.world.rng.below(3) {
        0 => apply::ask(attempt, epoch, grant, target, other).await,
        1 => apply::ask(attempt, epoch, grant, other, changeset.hash).await,
        _ => apply::ask(attempt, epoch + 1, grant, target, changeset.hash).await,
    };
    drop(answer);
}

/// Sleeps until somebody else has the task, then goes on as if nothing had happened.
async fn speak_too_late(attempt: &Attempt) {
    attempt.world.sleep(attempt.world.rng.between(35_000, 80_000)).await;
    let base = jobs::measured(attempt);
    let ready = records::checkpoint(attempt, (Trigger::ChangesetBeforeApply, true), &base, &base, None);
    let envelope = records::envelope("checkpoint", &ready.message.task_id, ready.message.epoch, &ready.message);
    attempt.world.publish(envelope).await;
    if let JobKind::Apply { grant, changeset } = &attempt.job.kind {
        let answer = apply::ask(attempt, attempt.job.epoch, grant, base.digest, changeset.hash).await;
        drop(answer);
    }
    attempt.report(AttemptOutcome::Stopped { base: Some(base.digest), tree: Some(base.digest) }).await;
}
