//! Messages that lie about who sent them or what they hold.

use checkrein_shared::api::TaskState;
use checkrein_shared::blob::Blobs as _;
use checkrein_shared::bus::Queue;
use checkrein_shared::coordinator::Receipt;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{CheckpointMessage, Judgement, ReviewRequest};

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
