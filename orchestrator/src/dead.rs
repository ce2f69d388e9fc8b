//! Messages that nobody could handle: each is told to its task, so that a
//! person hears of it, and then it is gone. The log keeps what it was.

use std::sync::Arc;

use checkrein_shared::bus::{Bus, ConsumeError, DeathReason, Delivery, Message, Queue};
use checkrein_shared::causes::with_causes;
use tokio_util::sync::CancellationToken;

use crate::engine::{self, Engine};
use crate::lifecycle::EventKind;

/// How long an unavailable store is waited for.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

/// Consumes the dead letters until shutdown.
pub(crate) async fn run(engine: Arc<Engine>, bus: &dyn Bus, shutdown: CancellationToken) -> Result<(), ConsumeError> {
    let mut consumer = bus.consume(&Queue::Dead, 1).await?;
    loop {
        let delivery = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            delivery = consumer.next() => delivery,
        };
        let Some(delivery) = delivery else { return Ok(()) };
        bury(&engine, delivery, &shutdown).await;
    }
}

async fn bury(engine: &Engine, delivery: Delivery, shutdown: &CancellationToken) {
    let reason = delivery.death.as_ref().map(|death| death.reason);
    loop {
        match tell(engine, &delivery.message, reason).await {
            Ok(()) => break,
            Err(error) => {
                tracing::warn!(error = %with_causes(&error), "a dead message is held");
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }
    if let Err(error) = delivery.ack().await {
        tracing::debug!(%error, "a dead message will be delivered again");
    }
}

/// Tells a dead message to its task.
pub(crate) async fn tell(engine: &Engine, message: &Message, death: Option<DeathReason>) -> Result<(), engine::Error> {
    let (task, id) = (&message.task, message.id.clone());
    let reason = match death {
        Some(DeathReason::Rejected) => "its reader refused it".to_owned(),
        Some(DeathReason::DeliveryLimit) => "it came back too often, so handling it may kill its reader".to_owned(),
        None => "the bus gave it up".to_owned(),
    };
    tracing::error!(message.id = %id, message.kind = %message.kind, task.id = %task, reason, "a message died");
    let event = EventKind::MessageDied { message: message.kind.clone(), epoch: message.epoch, reason };
    match engine.handle(task, event, Some(id)).await {
        Ok(_) | Err(engine::Error::NoTask(_) | engine::Error::Illegal(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
