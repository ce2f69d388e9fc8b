//! Jobs that are told to pause, to stop, to go away, or that lost their lease.

use std::time::{Duration, Instant};

use checkrein_shared::coordinator::Directive;
use checkrein_shared::records::{AttemptOutcome, Job, Trigger};

use crate::support::{Bench, WorkerOptions, is_running, sh, task_of, text_of};
use crate::tests;

tests![
    a_pause_lets_a_short_command_end_and_parks_behind_it,
    a_pause_kills_a_command_that_takes_too_long_and_keeps_its_work,
    a_stop_kills_at_once_and_reports_what_there_is,
    a_lost_lease_kills_and_says_nothing,
    a_worker_that_ends_gives_its_job_back_with_a_checkpoint,
    a_refused_checkpoint_is_the_jobs_last_word,
];

/// A plan of two steps, the first of which runs `script`.
async fn two_steps(bench: &Bench, script: &str) -> Job {
    let steps = vec![sh("one", &[], script), sh("two", &["one"], "true")];
    bench.task(&task_of(text_of(&bench.project), None, &[], steps)).await
}

async fn started(bench: &Bench, job: &Job) {
    bench.dispatch(job).await;
    let marker = format!("{:?}", job.plan.steps[0].action);
    let marker = marker.split("sleep ").nth(1).and_then(|rest| rest.split([';', '"', '\\']).next()).unwrap().to_owned();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_running(&format!("sleep\0{marker}")) {
        assert!(Instant::now() < deadline, "`sleep {marker}` never started");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn a_pause_lets_a_short_command_end_and_parks_behind_it() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let job = two_steps(&bench, "echo b > a.txt; sleep 1.0071").await;
    started(&bench, &job).await;
    bench.judge.state().directive = Some(Directive::Park);
    let link = bench.wait("a checkpoint", |state| state.chain.first().cloned()).await;
    worker.stop().await;
    assert_eq!((link.checkpoint.trigger, link.checkpoint.gate), (Trigger::TaskBeforePause, true));
    assert_eq!(link.completes.as_deref(), Some("one"));
    assert_eq!(bench.counts(&job.task_id), (1, 0));
}

async fn a_pause_kills_a_command_that_takes_too_long_and_keeps_its_work() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions { park_grace: Duration::from_millis(50), ..Default::default() });
    let job = two_steps(&bench, "echo b > a.txt; sleep 86399.41").await;
    started(&bench, &job).await;
    bench.judge.state().directive = Some(Directive::Park);
    let link = bench.wait("a checkpoint", |state| state.chain.first().cloned()).await;
    worker.stop().await;
    assert_eq!((link.checkpoint.trigger, link.checkpoint.gate), (Trigger::TaskBeforePause, true));
    assert_eq!(link.completes, None);
    assert_eq!(bench.touched(&link.checkpoint.changesets.proposed).await, ["a.txt"]);
    assert!(link.checkpoint.open_issues[0].text.contains("unfinished"));
    assert!(!is_running("86399.41"));
}

async fn a_stop_kills_at_once_and_reports_what_there_is() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let job = two_steps(&bench, "echo b > a.txt; sleep 86399.42").await;
    started(&bench, &job).await;
    bench.judge.state().directive = Some(Directive::Stop);
    let report = bench.report(&job).await;
    worker.stop().await;
    let AttemptOutcome::Stopped { base: Some(base), tree: Some(tree) } = report.outcome else {
        panic!("{:?}", report.outcome)
    };
    assert_ne!(base, tree);
    assert!(!is_running("86399.42"));
    assert_eq!(bench.counts(&job.task_id), (0, 1));
}

async fn a_lost_lease_kills_and_says_nothing() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let job = two_steps(&bench, "echo b > a.txt; sleep 86399.43").await;
    started(&bench, &job).await;
    bench.judge.state().leased.clear();
    let deadline = Instant::now() + Duration::from_secs(30);
    while is_running("86399.43") {
        assert!(Instant::now() < deadline, "the command outlived its lease");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.stop().await;
    assert_eq!(bench.counts(&job.task_id), (0, 0));
    assert!(bench.judge.state().refused.is_empty());
}

async fn a_worker_that_ends_gives_its_job_back_with_a_checkpoint() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let job = two_steps(&bench, "echo b > a.txt; sleep 86399.44").await;
    started(&bench, &job).await;
    worker.stop().await;
    let report = bench.report(&job).await;
    assert!(matches!(report.outcome, AttemptOutcome::Released { .. }), "{:?}", report.outcome);
    let link = bench.judge.state().chain[0].clone();
    assert_eq!((link.checkpoint.trigger, link.checkpoint.gate), (Trigger::TaskBeforePause, false));
    assert_eq!(bench.touched(&link.checkpoint.changesets.proposed).await, ["a.txt"]);
    assert!(!is_running("86399.44"));
}

async fn a_refused_checkpoint_is_the_jobs_last_word() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    bench.judge.state().refuse_checkpoints = true;
    let worker = bench.worker(WorkerOptions::default());
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("one", &[], "echo b > a.txt")]);
    let job = bench.task(&spec).await;
    bench.dispatch(&job).await;
    bench.wait("a refusal", |state| state.refused.first().cloned()).await;
    worker.stop().await;
    assert_eq!(bench.counts(&job.task_id), (0, 0));
}
