//! Reads a task's evidence index: the chain of blobs from the newest to the first.
//!
//! It writes none (see [`crate::recorder`]) and fetches no artifact.

use std::collections::BTreeMap;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{Evidence, EvidenceIndex, EvidenceRef};

/// The largest index blob that is read.
pub(crate) const INDEX_BYTES_MAX: u64 = 16 << 20;

/// The longest chain that is followed: more than a task can have checkpoints and attempts.
const LINKS_MAX: usize = 20_000;

/// The most entries that are kept: beyond that the oldest are not offered to an agent any more.
const ENTRIES_MAX: usize = 50_000;

/// All that is known under each ref; the newest wins.
pub(crate) type Known = BTreeMap<EvidenceRef, Evidence>;

/// Why the index could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A blob of the chain is missing or damaged.
    #[error("can't read the evidence index {0}")]
    Blob(Digest, #[source] blob::Error),
    /// A blob of the chain is no index.
    #[error("blob {0} is no evidence index")]
    Shape(Digest, #[source] json::Error),
}

/// Follows the chain from its newest blob.
pub(crate) async fn read(blobs: &dyn Blobs, newest: Option<Digest>) -> Result<Known, Error> {
    let mut known = Known::new();
    let mut next = newest;
    for _ in 0..LINKS_MAX {
        let Some(digest) = next else { break };
        let bytes = blobs.get(digest, INDEX_BYTES_MAX).await.map_err(|e| Error::Blob(digest, e))?;
        let index: EvidenceIndex = json::parse_as("evidence index", &bytes).map_err(|e| Error::Shape(digest, e))?;
        for (reference, evidence) in index.entries {
            known.entry(reference).or_insert(evidence);
        }
        if known.len() >= ENTRIES_MAX {
            tracing::warn!(entries = known.len(), "the evidence index is very long; older entries are left out");
            break;
        }
        next = index.previous;
    }
    Ok(known)
}
