//! Steps that act outside: claimed first, settled always, and never run where the ledger says no.

use std::time::Duration;

use checkrein_shared::coordinator::{ClaimAnswer, Directive, ProbeAnswer, Settled};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{AttemptOutcome, EffectClass, EffectResult, Job, Step, Trigger};
use checkrein_shared::time::Span;

use crate::support::{Bell, Bench, WorkerOptions, run, task_of, text_of};
use crate::tests;

tests![
    an_effect_is_claimed_with_its_call_and_settled_as_soon_as_it_is_over,
    a_step_that_says_that_it_failed_is_settled_as_failed,
    a_step_that_is_cut_off_is_unknown_and_not_failed,
    a_command_that_cannot_start_never_started,
    what_is_done_already_completes_with_what_it_left_and_does_not_run,
    what_nobody_knows_about_does_not_run,
    a_gated_call_shows_its_dry_run_and_parks_before_it_starts,
    a_dry_run_that_fails_asks_nobody,
    a_probe_that_says_done_completes_the_step,
    a_probe_that_says_not_done_too_early_frees_the_slot,
    a_probe_that_says_not_done_in_time_lets_the_step_run_once,
    a_probe_that_cannot_tell_says_so,
    a_step_that_only_the_policy_lists_is_asked_about_and_may_be_free,
    a_pause_waits_for_an_effect_that_is_under_way,
    what_came_of_an_effect_is_said_until_somebody_listens,
];

fn acting(bell: &Bell, ring: &str) -> Step {
    let line = format!("echo x > left.txt; {}", bell.ring(ring));
    let mut step = run("deploy", &[], &["bash", "-c", &line]);
    step.effect = EffectClass::Effectful;
    step
}

/// A project and a job for this one step, with what the ledger answers first.
async fn bench_of(step: Step, answers: Vec<ClaimAnswer>) -> (Bench, Job) {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let spec = task_of(text_of(&bench.project), None, &[], vec![step]);
    let job = bench.task(&spec).await;
    bench.judge.state().claim_answers.extend(answers);
    (bench, job)
}

fn key() -> Digest {
    Digest::of("key")
}

fn settled(bench: &Bench) -> Vec<Settled> {
    bench.judge.state().settlements.iter().map(|settlement| settlement.outcome.clone()).collect()
}

async fn an_effect_is_claimed_with_its_call_and_settled_as_soon_as_it_is_over() {
    let bell = Bell::new(|_| 0);
    let (bench, job) = bench_of(acting(&bell, "deploy $CHECKREIN_IDEMPOTENCY_KEY"), Vec::new()).await;
    let worker = bench.worker(WorkerOptions::default());
    let link = bench.gate(&job).await;
    worker.stop().await;
    let claims = bench.judge.state().claims.clone();
    assert_eq!(claims.len(), 1);
    let call = &claims[0].call;
    assert_eq!((call.tool.as_str(), call.cwd.as_str(), claims[0].epoch), ("step:deploy", ".", 1));
    assert_eq!((call.environment["HOME"], call.environment["PATH"].is_some()), (None, true));
    let key = call.key(&job.task_id);
    assert_eq!(bell.rings(), [format!("deploy {}", key.to_hex())]);
    let settled = settled(&bench);
    let [Settled::Done(first), Settled::Done(second)] = settled.as_slice() else { panic!("{settled:?}") };
    assert_eq!((first.tree, second.tree), (None, Some(link.checkpoint.workspace.tree)));
    assert_eq!((second.from, second.output.is_some()), (Some(link.checkpoint.workspace.base), true));
}

async fn a_step_that_says_that_it_failed_is_settled_as_failed() {
    let bell = Bell::new(|_| 3);
    let (bench, job) = bench_of(acting(&bell, "deploy"), Vec::new()).await;
    let worker = bench.worker(WorkerOptions::default());
    assert!(matches!(bench.outcome(&job).await, AttemptOutcome::StepFailed { .. }));
    worker.stop().await;
    assert_eq!(settled(&bench), [Settled::Failed { why: "exit code 3".into() }]);
}

async fn a_step_that_is_cut_off_is_unknown_and_not_failed() {
    for (line, limit, why) in [("sleep 60", 300, "timed out"), ("kill -9 $$", 60_000, "signal 9")] {
        let mut step = run("deploy", &[], &["bash", "-c", line]);
        step.effect = EffectClass::Effectful;
        step.handling.timeout = Some(Span::from_millis(limit));
        let (bench, job) = bench_of(step, Vec::new()).await;
        let worker = bench.worker(WorkerOptions::default());
        assert!(matches!(bench.outcome(&job).await, AttemptOutcome::StepFailed { .. }));
        worker.stop().await;
        let settled = settled(&bench);
        assert!(matches!(&settled[..], [Settled::Unknown { why: told }] if told.contains(why)), "{settled:?}");
    }
}

async fn a_command_that_cannot_start_never_started() {
    let mut step = run("deploy", &[], &["./no-such-program"]);
    step.effect = EffectClass::Irreversible;
    let (bench, job) = bench_of(step, Vec::new()).await;
    let worker = bench.worker(WorkerOptions::default());
    assert!(matches!(bench.outcome(&job).await, AttemptOutcome::StepFailed { .. }));
    worker.stop().await;
    assert!(matches!(&settled(&bench)[..], [Settled::NotStarted { .. }]), "{:?}", settled(&bench));
}

async fn what_is_done_already_completes_with_what_it_left_and_does_not_run() {
    let bell = Bell::new(|_| 0);
    let (bench, job) = bench_of(acting(&bell, "deploy"), Vec::new()).await;
    let worker = bench.worker(WorkerOptions::default());
    let first = bench.gate(&job).await;
    let Some(Settled::Done(result)) = settled(&bench).pop() else { panic!() };
    // The same job again, as after a crash between the settlement and the checkpoint.
    let mut again = job.clone();
    (again.epoch, again.job_id) = (2, job.task_id.job(2));
    again.head = bench.judge.state().jobs[&job.task_id].head.clone();
    (again.base, again.tree) = (Some(first.checkpoint.workspace.base), Some(first.checkpoint.workspace.base));
    let how = "an earlier attempt did it".to_owned();
    bench.judge.state().claim_answers.push_back(ClaimAnswer::Done { key: key(), result: Some(result), how });
    let link = bench.gate(&again).await;
    worker.stop().await;
    assert_eq!(bell.rings(), ["deploy"], "it ran once");
    assert_eq!(link.checkpoint.workspace.tree, first.checkpoint.workspace.tree, "its files are there");
    assert_eq!(link.completes.as_deref(), Some("deploy"));
    assert!(link.checkpoint.summary.completed[0].text.contains("was not run again"));
    assert!(link.checkpoint.open_issues.is_empty(), "{:?}", link.checkpoint.open_issues);

    let bell = Bell::new(|_| 0);
    let done = ClaimAnswer::Done { key: key(), result: None, how: "ada says so".into() };
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![done]).await;
    let worker = bench.worker(WorkerOptions::default());
    let link = bench.gate(&job).await;
    worker.stop().await;
    assert!(bell.rings().is_empty());
    assert!(link.checkpoint.open_issues[0].text.contains("is not known"), "what it left is told to be missing");
}

async fn what_nobody_knows_about_does_not_run() {
    let bell = Bell::new(|_| 0);
    let unknown = ClaimAnswer::Unknown { key: key(), why: "its worker was lost".into() };
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![unknown]).await;
    let worker = bench.worker(WorkerOptions::default());
    let AttemptOutcome::StepFailed { error, .. } = bench.outcome(&job).await else { panic!() };
    worker.stop().await;
    assert!(error.text.contains("nobody knows whether it took effect: its worker was lost"), "{}", error.text);
    assert!(bell.rings().is_empty() && settled(&bench).is_empty());
}

fn gated(bell: &Bell) -> ClaimAnswer {
    let dry_run = Some(vec!["bash".into(), "-c".into(), format!("echo would deploy; {}", bell.ring("dry"))]);
    ClaimAnswer::Gated { key: key(), dry_run, why: "a person has to agree".into() }
}

async fn a_gated_call_shows_its_dry_run_and_parks_before_it_starts() {
    let bell = Bell::new(|_| 0);
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![gated(&bell)]).await;
    let worker = bench.worker(WorkerOptions::default());
    let link = bench.gate(&job).await;
    worker.stop().await;
    assert_eq!(bell.rings(), ["dry"]);
    let checkpoint = &link.checkpoint;
    assert_eq!((checkpoint.trigger, link.completes.as_deref()), (Trigger::ToolBeforeHighRisk, None));
    assert_eq!(checkpoint.workspace.base, checkpoint.workspace.tree, "nothing of the step has run");
    assert_eq!(checkpoint.plan.current_step_id.as_ref().unwrap().as_str(), "deploy");
    let index = checkpoint.evidence.index;
    assert_eq!(bench.text(index, "log:dry-run-deploy-e1").await, "would deploy\n");
    let claimed = bench.judge.state().claims[0].call.clone();
    let shown = checkrein_shared::records::EffectCall::shown_as(&claimed.step, claimed.hash());
    assert_eq!(checkpoint.summary.completed[0].refs[0], shown);
    let call: serde_json::Value = serde_json::from_str(&bench.text(index, shown.as_str()).await).unwrap();
    assert_eq!(call["call_hash"], claimed.hash().to_string());
    assert_eq!(call["call"]["arguments"]["command"][0], "bash");
    assert!(settled(&bench).is_empty());
}

async fn a_dry_run_that_fails_asks_nobody() {
    let bell = Bell::new(|_| 7);
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![gated(&bell)]).await;
    let worker = bench.worker(WorkerOptions::default());
    let AttemptOutcome::StepFailed { error, .. } = bench.outcome(&job).await else { panic!() };
    worker.stop().await;
    assert!(error.text.contains("its dry run failed: exit code 7\nwould deploy"), "{}", error.text);
    assert_eq!((bell.rings(), bench.counts(&job.task_id)), (vec!["dry".to_owned()], (0, 1)));
}

fn probe(bell: &Bell, counts_in: u64) -> ClaimAnswer {
    let argv = vec!["bash".into(), "-c".into(), bell.ring("probe $CHECKREIN_IDEMPOTENCY_KEY")];
    ClaimAnswer::Probe { key: key(), argv, not_done_counts_in: Span::from_millis(counts_in) }
}

fn ring_of_probe() -> String {
    format!("probe {}", key().to_hex())
}

async fn a_probe_that_says_done_completes_the_step() {
    let bell = Bell::new(|_| 0);
    let done = ClaimAnswer::Done { key: key(), result: None, how: "its probe says so".into() };
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![probe(&bell, 60_000), done]).await;
    let worker = bench.worker(WorkerOptions::default());
    bench.gate(&job).await;
    worker.stop().await;
    assert_eq!(bell.rings(), [ring_of_probe()]);
    assert_eq!(settled(&bench), [Settled::Probed(ProbeAnswer::Done)]);
}

async fn a_probe_that_says_not_done_too_early_frees_the_slot() {
    let bell = Bell::new(|_| 1);
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![probe(&bell, 60_000)]).await;
    let worker = bench.worker(WorkerOptions::default());
    let AttemptOutcome::Released { after, reason } = bench.outcome(&job).await else { panic!() };
    worker.stop().await;
    assert!(after > Span::from_secs(50) && after <= Span::from_secs(60), "{after}");
    assert!(reason.contains("did not happen"), "{reason}");
    assert!(settled(&bench).is_empty(), "nothing is said before it counts");
}

async fn a_probe_that_says_not_done_in_time_lets_the_step_run_once() {
    let bell = Bell::new(|ring| i32::from(ring.starts_with("probe")));
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![probe(&bell, 400)]).await;
    let worker = bench.worker(WorkerOptions::default());
    bench.gate(&job).await;
    worker.stop().await;
    let rings = bell.rings();
    assert_eq!(rings.iter().filter(|ring| *ring == "deploy").count(), 1, "{rings:?}");
    assert!(rings.len() >= 3, "asked before and after the moment from which the answer counts: {rings:?}");
    assert_eq!(settled(&bench)[0], Settled::Probed(ProbeAnswer::NotDone));
}

async fn a_probe_that_cannot_tell_says_so() {
    let bell = Bell::new(|_| 2);
    let unknown = ClaimAnswer::Unknown { key: key(), why: "its probe could not tell".into() };
    let (bench, job) = bench_of(acting(&bell, "deploy"), vec![probe(&bell, 0), unknown]).await;
    let worker = bench.worker(WorkerOptions::default());
    assert!(matches!(bench.outcome(&job).await, AttemptOutcome::StepFailed { .. }));
    worker.stop().await;
    assert_eq!((bell.rings(), settled(&bench)), (vec![ring_of_probe()], vec![Settled::Probed(ProbeAnswer::Unclear)]));
}

async fn a_step_that_only_the_policy_lists_is_asked_about_and_may_be_free() {
    let bell = Bell::new(|_| 0);
    let mut step = acting(&bell, "deploy ${CHECKREIN_IDEMPOTENCY_KEY-none}");
    step.effect = EffectClass::ReadOnly;
    let mut bench = Bench::new(&[("a.txt", "a\n")]).await;
    let text = "version: 1\ntools: [{match: 'step:dep*', effect: effectful, mode: allow, when: 'false'}]\n";
    bench.policy = checkrein_shared::policy::load_text("p.yaml", text.as_bytes()).unwrap();
    let spec = task_of(text_of(&bench.project), None, &[], vec![step]);
    let job = bench.task(&spec).await;
    bench.judge.state().claim_answers.push_back(ClaimAnswer::Free);
    let worker = bench.worker(WorkerOptions::default());
    bench.gate(&job).await;
    worker.stop().await;
    assert_eq!((bell.rings(), bench.judge.state().claims.len()), (vec!["deploy none".to_owned()], 1));
    assert!(settled(&bench).is_empty());
}

async fn a_pause_waits_for_an_effect_that_is_under_way() {
    let bell = Bell::new(|_| {
        std::thread::sleep(Duration::from_millis(1_200));
        0
    });
    let (bench, job) = bench_of(acting(&bell, "deploy"), Vec::new()).await;
    bench.judge.state().directive_after_claim = Some(Directive::Park);
    let worker = bench.worker(WorkerOptions { park_grace: Duration::ZERO, ..Default::default() });
    bench.gate(&job).await;
    worker.stop().await;
    assert!(matches!(settled(&bench).last(), Some(Settled::Done(EffectResult { tree: Some(_), .. }))));
}

async fn what_came_of_an_effect_is_said_until_somebody_listens() {
    let bell = Bell::new(|_| 0);
    let (bench, job) = bench_of(acting(&bell, "deploy"), Vec::new()).await;
    (bench.judge.state().deaf_to_claims, bench.judge.state().deaf_to_settlements) = (2, 2);
    let worker = bench.worker(WorkerOptions::default());
    bench.gate(&job).await;
    worker.stop().await;
    assert_eq!((bell.rings().len(), settled(&bench).len()), (1, 2));
}
