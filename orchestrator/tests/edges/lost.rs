//! What the bus loses, and clocks that jump.

use checkrein_shared::coordinator::Directive;
use checkrein_shared::records::JobMessage;

use crate::desk::{Desk, name};

#[tokio::test]
async fn a_job_that_nobody_leased_is_published_again_with_the_same_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    desk.submit().await;
    let mut jobs = desk.consume("jobs.local").await;
    // Somebody takes the message, says that it has it, and is never seen again.
    let lost = jobs.next().await.unwrap();
    let first: JobMessage = lost.message.parse("job message").unwrap();
    lost.ack().await.unwrap();
    desk.clock.days(1);
    let again = tokio::time::timeout(std::time::Duration::from_secs(20), jobs.next()).await;
    let again = again.expect("the job comes again").unwrap();
    let second: JobMessage = again.message.parse("job message").unwrap();
    assert_eq!((&second.job_id, second.epoch), (&first.job_id, first.epoch));
    again.nack_requeue().await.unwrap();
    let job = desk.take_job(jobs.as_mut()).await;
    assert_eq!(job.epoch, first.epoch);
    desk.close().await;
}

#[tokio::test]
async fn a_jump_of_the_clock_on_the_wall_ends_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::open(folder.path()).await;
    let task = desk.submit().await;
    let job = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    desk.clock.days(30);
    let worker = name("worker");
    assert_ne!(desk.coordinator.heartbeat(&task, job.epoch, &worker).await.unwrap(), Directive::Lost);
    // Everything that was due by the wall has been looked at when another task's job has come.
    desk.submit().await;
    let other = desk.take_job(desk.consume("jobs.local").await.as_mut()).await;
    assert_ne!(other.task_id, task);
    assert_ne!(desk.coordinator.heartbeat(&task, job.epoch, &worker).await.unwrap(), Directive::Lost);
    desk.close().await;
}
