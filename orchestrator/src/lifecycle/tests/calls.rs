//! Effects that somebody has to agree to first: gates before calls.

use checkrein_shared::coordinator::{ClaimAnswer, Settlement};
use checkrein_shared::records::{Basis, Claim, EffectCall, EffectClass, JobKind, Judgement, Trigger};

use super::effects::{acting_under, call, done, failed};
use super::fixture::{POLICY, World, digest, published, step, worker, written};
use crate::lifecycle::{CallGate, EventKind, Reason, State, claim_answer};

/// Leads an irreversible step to the review of its call.
fn at_the_gate(world: &mut World) -> &mut World {
    at_the_gate_of(world, &call())
}

/// Leads an irreversible step to the review of this call.
pub(super) fn at_the_gate_of<'a>(world: &'a mut World, call: &EffectCall) -> &'a mut World {
    world.running();
    let request = world.request(call.clone());
    world.take(EventKind::EffectClaimed { request: Box::new(request.clone()) });
    let entry = &world.ledger[&call.key(&world.task.id)];
    let answer = claim_answer(&world.task, entry, &request, world.now);
    assert!(matches!(answer, ClaimAnswer::Gated { .. }), "{answer:?}");
    let mut checkpoint = world.checkpoint(Trigger::ToolBeforeHighRisk, true, "base", "tree");
    checkpoint.plan.current_step_id = Some(call.step.clone());
    let refs = vec![EffectCall::shown_as(&call.step, call.hash()), "log:dry-run-deploy-e1".parse().unwrap()];
    let text = "it has not started".to_owned();
    checkpoint.summary.completed = vec![Claim { text, refs, basis: Basis::SelfReported }];
    world.take(written(checkpoint.seal().unwrap(), None))
}

fn approve_call(world: &mut World) {
    world.take(published(world.verdict(Judgement::Approved, Vec::new())));
    let item = world.task.items()[0].clone();
    assert!(
        item.reason.contains("\"make\" \"deploy\", which can't be undone; its dry run printed `log:dry-run-deploy-e1`")
    );
    world.take(EventKind::Approved { by: "ada".into(), hash: item.hash, note: None });
    assert_eq!((world.state(), world.job()), ("queued", "step"));
}

#[test]
fn an_irreversible_step_starts_only_after_somebody_agreed_to_exactly_this_call() {
    // The rules review asks for a round, and runs no verifier: a person is asked besides.
    let mut world = acting_under(EffectClass::Irreversible, &gated_policy());
    at_the_gate(&mut world);
    approve_call(&mut world);
    world.running();
    world.take(world.claim());
    let allowed = world.effect().allowed_by.clone().unwrap();
    assert_eq!((world.status(), allowed.approved_by), ("claimed", vec!["ada".to_owned()]));
    assert_eq!(allowed.checkpoint_hash, world.task.subject.as_ref().unwrap().checkpoint.hash);
    // Used once: after a failure that left it unknown and a person's word, the gate is passed again.
    world.take(world.settled(failed()));
    assert_eq!(world.status(), "unknown", "an exit code says little about what can't be undone");
    world.take(world.step_failed("deploy", "exit code 3"));
    world.take(world.judged_so(false)).running();
    world.take(world.claim());
    assert!(matches!(world.answer(), ClaimAnswer::Gated { .. }));
}

fn gated_policy() -> String {
    POLICY.replace("on: [changeset.before_apply], blocking: true", "on: [changeset.before_apply, tool.before_high_risk], blocking: true")
        .replace("verifiers:\n  unit: {run: [sh, test.sh], timeout: 1m, network: none, carry: [], from_base: [], covers: [\"**\"]}\n", "")
}

#[test]
fn a_gate_opens_only_for_the_call_that_its_checkpoint_shows() {
    let mut world = acting_under(EffectClass::Irreversible, &gated_policy());
    world.running();
    world.take(world.claim());
    // Asked again from another place after the checkpoint was drawn up.
    let mut request = world.request(call());
    request.call.cwd = "elsewhere".into();
    world.take(EventKind::EffectClaimed { request: Box::new(request) });
    let mut checkpoint = world.checkpoint(Trigger::ToolBeforeHighRisk, true, "base", "tree");
    let refs = vec![EffectCall::shown_as(&step("deploy"), call().hash())];
    checkpoint.summary.completed = vec![Claim { text: "it has not started".into(), refs, basis: Basis::SelfReported }];
    world.take(written(checkpoint.seal().unwrap(), None));
    world.take(published(world.verdict(Judgement::Approved, Vec::new())));
    while let Some(item) = world.task.items().first().map(|item| (*item).clone()) {
        world.take(EventKind::Approved { by: "ada".into(), hash: item.hash, note: None });
    }
    world.running();
    world.take(world.claim());
    assert_eq!((world.status(), world.task.effects[0].shown), ("proposed", None));
}

#[test]
fn another_environment_or_another_plan_closes_the_gate_again() {
    let mut world = acting_under(EffectClass::Irreversible, &gated_policy());
    at_the_gate(&mut world);
    approve_call(&mut world);
    let mut elsewhere = world.clone();
    elsewhere.running();
    let mut request = elsewhere.request(call());
    request.call.environment.insert("PATH".into(), Some(digest("/other")));
    elsewhere.take(EventKind::EffectClaimed { request: Box::new(request) });
    assert_eq!(elsewhere.status(), "proposed");
    assert!(matches!(elsewhere.task.effects[0].gate, Some(CallGate::Closed { .. })));

    let mut amended = world.clone();
    let spec = super::fixture::spec("another objective");
    amended.take(EventKind::Amended { by: "ada".into(), spec: Some(Box::new(spec)), plan: None }).running();
    amended.take(amended.claim());
    assert_eq!(amended.status(), "proposed");

    let mut drifted = world;
    drifted.running();
    drifted.take(drifted.drift("moved"));
    drifted.take(drifted.claim());
    assert_eq!(drifted.status(), "proposed", "what was agreed to stood on another target");
}

#[test]
fn a_rejected_call_never_starts_and_three_retries_at_a_gate_repeat_nothing_before_it() {
    let mut world = acting_under(EffectClass::Irreversible, &gated_policy());
    world.task.plan.steps.insert(0, {
        let mut notify = world.task.plan.steps[0].clone();
        (notify.id, notify.effect) = (step("notify"), EffectClass::Effectful);
        notify
    });
    let (first, conversation) = (step("notify"), Default::default());
    world.task.state = State::Queued { job: JobKind::Step { step: first, conversation } };
    let notify = EffectCall { step: step("notify"), tool: "step:notify".into(), ..call() };
    let key = notify.key(&world.task.id);
    for round in 0..3 {
        world.running();
        let event = EventKind::EffectClaimed { request: Box::new(world.request(notify.clone())) };
        if round == 0 {
            world.take(event);
            let settlement = Settlement {
                task_id: world.task.id.clone(),
                key,
                epoch: world.task.epoch,
                worker: worker(),
                outcome: done(),
            };
            world.take(EventKind::EffectSettled { settlement: Box::new(settlement) });
        } else {
            assert_eq!(world.ignored(event), Reason::EffectDone);
        }
        world.take(world.step_done("notify"));
        at_the_gate(&mut world).judged(Judgement::ChangesRequired);
        let hash = world.task.items()[0].hash;
        world.take(EventKind::ChangesRequested { by: "ada".into(), hash, text: "not yet".into() });
        if round < 2 {
            assert_eq!((world.state(), world.job()), ("queued", "step"));
        }
    }
    assert_eq!((world.ledger[&key].claims, world.effect().claims), (1, 0));
}
