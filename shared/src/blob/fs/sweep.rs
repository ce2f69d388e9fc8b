//! Listing and removing blobs in the folder, safely beside writers.
//!
//! Writers of this process hold the gate shared while they look at what is
//! there and refresh it; removing holds it alone, and so for a bounded number of
//! files. Other processes are kept out by the lock file, which every opener
//! holds. Decides nothing about what is needed.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::PoisonError;
use std::time::UNIX_EPOCH;

use super::{Error, Inner, path_of};
use crate::blob::sweep::{Lying, REMOVED_MAX};
use crate::digest::Digest;
use crate::time::Timestamp;

/// All blobs below one of the 256 first folders. What is no blob is passed over: `verify` reports it.
pub(super) fn list(root: &Path, first: u8) -> Result<Vec<Lying>, Error> {
    let mut lying = Vec::new();
    for leaf in names(&root.join(format!("{first:02x}")))? {
        for path in names(&leaf)? {
            let digest =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| format!("sha256:{name}").parse().ok());
            let Some(digest) = digest.filter(|digest| path_of(root, *digest) == path) else { continue };
            lying.extend(look(&path, digest)?);
        }
    }
    lying.sort_unstable_by_key(|lying| lying.digest);
    Ok(lying)
}

fn names(folder: &Path) -> Result<Vec<std::path::PathBuf>, Error> {
    let failed = |source| Error::Io { doing: format!("list {}", folder.display()), source };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

fn look(path: &Path, digest: Digest) -> Result<Option<Lying>, Error> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            Ok(Some(Lying { digest, size: metadata.len(), put_at: put_at(&metadata, path)? }))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { doing: format!("measure {}", path.display()), source }),
    }
}

fn put_at(metadata: &Metadata, path: &Path) -> Result<Timestamp, Error> {
    let modified = metadata.modified();
    let modified =
        modified.map_err(|source| Error::Io { doing: format!("read the age of {}", path.display()), source })?;
    // Before 1970 is as old as can be.
    let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_millis(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
}

/// Removes what is old enough. Nothing is synced: a removed blob that a power cut brings back is only garbage again.
pub(super) fn remove(inner: &Inner, digests: &[Digest], before: Timestamp) -> Result<Vec<Lying>, Error> {
    let _alone = inner.gate.write().unwrap_or_else(PoisonError::into_inner);
    let _only = OnlyOpener::take(inner)?;
    let mut removed = Vec::new();
    for digest in digests.iter().take(REMOVED_MAX) {
        let path = path_of(&inner.root, *digest);
        let Some(lying) = look(&path, *digest)?.filter(|lying| lying.put_at < before) else { continue };
        match std::fs::remove_file(&path) {
            Ok(()) => removed.push(lying),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Io { doing: format!("remove {}", path.display()), source }),
        }
    }
    Ok(removed)
}

/// The lock file, held alone: no other process puts anything now.
struct OnlyOpener<'a>(&'a Inner);

impl<'a> OnlyOpener<'a> {
    fn take(inner: &'a Inner) -> Result<Self, Error> {
        // Dropped also where it fails: trying to change a lock can lose the shared one.
        let only = Self(inner);
        inner.lock.try_lock().map(|()| only).map_err(|error| Error::Io {
            doing: format!("remove blobs in {}: another process has them open", inner.root.display()),
            source: error.into(),
        })
    }
}

impl Drop for OnlyOpener<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.lock.lock_shared() {
            tracing::error!(%error, "the blob store's lock can't be taken back; start again soon");
        }
    }
}

#[cfg(test)]
mod tests;
