//! Consent to a call is for that call alone, and an objection ends it.

use checkrein_shared::records::{CallArguments, EffectCall, EffectClass, JobKind, Judgement, ReviewerType, StepAction};

use super::calls::at_the_gate_of;
use super::effects::{acting_under, call, done};
use super::fixture::{POLICY, World, digest, finding, published, step};
use crate::lifecycle::{CallGate, EventKind, State};

/// A policy under which models judge calls, one of them without being waited for.
fn judged_by_models() -> String {
    POLICY.replace(
        "- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true}",
        "- {name: rules, kind: rules, on: [changeset.before_apply], blocking: true}
- {name: security, kind: model, on: [tool.before_high_risk], blocking: true}
- {name: bot, kind: model, on: [tool.before_high_risk], blocking: false}",
    )
}

fn irreversible(steps: usize) -> World {
    let mut world = acting_under(EffectClass::Irreversible, &judged_by_models());
    if steps == 2 {
        let mut second = world.task.plan.steps[0].clone();
        (second.id, second.needs) = (step("announce"), vec![step("deploy")]);
        world.task.plan.steps.push(second);
    }
    world
}

fn announce() -> EffectCall {
    EffectCall { step: step("announce"), tool: "step:announce".into(), ..call() }
}

/// The reviews that are asked for now, by name.
fn asked(world: &World) -> Vec<String> {
    let State::Reviewing { slots } = &world.task.state else { panic!("no review is open: {:?}", world.task.state) };
    let open = slots.iter().filter(|slot| slot.answer == crate::lifecycle::Answer::Awaited);
    open.map(|slot| slot.review.clone()).collect()
}

fn answer(world: &mut World, review: &str, judgement: Judgement) {
    let State::Reviewing { slots } = &world.task.state else { panic!("no review is open: {:?}", world.task.state) };
    let id = slots.iter().find(|slot| slot.review == review).unwrap().id.clone();
    let bindings = world.task.subject.as_ref().unwrap().bindings.clone();
    let mut verdict = world.verdict_of(&id, bindings, judgement, Vec::new());
    verdict.reviewer.kind = ReviewerType::Model;
    world.take(published(verdict));
}

fn claim(world: &mut World, call: EffectCall) {
    let request = Box::new(world.request(call));
    world.take(EventKind::EffectClaimed { request });
}

#[test]
fn what_was_said_of_one_call_is_no_consent_to_the_next() {
    let mut world = irreversible(2);
    at_the_gate_of(&mut world, &call());
    assert_eq!(asked(&world), ["security", "bot"]);
    answer(&mut world, "security", Judgement::Approved);
    world.running();
    claim(&mut world, call());
    assert_eq!(world.status(), "claimed");
    world.take(world.settled(done()));
    world.take(world.step_done("deploy"));
    at_the_gate_of(&mut world, &announce());
    assert_eq!(asked(&world), ["security", "bot"], "files and plan are the same, the call is not");
}

#[test]
fn an_objection_after_the_consent_closes_the_gate_again() {
    let mut world = irreversible(1);
    at_the_gate_of(&mut world, &call());
    let State::Reviewing { slots } = world.task.state.clone() else { panic!() };
    let bot = slots.iter().find(|slot| slot.review == "bot").unwrap().id.clone();
    answer(&mut world, "security", Judgement::Approved);
    assert!(matches!(world.task.effects[0].gate, Some(CallGate::Open { .. })));
    let bindings = world.task.subject.as_ref().unwrap().bindings.clone();
    let mut late = world.verdict_of(&bot, bindings, Judgement::Rejected, vec![finding("f-1")]);
    late.reviewer.kind = ReviewerType::Model;

    let mut queued = world.clone();
    queued.take(published(late.clone()));
    assert_eq!(queued.state(), "waiting for a person", "the rules are asked");
    assert!(matches!(queued.task.effects[0].gate, Some(CallGate::Closed { .. })));

    let mut running = world.clone();
    running.running();
    running.take(published(late.clone()));
    claim(&mut running, call());
    assert_eq!(running.status(), "proposed", "it stops at its gate again");

    world.take(EventKind::PauseRequested { by: "ada".into() });
    world.take(published(late));
    assert!(matches!(world.task.effects[0].gate, Some(CallGate::Closed { .. })));
}

#[test]
fn a_step_that_was_amended_while_it_ran_is_not_done_however_its_end_is_reported() {
    let mut world = World::new(&["first", "second", "third"]);
    world.running();
    world.take(world.step_done("first")).running();
    let mut plan = world.task.plan.clone();
    plan.steps[1].action = StepAction::Prompt("do something else".into());
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) });
    world.take(world.step_done("second"));
    let State::Queued { job: JobKind::Step { step: next, .. } } = &world.task.state else { panic!() };
    assert_eq!(*next, step("second"));
}

#[test]
fn a_step_that_was_left_alone_is_done_although_another_was_amended_while_it_ran() {
    let mut world = World::new(&["first", "second", "third"]);
    world.running();
    let mut plan = world.task.plan.clone();
    plan.steps[2].action = StepAction::Prompt("do something else".into());
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) });
    world.take(world.step_done("first"));
    let State::Queued { job: JobKind::Step { step: next, .. } } = &world.task.state else { panic!() };
    assert_eq!(*next, step("second"));
}

#[test]
fn a_step_that_failed_after_it_was_taken_out_of_the_plan_is_not_tried_again() {
    let mut world = World::new(&["first", "second"]);
    world.running();
    let mut plan = world.task.plan.clone();
    plan.steps.remove(0);
    plan.steps[0].needs.clear();
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) });
    world.take(world.step_failed("first", "exit code 1"));
    let State::Queued { job: JobKind::Step { step: next, .. } } = &world.task.state else { panic!() };
    assert_eq!(*next, step("second"));
}

/// A run of the whole agent of a step.
fn agent_run(world: &World, round: u32) -> EffectCall {
    let values = format!(r#"{{"agent":["bot"],"round":{round}}}"#);
    let id = world.task.plan.steps[0].id.clone();
    EffectCall { tool: EffectCall::agent_of(&id), step: id, arguments: CallArguments::Values(values), ..call() }
}

#[test]
fn an_agent_that_acts_outside_and_was_cut_off_waits_for_a_person_and_so_does_its_next_run() {
    let mut world = World::new(&["announce"]);
    world.task.plan.steps[0].effect = EffectClass::Irreversible;
    (world.task.base, world.task.tree) = (Some(digest("base")), Some(digest("tree")));
    let run = agent_run(&world, 1);
    world.running();
    claim(&mut world, run.clone());
    assert_eq!(world.ledger[&run.key(&world.task.id)].status.name(), "claimed", "no gate: nobody sees into it");
    world.take(EventKind::LeaseExpired { epoch: world.task.epoch });
    assert_eq!(world.state(), "waiting for a person");

    // A person takes over and hands back; the work is judged, and sent back to the agent.
    world.take(EventKind::TakeoverRequested { by: "ada".into(), folder: "/tmp/x".into() });
    let (step, conversation) = (step("announce"), Default::default());
    world.task.state = State::Queued { job: JobKind::Step { step, conversation } };
    world.running();
    let request = Box::new(world.request(agent_run(&world, 2)));
    assert!(world.refused(EventKind::EffectClaimed { request }).contains("earlier run"));
    world.take(world.step_failed("announce", "refused"));
    assert_eq!(world.state(), "waiting for a person", "the question is asked again");
    let key = run.key(&world.task.id);
    world.take(EventKind::EffectJudged { by: "ada".into(), key, done: false, reason: "no mail".into() });
    world.running();
    let next = agent_run(&world, 2);
    claim(&mut world, next.clone());
    assert_eq!(world.ledger[&next.key(&world.task.id)].status.name(), "claimed");
}
