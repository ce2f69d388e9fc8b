use std::time::Duration;

use proptest::prelude::*;

use super::super::{Death, DeathReason, MESSAGE_BYTES_MAX};
use super::*;

fn jobs() -> Queue {
    Queue::Jobs("default".parse().unwrap())
}

fn message(number: u32, queue: Queue) -> Message {
    let id = format!("m-{number}").parse().unwrap();
    Message::new(id, "job", "t-1".parse().unwrap(), 1, queue, &number).unwrap()
}

fn numbered(delivery: &Delivery) -> u32 {
    delivery.message.parse("number").unwrap()
}

async fn bus(limits: Limits) -> EmbeddedBus {
    let bus = EmbeddedBus::with_limits(limits);
    bus.declare(&jobs()).await.unwrap();
    bus
}

fn small() -> Limits {
    Limits { queue_length_max: 3, delivery_limit: 2 }
}

#[tokio::test]
async fn a_message_without_a_declared_queue_is_refused() {
    let bus = EmbeddedBus::new();
    assert!(matches!(bus.publish(message(1, jobs())).await, Err(PublishError::Unroutable(queue)) if queue == jobs()));
    assert!(matches!(bus.consume(&jobs(), 1).await.err(), Some(ConsumeError::NoSuchQueue(_))));
    assert!(matches!(bus.consume(&Queue::InWorker, 0).await.err(), Some(ConsumeError::NoPrefetch(_))));
}

#[tokio::test]
async fn a_full_queue_refuses_until_something_is_settled() {
    let bus = bus(small()).await;
    for number in 0..3 {
        bus.publish(message(number, jobs())).await.unwrap();
    }
    assert!(matches!(bus.publish(message(3, jobs())).await, Err(PublishError::Full { length: 3, .. })));
    let mut consumer = bus.consume(&jobs(), 1).await.unwrap();
    let delivery = consumer.next().await.unwrap();
    assert!(bus.publish(message(3, jobs())).await.is_err(), "an unsettled message still counts");
    delivery.ack().await.unwrap();
    bus.publish(message(3, jobs())).await.unwrap();
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let bus = bus(Limits::default()).await;
    let mut large = message(1, jobs());
    large.body = vec![b'x'; MESSAGE_BYTES_MAX + 1];
    assert!(matches!(bus.publish(large).await, Err(PublishError::Invalid(_))));
}

#[tokio::test]
async fn what_a_dropped_consumer_held_comes_back_in_order_and_counted() {
    let bus = bus(Limits::default()).await;
    for number in 0..4 {
        bus.publish(message(number, jobs())).await.unwrap();
    }
    let mut consumer = bus.consume(&jobs(), 3).await.unwrap();
    let (first, second) = (consumer.next().await.unwrap(), consumer.next().await.unwrap());
    second.ack().await.unwrap();
    let third = consumer.next().await.unwrap();
    drop(consumer);
    assert_eq!(first.ack().await, Err(SettleError::Stale));
    drop(third);

    let mut consumer = bus.consume(&jobs(), 9).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let delivery = consumer.next().await.unwrap();
        seen.push((numbered(&delivery), delivery.delivery_count));
    }
    assert_eq!(seen, [(0, 1), (2, 1), (3, 0)]);
}

#[tokio::test]
async fn one_poison_message_dies_alone() {
    let bus = bus(Limits::default()).await;
    for number in 0..10 {
        bus.publish(message(number, jobs())).await.unwrap();
    }
    let (mut done, mut crashes) = (Vec::new(), 0);
    while done.len() < 9 {
        // Each consumer handles messages until it meets number 4, which kills it.
        let mut consumer = bus.consume(&jobs(), 1).await.unwrap();
        while done.len() < 9 {
            let delivery = consumer.next().await.unwrap();
            match numbered(&delivery) {
                4 => {
                    crashes += 1;
                    break;
                }
                number => done.push(number),
            }
            delivery.ack().await.unwrap();
        }
        assert!(crashes < 100, "the poison never dies");
    }
    assert_eq!(done, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(crashes, DELIVERY_LIMIT + 1);
    let mut dead = bus.consume(&Queue::Dead, 1).await.unwrap();
    let delivery = dead.next().await.unwrap();
    assert_eq!((numbered(&delivery), delivery.delivery_count), (4, 0));
    assert_eq!(delivery.death, Some(Death { queue: jobs(), reason: DeathReason::DeliveryLimit }));
}

#[tokio::test]
async fn rejected_messages_wait_in_their_queue_while_the_dead_queue_is_full() {
    let bus = bus(small()).await;
    let mut consumer = bus.consume(&jobs(), 1).await.unwrap();
    for number in 0..5 {
        bus.publish(message(number, jobs())).await.unwrap();
        consumer.next().await.unwrap().reject().await.unwrap();
    }
    assert_eq!(bus.depth(&Queue::Dead).unwrap().ready, 3);
    assert_eq!(bus.depth(&jobs()).unwrap().dying, 2);
    let mut dead = bus.consume(&Queue::Dead, 1).await.unwrap();
    for number in 0..5 {
        let delivery = dead.next().await.unwrap();
        assert_eq!(numbered(&delivery), number);
        assert_eq!(delivery.death.as_ref().unwrap().reason, DeathReason::Rejected);
        delivery.ack().await.unwrap();
    }
    assert_eq!(bus.depth(&jobs()).unwrap(), Depth::default());
}

#[tokio::test]
async fn the_prefetch_of_one_consumer_leaves_the_rest_to_another() {
    let bus = bus(Limits::default()).await;
    for number in 0..10 {
        bus.publish(message(number, jobs())).await.unwrap();
    }
    let (mut slow, mut other) = (bus.consume(&jobs(), 2).await.unwrap(), bus.consume(&jobs(), 1).await.unwrap());
    let _held = (slow.next().await.unwrap(), slow.next().await.unwrap());
    let waiting = tokio::time::timeout(Duration::from_millis(20), slow.next()).await;
    assert!(waiting.is_err(), "a third delivery would exceed the prefetch");
    assert_eq!(numbered(&other.next().await.unwrap()), 2);
}

#[tokio::test]
async fn a_waiting_consumer_wakes_for_a_message_and_for_the_end() {
    let bus = bus(Limits::default()).await;
    let mut consumer = bus.consume(&jobs(), 1).await.unwrap();
    let task = tokio::spawn(async move {
        let delivery = consumer.next().await.unwrap();
        let number = numbered(&delivery);
        delivery.ack().await.unwrap();
        (number, consumer.next().await.is_none())
    });
    tokio::task::yield_now().await;
    bus.publish(message(7, jobs())).await.unwrap();
    while bus.depth(&jobs()).unwrap() != Depth::default() {
        tokio::task::yield_now().await;
    }
    bus.close();
    assert_eq!(task.await.unwrap(), (7, true));
    assert!(matches!(bus.publish(message(8, jobs())).await, Err(PublishError::Unavailable(_))));
}

#[derive(Debug, Clone)]
enum Act {
    Publish,
    Take(usize),
    Settle(usize, Settlement),
    Crash(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let settlement = prop_oneof![Just(Settlement::Ack), Just(Settlement::Requeue), Just(Settlement::Reject)];
    prop::collection::vec(
        prop_oneof![
            3 => Just(Act::Publish),
            3 => (0..3usize).prop_map(Act::Take),
            2 => (any::<prop::sample::Index>(), settlement).prop_map(|(index, s)| Act::Settle(index.index(64), s)),
            1 => (0..3usize).prop_map(Act::Crash),
        ],
        0..120,
    )
}

proptest! {
    /// Whatever consumers do, every message that was taken is either acknowledged or still in a queue.
    #[test]
    fn no_message_is_ever_lost(acts in acts()) {
        let mut broker = Broker::new(Limits { queue_length_max: 5, delivery_limit: 3 });
        broker.declare(&jobs()).unwrap();
        let mut consumers: Vec<ConsumerId> = (0..3).map(|_| broker.attach(&jobs(), 2).unwrap()).collect();
        let mut held: Vec<Tag> = Vec::new();
        let (mut published, mut acknowledged) = (0usize, 0usize);
        for act in acts {
            match act {
                Act::Publish => published += usize::from(broker.publish(message(0, jobs())).is_ok()),
                Act::Take(which) => if let Taken::Message { tag, .. } = broker.take(consumers[which]) { held.push(tag) },
                Act::Settle(index, settlement) => if !held.is_empty() {
                    let tag = held.swap_remove(index % held.len());
                    let settled = broker.settle(tag, settlement).is_ok();
                    acknowledged += usize::from(settled && settlement == Settlement::Ack);
                },
                Act::Crash(which) => {
                    broker.detach(consumers[which]);
                    consumers[which] = broker.attach(&jobs(), 2).unwrap();
                }
            }
            let (live, dead) = (broker.depth(&jobs()).unwrap(), broker.depth(&Queue::Dead).unwrap());
            prop_assert_eq!(published, acknowledged + live.total() + dead.total());
            prop_assert!(live.total() <= 5 && dead.total() <= 5);
            prop_assert!(live.unsettled <= 6);
        }
    }
}
