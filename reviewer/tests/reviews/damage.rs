//! What is damaged, gone or out of date is never approved.

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Judgement, ReviewKind};

use super::bench::{Bench, Test, of, tests};
use super::task::{BUG, FIX, Task};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_damaged_file_is_not_approved,
        a_lost_artifact_is_not_approved,
        evidence_that_must_be_read_and_is_not_there_is_not_approved,
        bindings_that_are_out_of_date_are_not_approved,
        one_byte_changed_in_the_record_is_rejected,
        a_kind_of_review_that_nobody_carries_out_is_not_approved,
        a_verifier_that_can_not_run_is_not_approved,
    ]
}

fn fixed() -> Task {
    Task::on(&BUG).write(FIX.0, FIX.1)
}

async fn a_damaged_file_is_not_approved() {
    let mut bench = Bench::new().await;
    let stored = bench.store(&fixed()).await;
    let file = bench.file_of(Digest::of(FIX.1));
    let mut permissions = std::fs::metadata(&file).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
    std::fs::set_permissions(&file, permissions).unwrap();
    std::fs::write(&file, FIX.1.replace('+', "-")).unwrap();
    let verdict = bench.ask(&stored.request).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.coverage.percent < 100);
    assert!(verdict.missing_evidence.join("\n").contains("`add.sh`"), "{:?}", verdict.missing_evidence);
    bench.stop().await;
}

async fn a_lost_artifact_is_not_approved() {
    let mut bench = Bench::new().await;
    let stored = bench.store(&fixed()).await;
    std::fs::remove_file(bench.file_of(Digest::of("agent: done\n"))).unwrap();
    let verdict = bench.ask(&stored.request).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.missing_evidence[0].contains("`log:fix` is not in the blob store"));

    let stored = bench.store(&fixed().round(2)).await;
    std::fs::remove_file(bench.file_of(stored.changeset.digest())).unwrap();
    let verdict = bench.ask(&stored.request).await;
    assert_ne!(verdict.verdict, Judgement::Approved);
    bench.stop().await;
}

async fn evidence_that_must_be_read_and_is_not_there_is_not_approved() {
    let mut bench = Bench::new().await;
    let policy = "version: 1\nreviews: [{name: rules, must_read: [report]}]\n";
    let verdict = bench.review(&fixed().policy(policy)).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.missing_evidence[0].contains("`report`"), "{:?}", verdict.missing_evidence);
    let policy = "version: 1\nreviews: [{name: rules, must_read: [log]}]\n";
    let verdict = bench.review(&fixed().policy(policy).round(2)).await;
    assert_eq!(verdict.verdict, Judgement::Approved, "{verdict:#?}");
    assert!(verdict.coverage.required.contains(&Digest::of("agent: done\n")));
    bench.stop().await;
}

async fn bindings_that_are_out_of_date_are_not_approved() {
    let mut bench = Bench::new().await;
    let stored = bench.store(&fixed()).await;
    let mut drifted = stored.request.bindings.clone();
    drifted.base = Digest::of("a colleague was here");
    bench.current.set(Some(drifted.clone()));
    let verdict = bench.ask(&stored.request).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    let expected = format!("stale: base {} -> {}", stored.request.bindings.base, drifted.base);
    assert_eq!(verdict.missing_evidence, [expected]);

    bench.current.set(None);
    assert_eq!(bench.ask(&stored.request).await.verdict, Judgement::Inconclusive);
    bench.stop().await;
}

async fn one_byte_changed_in_the_record_is_rejected() {
    let mut bench = Bench::new().await;
    let mut stored = bench.store(&fixed()).await;
    stored.checkpoint.objective.text.push('!');
    let bytes = json::canonical(&stored.checkpoint).unwrap();
    stored.request.checkpoint.record = bench.blobs.put(&bytes).await.unwrap();
    let verdict = bench.ask(&stored.request).await;
    assert_eq!(verdict.verdict, Judgement::Rejected);
    assert!(of(&verdict, "integrity")[0].claim.contains("hashes to"));
    bench.stop().await;
}

async fn a_kind_of_review_that_nobody_carries_out_is_not_approved() {
    let mut bench = Bench::new().await;
    let mut task = fixed();
    task.kind = ReviewKind::Model;
    let verdict = bench.review(&task).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.missing_evidence[0].contains("not one of the kind `rules`"));
    bench.stop().await;
}

async fn a_verifier_that_can_not_run_is_not_approved() {
    let mut bench = Bench::new().await;
    let policy = "version: 1\nverifiers: {unit: {run: [no-such-program-here], timeout: 5s}}\n";
    let verdict = bench.review(&fixed().policy(policy)).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.missing_evidence[0].contains("`no-such-program-here` is not installed"));
    bench.stop().await;
}
