//! Which ends of steps make checkpoints.

use checkrein_shared::records::{AttemptOutcome, Job, JobKind, Step, Trigger};
use checkrein_shared::time::Span;

use crate::support::{Bench, WorkerOptions, prompt, sh, task_of, text_of};
use crate::tests;

tests![
    what_can_run_again_and_changed_nothing_makes_no_checkpoint,
    an_ended_part_of_the_plan_makes_one_where_the_policy_says_so,
    a_test_that_passed_and_fails_makes_one,
];

fn kind(step: &str) -> JobKind {
    JobKind::Step { step: step.parse().unwrap(), conversation: Default::default() }
}

/// Takes over what a step left, as the orchestrator would.
fn after(bench: &Bench, job: &Job, outcome: &AttemptOutcome, next: &str) -> Job {
    let mut done = job.clone();
    match outcome {
        AttemptOutcome::StepDone { step, base, tree, evidence_index } => {
            done.completed.push(step.clone());
            (done.base, done.tree, done.evidence_index) = (Some(*base), Some(*tree), Some(*evidence_index));
        }
        other => panic!("{other:?}"),
    }
    done.head = bench.judge.state().jobs[&job.task_id].head.clone();
    (done.epoch, done.job_id, done.kind) = (job.epoch + 1, job.task_id.job(job.epoch + 1), kind(next));
    done
}

async fn start(bench: &Bench, agent: Option<&[&str]>, steps: Vec<Step>) -> Job {
    bench.task(&task_of(text_of(&bench.project), agent, &[], steps)).await
}

async fn what_can_run_again_and_changed_nothing_makes_no_checkpoint() {
    let mut bench = Bench::new(&[("a.txt", "a\n"), (".gitignore", "target\n")]).await;
    // Everything is on and nothing is too soon: still none.
    bench.policy.triggers.min_interval = Span::from_secs(0);
    for rule in bench.policy.triggers.by_name.values_mut() {
        rule.on = true;
    }
    let agent = bench.agents.script("think.sh", "for i in 1 2 3 4 5; do echo \"thinking $i\"; done");
    let command: Vec<&str> = agent.iter().map(String::as_str).collect();
    let steps = vec![
        sh("read", &[], "cat a.txt"),
        sh("build", &[], "mkdir -p target; echo x > target/out"),
        prompt("think", &[], "Think."),
        sh("last", &["read", "build", "think"], "true"),
    ];
    let worker = bench.worker(WorkerOptions::default());
    let mut job = start(&bench, Some(&command), steps).await;
    for next in ["build", "think", "last"] {
        let outcome = bench.outcome(&job).await;
        job = after(&bench, &job, &outcome, next);
        assert_eq!(bench.judge.state().chain.len(), 0, "before `{next}`");
    }
    let link = bench.gate(&job).await;
    worker.stop().await;
    assert_eq!(link.checkpoint.trigger, Trigger::ChangesetBeforeApply, "completion itself is judged");
    assert!(bench.touched(&link.checkpoint.changesets.proposed).await.is_empty());
    let runs: Vec<&str> = link.checkpoint.evidence.test_run_ids.iter().map(|r| r.as_str()).collect();
    assert_eq!(runs, ["test:last-e4"]);
}

async fn an_ended_part_of_the_plan_makes_one_where_the_policy_says_so() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).await;
    bench.policy.triggers.min_interval = Span::from_secs(0);
    let steps = vec![sh("a", &[], "echo 1 > 1"), sh("b", &[], "echo 2 > 2"), sh("c", &["a", "b"], "true")];
    let worker = bench.worker(WorkerOptions::default());
    let job = start(&bench, None, steps).await;
    let outcome = bench.outcome(&job).await;
    let link = bench.judge.state().chain[0].clone();
    assert_eq!((link.checkpoint.trigger, link.checkpoint.gate), (Trigger::PlanSubgraphDone, false));
    assert_eq!(link.completes.as_deref(), Some("a"));
    assert!(matches!(outcome, AttemptOutcome::StepDone { .. }), "work goes on behind a witness point");

    // The next one would come too soon after the first.
    bench.policy.triggers.min_interval = Span::from_secs(3_600);
    let mut next = after(&bench, &job, &outcome, "b");
    next.policy = start(&bench, None, job.plan.steps.clone()).await.policy;
    bench.outcome(&next).await;
    worker.stop().await;
    assert_eq!(bench.judge.state().chain.len(), 1);
}

async fn a_test_that_passed_and_fails_makes_one() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let steps =
        vec![sh("test", &[], "grep -q a a.txt"), sh("break", &[], "echo b > a.txt"), sh("end", &["break"], "true")];
    let worker = bench.worker(WorkerOptions::default());
    let job = start(&bench, None, steps).await;
    let mut second = after(&bench, &job, &bench.outcome(&job).await, "break");
    let outcome = bench.outcome(&second).await;
    second.head = bench.judge.state().jobs[&job.task_id].head.clone();
    let third = after(&bench, &second, &outcome, "test");
    let before = bench.judge.state().chain.len();
    let outcome = bench.outcome(&third).await;
    worker.stop().await;
    assert!(matches!(outcome, AttemptOutcome::StepFailed { .. }), "{outcome:?}");
    let state = bench.judge.state();
    assert_eq!(state.chain.len(), before + 1);
    let checkpoint = &state.chain.last().unwrap().checkpoint;
    assert_eq!((checkpoint.trigger, checkpoint.gate), (Trigger::TestRegressed, false));
    assert!(checkpoint.open_errors[0].text.contains("exit code 1"));
}
