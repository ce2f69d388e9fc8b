//! Blobs in memory: durable as soon as they are stored. Now and then storing or reading fails for a moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use checkrein_shared::blob::{Blobs, Error};
use checkrein_shared::digest::Digest;

#[derive(Default)]
pub(crate) struct MemoryBlobs {
    inner: Mutex<BTreeMap<Digest, Vec<u8>>>,
    /// How many of the next operations fail.
    pub(crate) failures: AtomicU32,
}

impl MemoryBlobs {
    fn inner(&self) -> MutexGuard<'_, BTreeMap<Digest, Vec<u8>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fails(&self) -> Result<(), Error> {
        let left = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(Error::Io { doing: "use the disk".to_owned(), source: std::io::Error::other("it is away") }),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn has(&self, digest: Digest) -> bool {
        self.inner().contains_key(&digest)
    }

    /// Stores without ever failing: for what is not the orchestrator.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        self.inner().entry(digest).or_insert_with(|| bytes.to_vec());
        digest
    }

    pub(crate) fn bytes(&self, digest: Digest) -> Option<Vec<u8>> {
        self.inner().get(&digest).cloned()
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        self.fails()?;
        Ok(self.keep(bytes))
    }

    async fn get(&self, digest: Digest, limit: u64) -> Result<Vec<u8>, Error> {
        self.fails()?;
        let bytes = self.bytes(digest).ok_or(Error::Missing(digest))?;
        let size = bytes.len() as u64;
        if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(bytes) }
    }

    async fn size(&self, digest: Digest) -> Result<Option<u64>, Error> {
        self.fails()?;
        Ok(self.inner().get(&digest).map(|bytes| bytes.len() as u64))
    }
}
