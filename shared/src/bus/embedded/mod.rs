//! The bus inside one process: what AMQP does for several, in memory.
//!
//! It keeps nothing across a restart. That is enough, because the store sends
//! again whatever its tasks still want. All behaviour is in [`broker`], which is
//! plain data; this file adds the waiting.

mod broker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{
    Bus, ConsumeError, Consumer, DELIVERY_LIMIT, Delivery, Message, PublishError, QUEUE_LENGTH_MAX, Queue, Settle,
    SettleError, Settlement,
};
use broker::{Broker, ConsumerId, Tag, Taken};

pub use broker::Depth;

/// The bounds of the queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many messages a queue holds before it refuses more.
    pub queue_length_max: usize,
    /// How often a message may come back before it goes to [`Queue::Dead`].
    pub delivery_limit: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue_length_max: QUEUE_LENGTH_MAX, delivery_limit: DELIVERY_LIMIT }
    }
}

/// A bus in memory. Clones are the same bus.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedBus {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    broker: Mutex<Broker>,
    /// Woken whenever a consumer might get something that it could not get before.
    changed: Notify,
}

impl Shared {
    /// A panic in another thread can't leave the broker half-changed: it calls no foreign code.
    fn broker(&self) -> MutexGuard<'_, Broker> {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EmbeddedBus {
    /// A bus with `in.worker`, `in.reviewer` and `dead`; pools are declared later.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`EmbeddedBus::new`], with other bounds.
    pub fn with_limits(limits: Limits) -> Self {
        Self { shared: Arc::new(Shared { broker: Mutex::new(Broker::new(limits)), changed: Notify::new() }) }
    }

    /// How full a queue is; `None` where it is not declared.
    pub fn depth(&self, queue: &Queue) -> Option<Depth> {
        self.shared.broker().depth(queue)
    }

    /// Shuts the bus down: consumers end, and nothing more is taken.
    pub fn close(&self) {
        self.shared.broker().close();
        self.shared.changed.notify_waiters();
    }
}

#[async_trait]
impl Bus for EmbeddedBus {
    async fn declare(&self, queue: &Queue) -> Result<(), ConsumeError> {
        self.shared.broker().declare(queue)
    }

    async fn publish(&self, message: Message) -> Result<(), PublishError> {
        message.check()?;
        self.shared.broker().publish(message)?;
        self.shared.changed.notify_waiters();
        Ok(())
    }

    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Box<dyn Consumer>, ConsumeError> {
        let id = self.shared.broker().attach(queue, prefetch)?;
        Ok(Box::new(EmbeddedConsumer { shared: Arc::clone(&self.shared), id }))
    }
}

struct EmbeddedConsumer {
    shared: Arc<Shared>,
    id: ConsumerId,
}

#[async_trait]
impl Consumer for EmbeddedConsumer {
    async fn next(&mut self) -> Option<Delivery> {
        loop {
            // Listen before looking, or a message that arrives in between wakes nobody.
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let taken = self.shared.broker().take(self.id);
            match taken {
                Taken::Message { tag, message, delivery_count, death } => {
                    let settle = Box::new(Held { shared: Arc::clone(&self.shared), tag });
                    return Some(Delivery::new(message, delivery_count, death, settle));
                }
                Taken::Nothing => changed.await,
                Taken::Closed => return None,
            }
        }
    }
}

impl Drop for EmbeddedConsumer {
    fn drop(&mut self) {
        self.shared.broker().detach(self.id);
        self.shared.changed.notify_waiters();
    }
}

struct Held {
    shared: Arc<Shared>,
    tag: Tag,
}

#[async_trait]
impl Settle for Held {
    async fn settle(&self, settlement: Settlement) -> Result<(), SettleError> {
        self.shared.broker().settle(self.tag, settlement)?;
        self.shared.changed.notify_waiters();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
