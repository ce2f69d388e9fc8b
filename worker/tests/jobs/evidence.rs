//! Evidence that is asked for again.

use checkrein_shared::records::{JobKind, TestRun};

use crate::support::{Bench, WorkerOptions, sh, task_of, text_of};
use crate::tests;

tests![the_same_tree_comes_before_the_same_gate_with_its_checks_run_again];

async fn the_same_tree_comes_before_the_same_gate_with_its_checks_run_again() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).await;
    let verifiers = br#"
version: 1
verifiers: {unit: {run: "echo checked; echo mess > a.txt; exit 3", timeout: 20s}}
"#;
    bench.policy = checkrein_shared::policy::load_text("test", verifiers).unwrap();
    let mut step = sh("change", &[], "echo A > a.txt");
    step.verify = vec!["unit".into()];
    let spec = task_of(text_of(&bench.project), None, &[], vec![step]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let first = bench.gate(&job).await;
    let kind = JobKind::Evidence { step: "change".parse().unwrap() };
    let second = bench.gate(&bench.next(&job, kind)).await;
    worker.stop().await;
    assert_eq!(
        second.checkpoint.workspace.tree, first.checkpoint.workspace.tree,
        "checks do not change what is judged"
    );
    assert_eq!(second.checkpoint.trigger, first.checkpoint.trigger);
    let runs: Vec<&str> = second.checkpoint.evidence.test_run_ids.iter().map(|r| r.as_str()).collect();
    assert_eq!(runs, ["test:change-e2", "test:unit-e2"]);
    let index = second.checkpoint.evidence.index;
    let run: TestRun = serde_json::from_str(&bench.text(index, "test:unit-e2").await).unwrap();
    assert_eq!((run.exit_code, run.passed(), run.tree), (Some(3), false, second.checkpoint.workspace.tree));
    assert_eq!(bench.text(index, "log:unit-e2").await, "checked\n");
}
