//! Changes reach the target with a grant for exactly them, whole, and never over somebody's edit.

use checkrein_shared::records::{AttemptOutcome, Job, JobKind};

use crate::support::{Bench, Link, WorkerOptions, sh, task_of, text_of};
use crate::tests;

tests![
    a_redeemed_grant_puts_the_change_into_the_target,
    a_refused_grant_leaves_the_target_untouched,
    a_target_that_changed_before_is_not_redeemed_for,
    an_edit_between_permission_and_use_is_a_conflict_and_stays,
    an_apply_that_was_cut_off_goes_on_with_a_higher_epoch,
    an_apply_that_was_done_already_is_reported_again,
    an_orchestrator_that_is_away_is_asked_again,
    a_secret_file_is_applied_from_where_it_was_kept,
    an_applied_change_is_one_commit_without_anybodys_unfinished_work,
];

const FILES: &[(&str, &str)] = &[("a.txt", "a\n"), ("b.txt", "b\n"), ("gone.txt", "gone\n")];
const SCRIPT: &str = "echo A > a.txt; echo B > b.txt; rm gone.txt; mkdir -p d; echo n > d/new.txt; chmod +x a.txt";

/// Runs the step that makes the change, up to its gate.
async fn proposed(bench: &Bench) -> (Job, Link) {
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("change", &[], SCRIPT)]);
    let job = bench.task(&spec).await;
    let link = bench.gate(&job).await;
    (bench.apply_job(&job, &link), link)
}

fn is_applied(bench: &Bench) {
    assert_eq!(
        (bench.read("a.txt"), bench.read("b.txt"), bench.read("d/new.txt")),
        ("A\n".into(), "B\n".into(), "n\n".into())
    );
    assert!(!bench.project.join("gone.txt").exists());
    assert_eq!(bench.files().len(), 3, "nothing else is left behind: {:?}", bench.files());
}

async fn a_redeemed_grant_puts_the_change_into_the_target() {
    let bench = Bench::new(FILES).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, link) = proposed(&bench).await;
    let outcome = bench.outcome(&job).await;
    worker.stop().await;
    let AttemptOutcome::Applied { target, changeset, .. } = outcome else { panic!("{outcome:?}") };
    is_applied(&bench);
    assert_eq!(changeset, link.checkpoint.changesets.proposed);
    assert_eq!(target, link.checkpoint.workspace.tree, "the target is now the tree that was judged");
    let redeems = bench.judge.state().redeems.clone();
    assert_eq!(redeems.len(), 1);
    assert_eq!((redeems[0].target, redeems[0].epoch), (link.checkpoint.workspace.base, job.epoch));
}

async fn a_refused_grant_leaves_the_target_untouched() {
    let bench = Bench::new(FILES).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, _) = proposed(&bench).await;
    let before = bench.files();
    bench.judge.state().grants.values_mut().for_each(|grant| grant.void = true);
    let outcome = bench.outcome(&job).await;
    worker.stop().await;
    assert!(matches!(outcome, AttemptOutcome::ApplyConflict { ref paths, .. } if paths.is_empty()), "{outcome:?}");
    assert_eq!(bench.files(), before);
}

async fn a_target_that_changed_before_is_not_redeemed_for() {
    let bench = Bench::new(FILES).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, link) = proposed(&bench).await;
    bench.write("b.txt", "a colleague's\n");
    let before = bench.files();
    let outcome = bench.outcome(&job).await;
    worker.stop().await;
    let AttemptOutcome::ApplyConflict { target, .. } = outcome else { panic!("{outcome:?}") };
    assert_ne!(target, link.checkpoint.workspace.base);
    assert_eq!(bench.judge.state().redeems[0].target, target, "the orchestrator was told the truth");
    assert_eq!(bench.files(), before);
}

async fn an_edit_between_permission_and_use_is_a_conflict_and_stays() {
    let bench = Bench::new(FILES).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, _) = proposed(&bench).await;
    bench.judge.state().before_redeem = Some(|project| {
        std::fs::write(project.join("b.txt"), "saved in this very moment\n").unwrap();
    });
    let outcome = bench.outcome(&job).await;
    worker.stop().await;
    let AttemptOutcome::ApplyConflict { paths, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(paths, ["b.txt"]);
    assert_eq!((bench.read("a.txt"), bench.read("b.txt")), ("a\n".into(), "saved in this very moment\n".into()));
    assert!(bench.project.join("gone.txt").exists() && !bench.project.join("d/new.txt").exists());
}

async fn an_apply_that_was_cut_off_goes_on_with_a_higher_epoch() {
    let bench = Bench::new(FILES).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, link) = proposed(&bench).await;
    worker.stop().await;
    // What an apply leaves that was killed between two files, with its grant redeemed.
    bench.write("b.txt", "B\n");
    std::fs::remove_file(bench.project.join("gone.txt")).unwrap();
    bench.judge.state().grants.values_mut().for_each(|grant| grant.redeemed = true);
    let other = bench.worker(WorkerOptions { name: "other", ..Default::default() });
    let again = checkrein_shared::records::Job { epoch: job.epoch + 1, job_id: job.task_id.job(job.epoch + 1), ..job };
    let outcome = bench.outcome(&again).await;
    other.stop().await;
    assert!(matches!(outcome, AttemptOutcome::Applied { .. }), "{outcome:?}");
    is_applied(&bench);
    assert_eq!(bench.judge.state().redeems[0].target, link.checkpoint.workspace.base);
}

async fn an_apply_that_was_done_already_is_reported_again() {
    let bench = Bench::new(FILES).await;
    let worker = bench.worker(WorkerOptions::default());
    let (job, _) = proposed(&bench).await;
    let first = bench.outcome(&job).await;
    let second = bench.outcome(&bench.next(&job, job.kind.clone())).await;
    worker.stop().await;
    assert_eq!(first, second);
    is_applied(&bench);
}

async fn an_orchestrator_that_is_away_is_asked_again() {
    let bench = Bench::new(FILES).await;
    bench.judge.state().unavailable = 3;
    let worker = bench.worker(WorkerOptions::default());
    let (job, _) = proposed(&bench).await;
    assert!(matches!(job.kind, JobKind::Apply { .. }));
    let outcome = bench.outcome(&job).await;
    worker.stop().await;
    assert!(matches!(outcome, AttemptOutcome::Applied { .. }), "{outcome:?}");
}

async fn a_secret_file_is_applied_from_where_it_was_kept() {
    let bench = Bench::new(&[("a.txt", "a\n"), (".env", "KEY=old-value\n")]).await;
    let steps = vec![
        sh("one", &[], "echo KEY=new-value-1 > .env"),
        sh("two", &["one"], "cat .env > /dev/null && echo MORE=new-value-2 >> .env"),
    ];
    let spec = task_of(text_of(&bench.project), None, &[], steps);
    let worker = bench.worker(WorkerOptions::default());
    let mut job = bench.task(&spec).await;
    let outcome = bench.outcome(&job).await;
    let AttemptOutcome::StepDone { base, tree, evidence_index, .. } = outcome else { panic!("{outcome:?}") };
    (job.base, job.tree, job.evidence_index) = (Some(base), Some(tree), Some(evidence_index));
    job.completed = vec!["one".parse().unwrap()];
    let kind = JobKind::Step { step: "two".parse().unwrap(), conversation: Default::default() };
    let second = Job { epoch: 2, job_id: job.task_id.job(2), kind, ..job };
    let link = bench.gate(&second).await;
    let all = bench.evidence(Some(link.checkpoint.evidence.index)).await;
    assert!(
        all.iter().all(|(_, bytes)| !String::from_utf8_lossy(bytes).contains("new-value")),
        "it is kept nowhere else"
    );
    let outcome = bench.outcome(&bench.apply_job(&second, &link)).await;
    worker.stop().await;
    assert!(matches!(outcome, AttemptOutcome::Applied { .. }), "{outcome:?}");
    assert_eq!(bench.read(".env"), "KEY=new-value-1\nMORE=new-value-2\n");
}

fn git(bench: &Bench, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let output =
        std::process::Command::new("git").current_dir(&bench.project).args(identity).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn an_applied_change_is_one_commit_without_anybodys_unfinished_work() {
    let mut bench = Bench::new(FILES).await;
    git(&bench, &["init", "-q", "-b", "main"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-q", "-m", "first"]);
    // A hook that would do harm, and work that its author has not committed.
    bench.write(".git/hooks/reference-transaction", "#!/bin/sh\ntouch \"$GIT_DIR/../hooked\"\n");
    git(&bench, &["update-index", "--refresh"]);
    std::fs::set_permissions(
        bench.project.join(".git/hooks/reference-transaction"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    bench.write("b.txt", "b, and something unfinished\n");
    bench.policy.workspace.commit = true;
    let worker = bench.worker(WorkerOptions::default());
    let (job, link) = proposed(&bench).await;
    let first = bench.outcome(&job).await;
    let second = bench.outcome(&bench.next(&job, job.kind.clone())).await;
    worker.stop().await;
    let AttemptOutcome::Applied { commit: Some(commit), .. } = &first else { panic!("{first:?}") };
    assert_eq!(first, second, "the commit is made once");
    assert_eq!(git(&bench, &["rev-list", "--count", "main"]).trim(), "2");
    assert_eq!(git(&bench, &["rev-parse", "main"]).trim(), commit);
    let named = git(&bench, &["show", "--no-renames", "--name-status", "--format=", "main"]);
    assert_eq!(named, "M\ta.txt\nA\td/new.txt\nD\tgone.txt\n");
    let message = git(&bench, &["log", "-1", "--format=%B"]);
    assert!(
        message.contains(&format!("Checkrein-Checkpoint: {}", link.checkpoint.integrity.checkpoint_hash)),
        "{message}"
    );
    assert_eq!(git(&bench, &["status", "--porcelain"]), " M b.txt\n", "only the unfinished work is left to commit");
    assert_eq!(bench.read("b.txt"), "B\n");
    assert!(!bench.project.join("hooked").exists());
}
