//! Steps that fail, hang, or leave things running.

use checkrein_shared::records::{AttemptOutcome, IssueRef};
use checkrein_shared::time::Span;

use crate::support::{Bench, WorkerOptions, is_running, prompt, sh, task_of, text_of};
use crate::tests;

tests![
    a_failed_step_reports_a_stable_hash_and_keeps_its_tree,
    a_step_that_ignores_its_time_limit_is_killed_with_all_it_started,
    any_output_is_kept_up_to_the_cap,
    a_step_without_its_workspace_program_or_agent_fails_with_what_to_do,
];

struct Failed {
    error: IssueRef,
    hash: checkrein_shared::digest::Digest,
    index: Option<checkrein_shared::digest::Digest>,
    changed: bool,
}

async fn failed(bench: &Bench, job: &checkrein_shared::records::Job) -> Failed {
    match bench.outcome(job).await {
        AttemptOutcome::StepFailed { error, error_hash, base, tree, evidence_index, .. } => {
            Failed { error, hash: error_hash, index: evidence_index, changed: base != tree }
        }
        other => panic!("{other:?}"),
    }
}

async fn a_failed_step_reports_a_stable_hash_and_keeps_its_tree() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let script =
        r#"echo half > half.txt; echo "started at $(date +%s%N) in $PWD"; echo "no such thing: $$" >&2; exit 7"#;
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("fix", &[], script)]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let first = failed(&bench, &job).await;
    let second = failed(&bench, &bench.next(&job, job.kind.clone())).await;
    worker.stop().await;
    assert_eq!(first.hash, second.hash, "{} / {}", first.error.text, second.error.text);
    assert!(first.error.text.starts_with("step `fix` failed: exit code 7\nstarted at"), "{}", first.error.text);
    assert!(first.changed);
    let index = first.index.unwrap();
    assert!(bench.text(index, "diff:fix-e1").await.contains("+half"));
    assert!(bench.text(index, "log:fix-e1").await.contains("no such thing"));
    assert_eq!(bench.counts(&job.task_id), (0, 2));
}

async fn a_step_that_ignores_its_time_limit_is_killed_with_all_it_started() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).await;
    bench.policy.budgets.step.wall = Some(Span::from_millis(400));
    let script = "trap '' TERM; setsid sleep 86399.31 & (sleep 86399.32 &); echo working > a.txt; sleep 86399.33; sleep 86399.34";
    let agent = bench.agents.script("hang.sh", script);
    let command: Vec<&str> = agent.iter().map(String::as_str).collect();
    let spec = task_of(text_of(&bench.project), Some(&command), &[], vec![prompt("fix", &[], "Hang.")]);
    let worker = bench.worker(WorkerOptions::default());
    let ended = failed(&bench, &bench.task(&spec).await).await;
    worker.stop().await;
    assert!(ended.error.text.contains("timed out"), "{}", ended.error.text);
    assert!(ended.changed, "what it had done is kept");
    assert!(!is_running("86399.3"), "nothing of it survives");
}

async fn any_output_is_kept_up_to_the_cap() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let script = r"printf '\360\000\033[31mred\033[0m\377\n'; head -c 10000000 /dev/zero | tr '\0' 'x'; printf '\nlast\n'; exit 1";
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("loud", &[], script)]);
    let worker = bench.worker(WorkerOptions::default());
    let ended = failed(&bench, &bench.task(&spec).await).await;
    worker.stop().await;
    let all = bench.evidence(ended.index).await;
    let (_, log) = all.iter().find(|(r, _)| r.as_str() == "log:loud-e1").unwrap();
    assert!(log.starts_with(b"\xf0\x00\x1b[31mred\x1b[0m\xff\n") && log.ends_with(b"\nlast\n"));
    assert!(log.len() > 1 << 20 && log.len() < 5 << 20, "{}", log.len());
    assert!(ended.error.text.ends_with("last") && !ended.error.text.contains('\u{1b}'));
}

async fn a_step_without_its_workspace_program_or_agent_fails_with_what_to_do() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let missing = task_of("/no/such/project", None, &[], vec![sh("a", &[], "true")]);
    let program = task_of(text_of(&bench.project), Some(&["no-such-agent"]), &[], vec![prompt("a", &[], "x")]);
    let agent = task_of(text_of(&bench.project), None, &[], vec![prompt("a", &[], "x")]);
    let secret = task_of(text_of(&bench.project), Some(&["true"]), &["NO_SUCH_KEY"], vec![prompt("a", &[], "x")]);
    let mut epoch = 0;
    for (spec, part) in [
        (missing, "`/no/such/project`"),
        (program, "`no-such-agent` was not found"),
        (agent, "add `agent.command`"),
        (secret, "`NO_SUCH_KEY`"),
    ] {
        epoch += 1;
        let mut job = bench.task(&spec).await;
        (job.epoch, job.job_id) = (epoch, job.task_id.job(epoch));
        let ended = failed(&bench, &job).await;
        assert!(ended.error.text.contains(part), "{}", ended.error.text);
    }
    worker.stop().await;
}
