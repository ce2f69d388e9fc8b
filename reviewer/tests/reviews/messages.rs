//! What becomes of requests.

use checkrein_shared::bus::{Bus, Message, Queue};
use checkrein_shared::records::Judgement;

use super::bench::{Bench, Test, tests};
use super::task::{BUG, FIX, Task};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_request_that_can_not_be_read_goes_to_the_dead_letters,
        a_request_is_answered_when_the_orchestrator_is_back,
        an_orchestrator_that_never_answers_gives_no_approval,
        a_request_that_comes_twice_is_answered_twice_with_one_message_id,
        one_slot_serves_every_pool,
        a_reviewer_that_stops_gives_its_request_back,
    ]
}

async fn a_request_that_can_not_be_read_goes_to_the_dead_letters() {
    let bench = Bench::new().await;
    let mut dead = bench.bus.consume(&Queue::Dead, 1).await.unwrap();
    let queue = Queue::Reviews("default".parse().unwrap());
    let (id, task) = ("m-1".parse().unwrap(), "t-1".parse().unwrap());
    bench.bus.publish(Message::new(id, "review", task, 1, queue, "nonsense").unwrap()).await.unwrap();
    let delivery = dead.next().await.unwrap();
    assert_eq!(delivery.message.body, b"\"nonsense\"");
    delivery.ack().await.unwrap();
    bench.stop().await;
}

async fn a_request_is_answered_when_the_orchestrator_is_back() {
    let mut bench = Bench::new().await;
    *bench.current.unavailable.lock().unwrap() = 2;
    let verdict = bench.review(&Task::on(&BUG).write(FIX.0, FIX.1)).await;
    assert_eq!(verdict.verdict, Judgement::Approved);
    bench.stop().await;
}

async fn an_orchestrator_that_never_answers_gives_no_approval() {
    let mut bench = Bench::new().await;
    *bench.current.unavailable.lock().unwrap() = u32::MAX;
    let verdict = bench.review(&Task::on(&BUG).write(FIX.0, FIX.1)).await;
    assert_eq!(verdict.verdict, Judgement::Inconclusive);
    assert!(verdict.missing_evidence[0].contains("does not answer now"), "{:?}", verdict.missing_evidence);
    bench.stop().await;
}

async fn a_request_that_comes_twice_is_answered_twice_with_one_message_id() {
    let mut bench = Bench::new().await;
    let stored = bench.store(&Task::on(&BUG).write(FIX.0, FIX.1)).await;
    let (one, two) = (bench.ask(&stored.request).await, bench.ask(&stored.request).await);
    assert_eq!((one.verdict, &one.review_id, &one.bindings), (two.verdict, &two.review_id, &two.bindings));
    bench.stop().await;
}

async fn one_slot_serves_every_pool() {
    let mut bench = Bench::new().await;
    let stored = bench.store(&Task::on(&BUG).write(FIX.0, FIX.1)).await;
    for pool in ["default", "other", "default", "other"] {
        bench.send(pool, &stored.request).await;
    }
    for _ in 0..4 {
        assert_eq!(bench.verdict().await.verdict, Judgement::Approved);
    }
    bench.stop().await;
}

async fn a_reviewer_that_stops_gives_its_request_back() {
    let bench = Bench::new().await;
    let policy = "version: 1\nverifiers: {unit: {run: [sleep, '600'], timeout: 10m, network: none}}\n";
    let stored = bench.store(&Task::on(&BUG).policy(policy)).await;
    bench.send("default", &stored.request).await;
    let queue = Queue::Reviews("default".parse().unwrap());
    let bus = bench.bus.clone();
    while bus.depth(&queue).unwrap().unsettled == 0 {
        tokio::task::yield_now().await;
    }
    bench.stop().await;
    assert_eq!(bus.depth(&queue).unwrap().ready, 1);
}
