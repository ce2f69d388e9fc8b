//! Who may have a job, and what a worker is told.

use checkrein_shared::api::{Action, TaskState};
use checkrein_shared::coordinator::{Directive, LeaseAnswer, Receipt};
use checkrein_shared::records::{JobMessage, Trigger};

use crate::desk::{Desk, name};

#[tokio::test]
async fn of_twenty_workers_that_ask_at_once_one_gets_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    desk.submit().await;
    let mut jobs = desk.consume("jobs.local").await;
    let delivery = jobs.next().await.unwrap();
    let message: JobMessage = delivery.message.parse("job message").unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("worker-{n}")).collect();
    let mut granted = 0;
    let mut asking = tokio::task::JoinSet::new();
    for worker in names {
        let coordinator = desk.coordinator.clone();
        let request = checkrein_shared::coordinator::LeaseRequest {
            task_id: message.task_id.clone(),
            job_id: message.job_id.clone(),
            epoch: message.epoch,
            worker: name(&worker),
        };
        asking.spawn(async move { coordinator.take_lease(request).await.unwrap() });
    }
    while let Some(answer) = asking.join_next().await {
        granted += u32::from(matches!(answer.unwrap(), LeaseAnswer::Granted { .. }));
    }
    assert_eq!(granted, 1);
    desk.close().await;
}

#[tokio::test]
async fn heartbeats_tell_the_worker_what_people_want() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    let worker = name("worker");
    let beat = async |epoch| desk.coordinator.heartbeat(&task, epoch, &worker).await.unwrap();
    assert_eq!(beat(job.epoch).await, Directive::Continue);
    assert_eq!(beat(job.epoch + 1).await, Directive::Lost);
    assert_eq!(desk.coordinator.heartbeat(&task, job.epoch, &name("other")).await.unwrap(), Directive::Lost);
    desk.api.act(&task, Action::Pause {}, "ada").await.unwrap();
    assert_eq!(beat(job.epoch).await, Directive::Park);
    desk.api.act(&task, Action::Cancel {}, "ada").await.unwrap();
    assert_eq!(beat(job.epoch).await, Directive::Stop);
    assert_eq!(desk.api.task(&task).await.unwrap().summary.state, TaskState::Cancelling);
    desk.close().await;
}

#[tokio::test]
async fn while_work_goes_on_a_review_that_only_watches_is_about_the_newest_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    assert_eq!(desk.coordinator.current_bindings(&task).await.unwrap(), None);
    let mut watched = desk.checkpoint(&job).await;
    (watched.gate, watched.trigger) = (false, Trigger::PlanSubgraphDone);
    let watched = watched.seal().unwrap();
    assert_eq!(desk.send(&watched).await, Receipt::Accepted);
    assert_eq!(desk.coordinator.current_bindings(&task).await.unwrap(), Some(watched.bindings()));
    desk.close().await;
}

#[tokio::test]
async fn of_twenty_people_who_claim_at_once_one_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    // The job's message dies, so that a person is asked.
    for _ in 0..64 {
        if desk.api.task(&task).await.unwrap().summary.state == TaskState::Waiting {
            break;
        }
        let mut jobs = desk.consume("jobs.local").await;
        let next = tokio::time::timeout(std::time::Duration::from_millis(200), jobs.next()).await;
        if let Ok(Some(delivery)) = next {
            delivery.reject().await.unwrap();
        }
    }
    desk.until(&task, TaskState::Waiting).await;
    let mut claiming = tokio::task::JoinSet::new();
    for person in 0..20 {
        let (api, task) = (desk.api.clone(), task.clone());
        claiming.spawn(async move { api.act(&task, Action::Claim {}, &format!("p{person}")).await.is_ok() });
    }
    let mut won = 0;
    while let Some(claimed) = claiming.join_next().await {
        won += u32::from(claimed.unwrap());
    }
    assert_eq!(won, 1);
    assert!(desk.api.inbox().await.unwrap()[0].claimed_by.is_some());
    desk.close().await;
}
