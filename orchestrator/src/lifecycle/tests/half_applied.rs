//! What was granted is carried out or void, and a change that is half in the target is finished before anything else.

use checkrein_shared::records::{AttemptOutcome, IssueRef, Severity};
use checkrein_shared::time::Timestamp;

use super::fixture::{POLICY, World, digest, spec, step};
use crate::lifecycle::{EventKind, GrantStatus};

/// A task whose only change is being written to the target.
fn half_applied() -> World {
    let mut world = World::new(&["s"]);
    world.granted().running();
    world.take(world.redeem("base"));
    world
}

fn lost(world: &mut World) {
    let epoch = world.task.epoch;
    world.take(EventKind::LeaseExpired { epoch });
}

/// Its worker is there again, finishes it, and the task is through.
fn finishes(mut world: World) {
    assert_eq!((world.state(), world.job()), ("queued", "apply"));
    world.running();
    world.take(world.applied("target"));
    assert_eq!(world.task.grants[0].status, GrantStatus::Settled {});
}

#[test]
fn a_budget_that_is_raised_while_an_apply_has_lost_its_worker_leaves_the_permission_where_it_is() {
    let text = POLICY.replace(
        "{id: spent, on: [budget], when: \"true\", action: escalate, level: owner}",
        "{id: spent, on: [budget], when: \"true\", action: continue, limit: 3}",
    );
    let mut world = World::with_policy(&["s"], &format!("{}budgets: {{task: {{wall: 10s}}}}\n", text.trim_start()));
    world.granted().running();
    world.take(EventKind::BudgetHit { budget: "wall".into() });
    lost(&mut world);
    assert_eq!((world.state(), world.job()), ("queued", "apply"));
    assert_eq!(world.task.grants[0].status, GrantStatus::Issued {});
}

#[test]
fn an_apply_that_loses_its_workers_again_and_again_is_tried_again_and_no_step_is() {
    let mut world = half_applied();
    for _ in 0..5 {
        lost(&mut world);
        world.running();
    }
    lost(&mut world);
    finishes(world);
}

#[test]
fn whoever_wants_to_take_over_waits_for_a_change_that_is_half_in_the_target() {
    let mut world = World::new(&["s"]);
    world.granted().running();
    world.take(EventKind::TakeoverRequested { by: "bob".into(), folder: "/work".into() });
    world.take(world.redeem("base"));
    lost(&mut world);
    finishes(world);
}

#[test]
fn a_revoked_key_does_not_leave_a_change_half_in_the_target() {
    let mut world = half_applied();
    lost(&mut world);
    let reviewer = "reviewer-1".parse().unwrap();
    world.take(EventKind::KeyCompromised { reviewer, since: Timestamp::from_millis(0) });
    finishes(world);
}

#[test]
fn an_amendment_does_not_leave_a_change_half_in_the_target() {
    let mut world = half_applied();
    lost(&mut world);
    world.take(EventKind::Amended { by: "ada".into(), spec: Some(Box::new(spec("something else"))), plan: None });
    finishes(world);
}

#[test]
fn a_person_who_is_asked_about_an_apply_that_nobody_can_take_lets_it_be_finished() {
    let mut world = half_applied();
    lost(&mut world);
    let epoch = world.task.epoch;
    world.take(EventKind::MessageDied { message: "job".into(), epoch, reason: "poison".into() });
    assert_eq!(world.state(), "waiting for a person");
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "ada".into(), hash, note: None });
    finishes(world);
}

#[test]
fn an_apply_that_can_not_begin_gives_its_permission_back() {
    let mut world = World::new(&["s"]);
    world.granted().running();
    let error = IssueRef { id: "failed".into(), severity: Severity::High, text: "disk full".into(), refs: Vec::new() };
    let outcome = AttemptOutcome::StepFailed {
        step: step("s"),
        error,
        error_hash: digest("disk full"),
        base: None,
        tree: None,
        evidence_index: None,
    };
    world.take(world.ended(outcome));
    assert_eq!(world.state(), "waiting for a person");
    assert!(matches!(world.task.grants[0].status, GrantStatus::Void { .. }));
}
