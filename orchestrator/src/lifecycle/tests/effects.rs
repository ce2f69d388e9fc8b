//! Effects of steps, from the claim to what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest, ProbeAnswer, Settled, Settlement};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{
    CallArguments, EffectCall, EffectClass, EffectEntry, EffectResult, EffectStatus, JobKind, StepAction,
};
use checkrein_shared::time::Span;

use super::fixture::{POLICY, World, digest, step, worker};
use crate::lifecycle::{About, EventKind, Reason, State, claim_answer};

/// A task whose only step runs a command with this effect.
pub(super) fn acting(class: EffectClass) -> World {
    acting_under(class, POLICY)
}

pub(super) fn acting_under(class: EffectClass, policy: &str) -> World {
    let mut world = World::with_policy(&["deploy"], policy);
    let planned = &mut world.task.plan.steps[0];
    planned.action = StepAction::Run(vec!["make".into(), "deploy".into()]);
    planned.effect = class;
    (world.task.base, world.task.tree) = (Some(digest("base")), Some(digest("tree")));
    world
}

pub(super) fn call() -> EffectCall {
    EffectCall {
        step: step("deploy"),
        tool: "step:deploy".into(),
        arguments: CallArguments::Command(vec!["make".into(), "deploy".into()]),
        ordinal: 0,
        cwd: ".".into(),
        environment: BTreeMap::from([("PATH".into(), Some(digest("/bin")))]),
    }
}

impl World {
    pub(super) fn request(&self, call: EffectCall) -> ClaimRequest {
        ClaimRequest {
            task_id: self.task.id.clone(),
            epoch: self.task.epoch,
            worker: worker(),
            run: Digest::of(format!("run {}", self.task.epoch)),
            call,
            time_limit: Span::from_secs(60),
        }
    }

    pub(super) fn claim(&self) -> EventKind {
        EventKind::EffectClaimed { request: Box::new(self.request(call())) }
    }

    /// What the worker is told after its claim was decided about.
    pub(super) fn answer(&self) -> ClaimAnswer {
        claim_answer(&self.task, self.effect(), &self.request(call()), self.now)
    }

    fn key(&self) -> Digest {
        call().key(&self.task.id)
    }

    pub(super) fn effect(&self) -> &EffectEntry {
        &self.ledger[&self.key()]
    }

    pub(super) fn status(&self) -> &'static str {
        self.effect().status.name()
    }

    fn settled_by(&self, epoch: u64, outcome: Settled) -> EventKind {
        let (task_id, key) = (self.task.id.clone(), self.key());
        let probed = matches!(outcome, Settled::Probed(_));
        let settlement = Box::new(Settlement { task_id, key, epoch, worker: worker(), outcome });
        if probed { EventKind::EffectProbed { settlement } } else { EventKind::EffectSettled { settlement } }
    }

    pub(super) fn settled(&self, outcome: Settled) -> EventKind {
        self.settled_by(self.task.epoch, outcome)
    }

    pub(super) fn judged_so(&self, done: bool) -> EventKind {
        EventKind::EffectJudged { by: "ada".into(), key: self.key(), done, reason: "I looked".into() }
    }

    fn lost(&mut self) -> &mut Self {
        self.take(EventKind::LeaseExpired { epoch: self.task.epoch })
    }

    /// Runs the step up to its claim, and loses the worker.
    fn claimed_and_lost(&mut self) -> &mut Self {
        self.running();
        self.take(self.claim());
        self.lost()
    }
}

/// An effect of an earlier attempt whose outcome is unknown, for the table.
pub(super) fn remembered(world: &mut World) {
    let mut acting = acting(EffectClass::Effectful);
    acting.claimed_and_lost();
    world.ledger = acting.ledger;
}

/// A claim of a tool by whoever holds the task now.
pub(super) fn claimed(world: &World) -> EventKind {
    let values = CallArguments::Values(r#"{"to":"team"}"#.to_owned());
    let of = EffectCall { step: step("work"), tool: "mcp:mail/send".into(), arguments: values, ..call() };
    EventKind::EffectClaimed { request: Box::new(world.request(of)) }
}

pub(super) fn settled(world: &World) -> EventKind {
    world.settled_by(1, done())
}

pub(super) fn probed(world: &World) -> EventKind {
    world.settled_by(1, Settled::Probed(ProbeAnswer::Done))
}

pub(super) fn judged() -> EventKind {
    let key = call().key(&World::new(&["work"]).task.id);
    EventKind::EffectJudged { by: "ada".into(), key, done: true, reason: "I looked".into() }
}

pub(super) fn done() -> Settled {
    Settled::Done(EffectResult { exit_code: 0, output: None, from: Some(digest("tree")), tree: None })
}

pub(super) fn failed() -> Settled {
    Settled::Failed { why: "exit code 3".into() }
}

fn unknown() -> Settled {
    Settled::Unknown { why: "timed out".into() }
}

#[test]
fn an_effect_is_claimed_before_it_starts_and_done_once() {
    let mut world = acting(EffectClass::Effectful);
    world.running();
    world.take(world.claim());
    let granted = ClaimAnswer::Granted { key: world.key(), time_limit: Span::from_secs(60) };
    assert_eq!((world.status(), world.answer()), ("claimed", granted));
    world.take(world.settled(done()));
    assert_eq!((world.status(), world.task.effects.len()), ("done", 0));
    assert_eq!(world.ignored(world.settled(done())), Reason::Duplicate);
    assert_eq!(world.ignored(world.claim()), Reason::EffectDone);
    assert!(matches!(world.answer(), ClaimAnswer::Done { result: Some(_), .. }));
    // What it left is known a little later.
    let more = EffectResult { exit_code: 0, output: None, from: Some(digest("tree")), tree: Some(digest("tree-2")) };
    world.take(world.settled(Settled::Done(more.clone())));
    assert!(matches!(&world.effect().status, EffectStatus::Done { result: Some(known), .. } if *known == more));
}

#[test]
fn what_does_nothing_outside_leaves_no_trace_in_the_ledger() {
    let mut world = acting(EffectClass::ReadOnly);
    world.running();
    assert_eq!(world.ignored(world.claim()), Reason::NoEffect);
}

#[test]
fn only_the_running_attempt_may_claim_and_only_what_the_plan_says() {
    let mut world = acting(EffectClass::Effectful);
    assert!(world.refused(world.claim()).contains("start nothing"), "it is only queued");
    world.running();
    let mut late = world.request(call());
    late.epoch -= 1;
    let mut other = world.request(call());
    other.worker = "worker-2".parse().unwrap();
    let mut another = world.request(call());
    another.call.arguments = CallArguments::Command(vec!["rm".into()]);
    for request in [late, other, another] {
        assert!(world.refused(EventKind::EffectClaimed { request: Box::new(request) }).contains("start nothing"));
    }
    world.take(EventKind::CancelRequested { by: "ada".into() });
    assert!(world.refused(world.claim()).contains("start nothing"));
}

#[test]
fn a_lost_effect_with_neither_key_nor_probe_waits_for_a_person() {
    let mut world = acting(EffectClass::Effectful);
    world.claimed_and_lost();
    let State::Waiting { item } = world.task.state.clone() else { panic!("{:?}", world.task.state) };
    assert_eq!(item.about, About::Effect { step: step("deploy"), key: world.key() });
    let settle = format!("checkrein effects settle {} --done", world.key().short());
    assert!(item.reason.contains(&settle), "{}", item.reason);
    assert_eq!((world.status(), world.task.rulings.last().unwrap().rule.as_str()), ("unknown", "effect-unknown"));
    // It is a question about a fact, not about a consent.
    let approve = EventKind::Approved { by: "ada".into(), hash: item.hash, note: None };
    assert!(world.refused(approve).contains("effects settle"));
    let changes = EventKind::ChangesRequested { by: "ada".into(), hash: item.hash, text: "again".into() };
    assert!(world.refused(changes).contains("effects settle"));
}

#[test]
fn a_persons_word_lets_the_task_go_on() {
    let mut lost = acting(EffectClass::Effectful);
    lost.claimed_and_lost();
    let mut happened = lost.clone();
    happened.take(happened.judged_so(true));
    assert_eq!((happened.state(), happened.job()), ("queued", "step"));
    happened.running();
    assert_eq!(happened.ignored(happened.claim()), Reason::EffectDone);
    assert!(matches!(happened.answer(), ClaimAnswer::Done { result: None, .. }));
    assert!(happened.refused(happened.judged_so(false)).contains("never changes"));

    lost.take(lost.judged_so(false));
    assert_eq!(lost.ignored(lost.judged_so(false)), Reason::Duplicate);
    lost.running();
    lost.take(lost.claim());
    assert_eq!((lost.status(), lost.effect().claims), ("claimed", 2));
    assert!(lost.refused(lost.judged_so(true)).contains("a worker is at it"));
}

#[test]
fn a_question_that_is_answered_while_the_task_is_paused_is_not_asked_again() {
    let mut world = acting(EffectClass::Effectful);
    world.claimed_and_lost().take(EventKind::PauseRequested { by: "ada".into() });
    world.take(world.judged_so(false));
    assert_eq!(world.state(), "paused");
    world.take(EventKind::ResumeRequested { by: "ada".into() });
    assert_eq!((world.state(), world.job()), ("queued", "step"));
}

#[test]
fn a_late_done_is_taken_in_every_state_and_from_every_epoch() {
    let mut world = acting(EffectClass::Effectful);
    world.claimed_and_lost();
    let epoch = world.task.epoch;
    let item = world.task.items()[0].clone();
    let mut waiting = world.clone();
    waiting.take(waiting.settled_by(epoch, done()));
    assert_eq!((waiting.status(), waiting.state()), ("done", "queued"));
    let mut blocked = world.clone();
    blocked.take(EventKind::Rejected { by: "ada".into(), hash: item.hash, reason: "no".into() });
    blocked.take(blocked.settled_by(epoch, done()));
    assert_eq!((blocked.status(), blocked.state()), ("done", "blocked"));
    let mut again = world.clone();
    again.take(again.judged_so(false)).running();
    again.take(again.claim());
    again.take(again.settled_by(epoch, done()));
    assert_eq!(again.status(), "done", "whatever a person said, and although it is claimed again");
    assert_eq!(again.ignored(again.settled(failed())), Reason::EffectDone, "done never goes back");
    let mut ended = world;
    ended.take(EventKind::CancelRequested { by: "ada".into() });
    ended.take(ended.settled_by(epoch, done()));
    assert_eq!((ended.status(), ended.state()), ("done", "done"));
}

#[test]
fn a_key_that_the_other_side_honours_lets_it_run_again() {
    let mut world = acting(EffectClass::Effectful);
    world.task.plan.steps[0].handling.idempotent = true;
    world.claimed_and_lost();
    assert_eq!((world.state(), world.job(), world.status()), ("queued", "step", "unknown"));
    world.running();
    world.take(world.claim());
    assert!(matches!(world.answer(), ClaimAnswer::Granted { key, .. } if key == world.key()));
}

fn at_the_probe(world: &mut World) -> &mut World {
    world.task.plan.steps[0].handling.probe = Some(vec!["./is-deployed".into()]);
    world.claimed_and_lost();
    assert_eq!((world.state(), world.job()), ("queued", "step"), "nobody is asked while a probe can tell");
    world.running();
    // The remedy is known already, so that nothing changes.
    assert_eq!(world.ignored(world.claim()), Reason::EffectUnknown);
    assert!(matches!(world.answer(), ClaimAnswer::Probe { .. }), "{:?}", world.answer());
    world
}

#[test]
fn a_probes_done_counts_at_once() {
    let mut world = acting(EffectClass::Effectful);
    at_the_probe(&mut world);
    world.take(probed_event(&world, ProbeAnswer::Done));
    assert_eq!(world.status(), "done");
}

fn probed_event(world: &World, answer: ProbeAnswer) -> EventKind {
    world.settled(Settled::Probed(answer))
}

#[test]
fn a_probes_not_done_counts_only_when_the_effect_can_no_longer_be_under_way() {
    let mut world = acting(EffectClass::Effectful);
    at_the_probe(&mut world);
    let ClaimAnswer::Probe { not_done_counts_in, .. } = world.answer() else { panic!() };
    assert!(
        not_done_counts_in > Span::from_secs(85) && not_done_counts_in <= Span::from_secs(90),
        "30 s and the limit"
    );
    assert_eq!(world.ignored(probed_event(&world, ProbeAnswer::NotDone)), Reason::TooEarly);
    world.now = world.now.plus(Duration::from_secs(90));
    world.take(probed_event(&world, ProbeAnswer::NotDone));
    assert_eq!(world.status(), "failed");
    world.take(world.claim());
    assert!(matches!(world.answer(), ClaimAnswer::Granted { .. }));
}

#[test]
fn a_probes_not_done_of_an_older_attempt_counts_for_nothing() {
    let mut world = acting(EffectClass::Effectful);
    at_the_probe(&mut world);
    let old = world.task.epoch;
    world.lost().running();
    world.now = world.now.plus(Duration::from_secs(90));
    for answer in [ProbeAnswer::NotDone, ProbeAnswer::Unclear] {
        assert_eq!(world.ignored(world.settled_by(old, Settled::Probed(answer))), Reason::StaleEpoch);
    }
    world.take(world.settled_by(old, Settled::Probed(ProbeAnswer::Done)));
    assert_eq!(world.status(), "done", "that it happened is true whenever it comes");
}

#[test]
fn a_plan_that_says_later_how_to_find_out_lets_a_waiting_task_go_on() {
    let mut world = acting(EffectClass::Effectful);
    world.claimed_and_lost();
    let mut plan = world.task.plan.clone();
    plan.version += 1;
    plan.steps[0].handling.probe = Some(vec!["./is-deployed".into()]);
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) });
    assert_eq!((world.state(), world.job()), ("queued", "step"));
    world.running();
    world.take(world.claim());
    assert!(matches!(world.answer(), ClaimAnswer::Probe { .. }), "{:?}", world.answer());
}

#[test]
fn evidence_is_gathered_without_acting_outside() {
    let mut world = acting(EffectClass::ReadOnly);
    world.running();
    let State::Running { job, .. } = &mut world.task.state else { panic!() };
    *job = JobKind::Evidence { step: step("deploy") };
    assert_eq!(world.ignored(world.claim()), Reason::NoEffect);
    world.task.plan.steps[0].effect = EffectClass::Effectful;
    assert!(world.refused(world.claim()).contains("without acting outside"));
}

#[test]
fn a_probe_that_cannot_tell_leaves_it_to_a_person() {
    let mut world = acting(EffectClass::Effectful);
    at_the_probe(&mut world);
    world.take(probed_event(&world, ProbeAnswer::Unclear));
    assert!(matches!(world.answer(), ClaimAnswer::Unknown { .. }));
    assert_eq!(world.ignored(world.claim()), Reason::EffectUnknown);
    world.take(world.step_failed("deploy", "nobody knows"));
    let State::Waiting { item } = &world.task.state else { panic!("{:?}", world.task.state) };
    assert!(item.reason.contains("its probe could not tell"), "{}", item.reason);
}

#[test]
fn a_timed_out_effect_is_unknown_and_a_failed_one_is_tried_again() {
    let mut world = acting(EffectClass::Effectful);
    world.running();
    world.take(world.claim());
    let mut late = world.clone();
    late.take(late.settled(unknown()));
    late.take(late.step_failed("deploy", "timed out"));
    assert_eq!((late.state(), late.status()), ("waiting for a person", "unknown"));
    world.take(world.settled(failed()));
    world.take(world.step_failed("deploy", "exit code 3"));
    assert_eq!((world.state(), world.job(), world.status()), ("queued", "step", "failed"));
}

#[test]
fn an_attempt_that_does_not_say_what_came_of_its_claim_leaves_it_unknown() {
    let mut world = acting(EffectClass::Effectful);
    world.running();
    world.take(world.claim());
    let mut failed = world.clone();
    failed.take(failed.step_failed("deploy", "boom"));
    assert_eq!((failed.state(), failed.status()), ("waiting for a person", "unknown"));
    let released =
        checkrein_shared::records::AttemptOutcome::Released { after: Span::from_secs(1), reason: "?".into() };
    world.take(world.ended(released));
    assert_eq!(world.status(), "unknown");
    world.running();
    assert_eq!(world.ignored(world.claim()), Reason::EffectUnknown);
}

#[test]
fn no_rule_repeats_an_effect_on_a_guess() {
    for (action, state) in
        [("retry", "waiting for a person"), ("continue", "waiting for a person"), ("block", "blocked")]
    {
        let rule = format!("- {{id: bold, on: [effect_unknown], when: \"true\", action: {action}}}\nescalation:");
        let mut world = acting_under(EffectClass::Effectful, &POLICY.replace("escalation:", &rule));
        world.claimed_and_lost();
        assert_eq!((world.state(), world.task.rulings.last().unwrap().rule.as_str()), (state, "bold"), "{action}");
    }
}

#[test]
fn a_rejected_question_stays_unknown_when_the_task_goes_on() {
    let mut world = acting(EffectClass::Effectful);
    world.claimed_and_lost();
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Rejected { by: "ada".into(), hash, reason: "not now".into() });
    world.take(EventKind::ResumeRequested { by: "ada".into() }).running();
    assert_eq!(world.ignored(world.claim()), Reason::EffectUnknown);
    world.take(world.step_failed("deploy", "nobody knows"));
    assert_eq!(world.state(), "waiting for a person");
}

#[test]
fn the_same_run_of_a_job_may_ask_again_and_another_one_may_not_start() {
    let mut world = acting(EffectClass::Effectful);
    world.running();
    world.take(world.claim());
    world.take(world.claim());
    assert_eq!((world.status(), world.effect().claims), ("claimed", 2), "its answer was lost, or came too late");
    let mut other = world.request(call());
    other.run = digest("a second worker process with the same name");
    world.take(EventKind::EffectClaimed { request: Box::new(other) });
    assert_eq!(world.status(), "unknown");
}

#[test]
fn a_policy_may_deny_what_a_step_does_and_raise_it() {
    let tools = "tools:\n- {match: \"step:deploy*\", effect: irreversible, mode: deny}\nescalation:";
    let mut world = acting_under(EffectClass::ReadOnly, &POLICY.replace("escalation:", tools));
    world.running();
    assert!(world.refused(world.claim()).contains("the policy denies `step:deploy` (test.yaml:"));
    let tools = tools.replace("deny", "allow, timeout: 5s, probe: [./look], compensate: [./undo]");
    let mut world = acting_under(EffectClass::ReadOnly, &POLICY.replace("escalation:", &tools));
    world.running();
    world.take(world.claim());
    assert_eq!((world.effect().class, world.status()), (EffectClass::Irreversible, "proposed"));
    assert_eq!(world.effect().time_limit, Span::from_secs(5));
    assert_eq!(world.effect().handling.compensate.as_deref(), Some(&["./undo".to_owned()][..]));
}

#[test]
fn what_became_of_an_amended_effect_is_neither_asked_nor_forgotten() {
    let mut world = acting(EffectClass::Effectful);
    world.claimed_and_lost();
    let mut plan = world.task.plan.clone();
    plan.steps[0].action = StepAction::Run(vec!["make".into(), "other".into()]);
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) }).running();
    let other = EffectCall { arguments: CallArguments::Command(vec!["make".into(), "other".into()]), ..call() };
    let key = other.key(&world.task.id);
    let request = Box::new(world.request(other));
    world.take(EventKind::EffectClaimed { request });
    assert_eq!((world.ledger[&key].status.name(), world.status()), ("claimed", "unknown"));
    assert!(world.task.effects.iter().any(|open| open.superseded && open.key == world.key()));
    // Back to the first command: the question is the same as before.
    let settlement = Settlement { task_id: world.task.id.clone(), key, epoch: 0, worker: worker(), outcome: done() };
    world.take(EventKind::EffectSettled { settlement: Box::new(settlement) });
    let mut back = world.task.plan.clone();
    back.steps[0].action = StepAction::Run(vec!["make".into(), "deploy".into()]);
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(back) });
    world.take(world.step_failed("deploy", "cut off"));
    world.running();
    world.take(world.claim());
    world.take(world.step_failed("deploy", "nobody knows"));
    let State::Waiting { item } = &world.task.state else { panic!("{:?}", world.task.state) };
    assert_eq!(item.about, About::Effect { step: step("deploy"), key: world.key() });
}

#[test]
fn another_probe_is_asked_where_the_first_could_not_tell() {
    let mut world = acting(EffectClass::Effectful);
    world.task.plan.steps[0].handling.probe = Some(vec!["./isdeployed".into()]);
    world.claimed_and_lost().running();
    assert_eq!(world.ignored(world.claim()), Reason::EffectUnknown);
    world.take(world.settled(Settled::Probed(ProbeAnswer::Unclear)));
    world.take(world.step_failed("deploy", "its probe can't tell"));
    assert_eq!(world.state(), "waiting for a person");
    let mut plan = world.task.plan.clone();
    plan.steps[0].handling.probe = Some(vec!["./is-deployed".into()]);
    world.take(EventKind::Amended { by: "ada".into(), spec: None, plan: Some(plan) }).running();
    world.take(world.claim());
    assert!(matches!(world.answer(), ClaimAnswer::Probe { argv, .. } if argv == ["./is-deployed"]));
}

#[test]
fn resuming_after_a_question_about_an_effect_does_nothing_before_it_again() {
    let mut world = World::new(&["write", "deploy"]);
    let planned = &mut world.task.plan.steps[1];
    (planned.action, planned.effect) = (StepAction::Run(vec!["make".into(), "deploy".into()]), EffectClass::Effectful);
    world.running();
    world.take(world.step_done("write"));
    world.claimed_and_lost();
    let hash = world.task.items()[0].hash;
    world.take(EventKind::Rejected { by: "ada".into(), hash, reason: "not today".into() });
    assert_eq!(world.state(), "blocked");
    world.take(world.judged_so(true));
    world.take(EventKind::ResumeRequested { by: "ada".into() });
    let State::Queued { job: JobKind::Step { step: next, .. } } = &world.task.state else { panic!() };
    assert_eq!(*next, step("deploy"));
}
