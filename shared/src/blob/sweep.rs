//! What a garbage collector needs of a blob store: to list it, and to remove
//! what nobody refers to.
//!
//! Which blobs those are is decided by whoever knows the records. An
//! implementation only promises that a blob that was put or kept meanwhile is
//! never removed.

use async_trait::async_trait;

use super::{Blobs, Error};
use crate::digest::Digest;
use crate::time::Timestamp;

/// The most blobs that one call removes: whoever puts waits that long.
pub const REMOVED_MAX: usize = 256;

/// A blob as it lies in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lying {
    /// Its digest, by its name; its bytes are not read.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// When it was put or kept last.
    pub put_at: Timestamp,
}

/// A store of blobs from which can be removed.
#[async_trait]
pub trait Sweep: Blobs {
    /// All blobs whose digest begins with this byte, in order.
    async fn list(&self, first: u8) -> Result<Vec<Lying>, Error>;

    /// Removes those of at most [`REMOVED_MAX`] blobs that were last put before `before`; returns what was removed.
    ///
    /// Whoever puts or keeps one of them meanwhile finds it afterwards, whatever the order. A crash may leave some of
    /// them, and nothing half removed.
    async fn remove(&self, digests: Vec<Digest>, before: Timestamp) -> Result<Vec<Lying>, Error>;
}
