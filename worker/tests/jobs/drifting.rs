//! Targets that change while work is under way.

use checkrein_shared::coordinator::Watched;
use checkrein_shared::records::{AttemptOutcome, Job, JobKind, Trigger};

use crate::support::{Bench, Link, WorkerOptions, prompt, sh, task_of, text_of};
use crate::tests;

tests![
    a_rebase_on_other_paths_opens_the_gate_again_on_the_new_base,
    a_rebase_on_the_same_path_names_it_and_stores_the_new_base,
    a_rebase_between_steps_goes_on_with_the_plan,
    a_rebase_without_drift_opens_the_gate_again,
    the_watcher_reports_each_state_of_a_target_once,
    a_step_on_a_drifted_target_goes_on_at_its_old_base_and_says_so,
];

async fn proposed(bench: &Bench) -> (Job, Link) {
    let agent = bench.agents.script(
        "a.sh",
        r#"echo A > a.txt; echo '{"version":1,"claims":[{"text":"A is large","refs":["file:a.txt"]}]}' > "$CHECKREIN_RESULT""#,
    );
    let command: Vec<&str> = agent.iter().map(String::as_str).collect();
    let spec = task_of(text_of(&bench.project), Some(&command), &[], vec![prompt("change", &[], "x")]);
    let job = bench.task(&spec).await;
    let link = bench.gate(&job).await;
    (job, link)
}

async fn a_rebase_on_other_paths_opens_the_gate_again_on_the_new_base() {
    let bench = Bench::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, first) = proposed(&bench).await;
    bench.write("b.txt", "a colleague's\n");
    let rebase = bench.next(&job, JobKind::Rebase);
    let second = bench.gate(&rebase).await;
    assert_eq!(second.checkpoint.trigger, Trigger::ChangesetBeforeApply);
    assert_ne!(second.checkpoint.workspace.base, first.checkpoint.workspace.base);
    assert_eq!(second.checkpoint.changesets.proposed.hash, first.checkpoint.changesets.proposed.hash);
    assert!(second.checkpoint.summary.completed.iter().any(|claim| claim.text == "A is large"));

    let outcome = bench.outcome(&bench.apply_job(&rebase, &second)).await;
    worker.stop().await;
    assert!(matches!(outcome, AttemptOutcome::Applied { .. }), "{outcome:?}");
    assert_eq!((bench.read("a.txt"), bench.read("b.txt")), ("A\n".into(), "a colleague's\n".into()));
}

async fn a_rebase_on_the_same_path_names_it_and_stores_the_new_base() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, _) = proposed(&bench).await;
    bench.write("a.txt", "a colleague's\n");
    let outcome = bench.outcome(&bench.next(&job, JobKind::Rebase)).await;
    let AttemptOutcome::RebaseOverlap { target, paths, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(paths, ["a.txt"]);
    // Starting over on the new base must work, also elsewhere.
    worker.stop().await;
    let other = bench.worker(WorkerOptions { name: "other", ..Default::default() });
    let mut again = bench.next(&job, job.kind.clone());
    (again.epoch, again.job_id) = (9, job.task_id.job(9));
    (again.base, again.tree, again.completed) = (Some(target), None, Vec::new());
    let link = bench.gate(&again).await;
    other.stop().await;
    assert_eq!(link.checkpoint.workspace.base, target);
    let diff = format!("diff:{}", link.checkpoint.changesets.proposed.id);
    assert!(bench.text(link.checkpoint.evidence.index, &diff).await.contains("-a colleague's\n+A\n"));
}

async fn a_rebase_between_steps_goes_on_with_the_plan() {
    let bench = Bench::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]).await;
    let steps = vec![sh("one", &[], "echo A > a.txt"), sh("two", &["one"], "cat b.txt >> a.txt")];
    let spec = task_of(text_of(&bench.project), None, &[], steps);
    let worker = bench.worker(WorkerOptions::default());
    let mut job = bench.task(&spec).await;
    let outcome = bench.outcome(&job).await;
    let AttemptOutcome::StepDone { base, tree, evidence_index, .. } = outcome else { panic!("{outcome:?}") };
    (job.base, job.tree, job.evidence_index) = (Some(base), Some(tree), Some(evidence_index));
    job.completed = vec!["one".parse().unwrap()];
    bench.judge.state().jobs.insert(job.task_id.clone(), job.clone());
    bench.write("b.txt", "their b\n");
    let mut rebase = bench.next(&job, JobKind::Rebase);
    let outcome = bench.outcome(&rebase).await;
    let AttemptOutcome::Rebased { base, tree, evidence_index } = outcome else { panic!("{outcome:?}") };
    (rebase.base, rebase.tree, rebase.evidence_index) = (Some(base), Some(tree), Some(evidence_index));
    bench.judge.state().jobs.insert(job.task_id.clone(), rebase.clone());
    let two = JobKind::Step { step: "two".parse().unwrap(), conversation: Default::default() };
    let link = bench.gate(&bench.next(&rebase, two)).await;
    worker.stop().await;
    let diff = format!("diff:{}", link.checkpoint.changesets.proposed.id);
    assert!(bench.text(link.checkpoint.evidence.index, &diff).await.contains("-a\n+A\n+their b\n"));
    assert!(bench.judge.state().drift.is_empty(), "after the rebase there is no drift any more");
}

async fn a_rebase_without_drift_opens_the_gate_again() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, first) = proposed(&bench).await;
    let second = bench.gate(&bench.next(&job, JobKind::Rebase)).await;
    worker.stop().await;
    assert_eq!(second.checkpoint.workspace, first.checkpoint.workspace);
    assert_eq!(second.checkpoint.changesets.proposed.hash, first.checkpoint.changesets.proposed.hash);
}

async fn the_watcher_reports_each_state_of_a_target_once() {
    let bench = Bench::new(&[("a.txt", "a\n"), ("b.txt", "b\n"), (".gitignore", "*.log\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, link) = proposed(&bench).await;
    let watched = Watched {
        task_id: job.task_id.clone(),
        root_id: job.root_id.clone(),
        spec: job.spec,
        base: link.checkpoint.workspace.base,
    };
    bench.judge.state().watched = vec![watched];
    bench.write("noise.log", "ignored\n");
    for (number, text) in [(1, "theirs\n"), (2, "theirs again\n")] {
        bench.write("b.txt", text);
        let report = bench.wait("a report of drift", |state| state.drift.get(number - 1).cloned()).await;
        assert_eq!((report.base, report.paths), (link.checkpoint.workspace.base, vec!["b.txt".to_owned()]));
        // Long enough for several looks.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(bench.judge.state().drift.len(), number);
    }
    worker.stop().await;
}

async fn a_step_on_a_drifted_target_goes_on_at_its_old_base_and_says_so() {
    let bench = Bench::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, first) = proposed(&bench).await;
    bench.write("b.txt", "theirs\n");
    let mut again = bench.next(&job, job.kind.clone());
    again.completed.clear();
    let second = bench.gate(&again).await;
    worker.stop().await;
    assert_eq!(second.checkpoint.workspace.base, first.checkpoint.workspace.base);
    let drift = bench.judge.state().drift.clone();
    assert!(!drift.is_empty() && drift.iter().all(|d| d.base == first.checkpoint.workspace.base));
    assert_eq!(bench.read("b.txt"), "theirs\n");
}
