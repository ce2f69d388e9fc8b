//! A bus that keeps its promise, at least once, and no other: it delays, reorders and duplicates, and drops now and
//! then even what it has confirmed. What a dead consumer held comes again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use checkrein_shared::bus::{Bus, ConsumeError, Consumer, DELIVERY_LIMIT, DeathReason, Message, PublishError, Queue};
use tokio::sync::Notify;

use crate::exec::Process;

/// What the bus does to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    /// It is not taken.
    pub(crate) refused: bool,
    /// How many copies arrive; 0: it is lost after it was confirmed.
    pub(crate) copies: u8,
    /// When it arrives at the earliest, in milliseconds from now.
    pub(crate) delay: u64,
    /// The publisher dies before it hears of the confirmation.
    pub(crate) publisher_dies: bool,
}

/// A message on its way or in somebody's hands.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) tag: u64,
    pub(crate) message: Message,
    pub(crate) death: Option<DeathReason>,
    count: u32,
    visible_at: u64,
}

#[derive(Default)]
struct Inner {
    queues: BTreeMap<Queue, Vec<Item>>,
    held: BTreeMap<u64, (Process, Item)>,
    tags: u64,
    /// The ids of messages that the orchestrator has published, for whoever watches.
    published: Vec<Message>,
}

/// What decides about the fate of a message, and what is told when its publisher is to die.
pub(crate) trait Weather: Send + Sync {
    fn fate(&self, message: &Message) -> Fate;
    fn kill_publisher(&self);
    fn now(&self) -> u64;
}

pub(crate) struct SimBus {
    inner: Mutex<Inner>,
    weather: Arc<dyn Weather>,
    pub(crate) changed: Notify,
}

impl SimBus {
    pub(crate) fn new(weather: Arc<dyn Weather>) -> Self {
        Self { inner: Mutex::default(), weather, changed: Notify::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Message, fate: Fate) {
        let mut inner = self.inner();
        for copy in 0..u64::from(fate.copies) {
            inner.tags += 1;
            let visible_at = self.weather.now() + fate.delay * (copy + 1);
            let item = Item { tag: inner.tags, message: message.clone(), death: None, count: 0, visible_at };
            inner.queues.entry(message.queue.clone()).or_default().push(item);
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// A worker or reviewer publishes.
    pub(crate) fn send(&self, message: Message) -> bool {
        let fate = self.weather.fate(&message);
        if !fate.refused {
            self.put(message, fate);
        }
        !fate.refused
    }

    /// Takes any of the messages that have arrived; else says when the next one will.
    pub(crate) fn take(
        &self,
        queue: &Queue,
        holder: Process,
        choose: impl FnOnce(usize) -> usize,
    ) -> Result<Item, Option<u64>> {
        let now = self.weather.now();
        let mut inner = self.inner();
        let waiting = inner.queues.entry(queue.clone()).or_default();
        let arrived: Vec<usize> = (0..waiting.len()).filter(|i| waiting[*i].visible_at <= now).collect();
        if arrived.is_empty() {
            return Err(waiting.iter().map(|item| item.visible_at).min());
        }
        let item = waiting.swap_remove(arrived[choose(arrived.len())]);
        inner.held.insert(item.tag, (holder, item.clone()));
        Ok(item)
    }

    pub(crate) fn ack(&self, tag: u64) {
        self.inner().held.remove(&tag);
    }

    pub(crate) fn reject(&self, tag: u64) {
        let mut inner = self.inner();
        if let Some((_, item)) = inner.held.remove(&tag) {
            bury(&mut inner, item, DeathReason::Rejected);
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Gives back what a dead process held.
    pub(crate) fn release(&self, holder: Process) {
        let mut inner = self.inner();
        let tags: Vec<u64> = inner.held.iter().filter(|(_, (p, _))| *p == holder).map(|(tag, _)| *tag).collect();
        for tag in tags {
            let Some((_, mut item)) = inner.held.remove(&tag) else { continue };
            item.count += 1;
            if item.count > DELIVERY_LIMIT && item.message.queue != Queue::Dead {
                bury(&mut inner, item, DeathReason::DeliveryLimit);
            } else {
                let queue = if item.death.is_some() { Queue::Dead } else { item.message.queue.clone() };
                inner.queues.entry(queue).or_default().push(item);
            }
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Forgets everything: the bus lived in the process that died.
    pub(crate) fn clear(&self) {
        let mut inner = self.inner();
        inner.queues.clear();
        inner.held.clear();
    }

    /// What the orchestrator has published since this was last asked.
    pub(crate) fn take_published(&self) -> Vec<Message> {
        std::mem::take(&mut self.inner().published)
    }
}

fn bury(inner: &mut Inner, mut item: Item, reason: DeathReason) {
    item.death = Some(reason);
    item.visible_at = 0;
    inner.queues.entry(Queue::Dead).or_default().push(item);
}

#[async_trait]
impl Bus for SimBus {
    async fn declare(&self, queue: &Queue) -> Result<(), ConsumeError> {
        self.inner().queues.entry(queue.clone()).or_default();
        Ok(())
    }

    async fn publish(&self, message: Message) -> Result<(), PublishError> {
        message.check()?;
        let fate = self.weather.fate(&message);
        if fate.refused {
            return Err(PublishError::Unavailable("the broker is away".to_owned()));
        }
        self.inner().published.push(message.clone());
        self.put(message, fate);
        if fate.publisher_dies {
            self.weather.kill_publisher();
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn consume(&self, queue: &Queue, _: u16) -> Result<Box<dyn Consumer>, ConsumeError> {
        // The simulation hands messages over itself.
        Err(ConsumeError::NoSuchQueue(queue.clone()))
    }
}
