//! How jobs are taken.

use checkrein_shared::bus::{Bus, Message, Queue};
use checkrein_shared::records::AttemptOutcome;

use crate::support::{Bench, WorkerOptions, sh, task_id, task_of, text_of};
use crate::tests;

tests![
    a_message_that_is_no_job_is_put_aside,
    a_job_that_is_not_wanted_any_more_is_dropped,
    two_slots_run_two_tasks_at_a_time,
    a_long_job_keeps_its_lease,
];

async fn a_message_that_is_no_job_is_put_aside() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let worker = bench.worker(WorkerOptions::default());
    let queue = Queue::Jobs("default".parse().unwrap());
    let message = Message::new("m-1".parse().unwrap(), "job", task_id(1), 1, queue, "nonsense").unwrap();
    bench.bus.publish(message).await.unwrap();
    let mut dead = bench.bus.consume(&Queue::Dead, 1).await.unwrap();
    let delivery = tokio::time::timeout(std::time::Duration::from_secs(30), dead.next()).await.unwrap().unwrap();
    assert_eq!(delivery.message.id.as_str(), "m-1");
    worker.stop().await;
}

async fn a_job_that_is_not_wanted_any_more_is_dropped() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("a", &[], "echo b > a.txt")]);
    let job = bench.task(&spec).await;
    bench.dispatch(&job).await;
    let newer = bench.next(&job, job.kind.clone());
    bench.dispatch(&newer).await;
    let worker = bench.worker(WorkerOptions::default());
    bench.wait("a checkpoint", |state| state.chain.first().cloned()).await;
    worker.stop().await;
    assert_eq!(bench.judge.state().chain[0].checkpoint.epoch, 2);
    assert_eq!(bench.counts(&job.task_id), (1, 0));
}

async fn two_slots_run_two_tasks_at_a_time() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let meeting = bench.dir.path().join("meeting");
    std::fs::create_dir(&meeting).unwrap();
    // Each waits for the other: with one slot neither would end. Links are made by this test's own process below.
    let script = format!("for i in $(seq 600); do test -e {}/go && exit 9; sleep 0.05; done", meeting.display());
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("wait", &[], &script)]);
    let worker = bench.worker(WorkerOptions { slots: 2, ..Default::default() });
    let one = bench.task(&spec).await;
    let mut two = one.clone();
    (two.task_id, two.job_id) = (task_id(2), task_id(2).job(1));
    bench.dispatch(&one).await;
    bench.dispatch(&two).await;
    bench.wait("both leases", |state| (state.leased.len() == 2).then_some(())).await;
    std::fs::write(meeting.join("go"), "").unwrap();
    for job in [&one, &two] {
        let outcome = bench.report(job).await.outcome;
        assert!(matches!(outcome, AttemptOutcome::StepFailed { ref error, .. } if error.text.contains("exit code 9")));
    }
    worker.stop().await;
}

async fn a_long_job_keeps_its_lease() {
    let bench = Bench::new(&[("a.txt", "a\n")]).await;
    let spec = task_of(text_of(&bench.project), None, &[], vec![sh("a", &[], "sleep 1.5; exit 4")]);
    let worker = bench.worker(WorkerOptions::default());
    let job = bench.task(&spec).await;
    let outcome = bench.outcome(&job).await;
    worker.stop().await;
    assert!(matches!(outcome, AttemptOutcome::StepFailed { .. }), "{outcome:?}");
    assert!(bench.judge.state().heartbeats >= 4, "the lease of 600 ms was renewed several times");
}
