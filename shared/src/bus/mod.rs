//! The bus: the seam over which records travel between the roles.
//!
//! Delivery is at least once and in no promised order: consumers recognise a
//! message by its id, commit what follows from it, and acknowledge then. The
//! store is the durable truth and publishes again what the bus lost; nothing
//! here decides what a message means, and nothing here retries with a delay
//! (back-off is a timer of the store).

mod embedded;
mod message;
mod queue;

use async_trait::async_trait;

pub use embedded::{Depth, EmbeddedBus, Limits};
pub use message::{InvalidMessage, KIND_BYTES_MAX, MESSAGE_BYTES_MAX, Message};
pub use queue::{InvalidPool, InvalidQueue, Pool, Queue};

/// How many messages a queue holds before it refuses more.
pub const QUEUE_LENGTH_MAX: usize = 100_000;

/// How often a message may come back unacknowledged; the next time it goes to [`Queue::Dead`].
pub const DELIVERY_LIMIT: u32 = 20;

/// Why the bus did not take a message. The message is not queued; publish it again later.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// No queue with this name has been declared.
    #[error("no queue `{0}` is declared, so nobody would ever get the message")]
    Unroutable(Queue),
    /// The queue is full.
    #[error("queue `{queue}` is full with {length} messages")]
    Full {
        /// The queue.
        queue: Queue,
        /// How many messages it holds.
        length: usize,
    },
    /// The message breaks a limit; it will never be taken.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
    /// The bus is shut down, or can't be reached now.
    #[error("the bus is not available: {0}")]
    Unavailable(String),
}

/// Why a queue can't be declared or consumed.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    /// No queue with this name has been declared.
    #[error("no queue `{0}` is declared: start the orchestrator first, it declares the queues")]
    NoSuchQueue(Queue),
    /// Without a limit one consumer would hoard the queue.
    #[error("a consumer of `{0}` needs a prefetch of at least 1")]
    NoPrefetch(Queue),
    /// The bus is shut down, or can't be reached now.
    #[error("the bus is not available: {0}")]
    Unavailable(String),
}

/// Why a delivery could not be settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettleError {
    /// The consumer or its connection is gone, so the message will be delivered again.
    /// This is no fault: whoever gets it next recognises its id.
    #[error("the delivery is no longer held: the message will be delivered again")]
    Stale,
    /// The bus can't be reached now.
    #[error("the bus is not available: {0}")]
    Unavailable(String),
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// What follows from it is committed; the message is done.
    Ack,
    /// Deliver it again at once; counts towards [`DELIVERY_LIMIT`].
    Requeue,
    /// It can never be handled: to [`Queue::Dead`].
    Reject,
}

/// The side of a delivery that an implementation supplies.
#[async_trait]
pub trait Settle: Send + Sync {
    /// Settles the delivery.
    async fn settle(&self, settlement: Settlement) -> Result<(), SettleError>;
}

/// Why and where a message died, for the consumer of [`Queue::Dead`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The queue that it came from.
    pub queue: Queue,
    /// Why it is here.
    pub reason: DeathReason,
}

/// Why a message died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeathReason {
    /// A consumer rejected it.
    Rejected,
    /// It came back too often: handling it probably kills its consumers.
    DeliveryLimit,
}

/// A message in a consumer's hands.
///
/// Dropping it settles nothing: the message stays with the consumer, and comes
/// back when that is dropped, as it would when the process dies.
#[must_use = "an unsettled delivery uses up the consumer's prefetch"]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// How often it came back before; 0 the first time.
    pub delivery_count: u32,
    /// Why it died, on [`Queue::Dead`].
    pub death: Option<Death>,
    settle: Box<dyn Settle>,
}

impl Delivery {
    /// Makes a delivery; for implementations of [`Bus`].
    pub fn new(message: Message, delivery_count: u32, death: Option<Death>, settle: Box<dyn Settle>) -> Self {
        Self { message, delivery_count, death, settle }
    }

    /// Says that what follows from the message is committed.
    ///
    /// # Errors
    ///
    /// [`SettleError`]: the message will come again.
    pub async fn ack(self) -> Result<(), SettleError> {
        self.settle.settle(Settlement::Ack).await
    }

    /// Gives the message back for immediate redelivery. Each time counts towards
    /// [`DELIVERY_LIMIT`]: to wait, commit a timer and acknowledge instead.
    ///
    /// # Errors
    ///
    /// [`SettleError`]: the message will come again anyway.
    pub async fn nack_requeue(self) -> Result<(), SettleError> {
        self.settle.settle(Settlement::Requeue).await
    }

    /// Sends the message to [`Queue::Dead`], because it can never be handled.
    ///
    /// # Errors
    ///
    /// [`SettleError`]: the message will come again.
    pub async fn reject(self) -> Result<(), SettleError> {
        self.settle.settle(Settlement::Reject).await
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("message", &self.message)
            .field("delivery_count", &self.delivery_count)
            .field("death", &self.death)
            .finish_non_exhaustive()
    }
}

/// Takes messages from one queue. Dropping it gives back what it has not settled.
#[async_trait]
pub trait Consumer: Send {
    /// Waits for the next message. Holds back while the prefetch is used up.
    /// `None` means that the bus is shut down. Safe to cancel: no message is lost.
    async fn next(&mut self) -> Option<Delivery>;
}

/// A message bus.
#[async_trait]
pub trait Bus: Send + Sync {
    /// Makes sure that a queue exists. Only the orchestrator may declare queues.
    async fn declare(&self, queue: &Queue) -> Result<(), ConsumeError>;

    /// Hands over a message. When this returns, the bus has taken it.
    async fn publish(&self, message: Message) -> Result<(), PublishError>;

    /// Starts taking messages from a queue, at most `prefetch` unsettled at a time.
    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Box<dyn Consumer>, ConsumeError>;
}
