//! The blob store as one review sees it: it notes what was read. What a verdict
//! says about coverage comes from here and not from a reviewer's word.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use checkrein_shared::blob::{Blobs, Error};
use checkrein_shared::digest::Digest;

/// Blobs that remember which of them were read.
pub(crate) struct Ledger<'a> {
    blobs: &'a dyn Blobs,
    fetched: Mutex<BTreeSet<Digest>>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(blobs: &'a dyn Blobs) -> Self {
        Self { blobs, fetched: Mutex::default() }
    }

    /// The store itself, for what is read in bulk and listed by its root alone.
    pub(crate) fn unlisted(&self) -> &'a dyn Blobs {
        self.blobs
    }

    /// Notes a root whose whole tree was read.
    pub(crate) fn note(&self, root: Digest) {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).insert(root);
    }

    /// What was read whole, with the right digest.
    pub(crate) fn fetched(&self) -> BTreeSet<Digest> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Blobs for Ledger<'_> {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        self.blobs.put(bytes).await
    }

    async fn get(&self, digest: Digest, limit: u64) -> Result<Vec<u8>, Error> {
        let bytes = self.blobs.get(digest, limit).await?;
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).insert(digest);
        Ok(bytes)
    }

    async fn size(&self, digest: Digest) -> Result<Option<u64>, Error> {
        self.blobs.size(digest).await
    }

    async fn keep(&self, digest: Digest) -> Result<Option<u64>, Error> {
        self.blobs.keep(digest).await
    }

    async fn put_all(&self, blobs: Vec<Vec<u8>>) -> Result<Vec<Digest>, Error> {
        self.blobs.put_all(blobs).await
    }
}
