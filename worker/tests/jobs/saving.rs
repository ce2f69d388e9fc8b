//! Progress that an agent keeps for itself: saved with its tree, handed back with
//! it, or left behind for the newest checkpoint.

use checkrein_shared::blob::Blobs as _;
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{
    CheckOutcome, Conversation, Job, JobKind, LaterEffect, Precondition, SavePoint, StepBegan,
};

use crate::support::{Bench, RunningWorker, WorkerOptions, prompt, task_of, text_of};
use crate::tests;

tests![
    progress_is_saved_while_an_agent_runs_and_belongs_to_the_checkpoint_in_the_end,
    what_was_saved_is_handed_back_with_exactly_its_tree,
    what_cant_be_restored_goes_back_to_the_checkpoint_and_the_agent_is_told,
    work_that_no_checkpoint_has_is_not_lost_with_a_save_point,
    a_run_state_that_is_no_small_file_is_not_saved_and_harms_nobody,
];

/// Shows what it was given, works, and keeps a line for itself.
const AGENT: &str = r#"
if [ -f "$CHECKREIN_RUN_STATE" ]; then cp "$CHECKREIN_RUN_STATE" given.txt; fi
cp "$CHECKREIN_INSTRUCTION" seen.md
if [ -f work.txt ]; then cp work.txt found.txt; fi
echo half > work.txt
echo "half way" > "$CHECKREIN_RUN_STATE"
sleep 0.6
echo whole > work.txt
echo "all the way" > "$CHECKREIN_RUN_STATE"
"#;

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

fn same(step: &str) -> JobKind {
    JobKind::Step { step: step.parse().unwrap(), conversation: Conversation::Same }
}

/// A task whose only step is done by an agent that saves its progress, and a worker for it.
async fn saving_agent() -> (Bench, RunningWorker, Job) {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let agent = bench.agents.script("work.sh", AGENT);
    let spec = task_of(text_of(&bench.project), Some(&words(&agent)), &[], vec![prompt("fix", &[], "Work.")]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    (bench, worker, job)
}

async fn progress_is_saved_while_an_agent_runs_and_belongs_to_the_checkpoint_in_the_end() {
    let (bench, worker, job) = saving_agent().await;
    let link = bench.gate(&job).await;
    worker.stop().await;

    let saved = bench.judge.state().saved.clone();
    let [half, .., whole] = saved.as_slice() else { panic!("{saved:?}") };
    assert_eq!(bench.blobs.get(half.run_state.digest, 99).await.unwrap(), b"half way\n");
    assert_eq!(bench.blobs.get(whole.run_state.digest, 99).await.unwrap(), b"all the way\n");
    assert_ne!(half.tree, whole.tree);
    let workspace = &link.checkpoint.workspace;
    assert_eq!((whole.base, whole.tree), (workspace.base, workspace.tree));
    assert_eq!(link.checkpoint.resume.run_state, Some(whole.run_state.digest));
    assert!(
        bench.evidence(Some(link.checkpoint.evidence.index)).await.iter().all(|(_, bytes)| bytes != b"all the way\n")
    );

    let conditions = bench.judge.state().conditions.clone();
    let [report] = conditions.as_slice() else { panic!("{conditions:?}") };
    assert_eq!((report.epoch, report.checks.len()), (1, 6));
    let base = report.checks.iter().find(|check| check.condition == Precondition::BaseUnchanged).unwrap();
    assert!(matches!(&base.outcome, CheckOutcome::Explained { why } if why.contains("becomes the base")));
}

async fn what_was_saved_is_handed_back_with_exactly_its_tree() {
    let (bench, worker, job) = saving_agent().await;
    bench.gate(&job).await;
    let half = bench.judge.state().saved[0].clone();
    let mut again = bench.next(&job, same("fix"));
    (again.base, again.tree, again.resume) = (Some(half.base), Some(half.tree), Some(half));
    again.completed.clear();
    let link = bench.gate(&again).await;
    worker.stop().await;
    let tree = link.checkpoint.changesets.proposed;
    assert!(bench.touched(&tree).await.contains(&"given.txt".to_owned()));
    let seen = bench.content(&link.checkpoint.workspace.tree, "given.txt").await;
    assert_eq!(seen, "half way\n");
    assert!(bench.content(&link.checkpoint.workspace.tree, "seen.md").await.contains("holds what you had saved"));
}

async fn what_cant_be_restored_goes_back_to_the_checkpoint_and_the_agent_is_told() {
    let (bench, worker, job) = saving_agent().await;
    let first = bench.gate(&job).await;
    let saved = bench.judge.state().saved.last().unwrap().clone();
    let began = Some(StepBegan { epoch: job.epoch, tree: saved.base });
    let lost = SavePoint { tree: Digest::of("a tree that is gone"), began, ..saved };
    let mut again = bench.next(&job, same("fix"));
    (again.tree, again.resume) = (Some(lost.tree), Some(lost));
    again.completed.clear();
    again.later_effects = vec![LaterEffect { call: "deploy --to production".into(), status: "done".into() }];
    let link = bench.gate(&again).await;
    worker.stop().await;
    let tree = link.checkpoint.workspace.tree;
    assert_eq!(bench.content(&tree, "given.txt").await, "all the way\n", "the state that belongs to the checkpoint");
    let seen = bench.content(&tree, "seen.md").await;
    assert!(seen.contains(&format!("those of checkpoint {}", first.checkpoint.checkpoint_id)), "{seen}");
    assert!(seen.contains("- done: deploy --to production"), "{seen}");
}

async fn work_that_no_checkpoint_has_is_not_lost_with_a_save_point() {
    let (bench, worker, job) = saving_agent().await;
    bench.gate(&job).await;
    let saved = bench.judge.state().saved.clone();
    // As if a step before had left this tree after the newest checkpoint.
    let began = Some(StepBegan { epoch: job.epoch + 1, tree: saved[0].tree });
    let lost = SavePoint { tree: Digest::of("a tree that is gone"), began, ..saved[0].clone() };
    let mut again = bench.next(&job, same("fix"));
    (again.tree, again.resume) = (Some(lost.tree), Some(lost.clone()));
    again.completed.clear();
    let link = bench.gate(&again).await;
    let tree = link.checkpoint.workspace.tree;
    assert_eq!(bench.content(&tree, "found.txt").await, "half\n", "the files with which the step began");
    assert!(bench.content(&tree, "seen.md").await.contains("those of the beginning of this step"));
    let manifest = bench.touched(&link.checkpoint.changesets.proposed).await;
    assert!(!manifest.contains(&"given.txt".to_owned()), "another tree's run state is not handed over: {manifest:?}");

    // Nobody knows the beginning, and the checkpoint lacks a step.
    let mut unknown = bench.next(&again, same("fix"));
    (unknown.tree, unknown.resume) = (Some(lost.tree), Some(SavePoint { began: None, ..lost }));
    unknown.completed = vec!["before".parse().unwrap()];
    let outcome = bench.outcome(&unknown).await;
    worker.stop().await;
    assert!(format!("{outcome:?}").contains("lacks work that was done before it"), "{outcome:?}");
}

async fn a_run_state_that_is_no_small_file_is_not_saved_and_harms_nobody() {
    let bench = Bench::new(&[("a.txt", "a\n"), ("secret.txt", "s\n")]).await;
    let agent = bench.agents.script(
        "work.sh",
        r#"ln -s "$PWD/secret.txt" "$CHECKREIN_RUN_STATE"; sleep 0.2; rm "$CHECKREIN_RUN_STATE"
        head -c 1048577 /dev/zero > "$CHECKREIN_RUN_STATE"; sleep 0.2; echo done > work.txt"#,
    );
    let spec = task_of(text_of(&bench.project), Some(&words(&agent)), &[], vec![prompt("fix", &[], "Work.")]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let link = bench.gate(&job).await;
    worker.stop().await;
    assert!(bench.judge.state().saved.is_empty());
    assert_eq!(link.checkpoint.resume.run_state, None);
}
