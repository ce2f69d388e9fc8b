//! What a step that ends well leaves behind.

use checkrein_shared::records::{AttemptOutcome, Basis, JobKind, RequiredAction, Trigger};

use crate::support::{Bench, WorkerOptions, prompt, sh, task_of, text_of};
use crate::tests;

tests![
    an_agents_edits_end_in_a_gating_checkpoint_and_the_target_is_untouched,
    a_retry_tells_the_agent_what_was_asked_for_and_where_to_read,
    a_malformed_result_file_is_an_open_issue_and_its_claims_are_ignored,
    a_step_goes_on_from_base_and_tree_on_another_worker,
    two_tasks_on_one_worker_see_nothing_of_each_other,
    an_effectful_step_has_the_same_key_in_every_attempt,
];

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

async fn an_agents_edits_end_in_a_gating_checkpoint_and_the_target_is_untouched() {
    let bench = Bench::new(&[("sum.txt", "2 + 2 = 5\n"), ("old.txt", "old\n"), ("keep/me", "kept\n")]).await;
    let before = bench.files();
    let agent = bench.agents.script(
        "fix.sh",
        r#"echo '2 + 2 = 4' > sum.txt; rm old.txt; mkdir new; echo new > new/file; echo "I fixed it"
        cat > "$CHECKREIN_RESULT" <<END
        {"version": 1, "claims": [
          {"text": "the sum is right", "refs": ["file:sum.txt", "log:this"]},
          {"text": "all tests pass", "refs": ["test:unit-9"]}],
         "open_issues": ["no test for it"]}
END
        "#,
    );
    let spec = task_of(text_of(&bench.project), Some(&words(&agent)), &[], vec![prompt("fix", &[], "Mend the sum.")]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let link = bench.gate(&job).await;
    worker.stop().await;

    assert_eq!(bench.files(), before, "the target is untouched");
    let checkpoint = &link.checkpoint;
    assert_eq!((checkpoint.trigger, checkpoint.gate), (Trigger::ChangesetBeforeApply, true));
    assert_eq!(link.completes.as_deref(), Some("fix"));
    assert_eq!(bench.touched(&checkpoint.changesets.proposed).await, ["new/file", "old.txt", "sum.txt"]);
    let index = checkpoint.evidence.index;
    let diff = bench.text(index, &format!("diff:{}", checkpoint.changesets.proposed.id)).await;
    assert!(diff.contains("-2 + 2 = 5") && diff.contains("+2 + 2 = 4"), "{diff}");
    assert_eq!(bench.text(index, "log:fix-e1").await, "I fixed it\n");
    assert_eq!(bench.text(index, "file:sum.txt").await, "2 + 2 = 4\n");
    let claims = &checkpoint.summary.completed;
    let found: Vec<(&str, Basis)> = claims.iter().map(|c| (c.text.as_str(), c.basis)).collect();
    assert_eq!(
        found,
        [
            ("step `fix` ended with exit code 0", Basis::SelfReported),
            ("the sum is right", Basis::SelfReported),
            ("all tests pass", Basis::Absent)
        ]
    );
    let issues: Vec<&str> = checkpoint.open_issues.iter().map(|i| i.text.as_str()).collect();
    assert_eq!(issues, ["claim 2 names evidence that does not exist: `test:unit-9`", "no test for it"]);
    assert_eq!(bench.counts(&job.task_id), (1, 0), "a gating checkpoint is the job's last word");
}

async fn a_retry_tells_the_agent_what_was_asked_for_and_where_to_read() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let agent = bench.agents.script(
        "read.sh",
        r#"cp "$CHECKREIN_INSTRUCTION" seen.md
        echo "attempt $CHECKREIN_ATTEMPT of $CHECKREIN_STEP in $CHECKREIN_TASK"
        sed -n 's/.*see `log:.*`: //p' "$CHECKREIN_INSTRUCTION" | while read -r file; do cat "$file" > evidence.txt; done
        "#,
    );
    let spec = task_of(text_of(&bench.project), Some(&words(&agent)), &[], vec![prompt("fix", &[], "Mend it.")]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let first = bench.gate(&job).await;
    let mut again = bench.next(&job, job.kind.clone());
    again.completed.clear();
    again.round = 2;
    again.required_actions = vec![RequiredAction {
        text: "Look at your own output.".into(),
        finding: None,
        refs: vec!["log:fix-e1".parse().unwrap()],
        from: "rules".into(),
    }];
    let second = bench.gate(&again).await;
    worker.stop().await;

    let index = second.checkpoint.evidence.index;
    assert!(bench.text(index, "log:fix-e2").await.starts_with("attempt 2 of fix in t-"));
    let diff = bench.text(index, &format!("diff:{}", second.checkpoint.changesets.proposed.id)).await;
    assert!(diff.contains("Look at your own output."), "{diff}");
    assert!(diff.contains("+attempt 1 of fix"), "the text of the evidence was readable: {diff}");
    assert_eq!(second.checkpoint.integrity.previous_checkpoint_hash, Some(first.checkpoint.integrity.checkpoint_hash));
}

async fn a_malformed_result_file_is_an_open_issue_and_its_claims_are_ignored() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let agent = bench.agents.script(
        "lie.sh",
        r#"echo '{"version":1,"claims":[{"text":"done"}],"claims":[]}' > "$CHECKREIN_RESULT"; echo b > a.txt"#,
    );
    let spec = task_of(text_of(&bench.project), Some(&words(&agent)), &[], vec![prompt("fix", &[], "Mend it.")]);
    let worker = bench.worker(WorkerOptions::default());
    let link = bench.gate(&bench.task(&spec).await).await;
    worker.stop().await;
    assert_eq!(link.checkpoint.summary.completed.len(), 1, "only the worker's own claim");
    let issue = &link.checkpoint.open_issues[0];
    assert!(issue.text.contains("result file was ignored") && issue.text.contains("stands twice"), "{}", issue.text);
    assert_eq!(issue.refs[0].as_str(), "result:fix-e1");
}

async fn a_step_goes_on_from_base_and_tree_on_another_worker() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let steps = vec![sh("one", &[], "echo one > one.txt"), sh("two", &["one"], "cat one.txt a.txt > two.txt")];
    let spec = task_of(text_of(&bench.project), None, &[], steps);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let AttemptOutcome::StepDone { base, tree, evidence_index, .. } = bench.outcome(&job).await else {
        panic!("the first of two steps ends without a checkpoint");
    };
    worker.stop().await;

    let mut second = bench.next(&job, JobKind::Step { step: "two".parse().unwrap(), conversation: Default::default() });
    (second.base, second.tree, second.evidence_index) = (Some(base), Some(tree), Some(evidence_index));
    second.completed = vec!["one".parse().unwrap()];
    let other = bench.worker(WorkerOptions { name: "other", ..Default::default() });
    let link = bench.gate(&second).await;
    other.stop().await;
    assert_eq!(bench.touched(&link.checkpoint.changesets.proposed).await, ["one.txt", "two.txt"]);
    assert_eq!(bench.text(link.checkpoint.evidence.index, "log:one-e1").await, "", "the first step's evidence is kept");
    let diff = format!("diff:{}", link.checkpoint.changesets.proposed.id);
    assert!(bench.text(link.checkpoint.evidence.index, &diff).await.contains("+one\n+a\n"));
}

async fn two_tasks_on_one_worker_see_nothing_of_each_other() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let agent = bench.agents.script(
        "nosy.sh",
        r#"echo "home: $(ls -A "$HOME" | wc -l) tmp: $(ls -A "$TMPDIR" | wc -l) here: $(ls -A | tr '\n' ' ')"
        echo secret-of-the-first > "$HOME/left"; echo x > "$TMPDIR/left"; echo x > left; touch "$CHECKREIN_RESULT.left"
        ls "$(dirname "$CHECKREIN_INSTRUCTION")"/../.. 2>/dev/null || true
        "#,
    );
    let spec = task_of(text_of(&bench.project), Some(&words(&agent)), &[], vec![prompt("fix", &[], "Mend it.")]);
    let worker = bench.worker(WorkerOptions::default());
    let first = bench.task(&spec).await;
    bench.gate(&first).await;
    let mut second = bench.task(&spec).await;
    second.task_id = crate::support::task_id(2);
    second.job_id = second.task_id.job(1);
    let link = bench.gate(&second).await;
    worker.stop().await;
    let log = bench.text(link.checkpoint.evidence.index, "log:fix-e1").await;
    assert!(log.starts_with("home: 0 tmp: 0 here: a.txt \n"), "{log}");
    assert_eq!(link.checkpoint.sequence, 1);
}

async fn an_effectful_step_has_the_same_key_in_every_attempt() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let mut step = sh("send", &[], r#"echo "key: ${CHECKREIN_IDEMPOTENCY_KEY-none}"; exit 3"#);
    let worker = bench.worker(WorkerOptions::default());
    let mut logs = Vec::new();
    for (epoch, effect) in [(1, "effectful"), (2, "effectful"), (3, "read_only")] {
        step.effect = serde_json::from_value(effect.into()).unwrap();
        let spec = task_of(text_of(&bench.project), None, &[], vec![step.clone()]);
        let mut job = bench.task(&spec).await;
        job.epoch = epoch;
        job.job_id = job.task_id.job(epoch);
        let AttemptOutcome::StepFailed { evidence_index, .. } = bench.outcome(&job).await else { panic!("it fails") };
        logs.push(bench.text(evidence_index.unwrap(), &format!("log:send-e{epoch}")).await);
    }
    worker.stop().await;
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0].trim_end().len(), "key: ".len() + 64);
    assert_eq!(logs[2], "key: none\n");
}
