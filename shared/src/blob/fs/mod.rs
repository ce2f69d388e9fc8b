//! Blobs in a folder: `ab/cd/<64 hex digits>`, one file for each blob.
//!
//! A blob appears under its name only when its bytes are on the disk, and a put
//! returns only when the name is there too. Reading checks the digest. What is
//! removed is chosen by others; by itself this module clears away only the
//! temporary files of writers that were killed.

mod folders;
mod read;
mod sweep;
mod verify;
mod write;

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use super::{BLOB_BYTES_MAX, Blobs, Error, Lying, Sweep};
use crate::digest::Digest;
use crate::time::Timestamp;
use folders::Folders;

pub use read::{read as read_from, size as size_in};
pub use verify::{Damage, VerifyReport, verify_folder};

/// The folder of unfinished writes, beside the blobs so that a rename suffices.
const TEMP_FOLDER: &str = "tmp";

/// The file that tells openers whether another one is at work.
const LOCK_FILE: &str = "lock";

/// Blobs in a folder of the local disk. Clones share the same state.
#[derive(Debug, Clone)]
pub struct FsBlobs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    blob_bytes_max: u64,
    folders: Folders,
    /// Shared while writers look at what is there; alone while blobs are removed.
    gate: RwLock<()>,
    /// Held shared for as long as this opener lives: see [`clear_leftovers`] and [`sweep`].
    lock: File,
}

impl FsBlobs {
    /// Opens the folder `root`, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the folder can't be made, locked or read.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with_limit(root, BLOB_BYTES_MAX)
    }

    /// As [`FsBlobs::open`], with a smaller limit on the size of a blob.
    ///
    /// # Errors
    ///
    /// As [`FsBlobs::open`].
    pub fn open_with_limit(root: impl Into<PathBuf>, blob_bytes_max: u64) -> Result<Self, Error> {
        let root = root.into();
        make_private_folder(&root)?;
        make_private_folder(&root.join(TEMP_FOLDER))?;
        if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent)?;
        }
        sync_folder(&root)?;
        let lock = clear_leftovers(&root)?;
        let folders = Folders::new(root.clone());
        let limit = blob_bytes_max.min(BLOB_BYTES_MAX);
        Ok(Self { inner: Arc::new(Inner { root, blob_bytes_max: limit, folders, gate: RwLock::new(()), lock }) })
    }

    /// The folder that holds the blobs.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Reads every blob and compares it with its name. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where a folder can't be listed; damaged blobs are in the report.
    pub async fn verify_all(&self) -> Result<VerifyReport, Error> {
        self.blocking("verify the blobs", |inner| verify_folder(&inner.root)).await
    }

    /// Runs file work off the asynchronous threads.
    async fn blocking<T, F>(&self, doing: &'static str, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(result) => result,
            // The runtime is shutting down, or the work broke an invariant of its own.
            Err(join) => Err(Error::Io { doing: doing.to_owned(), source: io::Error::other(join) }),
        }
    }
}

#[async_trait]
impl Blobs for FsBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        self.put_all(vec![bytes.to_vec()])
            .await
            .map(|digests| digests.into_iter().next().expect("one blob in, one digest out"))
    }

    async fn get(&self, digest: Digest, limit: u64) -> Result<Vec<u8>, Error> {
        self.blocking("read a blob", move |inner| read::read(&inner.root, digest, limit)).await
    }

    async fn size(&self, digest: Digest) -> Result<Option<u64>, Error> {
        self.blocking("measure a blob", move |inner| read::size(&inner.root, digest)).await
    }

    async fn put_all(&self, blobs: Vec<Vec<u8>>) -> Result<Vec<Digest>, Error> {
        self.blocking("store blobs", move |inner| {
            let _beside = inner.gate.read().unwrap_or_else(PoisonError::into_inner);
            write::write_group(inner, &blobs)
        })
        .await
    }

    async fn keep(&self, digest: Digest) -> Result<Option<u64>, Error> {
        self.blocking("keep a blob", move |inner| {
            let _beside = inner.gate.read().unwrap_or_else(PoisonError::into_inner);
            write::keep(&inner.root, digest)
        })
        .await
    }
}

#[async_trait]
impl Sweep for FsBlobs {
    async fn list(&self, first: u8) -> Result<Vec<Lying>, Error> {
        self.blocking("list the blobs", move |inner| sweep::list(&inner.root, first)).await
    }

    async fn remove(&self, digests: Vec<Digest>, before: Timestamp) -> Result<Vec<Lying>, Error> {
        self.blocking("remove blobs", move |inner| sweep::remove(inner, &digests, before)).await
    }
}

/// Where a blob lies below `root`.
fn path_of(root: &Path, digest: Digest) -> PathBuf {
    let hex = digest.to_hex();
    root.join(&hex[..2]).join(&hex[2..4]).join(&hex)
}

/// Removes what killed writers left, and returns the lock that guards our own writes.
///
/// Every opener holds the lock shared. Whoever gets it exclusively is therefore
/// alone, and each temporary file belongs to nobody who still lives. Giving up
/// the exclusive lock before taking the shared one is safe: we own no temporary
/// file yet that somebody else could clear away in between.
fn clear_leftovers(root: &Path) -> Result<File, Error> {
    let path = root.join(LOCK_FILE);
    let doing = || format!("lock {}", path.display());
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|source| Error::Io { doing: doing(), source })?;
    match lock.try_lock() {
        Ok(()) => {
            clear_folder(&root.join(TEMP_FOLDER))?;
            lock.unlock().map_err(|source| Error::Io { doing: doing(), source })?;
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(source)) => return Err(Error::Io { doing: doing(), source }),
    }
    lock.lock_shared().map_err(|source| Error::Io { doing: doing(), source })?;
    Ok(lock)
}

fn clear_folder(folder: &Path) -> Result<(), Error> {
    let listing = |source| Error::Io { doing: format!("list {}", folder.display()), source };
    for entry in folder.read_dir().map_err(listing)? {
        let path = entry.map_err(listing)?.path();
        std::fs::remove_file(&path)
            .map_err(|source| Error::Io { doing: format!("remove the leftover {}", path.display()), source })?;
        tracing::info!(path = %path.display(), "removed an unfinished blob that an earlier process left");
    }
    Ok(())
}

fn make_private_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| Error::Io { doing: format!("make the folder {}", path.display()), source })
}

/// Makes the names in a folder survive a power cut.
fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| Error::Io { doing: format!("sync the folder {}", path.display()), source })
}

#[cfg(test)]
mod tests;
