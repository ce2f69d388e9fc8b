//! Messages that lie about who sent them or what they hold.

use checkrein_shared::api::TaskState;
use checkrein_shared::blob::Blobs as _;
use checkrein_shared::bus::Queue;
use checkrein_shared::coordinator::Receipt;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{CheckpointMessage, Evidence, Judgement, Producer, ReviewRequest, Role};
use checkrein_shared::time::Timestamp;

use crate::desk::{Desk, key, name, verdict};

async fn under_review(desk: &Desk) -> (TaskId, ReviewRequest) {
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    let mut reviews = desk.consume("reviews.local").await;
    let checkpoint = desk.checkpoint(&job).await;
    assert_eq!(desk.send(&checkpoint).await, Receipt::Accepted);
    let request = desk.take_review(reviews.as_mut()).await;
    assert_eq!(request.bindings, checkpoint.bindings());
    (task, request)
}

#[tokio::test]
async fn a_signed_approval_of_the_right_hashes_completes_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let (task, request) = under_review(&desk).await;
    desk.judge(&request, &verdict(&request, Judgement::Approved), &key(1)).await;
    desk.until(&task, TaskState::Completed).await;
    desk.close().await;
}

#[tokio::test]
async fn a_verdict_signed_by_anybody_else_approves_nothing_and_a_person_hears_of_it() {
    for (seed, identity) in [(2, "reviewer"), (9, "reviewer"), (1, "somebody")] {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::open(folder.path()).await;
        let (task, request) = under_review(&desk).await;
        let mut forged = verdict(&request, Judgement::Approved);
        forged.reviewer.identity = name(identity);
        desk.judge(&request, &forged, &key(seed)).await;
        desk.until(&task, TaskState::Waiting).await;
        let view = desk.api.task(&task).await.unwrap();
        assert!(view.reviews.iter().all(|review| review.verdict.is_none()), "{:?}", view.reviews);
        desk.close().await;
    }
}

#[tokio::test]
async fn a_verdict_about_one_checkpoint_that_is_bound_to_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let (task, request) = under_review(&desk).await;
    let mut crooked = verdict(&request, Judgement::Approved);
    crooked.checkpoint_hash = Digest::of("another");
    desk.judge(&request, &crooked, &key(1)).await;
    desk.until(&task, TaskState::Waiting).await;
    desk.close().await;
}

#[tokio::test]
async fn a_verdict_whose_own_evidence_is_not_stored_approves_nothing_and_what_is_stored_is_young_again() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let (task, request) = under_review(&desk).await;
    let mut judged = verdict(&request, Judgement::Approved);
    let log = desk.blobs.put(b"a pass that was remembered").await.unwrap();
    let hex = log.to_hex();
    let path = folder.path().join("blobs").join(&hex[..2]).join(&hex[2..4]).join(&hex);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let evidence = |digest: Digest| Evidence {
        digest,
        size: 26,
        media_type: "text/plain".into(),
        produced_by: Producer { role: Role::Reviewer, instance: name("reviewer") },
        step: None,
        created_at: Timestamp::now(),
        redactions: Default::default(),
        dropped_bytes: 0,
    };
    let entries = [("file:too-large.bin", Digest::of("named only")), ("log:unit", log)];
    judged.evidence.entries = entries.map(|(name, digest)| (name.parse().unwrap(), evidence(digest))).into();
    desk.judge(&request, &judged, &key(1)).await;
    desk.until(&task, TaskState::Completed).await;
    assert!(std::fs::metadata(&path).unwrap().modified().unwrap() > std::time::UNIX_EPOCH);
    let (task, request) = under_review(&desk).await;
    let mut hollow = verdict(&request, Judgement::Approved);
    hollow.evidence.entries.insert("log:unit".parse().unwrap(), evidence(Digest::of("never stored")));
    desk.judge(&request, &hollow, &key(1)).await;
    desk.until(&task, TaskState::Waiting).await;
    desk.close().await;
}

#[tokio::test]
async fn a_checkpoint_that_names_a_blob_which_is_not_stored_never_enters_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    let mut checkpoint = desk.checkpoint(&job).await;
    checkpoint.evidence.index = Digest::of("never stored");
    let checkpoint = checkpoint.seal().unwrap();
    let Receipt::Refused { reason } = desk.send(&checkpoint).await else { panic!("it was not refused") };
    assert!(reason.contains("not stored"), "{reason}");
    assert!(desk.api.checkpoints(&task).await.unwrap().is_empty());
    desk.close().await;
}

#[tokio::test]
async fn a_checkpoint_whose_content_does_not_have_its_hash_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    let mut checkpoint = desk.checkpoint(&job).await;
    checkpoint.objective.text = "something else".into();
    let bytes = checkrein_shared::json::canonical(&checkpoint).unwrap();
    let record = desk.blobs.put(&bytes).await.unwrap();
    let body = CheckpointMessage {
        task_id: task.clone(),
        checkpoint_id: checkpoint.checkpoint_id.clone(),
        epoch: checkpoint.epoch,
        record,
        completes: None,
    };
    let mut dead = 0;
    desk.publish("checkpoint", &task, checkpoint.epoch, Queue::InWorker, &body).await;
    // The message is refused for good; the task stays with its worker.
    while desk.bus.depth(&Queue::InWorker).is_some_and(|depth| depth.ready + depth.unsettled > 0) && dead < 200 {
        dead += 1;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(desk.api.checkpoints(&task).await.unwrap().is_empty());
    assert_eq!(desk.api.task(&task).await.unwrap().summary.state, TaskState::Running);
    desk.close().await;
}
