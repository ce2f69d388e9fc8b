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

#[tokio::test]
async fn a_question_that_expired_while_nothing_ran_can_still_be_answered_for_five_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let ask = "rules:\n- {id: ask, on: [round], when: 'true', action: escalate}\n";
    let task = desk.submit_with(ask).await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    assert_eq!(desk.send(&desk.checkpoint(&job).await).await, Receipt::Accepted);
    let request = desk.take_review(desk.consume("reviews.local").await.as_mut()).await;
    desk.judge(&request, &verdict(&request, Judgement::Approved), &key(1)).await;
    desk.until(&task, TaskState::Waiting).await;
    let before = desk.api.inbox().await.unwrap().remove(0);
    desk.close().await;

    let desk = Desk::open_days_later(folder.path(), 400).await;
    let after = desk.api.inbox().await.unwrap().remove(0);
    assert_eq!((after.id, desk.api.task(&task).await.unwrap().summary.state), (before.id, TaskState::Waiting));
    assert!(after.deadline > before.deadline);
    let events = desk.api.events(&task, 0, 0).await.unwrap();
    assert!(events.last().unwrap().text.contains("expires in five minutes"), "{events:?}");
    desk.close().await;
}
