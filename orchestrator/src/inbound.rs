//! What workers and reviewers send: checked at the edge, made into events, and
//! acknowledged once the event is stored.

use std::sync::Arc;

use checkrein_shared::blob;
use checkrein_shared::bus::{Bus, ConsumeError, Delivery, Message, Queue};
use checkrein_shared::causes::with_causes;
use checkrein_shared::json;
use checkrein_shared::records::{
    Attempt, Checkpoint, CheckpointMessage, EvidenceKind, EvidenceRef, Role, Verdict, VerdictMessage,
};
use checkrein_shared::signing::{Envelope, KeyRing, PayloadType};
use tokio_util::sync::CancellationToken;

use crate::coordinator::Refusals;
use crate::engine::{self, Engine, Handled};
use crate::guards::guard;
use crate::inputs;
use crate::leases::Leases;
use crate::lifecycle::{EventKind, Reason, State};
use crate::store::CommitError;

/// How long an unavailable store or blob is waited for before a message is tried again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

/// Why a message was not turned into an event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// It will never be usable.
    #[error("{0}")]
    ForGood(String),
    /// It may be usable later.
    #[error(transparent)]
    ForNow(engine::Error),
}

impl From<engine::Error> for Refused {
    /// Only what may pass by itself is waited for; everything else would hold up the messages of all tasks.
    fn from(error: engine::Error) -> Self {
        match &error {
            engine::Error::Blob(blob::Error::Io { .. })
            | engine::Error::Inputs(inputs::Error::Blob { source: blob::Error::Io { .. }, .. })
            | engine::Error::Store(_)
            | engine::Error::Commit(CommitError::Store(_) | CommitError::Conflict { .. })
            | engine::Error::Busy(_) => Self::ForNow(error),
            _ => Self::ForGood(with_causes(&error)),
        }
    }
}

/// Takes messages from workers and reviewers.
pub(crate) struct Inbound {
    pub(crate) engine: Arc<Engine>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) keys: Arc<KeyRing>,
}

impl Inbound {
    /// Consumes a queue until shutdown.
    pub(crate) async fn run(
        &self,
        bus: &dyn Bus,
        queue: Queue,
        shutdown: CancellationToken,
    ) -> Result<(), ConsumeError> {
        let mut consumer = bus.consume(&queue, 1).await?;
        loop {
            let delivery = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                delivery = consumer.next() => delivery,
            };
            let Some(delivery) = delivery else { return Ok(()) };
            self.settle(delivery, &shutdown).await;
        }
    }

    async fn settle(&self, delivery: Delivery, shutdown: &CancellationToken) {
        loop {
            let message = &delivery.message;
            let settled = match self.take(message).await {
                Ok(()) => delivery.ack().await,
                Err(Refused::ForGood(why)) => {
                    tracing::warn!(message.id = %message.id, message.kind = %message.kind, why, "message refused");
                    delivery.reject().await
                }
                Err(Refused::ForNow(error)) => {
                    // Held, not given back: requeueing would burn the delivery limit while the store is away.
                    tracing::warn!(message.id = %message.id, error = %with_causes(&error), "message held");
                    tokio::select! {
                        () = shutdown.cancelled() => return,
                        () = tokio::time::sleep(PAUSE) => continue,
                    }
                }
            };
            if let Err(error) = settled {
                tracing::debug!(%error, "a message will be delivered again");
            }
            return;
        }
    }

    /// Turns a message into an event and has it stored.
    pub(crate) async fn take(&self, message: &Message) -> Result<(), Refused> {
        match message.queue {
            Queue::InReviewer => self.reviewers_message(message).await,
            _ => self.workers_message(message).await,
        }
    }

    async fn workers_message(&self, message: &Message) -> Result<(), Refused> {
        match message.kind.as_str() {
            "checkpoint" => self.checkpoint(message).await,
            "attempt" => self.attempt(message).await,
            other => Err(Refused::ForGood(format!("workers send no messages of kind `{other}`"))),
        }
    }

    async fn checkpoint(&self, message: &Message) -> Result<(), Refused> {
        let body: CheckpointMessage = read(message, "checkpoint message")?;
        let checkpoint = match self.engine.loader().checkpoint(body.record).await {
            Ok(checkpoint) => checkpoint,
            Err(error) => return Err(engine::Error::from(error).into()),
        };
        let taken = self.take_checkpoint(message, &body, &checkpoint).await;
        if let Err(Refused::ForGood(reason)) = &taken {
            self.refusals.add(body.checkpoint_id, checkpoint.integrity.checkpoint_hash, reason.clone());
        }
        taken
    }

    async fn take_checkpoint(
        &self,
        message: &Message,
        body: &CheckpointMessage,
        checkpoint: &Checkpoint,
    ) -> Result<(), Refused> {
        if checkpoint.task_id != body.task_id
            || checkpoint.checkpoint_id != body.checkpoint_id
            || checkpoint.epoch != body.epoch
            || !guard!(CheckpointIsWorkers, checkpoint.author.role == Role::Worker)
        {
            return Err(Refused::ForGood("the message and its checkpoint do not belong together".into()));
        }
        let missing = self.missing_blob(checkpoint).await?;
        if !guard!(BlobsBeforeRecords, missing.is_none())
            && let Some(missing) = missing
        {
            let hash = checkpoint.integrity.checkpoint_hash;
            let reason = format!("the blob {missing} that it names is not stored");
            self.refusals.add(body.checkpoint_id.clone(), hash, reason);
            return Ok(());
        }
        let event = EventKind::CheckpointWritten {
            checkpoint: Box::new(checkpoint.clone()),
            record: body.record,
            completes: body.completes.clone(),
        };
        let handled = self.engine.handle(&body.task_id, event, Some(message.id.clone())).await?;
        if let Handled::Ignored(reason, _) = &handled
            && *reason != Reason::Duplicate
        {
            let hash = checkpoint.integrity.checkpoint_hash;
            self.refusals.add(body.checkpoint_id.clone(), hash, format!("{reason:?}"));
        }
        self.release(&handled, body.epoch);
        Ok(())
    }

    /// The first blob that a checkpoint names and that is not there.
    async fn missing_blob(
        &self,
        checkpoint: &Checkpoint,
    ) -> Result<Option<checkrein_shared::digest::Digest>, engine::Error> {
        let mut named = vec![
            checkpoint.workspace.base,
            checkpoint.workspace.tree,
            checkpoint.changesets.proposed.hash,
            checkpoint.evidence.index,
        ];
        named.extend(checkpoint.resume.run_state);
        for digest in named {
            if self.engine.blobs().keep(digest).await?.is_none() {
                return Ok(Some(digest));
            }
        }
        Ok(None)
    }

    /// The first piece of a verdict's own evidence that is not there. What is there is young again: a verifier's pass
    /// may be remembered for long, and no garbage collector may take its evidence before the verdict is journaled.
    async fn missing_evidence(
        &self,
        verdict: &Verdict,
    ) -> Result<Option<checkrein_shared::digest::Digest>, engine::Error> {
        let files = |reference: &EvidenceRef| reference.kind() == EvidenceKind::File;
        // Files of the tree are named, too; large and sealed ones are not stored.
        let own = verdict.evidence.entries.iter().map(|(reference, evidence)| (evidence.digest, files(reference)));
        for (digest, may_miss) in own.chain(verdict.evidence.previous.map(|previous| (previous, false))) {
            if self.engine.blobs().keep(digest).await?.is_none() && !may_miss {
                return Ok(Some(digest));
            }
        }
        Ok(None)
    }

    async fn attempt(&self, message: &Message) -> Result<(), Refused> {
        let attempt: Attempt = read(message, "attempt")?;
        let (task, epoch) = (attempt.task_id.clone(), attempt.epoch);
        let event = EventKind::AttemptEnded { attempt: Box::new(attempt) };
        let handled = self.engine.handle(&task, event, Some(message.id.clone())).await?;
        self.release(&handled, epoch);
        Ok(())
    }

    /// Ends a lease whose attempt is over.
    fn release(&self, handled: &Handled, epoch: u64) {
        let task = handled.task();
        let running = matches!(task.state, State::Running { .. } | State::Cancelling { .. }) && task.epoch == epoch;
        if !running {
            self.leases.drop_lease(&task.id, epoch);
        }
    }

    async fn reviewers_message(&self, message: &Message) -> Result<(), Refused> {
        if message.kind != "verdict" {
            return Err(Refused::ForGood(format!("reviewers send no messages of kind `{}`", message.kind)));
        }
        let body: VerdictMessage = read(message, "verdict message")?;
        let envelope: Envelope = match self.engine.loader().record("envelope", body.envelope).await {
            Ok(envelope) => envelope,
            Err(error) => return Err(engine::Error::from(error).into()),
        };
        let verdict = self.verified(&envelope).map_err(Refused::ForGood)?;
        if verdict.review_id != body.review_id || verdict.bindings.task_id != body.task_id {
            return Err(Refused::ForGood("the message and its verdict do not belong together".into()));
        }
        if let Some(missing) = self.missing_evidence(&verdict).await? {
            return Err(Refused::ForGood(format!("the evidence {missing} that the verdict names is not stored")));
        }
        let event = EventKind::VerdictPublished { verdict: Box::new(verdict), envelope: body.envelope };
        self.engine.handle(&body.task_id, event, Some(message.id.clone())).await?;
        Ok(())
    }

    /// The verdict inside an envelope, if a reviewer that is trusted now signed it.
    fn verified(&self, envelope: &Envelope) -> Result<Verdict, String> {
        let now = self.engine.clock().now();
        let verified = self.keys.verify(envelope, PayloadType::Verdict, Role::Reviewer, now);
        let verified = verified.map_err(|e| with_causes(&e))?;
        let verdict: Verdict = json::parse_as("verdict", &verified.payload).map_err(|e| with_causes(&e))?;
        if !guard!(SignerIsReviewer, verdict.reviewer.identity == verified.instance) {
            return Err(format!(
                "the verdict says that `{}` judged, but the key is `{}`'s",
                verdict.reviewer.identity, verified.instance
            ));
        }
        if verdict.checkpoint_id != verdict.bindings.checkpoint_id
            || verdict.checkpoint_hash != verdict.bindings.checkpoint_hash
        {
            return Err("the verdict names one checkpoint and is bound to another".into());
        }
        Ok(verdict)
    }
}

fn read<T: serde::de::DeserializeOwned>(message: &Message, what: &'static str) -> Result<T, Refused> {
    message.parse(what).map_err(|e| Refused::ForGood(with_causes(&e)))
}
