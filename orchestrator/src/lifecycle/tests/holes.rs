//! Holes that a hostile reading found once: each stays closed.

use checkrein_shared::records::{JobKind, Judgement, ReviewerType, Trigger};

use super::fixture::{POLICY, World, digest, finding, published, spec, written};
use crate::lifecycle::{EventKind, GrantStatus, Outcome, State};

#[test]
fn a_target_that_came_back_does_not_rebase_for_ever() {
    let mut world = World::new(&["work"]);
    world.reviewing().judged(Judgement::ChangesRequired).running();
    // Somebody's editor leaves a file for a moment.
    world.take(world.drift("for a moment"));
    world.take(world.gate("work", "base", "tree-2"));
    assert_eq!(world.job(), "rebase");
    world.running();
    world.take(world.gate("work", "base", "tree-2"));
    assert_eq!((world.state(), world.task.drifted), ("reviewing", None));
}

#[test]
fn a_spent_budget_never_completes_a_task_that_nobody_reviewed() {
    let text = format!("{}budgets: {{task: {{wall: 10s}}}}\n", POLICY.trim_start()).replace(
        "{id: spent, on: [budget], when: \"true\", action: escalate, level: owner}",
        "{id: spent, on: [budget], when: \"budget.wall_pct >= 100\", action: warn}",
    );
    let mut world = World::with_policy(&["work"], &text);
    world.running();
    world.now = world.now.plus(std::time::Duration::from_secs(11));
    world.take(EventKind::BudgetHit { budget: "wall".into() });
    world.take(world.gate("work", "base", "tree"));
    assert_eq!(world.state(), "reviewing");
}

#[test]
fn rules_see_the_time_of_the_attempt_that_used_the_budget_up() {
    let text = format!("{}budgets: {{task: {{wall: 10s}}}}\n", POLICY.trim_start()).replace(
        "{id: spent, on: [budget], when: \"true\",",
        "{id: spent, on: [budget], when: \"budget.wall_pct >= 100\",",
    );
    let mut world = World::with_policy(&["work"], &text);
    world.running();
    world.now = world.now.plus(std::time::Duration::from_secs(11));
    world.take(EventKind::BudgetHit { budget: "wall".into() });
    let epoch = world.task.epoch;
    world.take(EventKind::LeaseExpired { epoch });
    assert_eq!(world.task.rulings.last().unwrap().rule, "spent");
}

#[test]
fn failures_count_although_a_budget_is_spent() {
    let text = POLICY.replace(
        "{id: spent, on: [budget], when: \"true\", action: escalate, level: owner}",
        "{id: spent, on: [budget], when: \"true\", action: warn}",
    );
    let mut world = World::with_policy(&["work"], &text);
    for _ in 0..3 {
        world.running().take(EventKind::BudgetHit { budget: "wall".into() });
        world.take(world.step_failed("work", "boom"));
    }
    assert_eq!((world.state(), world.task.usage.failures), ("waiting for a person", 3));
}

#[test]
fn one_approval_does_not_fill_two_places() {
    let text = POLICY.replace(
        "{name: rules, kind: rules, on: [changeset.before_apply], blocking: true}",
        "{name: rules, kind: rules, on: [changeset.before_apply], blocking: true, count: 2, quorum: 2}",
    );
    let mut world = World::with_policy(&["work"], &text);
    world.reviewing();
    let State::Reviewing { slots } = world.task.state.clone() else { panic!() };
    let bindings = world.task.subject.as_ref().unwrap().bindings.clone();
    let unclear = world.verdict_of(&slots[0].id, bindings.clone(), Judgement::Inconclusive, Vec::new());
    world.take(published(unclear));
    let good = world.verdict_of(&slots[1].id, bindings, Judgement::Approved, Vec::new());
    world.take(published(good)).running();
    world.take(world.gate("work", "base", "tree"));
    let State::Reviewing { slots } = &world.task.state else { panic!("{:?}", world.task.state) };
    assert!(slots.iter().all(|s| s.answer == crate::lifecycle::Answer::Awaited), "{slots:?}");
}

#[test]
fn a_reviewers_key_never_answers_for_a_person() {
    let mut world = World::with_policy(&["work"], "version: 1\nextends: default\n");
    world.reviewing();
    let State::Reviewing { slots } = world.task.state.clone() else { panic!() };
    let bindings = world.task.subject.as_ref().unwrap().bindings.clone();
    let person = slots.iter().find(|s| s.review == "person").unwrap();
    for kind in [ReviewerType::Rules, ReviewerType::Human] {
        let mut tried = world.clone();
        let mut forged = tried.verdict_of(&person.id, bindings.clone(), Judgement::Approved, Vec::new());
        forged.reviewer.kind = kind;
        tried.take(published(forged));
        assert_eq!(tried.task.items().len(), 1, "the person is still asked");
    }
}

#[test]
fn two_places_for_people_need_two_people() {
    let text = format!(
        "{POLICY}\n",
    )
    .replace("reviews:\n", "reviews:\n- {name: board, kind: human, on: [changeset.before_apply], blocking: true, count: 2, quorum: all, level: owner}\n");
    let mut world = World::with_policy(&["work"], &text);
    world.reviewing();
    let hash = world.task.items()[0].hash;
    let approve = |by: &str| EventKind::Approved { by: by.into(), hash, note: None };
    world.take(approve("bea"));
    world.refused(approve("bea"));
    world.take(approve("cy"));
    assert!(world.task.items().is_empty());
}

#[test]
fn a_step_that_was_completed_is_not_run_again_when_its_worker_is_lost() {
    let mut world = World::new(&["one", "two"]);
    world.running();
    world.take(written(world.checkpoint(Trigger::PlanSubgraphDone, false, "base", "tree"), Some("one")));
    let epoch = world.task.epoch;
    world.take(EventKind::LeaseExpired { epoch });
    assert!(matches!(&world.task.state, State::Queued { job: JobKind::Step { step, .. } } if step.as_str() == "two"));
}

#[test]
fn a_half_applied_change_is_finished_before_anybody_cancels_or_takes_over() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    world.take(world.redeem("base"));
    let cancel = EventKind::CancelRequested { by: "ada".into() };
    let takeover = EventKind::TakeoverRequested { by: "ada".into(), folder: "/tmp/t".into() };
    for _ in 0..2 {
        world.refused(cancel.clone());
        world.refused(takeover.clone());
        let epoch = world.task.epoch;
        world.take(EventKind::LeaseExpired { epoch });
        world.refused(cancel.clone());
        world.running();
    }
    world.take(world.applied("after"));
    assert_eq!(world.state(), "done");
}

#[test]
fn an_apply_that_can_not_be_carried_out_asks_a_person_and_goes_on_with_the_same_change() {
    let mut world = World::new(&["work"]);
    world.granted().running();
    world.take(world.redeem("base"));
    world.take(world.step_failed("work", "the disk is read-only"));
    assert_eq!(world.state(), "waiting for a person");
    assert_eq!(world.task.grants[0].status, GrantStatus::Redeemed {});
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "ada".into(), hash, note: None });
    assert_eq!(world.job(), "apply");
}

#[test]
fn an_objection_that_arrives_while_a_person_is_asked_changes_what_has_to_be_approved() {
    let mut world = World::new(&["work"]);
    world.reviewing();
    let late = world.verdict(Judgement::ChangesRequired, vec![finding("f-1")]);
    world.take(EventKind::ReviewTimedOut { round: 1 });
    let seen = world.task.items()[0].hash;
    world.take(published(late));
    world.refused(EventKind::Approved { by: "ada".into(), hash: seen, note: None });
    let now = world.task.items()[0].hash;
    world.take(EventKind::Approved { by: "ada".into(), hash: now, note: None });
    assert_eq!(world.job(), "apply");
}

#[test]
fn what_was_amended_under_a_question_is_reviewed_before_anything_is_applied() {
    let mut world = World::new(&["work"]);
    world.waiting();
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Amended { by: "ada".into(), spec: Some(Box::new(spec("another"))), plan: None });
    world.take(EventKind::Approved { by: "ada".into(), hash, note: None });
    assert_eq!((world.state(), world.task.grants.len()), ("reviewing", 0));
}

#[test]
fn a_step_that_was_amended_while_it_ran_is_not_done() {
    let mut world = World::new(&["work"]);
    world.running();
    let gate = world.gate("work", "base", "tree");
    let mut plan = world.task.plan.clone();
    plan.version = 2;
    plan.steps[0].risk = checkrein_shared::records::Risk::R3;
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) });
    world.take(gate);
    assert!(matches!(&world.task.state, State::Queued { job: JobKind::Step { .. } }), "{:?}", world.task.state);
}

#[test]
fn nothing_can_be_taken_over_before_there_are_files_and_the_same_person_may_ask_twice() {
    let wanted = |by: &str| EventKind::TakeoverRequested { by: by.into(), folder: "/tmp/t".into() };
    let mut world = World::new(&["work"]);
    assert!(world.refused(wanted("bea")).contains("no files"));
    world.reviewing().take(wanted("bea")).take(wanted("bea"));
    world.refused(wanted("cy"));
}

#[test]
fn a_task_completes_only_through_a_gate() {
    let mut world = World::new(&["work"]);
    world.running();
    // A worker that says only that the step is done has shown nothing.
    world.take(world.step_done("work"));
    assert_eq!(world.job(), "rebase");
    assert!(!matches!(&world.task.state, State::Done { outcome: Outcome::Completed {} }));
    assert_eq!(world.task.base, Some(digest("base")));
}
