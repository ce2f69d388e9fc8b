//! What an orchestrator finds again after its process ended.

use checkrein_shared::api::TaskState;
use checkrein_shared::coordinator::Receipt;
use checkrein_shared::records::Judgement;

use crate::desk::{Desk, key, verdict};

#[tokio::test]
async fn a_running_attempt_is_given_out_again_and_the_old_one_is_fenced_off() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let old = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    desk.close().await;

    let desk = Desk::open(folder.path()).await;
    let new = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    assert!(new.epoch > old.epoch);
    let late = desk.checkpoint(&old).await;
    assert!(matches!(desk.send(&late).await, Receipt::Refused { .. }));
    assert_eq!(desk.send(&desk.checkpoint(&new).await).await, Receipt::Accepted);
    desk.until(&task, TaskState::Reviewing).await;
    desk.close().await;
}

#[tokio::test]
async fn a_review_that_was_asked_for_is_asked_for_again_and_its_verdict_counts() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    assert_eq!(desk.send(&desk.checkpoint(&job).await).await, Receipt::Accepted);
    desk.until(&task, TaskState::Reviewing).await;
    let before = desk.api.task(&task).await.unwrap();
    desk.close().await;

    let desk = Desk::open(folder.path()).await;
    let request = desk.take_review(desk.consume("reviews.local").await.as_mut()).await;
    assert_eq!(Some(request.bindings.checkpoint_hash), before.head.map(|head| head.hash));
    desk.judge(&request, &verdict(&request, Judgement::Approved), &key(1)).await;
    desk.until(&task, TaskState::Completed).await;
    let chain = desk.api.checkpoints(&task).await.unwrap();
    assert!(chain.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence), "{chain:?}");
    desk.close().await;
}
