//! Last stage: the verdict's envelope into the blob store, then word of it to the orchestrator.

use checkrein_shared::blob::Blobs;
use checkrein_shared::bus::{Bus, Message, PublishError, Queue};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::MessageId;
use checkrein_shared::records::{ReviewRequest, VerdictMessage};

use crate::error::Error;

/// The kind of the message.
pub(crate) const KIND: &str = "verdict";

/// Publishes an envelope. When this returns, the envelope is durable and the bus has taken the message.
pub(crate) async fn publish(
    blobs: &dyn Blobs,
    bus: &dyn Bus,
    request: &ReviewRequest,
    envelope: &[u8],
) -> Result<(), Error> {
    let stored = blobs.put(envelope).await;
    let envelope =
        stored.map_err(|source| Error::Blobs { doing: "storing the verdict's envelope".to_owned(), source })?;
    let record = VerdictMessage { task_id: request.task_id.clone(), review_id: request.review_id.clone(), envelope };
    let epoch = request.bindings.epoch;
    let message = Message::new(message_id(request), KIND, request.task_id.clone(), epoch, Queue::InReviewer, &record);
    let message = message.map_err(|e| Error::Publish(PublishError::Invalid(e)))?;
    bus.publish(message).await.map_err(Error::Publish)
}

/// The same for each answer to one request, so that a second one is recognised.
fn message_id(request: &ReviewRequest) -> MessageId {
    let hash = Digest::of(request.review_id.as_str()).to_hex();
    format!("verdict-{}", &hash[..32]).parse().expect("letters, a dash and hexadecimal digits make an id")
}
