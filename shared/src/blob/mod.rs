//! Content-addressed blobs: the seam, and what every implementation promises.
//!
//! A blob is named by the digest of its bytes, so it can't be changed, only
//! lost or damaged; damage is an error when it is read. This module does not
//! know what blobs mean; what [`Sweep`] removes is chosen by others.

mod fs;
mod sweep;

use async_trait::async_trait;

use crate::digest::Digest;

pub use fs::{Damage, FsBlobs, VerifyReport, read_from, size_in, verify_folder};
pub use sweep::{Lying, REMOVED_MAX, Sweep};

/// The largest blob that is accepted: 1 GiB.
pub const BLOB_BYTES_MAX: u64 = 1 << 30;

/// Why a blob could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No blob has this digest.
    #[error("no blob {0}")]
    Missing(Digest),
    /// The stored bytes have another digest.
    #[error("blob {expected} is damaged: its bytes have the digest {found}")]
    Damaged {
        /// The digest that names the blob.
        expected: Digest,
        /// The digest of what was read.
        found: Digest,
    },
    /// The blob is larger than the caller wants, or than blobs may be.
    #[error("blob of {size} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file system failed.
    #[error("can't {doing}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// A store of blobs. Implementations are shared between tasks.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores bytes. When this returns, they survive a power cut.
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;

    /// Reads a blob of at most `limit` bytes and checks its digest.
    async fn get(&self, digest: Digest, limit: u64) -> Result<Vec<u8>, Error>;

    /// The size of a blob in bytes, or `None` where there is none.
    async fn size(&self, digest: Digest) -> Result<Option<u64>, Error>;

    /// As [`Blobs::size`], for whoever is about to refer to the blob: where there is one, it is as young afterwards as
    /// if it had been put, so that no garbage collector takes it before the reference is stored. Where nothing is ever
    /// removed, that is the same; whoever wraps a store passes it on.
    async fn keep(&self, digest: Digest) -> Result<Option<u64>, Error> {
        self.size(digest).await
    }

    /// Stores many blobs; as durable as [`Blobs::put`], and cheaper together.
    async fn put_all(&self, blobs: Vec<Vec<u8>>) -> Result<Vec<Digest>, Error> {
        let mut digests = Vec::with_capacity(blobs.len());
        for blob in blobs {
            digests.push(self.put(&blob).await?);
        }
        Ok(digests)
    }
}
