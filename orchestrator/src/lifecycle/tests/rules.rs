//! What the rules make of rounds, failures, budgets and silence.

use checkrein_shared::records::{JobKind, Judgement};

use super::fixture::{POLICY, World};
use crate::lifecycle::{Answer, EventKind, State, Timer};

#[test]
fn a_rejected_change_goes_back_with_what_is_to_be_done() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::ChangesRequired);
    assert!(matches!(&world.task.state, State::Queued { job: JobKind::Step { step, .. } } if step.as_str() == "work"));
    assert_eq!(world.task.required_actions[0].text, "mend the test");
    let ruling = world.task.rulings.last().unwrap();
    assert_eq!((ruling.rule.as_str(), ruling.action.as_str()), ("again", "retry"));
    assert!(ruling.origin.starts_with("test.yaml:"), "{}", ruling.origin);
    assert!(ruling.values.contains_key("round.rejections"), "{:?}", ruling.values);
}

#[test]
fn a_review_that_always_finds_something_ends_with_a_person_and_never_with_an_approval() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::ChangesRequired);
    for _ in 0..2 {
        world.running();
        let tree = format!("tree-{}", world.task.round);
        world.take(world.gate("work", "base", &tree)).judged(Judgement::ChangesRequired);
    }
    assert_eq!(world.state(), "waiting for a person");
    assert!(world.task.grants.is_empty() && !world.task.findings.is_empty());
}

#[test]
fn the_budget_of_rounds_is_a_hard_limit() {
    let text = format!("{}budgets: {{task: {{rounds: 1}}}}\n", POLICY.trim_start());
    let mut world = World::with_policy(&["work"], &text);
    world.reviewing().judged(Judgement::ChangesRequired).running();
    world.take(world.gate("work", "base", "tree-2"));
    assert_eq!(world.state(), "waiting for a person");
}

#[test]
fn an_inconclusive_review_asks_for_evidence_once_and_then_for_a_person() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::Inconclusive);
    assert_eq!(world.job(), "evidence");
    world.running();
    world.take(world.gate("work", "base", "tree")).judged(Judgement::Inconclusive);
    assert_eq!(world.state(), "waiting for a person");
}

#[test]
fn silence_is_no_approval() {
    let mut world = World::new(&["work"]);
    world.reviewing().take(EventKind::ReviewTimedOut { round: 1 });
    assert_eq!(world.state(), "waiting for a person");
    assert!(world.task.verdicts.is_empty());
}

#[test]
fn without_verifier_and_reviewer_a_person_is_asked_and_nobody_else() {
    let text = "version: 1\nextends: default\n";
    let mut world = World::with_policy(&["work"], text);
    world.reviewing();
    let State::Reviewing { slots } = &world.task.state else { panic!() };
    assert!(slots.iter().any(|s| s.review == "person" && s.item.is_some()), "{slots:?}");
    world.judged(Judgement::Approved);
    assert_eq!(world.state(), "reviewing");
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "ada".into(), hash, note: None });
    assert_eq!(world.job(), "apply");
}

#[test]
fn a_failing_step_is_tried_again_and_then_goes_to_a_person_who_may_let_it_go_on() {
    let mut world = World::new(&["work"]);
    for _ in 0..2 {
        world.running();
        world.take(world.step_failed("work", "boom"));
        assert_eq!(world.job(), "step");
    }
    world.running();
    world.take(world.step_failed("work", "boom"));
    assert_eq!(world.state(), "waiting for a person");
    assert_eq!(world.task.usage.same_error, 3);
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "ada".into(), hash, note: None });
    assert_eq!((world.job(), world.task.usage.failures), ("step", 0));
}

#[test]
fn an_attempt_that_is_lost_five_times_is_not_tried_for_ever() {
    let mut world = World::new(&["work"]);
    for lost in 1..=5 {
        world.running();
        let epoch = world.task.epoch;
        world.take(EventKind::LeaseExpired { epoch });
        assert_eq!(world.task.usage.lost_attempts, lost);
    }
    assert_eq!(world.task.rulings.len(), 1);
}

#[test]
fn time_under_lease_is_counted_and_a_spent_budget_goes_to_a_person_who_may_extend_it() {
    let text = format!("{}budgets: {{task: {{wall: 10s}}}}\n", POLICY.trim_start());
    let mut world = World::with_policy(&["work"], &text);
    world.running();
    assert!(
        world.effects.iter().any(|e| matches!(e, crate::lifecycle::Effect::SetTimer { timer: Timer::Wall {}, .. }))
    );
    world.now = world.now.plus(std::time::Duration::from_secs(11));
    world.take(EventKind::BudgetHit { budget: "wall".into() });
    world.take(world.step_failed("work", "stopped"));
    assert_eq!(world.state(), "waiting for a person");
    assert!(world.task.usage.wall_ms >= 11_000);
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "ada".into(), hash, note: None });
    assert_eq!((world.job(), world.task.usage.wall_extra_ms), ("step", 10_000));
}

#[test]
fn steps_after_the_one_that_is_done_again_are_looked_at_again() {
    let mut world = World::new(&["one", "two"]);
    world.running();
    world.take(world.step_done("one")).running();
    world.take(world.gate("two", "base", "tree")).judged(Judgement::ChangesRequired);
    let State::Queued { job: JobKind::Step { step, .. } } = &world.task.state else { panic!() };
    assert_eq!(step.as_str(), "two");
}

#[test]
fn a_silent_reviewer_is_overdue_in_time_although_a_person_has_hours_left() {
    let text = POLICY.replace(
        "on: [changeset.before_apply], blocking: true}",
        "on: [changeset.before_apply], timeout: 10m, blocking: true}\n- {name: owner, kind: human, level: owner, timeout: 8h, on: [changeset.before_apply], blocking: true}",
    );
    let mut world = World::with_policy(&["work"], &text);
    world.reviewing();
    let asked = world.now;
    world.take(EventKind::ReviewTimedOut { round: 1 });
    assert!(world.now.since(asked) < std::time::Duration::from_secs(11 * 60));
    let State::Reviewing { slots } = &world.task.state else { panic!("{:?}", world.task.state) };
    let answers: Vec<Answer> = slots.iter().map(|slot| slot.answer).collect();
    assert_eq!(answers, [Answer::TimedOut, Answer::Awaited]);
    // The person's word ends the round; silence stays silence.
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "bob".into(), hash, note: None });
    assert_eq!(world.task.rulings.last().unwrap().on, "timeout");
}

#[test]
fn a_late_answer_counts_as_long_as_its_round_is_open() {
    let text = POLICY.replace(
        "on: [changeset.before_apply], blocking: true}",
        "on: [changeset.before_apply], timeout: 10m, blocking: true}\n- {name: owner, kind: human, level: owner, timeout: 8h, on: [changeset.before_apply], blocking: true}",
    );
    let mut world = World::with_policy(&["work"], &text);
    world.reviewing();
    world.take(EventKind::ReviewTimedOut { round: 1 });
    world.judged(Judgement::Approved);
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "bob".into(), hash, note: None });
    assert_eq!(world.job(), "apply");
}
