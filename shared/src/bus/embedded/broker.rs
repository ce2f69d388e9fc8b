//! The behaviour of the embedded bus as plain data: queues, holders, limits.
//!
//! Synchronous; knows no clock and wakes nobody. Its rules are those of a
//! RabbitMQ quorum queue with `reject-publish`, a delivery limit, and
//! at-least-once dead-lettering.

use std::collections::{BTreeMap, VecDeque};

use super::Limits;
use crate::bus::{ConsumeError, Death, DeathReason, Message, PublishError, Queue, SettleError, Settlement};

/// Names one delivery. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag(u64);

/// Names one consumer. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConsumerId(u64);

/// How full a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Messages that wait for a consumer.
    pub ready: usize,
    /// Messages in consumers' hands.
    pub unsettled: usize,
    /// Messages that wait for room in [`Queue::Dead`].
    pub dying: usize,
}

impl Depth {
    pub(super) fn total(self) -> usize {
        self.ready + self.unsettled + self.dying
    }
}

/// What [`Broker::take`] found.
#[derive(Debug)]
pub(super) enum Taken {
    Message { tag: Tag, message: Message, delivery_count: u32, death: Option<Death> },
    Nothing,
    Closed,
}

#[derive(Debug)]
struct Entry {
    /// Where it stands in the queue; kept when it comes back.
    order: u64,
    message: Message,
    returns: u32,
    death: Option<Death>,
}

#[derive(Debug, Default)]
struct QueueState {
    ready: VecDeque<Entry>,
    unsettled: BTreeMap<Tag, (ConsumerId, Entry)>,
    dying: VecDeque<(Entry, DeathReason)>,
}

impl QueueState {
    fn depth(&self) -> Depth {
        Depth { ready: self.ready.len(), unsettled: self.unsettled.len(), dying: self.dying.len() }
    }

    /// Puts an entry back where it stood.
    fn put_back(&mut self, entry: Entry) {
        let index = self.ready.partition_point(|other| other.order < entry.order);
        self.ready.insert(index, entry);
    }
}

#[derive(Debug)]
struct ConsumerState {
    queue: Queue,
    prefetch: usize,
    held: usize,
}

#[derive(Debug)]
pub(super) struct Broker {
    limits: Limits,
    queues: BTreeMap<Queue, QueueState>,
    consumers: BTreeMap<ConsumerId, ConsumerState>,
    holders: BTreeMap<Tag, Queue>,
    next: u64,
    closed: bool,
}

impl Default for Broker {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Broker {
    pub(super) fn new(limits: Limits) -> Self {
        let fixed = [Queue::InWorker, Queue::InReviewer, Queue::Dead];
        let queues = fixed.into_iter().map(|queue| (queue, QueueState::default())).collect();
        Self { limits, queues, consumers: BTreeMap::new(), holders: BTreeMap::new(), next: 0, closed: false }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn declare(&mut self, queue: &Queue) -> Result<(), ConsumeError> {
        if self.closed {
            return Err(ConsumeError::Unavailable("it is shut down".to_owned()));
        }
        self.queues.entry(queue.clone()).or_default();
        Ok(())
    }

    pub(super) fn depth(&self, queue: &Queue) -> Option<Depth> {
        self.queues.get(queue).map(QueueState::depth)
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn publish(&mut self, message: Message) -> Result<(), PublishError> {
        if self.closed {
            return Err(PublishError::Unavailable("it is shut down".to_owned()));
        }
        let order = self.number();
        let Some(state) = self.queues.get_mut(&message.queue) else {
            return Err(PublishError::Unroutable(message.queue));
        };
        let length = state.depth().total();
        if length >= self.limits.queue_length_max {
            return Err(PublishError::Full { queue: message.queue, length });
        }
        state.ready.push_back(Entry { order, message, returns: 0, death: None });
        Ok(())
    }

    pub(super) fn attach(&mut self, queue: &Queue, prefetch: u16) -> Result<ConsumerId, ConsumeError> {
        if self.closed {
            return Err(ConsumeError::Unavailable("it is shut down".to_owned()));
        }
        if prefetch == 0 {
            return Err(ConsumeError::NoPrefetch(queue.clone()));
        }
        if !self.queues.contains_key(queue) {
            return Err(ConsumeError::NoSuchQueue(queue.clone()));
        }
        let id = ConsumerId(self.number());
        self.consumers.insert(id, ConsumerState { queue: queue.clone(), prefetch: usize::from(prefetch), held: 0 });
        Ok(id)
    }

    /// Ends a consumer; what it has not settled comes back, and counts as a return.
    pub(super) fn detach(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumers.remove(&id) else { return };
        let Some(state) = self.queues.get_mut(&consumer.queue) else { return };
        let held: Vec<Tag> = state.unsettled.iter().filter(|(_, (by, _))| *by == id).map(|(tag, _)| *tag).collect();
        for tag in held {
            if let Some((_, entry)) =
                self.queues.get_mut(&consumer.queue).and_then(|state| state.unsettled.remove(&tag))
            {
                self.holders.remove(&tag);
                self.give_back(&consumer.queue, entry);
            }
        }
    }

    pub(super) fn take(&mut self, id: ConsumerId) -> Taken {
        if self.closed {
            return Taken::Closed;
        }
        let tag = Tag(self.number());
        let Some(consumer) = self.consumers.get_mut(&id) else { return Taken::Closed };
        let Some(state) = self.queues.get_mut(&consumer.queue) else { return Taken::Closed };
        if consumer.held >= consumer.prefetch {
            return Taken::Nothing;
        }
        let Some(entry) = state.ready.pop_front() else { return Taken::Nothing };
        consumer.held += 1;
        let taken = Taken::Message {
            tag,
            message: entry.message.clone(),
            delivery_count: entry.returns,
            death: entry.death.clone(),
        };
        state.unsettled.insert(tag, (id, entry));
        self.holders.insert(tag, consumer.queue.clone());
        taken
    }

    pub(super) fn settle(&mut self, tag: Tag, settlement: Settlement) -> Result<(), SettleError> {
        let queue = self.holders.remove(&tag).ok_or(SettleError::Stale)?;
        let (id, entry) =
            self.queues.get_mut(&queue).and_then(|state| state.unsettled.remove(&tag)).ok_or(SettleError::Stale)?;
        if let Some(consumer) = self.consumers.get_mut(&id) {
            consumer.held -= 1;
        }
        match settlement {
            Settlement::Ack => {}
            Settlement::Requeue => self.give_back(&queue, entry),
            Settlement::Reject => self.die(&queue, entry, DeathReason::Rejected),
        }
        if queue == Queue::Dead {
            self.bury_the_dying();
        }
        Ok(())
    }

    /// Counts a return, and queues the entry again or lets it die of too many.
    fn give_back(&mut self, queue: &Queue, mut entry: Entry) {
        entry.returns += 1;
        // The queue of the dead has no limit: nothing could be done with what exceeds it.
        if entry.returns > self.limits.delivery_limit && *queue != Queue::Dead {
            return self.die(queue, entry, DeathReason::DeliveryLimit);
        }
        if let Some(state) = self.queues.get_mut(queue) {
            state.put_back(entry);
        }
    }

    fn die(&mut self, queue: &Queue, entry: Entry, reason: DeathReason) {
        if *queue == Queue::Dead {
            // Rejecting the dead is how their consumer says that it has dealt with them.
            return;
        }
        tracing::warn!(message.id = %entry.message.id, %queue, ?reason, "a message goes to the dead-letter queue");
        if let Some(state) = self.queues.get_mut(queue) {
            state.dying.push_back((entry, reason));
        }
        self.bury_the_dying();
    }

    /// Moves the dying to the queue of the dead as far as it has room; the rest stays where it was.
    fn bury_the_dying(&mut self) {
        let Some(mut dead) = self.queues.remove(&Queue::Dead) else { return };
        'room: for (queue, state) in &mut self.queues {
            while let Some((mut entry, reason)) = state.dying.pop_front() {
                if dead.depth().total() >= self.limits.queue_length_max {
                    state.dying.push_front((entry, reason));
                    break 'room;
                }
                self.next += 1;
                entry.order = self.next;
                entry.returns = 0;
                entry.death = Some(Death { queue: queue.clone(), reason });
                dead.ready.push_back(entry);
            }
        }
        self.queues.insert(Queue::Dead, dead);
    }
}
