//! First stage: the checkpoint, the last accepted one, and the policy that the task pins.

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Checkpoint, CheckpointRef, ReviewKind, ReviewRequest};
use serde::de::DeserializeOwned;

use crate::error::Stop;
use crate::settings::Settings;

/// The largest record that is read.
pub(super) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// What was loaded.
pub(super) struct Loaded {
    pub(super) checkpoint: Checkpoint,
    pub(super) accepted: Option<Checkpoint>,
    pub(super) settings: Settings,
}

/// Loads what the request names.
pub(super) async fn load(blobs: &dyn Blobs, request: &ReviewRequest) -> Result<Loaded, Stop> {
    if request.kind != ReviewKind::Rules {
        return Err(Stop::unclear(format!(
            "review `{}` is not one of the kind `rules`, and this reviewer carries out no other",
            request.review
        )));
    }
    let policy = blobs.get(request.policy, RECORD_BYTES_MAX).await;
    let policy = policy.map_err(|e| Stop::of_blob("the policy that the task pins", e))?;
    let settings = Settings::from_policy(&policy, &request.review)
        .map_err(|why| Stop::unclear(format!("the policy that the task pins can't be used: {why}")))?;
    let checkpoint = checkpoint(blobs, &request.checkpoint).await?;
    let accepted = match &request.accepted {
        Some(accepted) => Some(self::checkpoint(blobs, accepted).await?),
        None => None,
    };
    Ok(Loaded { checkpoint, accepted, settings })
}

async fn checkpoint(blobs: &dyn Blobs, reference: &CheckpointRef) -> Result<Checkpoint, Stop> {
    record(blobs, reference.record, &format!("checkpoint {}", reference.id)).await
}

/// Reads a record; one that does not parse is as good as none.
pub(super) async fn record<T: DeserializeOwned>(blobs: &dyn Blobs, digest: Digest, what: &str) -> Result<T, Stop> {
    let bytes = blobs.get(digest, RECORD_BYTES_MAX).await.map_err(|e| Stop::of_blob(what, e))?;
    json::parse_as("record", &bytes).map_err(|e| Stop::unclear(format!("{what} can't be read: {e}")))
}
