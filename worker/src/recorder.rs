//! Gathers the evidence of one attempt: redacts, stores, and indexes it.
//!
//! Everything is stored before the index names it, and the index before
//! anybody is told its digest. It judges nothing, and it does not read the
//! index (see [`crate::index`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::json;
use checkrein_shared::records::{Evidence, EvidenceIndex, EvidenceRef, Producer};
use checkrein_shared::redact::Redactor;
use checkrein_shared::time::Timestamp;
use serde::Serialize;

use crate::index::Known;

/// Why evidence could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The blob store failed.
    #[error("can't store `{0}`")]
    Blob(String, #[source] blob::Error),
    /// A record of our own has no canonical form.
    #[error("`{0}` can't be written as a record")]
    Record(String, #[source] json::Error),
}

/// The evidence of one attempt.
pub(crate) struct Recorder {
    blobs: Arc<dyn Blobs>,
    redactor: Arc<Redactor>,
    producer: Producer,
    step: Option<StepId>,
    previous: Option<Digest>,
    known: Known,
    fresh: BTreeMap<EvidenceRef, Evidence>,
}

impl Recorder {
    /// Begins after `previous`, whose refs are `known`.
    pub(crate) fn new(
        blobs: Arc<dyn Blobs>,
        redactor: Arc<Redactor>,
        producer: Producer,
        step: Option<StepId>,
        (previous, known): (Option<Digest>, Known),
    ) -> Self {
        Self { blobs, redactor, producer, step, previous, known, fresh: BTreeMap::new() }
    }

    /// Redacts and stores some bytes; returns them as stored.
    pub(crate) async fn add(
        &mut self,
        reference: EvidenceRef,
        media_type: &str,
        raw: &[u8],
        dropped_bytes: u64,
        now: Timestamp,
    ) -> Result<Vec<u8>, Error> {
        let redacted = self.redactor.redact(raw);
        let evidence = self.put(&reference, media_type, &redacted.bytes, now).await?;
        let evidence = Evidence { redactions: redacted.counts, dropped_bytes, ..evidence };
        self.fresh.insert(reference, evidence);
        Ok(redacted.bytes)
    }

    /// Stores a record of Checkrein's own as it is: its digest must be the record's.
    pub(crate) async fn add_record<T: Serialize + Sync>(
        &mut self,
        reference: EvidenceRef,
        media_type: &str,
        record: &T,
        now: Timestamp,
    ) -> Result<Digest, Error> {
        let bytes = json::canonical(record).map_err(|e| Error::Record(reference.to_string(), e))?;
        let evidence = self.put(&reference, media_type, &bytes, now).await?;
        let digest = evidence.digest;
        self.fresh.insert(reference, evidence);
        Ok(digest)
    }

    async fn put(
        &self,
        reference: &EvidenceRef,
        media_type: &str,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<Evidence, Error> {
        let digest = self.blobs.put(bytes).await.map_err(|e| Error::Blob(reference.to_string(), e))?;
        Ok(self.evidence(digest, bytes.len() as u64, media_type, now))
    }

    fn evidence(&self, digest: Digest, size: u64, media_type: &str, now: Timestamp) -> Evidence {
        Evidence {
            digest,
            size,
            media_type: media_type.to_owned(),
            produced_by: self.producer.clone(),
            step: self.step.clone(),
            created_at: now,
            redactions: BTreeMap::new(),
            dropped_bytes: 0,
        }
    }

    /// Names bytes that are in the store already.
    pub(crate) fn add_stored(
        &mut self,
        reference: EvidenceRef,
        media_type: &str,
        digest: Digest,
        size: u64,
        now: Timestamp,
    ) {
        let evidence = self.evidence(digest, size, media_type, now);
        self.fresh.insert(reference, evidence);
    }

    /// What stands under a ref, new or old.
    pub(crate) fn get(&self, reference: &EvidenceRef) -> Option<&Evidence> {
        self.fresh.get(reference).or_else(|| self.known.get(reference))
    }

    /// What earlier attempts and reviews left.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// The refs that are new.
    pub(crate) fn fresh(&self) -> Vec<EvidenceRef> {
        self.fresh.keys().cloned().collect()
    }

    /// Takes known secrets out of a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redactor.redact(text.as_bytes()).bytes).into_owned()
    }

    /// Stores the index. Where nothing is new, the one before stands.
    pub(crate) async fn index(&self) -> Result<Digest, Error> {
        if let (true, Some(previous)) = (self.fresh.is_empty(), self.previous) {
            return Ok(previous);
        }
        let index = EvidenceIndex { previous: self.previous, entries: self.fresh.clone() };
        let bytes = json::canonical(&index).map_err(|e| Error::Record("evidence index".to_owned(), e))?;
        self.blobs.put(&bytes).await.map_err(|e| Error::Blob("evidence index".to_owned(), e))
    }
}
