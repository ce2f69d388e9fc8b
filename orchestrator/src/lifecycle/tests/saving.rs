//! Save points: who may take one, and who goes on from it.

use checkrein_shared::records::{
    ApprovalRef, CheckOutcome, Checked, Conversation, EffectClass, JobKind, Judgement, Precondition,
};

use super::fixture::{World, digest, step};
use crate::lifecycle::{Conditions, Effect, EventKind, Reason, State};

fn resumed(world: &World) -> Option<String> {
    let (State::Queued { job } | State::Running { job, .. }) = &world.task.state else {
        panic!("{:?}", world.task.state)
    };
    world.task.resume_point(job).map(|saved| saved.run_state.digest.to_string())
}

#[test]
fn a_lost_attempt_goes_on_from_its_save_point_with_the_tree_of_that_moment() {
    let mut world = World::new(&["work"]);
    world.running();
    assert_eq!(resumed(&world), None);
    world.take(world.saved("work", "state 1", "tree 1"));
    world.take(world.saved("work", "state 2", "tree 2"));
    world.take(EventKind::LeaseExpired { epoch: world.task.epoch });
    assert_eq!((world.task.tree, world.task.base), (Some(digest("tree 2")), Some(digest("base"))));
    assert_eq!(resumed(&world), Some(digest("state 2").to_string()));
}

/// What the newest save point goes back to, and since which attempt.
fn began(world: &World) -> (u64, checkrein_shared::digest::Digest) {
    let began = world.task.save_point.as_ref().unwrap().began.unwrap();
    (began.epoch, began.tree)
}

#[test]
fn a_save_point_remembers_the_work_of_the_steps_before_whatever_is_saved_after() {
    let mut world = World::new(&["first", "work"]);
    world.running();
    world.take(world.step_done("first"));
    let left = world.task.tree.unwrap();
    world.running();
    let epoch = world.task.epoch;
    world.take(world.saved("work", "state 1", "tree 1"));
    assert_eq!(began(&world), (epoch, left));
    world.take(EventKind::LeaseExpired { epoch }).running();
    world.take(world.saved("work", "state 2", "tree 2"));
    assert_eq!(began(&world), (epoch, left), "also over a lost attempt");
    // Somebody moved the files: what came before is the beginning no more.
    world.task.tree = Some(digest("edited"));
    world.take(world.saved("work", "state 3", "tree 3"));
    assert_eq!(began(&world), (world.task.epoch, digest("edited")));

    let mut world = World::new(&["work"]);
    world.running();
    world.take(world.saved("work", "state", "tree"));
    assert_eq!(began(&world).1, digest("base"), "before the first step there is only the base");
}

#[test]
fn five_attempts_without_a_new_save_point_are_too_many_and_with_one_they_are_not() {
    let mut world = World::new(&["work"]);
    for lost in 1..=12u32 {
        world.running();
        world.take(world.saved("work", &format!("state {lost}"), "tree"));
        assert_eq!(world.task.usage.lost_attempts, 0);
        world.take(EventKind::LeaseExpired { epoch: world.task.epoch });
        assert_eq!(world.state(), "queued", "after {lost} losses");
    }
    // The same again is no progress.
    for lost in 2..=5u32 {
        world.running();
        assert_eq!(world.ignored(world.saved("work", "state 12", "tree")), Reason::Duplicate);
        world.take(EventKind::LeaseExpired { epoch: world.task.epoch });
        assert_eq!(world.task.rulings.len(), usize::from(lost >= 5), "after {lost} losses the rules are asked");
    }
}

#[test]
fn only_the_attempt_that_has_the_job_may_save() {
    let mut world = World::new(&["work", "more"]);
    world.running();
    let late = world.saved("work", "late", "tree");
    assert_eq!(world.ignored(world.saved("more", "state", "tree")), Reason::Superseded);
    let EventKind::SavePointTaken { save_point, .. } = world.saved("work", "state", "tree") else { unreachable!() };
    let other = EventKind::SavePointTaken { worker: "worker-2".parse().unwrap(), save_point };
    assert_eq!(world.ignored(other), Reason::Superseded);
    world.take(EventKind::LeaseExpired { epoch: world.task.epoch }).running();
    assert_eq!(world.ignored(late), Reason::StaleEpoch);
    // A base that the task has left.
    world.take(world.saved("work", "state", "tree"));
    world.task.base = Some(digest("another base"));
    let EventKind::SavePointTaken { worker, mut save_point } = world.saved("work", "new", "tree") else {
        unreachable!()
    };
    save_point.base = digest("base");
    assert_eq!(world.ignored(EventKind::SavePointTaken { worker, save_point }), Reason::Superseded);
}

#[test]
fn work_that_is_sent_back_goes_on_with_its_conversation_and_a_fresh_one_does_not() {
    let mut world = World::new(&["work"]);
    world.running();
    world.take(world.saved("work", "state", "tree"));
    world.take(world.gate("work", "base", "tree")).judged(Judgement::ChangesRequired);
    assert_eq!(resumed(&world), Some(digest("state").to_string()));
    world.running();
    world.take(world.gate("work", "base", "tree moved on"));
    assert_eq!(world.task.resume_point(&same("work")), None, "its tree is another one now");

    let mut world = World::new(&["work"]);
    world.running();
    world.take(world.saved("work", "state", "tree"));
    let fresh = JobKind::Step { step: step("work"), conversation: Conversation::Fresh };
    world.task.state =
        State::Running { job: fresh, worker: super::fixture::worker(), since: world.now, wish: None, outdated: false };
    // What the fresh conversation has saved itself is its own.
    world.take(EventKind::LeaseExpired { epoch: world.task.epoch });
    assert_eq!(resumed(&world), Some(digest("state").to_string()));
}

fn same(id: &str) -> JobKind {
    JobKind::Step { step: step(id), conversation: Conversation::Same }
}

#[test]
fn a_person_who_edits_the_files_leaves_no_run_state_behind() {
    let mut world = World::new(&["work"]);
    world.running();
    world.take(world.saved("work", "state", "tree"));
    world.take(world.gate("work", "base", "tree"));
    world.take(EventKind::TakeoverRequested { by: "ada".into(), folder: "/tmp/t".into() });
    let edited = digest("edited");
    let back = EventKind::HandedBack { by: "ada".into(), tree: edited, started_from: digest("tree"), note: None };
    world.take(back);
    assert_eq!(world.task.resume_point(&same("work")), None);
}

/// Approvals and ledger as journaled for the attempt, whatever its worker says of them.
fn judged(mut world: World) -> [CheckOutcome; 2] {
    let both = [Precondition::ApprovalsStillValid, Precondition::LedgerConsulted];
    let checks = both.map(|condition| Checked { condition, outcome: CheckOutcome::Pass {} }).to_vec();
    let epoch = world.task.epoch;
    world.take(EventKind::PreconditionsChecked { epoch, worker: super::fixture::worker(), checks });
    let Some(Effect::PutRow { value, .. }) = world.effects.last().cloned() else { panic!("{:?}", world.effects) };
    let kept: Conditions = serde_json::from_value(value).unwrap();
    [kept.checks[0].outcome.clone(), kept.checks[1].outcome.clone()]
}

#[test]
fn approvals_and_effects_are_judged_here_and_not_taken_from_the_worker() {
    let mut world = World::new(&["work", "more"]);
    world.running();
    assert_eq!(judged(world), [CheckOutcome::Pass {}, CheckOutcome::Pass {}]);

    let mut world = World::new(&["work", "more"]);
    world.running();
    let approval = |hash| ApprovalRef { id: "t-1.a1".parse().unwrap(), checkpoint_hash: hash, by: "ada".into() };
    world.task.approvals.push(approval(digest("an earlier checkpoint")));
    let [approvals, _] = judged(world);
    assert!(matches!(&approvals, CheckOutcome::Explained { why } if why.contains("t-1.a1")), "{approvals:?}");

    let mut world = super::effects::acting(EffectClass::Effectful);
    world.running();
    world.take(world.claim());
    let [approvals, ledger] = judged(world);
    assert_eq!(approvals, CheckOutcome::Pass {});
    assert!(matches!(&ledger, CheckOutcome::Explained { why } if why.contains("`deploy`")), "{ledger:?}");
}

#[test]
fn the_newest_attempts_conditions_are_kept_and_old_ones_are_not_taken() {
    let mut world = World::new(&["work"]);
    world.running();
    let late = world.conditions();
    world.take(world.conditions());
    let rows: Vec<_> = world.effects.iter().filter(|e| matches!(e, Effect::PutRow { .. })).collect();
    assert!(matches!(&rows[..], [Effect::PutRow { table, key, .. }] if table == "attempt" && key == "conditions"));
    world.take(EventKind::LeaseExpired { epoch: world.task.epoch }).running();
    assert_eq!(world.ignored(late), Reason::StaleEpoch);
}
