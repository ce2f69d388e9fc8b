//! Storing a group of blobs with as few waits for the disk as safety allows.
//!
//! The order is what makes it safe: bytes to temporary files and synced, fan-out
//! folders made and synced, renames, then one sync for each folder. A blob that
//! is already there is compared byte for byte (a damaged one is replaced), its
//! age refreshed, and it is synced again: whoever wrote it may have been killed
//! before it was durable. Does not decide what is worth keeping.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use tempfile::NamedTempFile;

use super::{Error, Inner, TEMP_FOLDER, path_of, read, sync_folder};
use crate::digest::Digest;

/// How many threads wait for the disk at once: file systems join concurrent syncs into one.
const SYNC_THREADS: usize = 8;

/// How many blobs are written and synced as one group: bounds open files and temporary files.
const GROUP_MAX: usize = 512;

/// Stores `blobs` durably, and returns their digests in the same order.
pub(super) fn write_group(inner: &Inner, blobs: &[Vec<u8>]) -> Result<Vec<Digest>, Error> {
    for blob in blobs {
        let (size, limit) = (blob.len() as u64, inner.blob_bytes_max);
        if size > limit {
            return Err(Error::TooLarge { size, limit });
        }
    }
    let digests: Vec<Digest> = blobs.iter().map(Digest::of).collect();
    let unique: HashMap<Digest, &[u8]> = digests.iter().copied().zip(blobs.iter().map(Vec::as_slice)).collect();
    let mut unique: Vec<(Digest, &[u8])> = unique.into_iter().collect();
    unique.sort_unstable_by_key(|(digest, _)| *digest);
    for group in unique.chunks(GROUP_MAX) {
        write_unique(inner, group).inspect_err(|_| inner.folders.forget())?;
    }
    Ok(digests)
}

fn write_unique(inner: &Inner, group: &[(Digest, &[u8])]) -> Result<(), Error> {
    let targets: Vec<(PathBuf, &[u8])> =
        group.iter().map(|(digest, bytes)| (path_of(&inner.root, *digest), *bytes)).collect();
    let leaves: BTreeSet<PathBuf> =
        targets.iter().filter_map(|(path, _)| path.parent().map(Path::to_path_buf)).collect();
    inner.folders.ensure(&leaves)?;

    let temp_folder = inner.root.join(TEMP_FOLDER);
    let staged = in_parallel(&targets, |(path, bytes)| match read::holds(path, bytes)? {
        Some(file) => refresh(&file, path).map(|()| None),
        None => stage(&temp_folder, bytes).map(Some),
    })?;
    for ((path, _), temp) in targets.iter().zip(staged) {
        if let Some(temp) = temp {
            temp.persist(path)
                .map_err(|error| Error::Io { doing: format!("rename to {}", path.display()), source: error.error })?;
        }
    }
    in_parallel(&leaves.into_iter().collect::<Vec<_>>(), |leaf| sync_folder(leaf))?;
    Ok(())
}

/// Writes bytes to a temporary file (mode 0600) and syncs them; dropping it removes it.
fn stage(folder: &Path, bytes: &[u8]) -> Result<NamedTempFile, Error> {
    let doing = || format!("write a temporary file in {}", folder.display());
    let mut temp = NamedTempFile::new_in(folder).map_err(|source| Error::Io { doing: doing(), source })?;
    temp.write_all(bytes)
        .and_then(|()| temp.as_file().sync_data())
        .map_err(|source| Error::Io { doing: doing(), source })?;
    Ok(temp)
}

/// Refreshes the age of a blob, if there is one; returns its size.
///
/// Not synced: where a power cut undoes it, it has also undone whatever was not durable yet, and what was durable
/// already refers to the blob.
pub(super) fn keep(root: &Path, digest: Digest) -> Result<Option<u64>, Error> {
    let Some(size) = read::size(root, digest)? else { return Ok(None) };
    let path = path_of(root, digest);
    let file = File::open(&path).map_err(|source| Error::Io { doing: format!("open {}", path.display()), source })?;
    touch(&file, &path)?;
    Ok(Some(size))
}

/// Sets the age of a blob to nothing, durably: garbage collection spares young ones.
fn refresh(file: &File, path: &Path) -> Result<(), Error> {
    touch(file, path)?;
    file.sync_all().map_err(|source| Error::Io { doing: format!("refresh {}", path.display()), source })
}

fn touch(file: &File, path: &Path) -> Result<(), Error> {
    futimens(file, &TimeSpec::UTIME_OMIT, &TimeSpec::UTIME_NOW)
        .map_err(|errno| Error::Io { doing: format!("refresh {}", path.display()), source: errno.into() })
}

/// Applies `work` to every item on a few threads; results in order, or the first error found.
pub(super) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    if items.len() <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            done.push((index, work(item)?));
        }
        Ok::<_, Error>(done)
    };
    let mut all = thread::scope(|scope| {
        let threads: Vec<_> = (0..SYNC_THREADS.min(items.len())).map(|_| scope.spawn(run)).collect();
        let mut all = Vec::with_capacity(items.len());
        let mut failure = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(done)) => all.extend(done),
                Ok(Err(error)) => failure = Some(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failure.map_or(Ok(all), Err)
    })?;
    all.sort_unstable_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}
