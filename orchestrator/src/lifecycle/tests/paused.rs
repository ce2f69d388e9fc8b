//! What the simulation found: things that changed while a task was paused, and a change that nobody had allowed.

use super::fixture::{World, finding, published, spec};
use crate::lifecycle::{Answer, EventKind, GrantStatus, Reason, State};
use checkrein_shared::records::Judgement;
use checkrein_shared::time::Timestamp;

fn pause(world: &mut World) {
    world.take(EventKind::PauseRequested { by: "bob".into() });
}

fn resume(world: &mut World) {
    world.take(EventKind::ResumeRequested { by: "bob".into() });
}

fn amend(world: &mut World) {
    let spec = Some(Box::new(spec("do something else")));
    world.take(EventKind::Amended { by: "ada".into(), spec, plan: None });
}

fn revoke(world: &mut World) {
    let reviewer = "reviewer-1".parse().unwrap();
    world.take(EventKind::KeyCompromised { reviewer, since: Timestamp::from_millis(0) });
}

#[test]
fn a_change_that_nobody_allowed_is_never_taken_as_applied() {
    let mut world = World::new(&["s"]);
    world.granted().running();
    assert_eq!(world.ignored(world.applied("target")), Reason::Superseded);
    assert_eq!(world.task.grants[0].status, GrantStatus::Issued {});
}

#[test]
fn a_round_that_was_paused_is_begun_anew_where_the_specification_changed_meanwhile() {
    let mut world = World::new(&["s"]);
    world.reviewing();
    pause(&mut world);
    amend(&mut world);
    resume(&mut world);
    assert_eq!((world.state(), world.task.round), ("reviewing", 2));
    let subject = world.task.subject.as_ref().unwrap();
    assert_eq!(subject.bindings.spec_hash, world.task.spec.hash);
}

#[test]
fn a_round_that_was_paused_is_begun_anew_where_an_answer_lost_its_key_meanwhile() {
    let text = super::fixture::POLICY.replace(
        "blocking: true}",
        "blocking: true}\n- {name: second, kind: command, command: [sh, look.sh], on: [changeset.before_apply], blocking: true}",
    );
    let mut world = World::with_policy(&["s"], &text);
    world.reviewing().judged(Judgement::Approved);
    pause(&mut world);
    revoke(&mut world);
    resume(&mut world);
    let State::Reviewing { slots } = &world.task.state else { panic!("{:?}", world.task.state) };
    assert!(slots.iter().all(|slot| slot.answer == Answer::Awaited), "{slots:?}");
}

#[test]
fn a_permission_dies_with_its_reviewers_key_also_while_the_task_is_paused() {
    let mut world = World::new(&["s"]);
    world.granted();
    pause(&mut world);
    revoke(&mut world);
    assert!(matches!(world.task.grants[0].status, GrantStatus::Void { .. }));
    resume(&mut world);
    assert_eq!((world.state(), world.job()), ("queued", "rebase"));
}

#[test]
fn a_veto_that_comes_while_a_question_is_paused_changes_the_hash_that_an_approval_must_name() {
    let mut world = World::new(&["s"]);
    world.reviewing();
    let veto = world.verdict(Judgement::Rejected, vec![finding("f-1")]);
    world.take(EventKind::ReviewTimedOut { round: 1 });
    let shown = world.task.items()[0].hash;
    pause(&mut world);
    world.take(published(veto));
    resume(&mut world);
    assert_ne!(world.task.items()[0].hash, shown);
    world.refused(EventKind::Approved { by: "bob".into(), hash: shown, note: None });
}

#[test]
fn an_approval_of_something_that_changed_writes_one_control_checkpoint_and_no_second_one() {
    let mut world = World::new(&["s"]);
    world.waiting();
    amend(&mut world);
    let before = world.task.head.as_ref().unwrap().sequence;
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "bob".into(), hash, note: None });
    assert_eq!(world.task.head.as_ref().unwrap().sequence, before + 1);
}

#[test]
fn whoever_wants_a_pause_at_a_gate_does_not_have_a_target_that_moved_judged() {
    let mut world = World::new(&["one", "two"]);
    world.running();
    world.take(world.step_done("one")).running();
    pause(&mut world);
    world.take(world.drift("moved"));
    world.take(world.gate("two", "base", "tree"));
    assert_eq!((world.state(), world.task.round), ("paused", 0));
    resume(&mut world);
    assert_eq!((world.state(), world.job()), ("queued", "rebase"));
}
