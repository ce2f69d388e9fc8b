//! Steps, rebases and gathering evidence.

use checkrein_shared::coordinator::{Directive, DriftReport};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::policy::ApplyWhen;
use checkrein_shared::records::{AttemptOutcome, Checkpoint, EffectClass, IssueRef, Severity, Trigger};
use checkrein_shared::time::Span;
use checkrein_shared::tree::node;
use checkrein_shared::tree::rebase::{Rebased, rebase as move_onto};

use super::effects::{self, Effect};
use super::records::{self, Tree};
use super::{Attempt, Sent};
use crate::policies::POLICIES;
use crate::target;

/// The target as it is now.
pub(super) fn measured(attempt: &Attempt) -> Tree {
    let targets = attempt.world.targets.borrow();
    let (manifest, digest) = targets[&attempt.job.root_id].measure(&attempt.world.blobs);
    Tree { manifest, digest }
}

/// A tree that was stored before.
pub(super) async fn stored(attempt: &Attempt, digest: Digest) -> Tree {
    loop {
        match node::load_tree(attempt.world.blobs.as_ref(), digest).await {
            Ok(manifest) => return Tree { manifest, digest },
            Err(_) => attempt.world.sleep(100).await,
        }
    }
}

/// Base and tree to begin with.
async fn ground(attempt: &Attempt) -> (Tree, Tree) {
    match (attempt.job.base, attempt.job.tree) {
        (Some(base), Some(tree)) => (stored(attempt, base).await, stored(attempt, tree).await),
        _ => {
            let now = measured(attempt);
            (now.clone(), now)
        }
    }
}

pub(super) async fn step(attempt: &Attempt, id: &StepId) {
    let (world, job) = (&attempt.world, &attempt.job);
    let Some(step) = job.plan.step(id).cloned() else { return };
    let (base, tree) = ground(attempt).await;
    let effectful = step.effect != EffectClass::ReadOnly;
    if effectful {
        match effects::run(attempt, &step, &base, &tree).await {
            Effect::Happened => {}
            Effect::Failed => return attempt.report(failed(attempt, id, &base, &tree)).await,
            Effect::Over => return,
        }
    }
    let order = attempt.work(world.rng.between(500, if effectful { 5_000 } else { 25_000 })).await;
    let mut files = target::files(&tree.manifest, &world.blobs);
    for _ in 0..world.rng.below(3) {
        target::edit(&mut files, attempt.me.as_str(), &world.rng);
    }
    let (manifest, digest) = target::store(&files, &world.blobs);
    let left = Tree { manifest, digest };
    match order {
        Directive::Lost => return,
        Directive::Stop => return attempt.report(stopped(&base, &left)).await,
        Directive::Park if !effectful && world.rng.percent(50) => {
            let gate = (Trigger::TaskBeforePause, true);
            submit(attempt, gate, &base, &left, None).await;
            return;
        }
        Directive::Park | Directive::Continue => {}
    }
    if !effectful && world.rng.percent(world.scenario.objections / 2) {
        return attempt.report(failed(attempt, id, &base, &left)).await;
    }
    done(attempt, id, &base, &left, order).await;
}

fn stopped(base: &Tree, tree: &Tree) -> AttemptOutcome {
    AttemptOutcome::Stopped { base: Some(base.digest), tree: Some(tree.digest) }
}

fn failed(attempt: &Attempt, step: &StepId, base: &Tree, tree: &Tree) -> AttemptOutcome {
    let how = if attempt.world.rng.percent(50) { "the same error" } else { "another error" };
    AttemptOutcome::StepFailed {
        step: step.clone(),
        error: IssueRef { id: "failed".into(), severity: Severity::High, text: how.into(), refs: Vec::new() },
        error_hash: Digest::of(how),
        base: Some(base.digest),
        tree: Some(tree.digest),
        evidence_index: None,
    }
}

/// An apply that could not be carried out.
pub(super) fn broken(attempt: &Attempt) -> AttemptOutcome {
    let step = attempt.job.plan.steps.last().map(|step| step.id.clone()).expect("a plan has steps");
    AttemptOutcome::StepFailed {
        step,
        error: IssueRef {
            id: "failed".into(),
            severity: Severity::High,
            text: "the disk is full".into(),
            refs: Vec::new(),
        },
        error_hash: Digest::of("the disk is full"),
        base: None,
        tree: None,
        evidence_index: None,
    }
}

async fn done(attempt: &Attempt, id: &StepId, base: &Tree, tree: &Tree, order: Directive) {
    let job = &attempt.job;
    let last = job.plan.steps.iter().all(|s| &s.id == id || job.completed.contains(&s.id));
    let policy = POLICIES[attempt.world.scenario.policy].compiled.policy();
    let per_step = policy.workspace.apply == ApplyWhen::PerStep;
    let occasion = if last || (per_step && base.digest != tree.digest) {
        (Trigger::ChangesetBeforeApply, true)
    } else if order == Directive::Park {
        (Trigger::TaskBeforePause, true)
    } else if attempt.world.rng.percent(40) {
        (Trigger::PlanSubgraphDone, false)
    } else {
        return attempt.report(step_done(attempt, id, base, tree)).await;
    };
    let sent = submit(attempt, occasion, base, tree, Some(id)).await;
    if sent == Sent::Accepted && !occasion.1 {
        attempt.report(step_done(attempt, id, base, tree)).await;
    }
}

fn step_done(attempt: &Attempt, step: &StepId, base: &Tree, tree: &Tree) -> AttemptOutcome {
    let evidence_index = records::index(attempt, tree.digest, step.as_str());
    AttemptOutcome::StepDone { step: step.clone(), base: base.digest, tree: tree.digest, evidence_index }
}

/// Writes and submits a checkpoint; before a gate the target is measured.
pub(super) async fn submit(
    attempt: &Attempt,
    occasion: (Trigger, bool),
    base: &Tree,
    tree: &Tree,
    completes: Option<&StepId>,
) -> Sent {
    let now = measured(attempt);
    if occasion.1 && now.digest != base.digest {
        report_drift(attempt, base.digest, now.digest).await;
    }
    let ready = records::checkpoint(attempt, occasion, base, tree, completes);
    attempt.submit(&ready.message, ready.record.integrity.checkpoint_hash).await
}

async fn report_drift(attempt: &Attempt, base: Digest, target: Digest) {
    let report = DriftReport { task_id: attempt.job.task_id.clone(), base, target, paths: vec!["a".into()] };
    // Best effort: whoever redeems measures again.
    let _missed = attempt.world.call(|o| async move { o.coordinator().report_drift(report).await }).await;
}

pub(super) async fn rebase(attempt: &Attempt) {
    let (world, job) = (&attempt.world, &attempt.job);
    if attempt.work(world.rng.between(300, 3_000)).await == Directive::Lost {
        return;
    }
    let now = measured(attempt);
    let old = match job.base {
        Some(base) => Some(stored(attempt, base).await),
        None => None,
    };
    let tree = match (old, job.tree) {
        (Some(old), Some(tree)) if tree != old.digest => {
            let tree = stored(attempt, tree).await;
            match move_onto(&old.manifest, &tree.manifest, &now.manifest) {
                Rebased::Clean(manifest) => {
                    let digest = target::store_manifest(&manifest, &world.blobs);
                    Tree { manifest, digest }
                }
                Rebased::Overlap(paths) => {
                    let paths = paths.iter().map(ToString::to_string).collect();
                    let outcome = AttemptOutcome::RebaseOverlap { target: now.digest, paths, evidence: None };
                    return attempt.report(outcome).await;
                }
            }
        }
        _ => now.clone(),
    };
    match pending_gate(attempt) {
        Some(trigger) => {
            submit(attempt, (trigger, true), &now, &tree, None).await;
        }
        None => {
            let evidence_index = records::index(attempt, tree.digest, "rebase");
            let outcome = AttemptOutcome::Rebased { base: now.digest, tree: tree.digest, evidence_index };
            attempt.report(outcome).await;
        }
    }
}

/// The gate before which the work stands.
fn pending_gate(attempt: &Attempt) -> Option<Trigger> {
    let job = &attempt.job;
    if job.plan.steps.iter().all(|step| job.completed.contains(&step.id)) {
        return Some(Trigger::ChangesetBeforeApply);
    }
    let head: Checkpoint = records::read(&attempt.world, job.head.as_ref()?.record);
    let stands = head.gate && head.trigger != Trigger::TaskBeforePause && head.plan.completed_step_ids == job.completed;
    stands.then_some(head.trigger)
}

pub(super) async fn evidence(attempt: &Attempt) {
    let (base, tree) = ground(attempt).await;
    match attempt.work(attempt.world.rng.between(300, 5_000)).await {
        Directive::Lost => {}
        Directive::Stop => attempt.report(stopped(&base, &tree)).await,
        Directive::Continue | Directive::Park => {
            let trigger = pending_gate(attempt).unwrap_or(Trigger::PlanSubgraphDone);
            submit(attempt, (trigger, true), &base, &tree, None).await;
        }
    }
}

/// Gives the job back.
pub(super) async fn release(attempt: &Attempt, after: u64) {
    let outcome = AttemptOutcome::Released { after: Span::from_millis(after), reason: "not now".into() };
    attempt.report(outcome).await;
}
