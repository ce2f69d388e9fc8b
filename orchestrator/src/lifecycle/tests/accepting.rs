//! The way of a change to the target, and everything that must keep it away.

use checkrein_shared::records::{AttemptOutcome, ChangesetRef, Judgement, Trigger};

use super::fixture::{World, digest, finding, published, written};
use crate::lifecycle::{Effect, EventKind, GrantStatus, Reason, State};

#[test]
fn an_approved_change_is_granted_redeemed_applied_and_the_task_completes() {
    let mut world = World::new(&["work"]);
    world.granted();
    assert_eq!((world.state(), world.job()), ("queued", "apply"));
    world.running();
    world.take(world.redeem("base"));
    assert_eq!(world.task.grants[0].status, GrantStatus::Redeemed {});
    world.take(world.applied("after"));
    assert_eq!(world.state(), "done");
    assert_eq!(world.task.base, Some(digest("after")));
    assert_eq!(world.head.as_ref().unwrap().trigger, Trigger::ChangesetAfterApply);
    assert_eq!(world.head.as_ref().unwrap().changesets.applied.len(), 1);
}

#[test]
fn a_change_with_nothing_in_it_is_reviewed_and_completes_without_a_grant() {
    let mut world = World::new(&["work"]);
    world.running();
    world.take(world.gate("work", "same", "same")).judged(Judgement::Approved);
    assert_eq!(world.state(), "done");
    assert!(world.task.grants.is_empty() && world.task.applied.is_empty());
}

#[test]
fn a_grant_is_refused_when_the_target_moved_and_the_change_is_rebased() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    world.take(world.redeem("moved"));
    assert_eq!((world.state(), world.job()), ("queued", "rebase"));
    assert!(matches!(world.task.grants[0].status, GrantStatus::Void { .. }));
    let stale = &world.task.verdicts[0].stale;
    assert_eq!((stale[0].field.as_str(), stale[0].new.clone()), ("base", digest("moved").to_string()));
}

#[test]
fn a_grant_is_refused_for_another_changeset_epoch_or_grant() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    let EventKind::RedeemRequested { request } = world.redeem("base") else { unreachable!() };
    let mut other = request.clone();
    other.epoch -= 1;
    world.refused(EventKind::RedeemRequested { request: other });
    let mut other = request.clone();
    other.grant = "g-other-1".parse().unwrap();
    world.refused(EventKind::RedeemRequested { request: other });
    let mut other = request;
    other.changeset_hash = digest("something else");
    world.refused(EventKind::RedeemRequested { request: other });
    assert_eq!(world.task.grants[0].status, GrantStatus::Issued {});
}

#[test]
fn a_grant_is_void_once_anything_that_it_is_bound_to_has_changed() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    world.task.spec.hash = digest("another specification");
    world.take(world.redeem("base"));
    assert_eq!(world.state(), "reviewing");
    assert!(matches!(world.task.grants[0].status, GrantStatus::Void { .. }));
}

#[test]
fn a_redeemed_grant_is_finished_by_the_next_worker_after_a_crash() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    world.take(world.redeem("base"));
    let epoch = world.task.epoch;
    world.take(EventKind::LeaseExpired { epoch });
    assert_eq!((world.state(), world.job()), ("queued", "apply"));
    assert_eq!(world.task.epoch, epoch + 1);
    world.running();
    // Half of the change is in the target already, so that it measures neither base nor tree.
    assert_eq!(world.ignored(world.redeem("half")), Reason::Duplicate);
    assert_eq!(world.task.grants[0].status, GrantStatus::Redeemed {});
    world.take(world.applied("after"));
    assert_eq!(world.state(), "done");
}

#[test]
fn a_change_is_applied_once_however_often_it_is_reported() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    world.take(world.redeem("base"));
    let report = world.applied("after");
    world.take(report.clone());
    assert_eq!(world.ignored(report), Reason::Duplicate);
    assert_eq!(world.task.applied.len(), 1);
}

#[test]
fn an_apply_that_nobody_granted_is_not_believed() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    let outcome = AttemptOutcome::Applied {
        grant: world.task.grants[0].id.clone(),
        changeset: ChangesetRef { id: "cs-x".parse().unwrap(), hash: digest("forged") },
        target: digest("after"),
        commit: None,
    };
    assert_eq!(world.ignored(world.ended(outcome)), Reason::Superseded);
}

#[test]
fn a_veto_voids_a_grant_that_was_not_redeemed_and_asks_a_person() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let mut veto = world.verdict(Judgement::Rejected, vec![finding("f-9")]);
    veto.review_id = "rv-extra".parse().unwrap();
    world.judged(Judgement::Approved);
    world.take(published(veto));
    assert_eq!(world.state(), "waiting for a person");
    assert!(matches!(world.task.grants[0].status, GrantStatus::Void { .. }));
}

#[test]
fn a_veto_after_redemption_lets_the_apply_finish_and_then_asks_a_person() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let mut veto = world.verdict(Judgement::Rejected, vec![finding("f-9")]);
    veto.review_id = "rv-extra".parse().unwrap();
    world.judged(Judgement::Approved).running();
    world.take(world.redeem("base")).take(published(veto));
    assert_eq!(world.state(), "running");
    world.take(world.applied("after"));
    assert_eq!(world.state(), "waiting for a person");
    assert_eq!(world.task.applied.len(), 1);
}

#[test]
fn a_checkpoint_of_an_older_attempt_never_enters_the_chain() {
    let mut world = World::new(&["work"]);
    world.running();
    let late = world.gate("work", "base", "tree");
    let epoch = world.task.epoch;
    world.take(EventKind::LeaseExpired { epoch });
    assert_eq!(world.ignored(late.clone()), Reason::StaleEpoch);
    world.running();
    assert_eq!(world.ignored(late), Reason::StaleEpoch);
    assert!(world.task.head.is_none());
}

#[test]
fn two_checkpoints_never_share_a_predecessor() {
    let mut world = World::new(&["work", "more"]);
    world.running();
    let first = world.checkpoint(Trigger::PlanSubgraphDone, false, "base", "one");
    let rival = world.checkpoint(Trigger::PlanSubgraphDone, false, "base", "two");
    world.take(written(first.clone(), None));
    assert_eq!(world.ignored(written(first, None)), Reason::Duplicate);
    assert!(matches!(world.ignored(written(rival, None)), Reason::NotInChain(_)));
}

#[test]
fn a_target_that_keeps_moving_goes_to_a_person_the_third_time() {
    let mut world = World::new(&["work"]);
    world.granted();
    for round in 1..=3u32 {
        world.running();
        world.take(world.redeem(if round == 1 { "base" } else { "moved" }));
        let grant = world.task.grants.last().unwrap().id.clone();
        let conflict = AttemptOutcome::ApplyConflict { grant, target: digest("moved"), paths: vec!["a".into()] };
        world.take(world.ended(conflict));
        if round < 3 {
            assert_eq!(world.job(), "rebase");
            world.running();
            world.take(world.gate("work", "moved", &format!("tree-{round}"))).judged(Judgement::Approved);
        }
    }
    assert_eq!(world.state(), "waiting for a person");
}

#[test]
fn each_dispatch_publishes_one_job_with_its_own_epoch() {
    let mut world = World::new(&["a", "b"]);
    let job = |world: &World| {
        let published: Vec<String> = world
            .effects
            .iter()
            .filter_map(|e| match e {
                Effect::Publish { id, kind, .. } if kind == "job" => Some(id.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(published.len(), 1, "{:?}", world.effects);
        published[0].clone()
    };
    let first = job(&world);
    world.running();
    world.take(world.step_done("a"));
    assert_ne!(job(&world), first);
    assert!(matches!(&world.task.state, State::Queued { .. }));
}
