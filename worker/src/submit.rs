//! Sends what a job has to say, and waits until it counts.
//!
//! Sending goes on for as long as the lease lives; a lost lease ends it, for
//! then somebody else speaks for the task. Messages have the same id however
//! often they are sent. It writes no records.

use std::time::Duration;

use checkrein_shared::bus::{InvalidMessage, Message, PublishError, Queue};
use checkrein_shared::coordinator::{self, Receipt};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::MessageId;
use checkrein_shared::records::{Attempt, AttemptOutcome, CheckpointMessage, Job};
use serde::Serialize;

use crate::config::Services;
use crate::orders::{Order, Orders};

/// How long to wait between tries, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// After this time without a receipt a checkpoint is sent once more: the bus may have lost it, and the same record
/// again is a duplicate.
const RESEND_AFTER: Duration = Duration::from_secs(30);

/// How long it is tried to say that a change reached the target when the lease is lost. Afterwards the next attempt
/// finds it there.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(600);

/// What became of something that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It counts.
    Accepted,
    /// It never will.
    Refused(String),
    /// The lease is lost.
    Lost,
}

/// Why something could not be sent at all.
#[derive(Debug, thiserror::Error)]
#[error("a report can't be sent")]
pub(crate) struct Error(#[from] InvalidMessage);

/// Grows from try to try.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(PAUSE.0)
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE.1);
    }
}

/// Sends a checkpoint, whose blobs are all stored, and waits until it is in the chain.
pub(crate) async fn checkpoint(
    services: &Services,
    message: &CheckpointMessage,
    hash: Digest,
    orders: &Orders,
) -> Result<Sent, Error> {
    let body = envelope("checkpoint", &message.task_id, message.epoch, message)?;
    let mut orders = orders.clone();
    let sent = async {
        loop {
            publish(services, body.clone()).await?;
            if let Ok(sent) = tokio::time::timeout(RESEND_AFTER, receipt(services, message, hash)).await {
                return Ok(sent);
            }
        }
    };
    tokio::select! {
        biased;
        sent = sent => sent,
        () = orders.at_least(Order::Lost) => Ok(Sent::Lost),
    }
}

/// Says how an attempt ended. What reached the target is said even when the lease is lost: it did reach it.
pub(crate) async fn attempt(
    services: &Services,
    job: &Job,
    outcome: AttemptOutcome,
    orders: &Orders,
) -> Result<Sent, Error> {
    let settles = matches!(outcome, AttemptOutcome::Applied { .. });
    let attempt = Attempt {
        job_id: job.job_id.clone(),
        task_id: job.task_id.clone(),
        epoch: job.epoch,
        worker: services.config.instance.clone(),
        outcome,
    };
    let body = envelope("attempt", &job.task_id, job.epoch, &attempt)?;
    let mut orders = orders.clone();
    let given_up = async {
        orders.at_least(Order::Lost).await;
        if settles {
            tokio::time::sleep(SETTLE_TIME_MAX).await;
        }
    };
    tokio::select! {
        biased;
        sent = publish(services, body) => sent.map(|()| Sent::Accepted),
        () = given_up => Ok(Sent::Lost),
    }
}

fn envelope<T: Serialize>(
    kind: &str,
    task: &checkrein_shared::ids::TaskId,
    epoch: u64,
    record: &T,
) -> Result<Message, Error> {
    let placeholder = MessageId::try_from("m".to_owned()).expect("one letter is an id");
    let mut message = Message::new(placeholder, kind, task.clone(), epoch, Queue::InWorker, record)?;
    // From the content: a resend, also by a restarted process, has the same id and is recognised.
    let id = format!("m-{kind}-{}", Digest::of(&message.body).to_hex());
    message.id = MessageId::try_from(id).expect("hexadecimal digits after a short word make an id");
    Ok(message)
}

async fn publish(services: &Services, message: Message) -> Result<(), Error> {
    let mut backoff = Backoff::new();
    loop {
        match services.bus.publish(message.clone()).await {
            Ok(()) => return Ok(()),
            Err(PublishError::Invalid(invalid)) => return Err(Error(invalid)),
            Err(error) => tracing::warn!(task.id = %message.task, %error, "a report is not taken yet"),
        }
        backoff.wait().await;
    }
}

async fn receipt(services: &Services, message: &CheckpointMessage, hash: Digest) -> Sent {
    let mut backoff = Backoff::new();
    loop {
        match services.coordinator.receipt(&message.task_id, &message.checkpoint_id, hash).await {
            Ok(Receipt::Accepted) => return Sent::Accepted,
            Ok(Receipt::Refused { reason }) | Err(coordinator::Error::Refused(reason)) => return Sent::Refused(reason),
            Ok(Receipt::Pending) => tracing::debug!(checkpoint.id = %message.checkpoint_id, "no receipt yet"),
            Err(coordinator::Error::Unavailable(reason)) => {
                tracing::warn!(checkpoint.id = %message.checkpoint_id, reason, "the receipt is not to be had now");
            }
        }
        backoff.wait().await;
    }
}
