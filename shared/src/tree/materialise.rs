//! Writing a tree out to a new, empty directory.
//!
//! Nothing that exists is overwritten and no link is followed: directories and
//! files come first, links last, and a manifest has nothing below a link. It
//! writes no file whose bytes are not in the blob store, and says which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::entry::{Entry, Mode};
use super::manifest::Manifest;
use super::path::RelPath;
use crate::blob::{self, BLOB_BYTES_MAX, Blobs};
use crate::digest::Digest;

/// How many bytes of contents are fetched before they are written.
const BATCH_BYTES: u64 = 16 << 20;

/// Why a tree could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory exists and holds something.
    #[error("`{}` is not empty: name a new or an empty directory", .0.display())]
    NotEmpty(PathBuf),
    /// Two paths would be one on this file system.
    #[error("`{first}` and `{second}` differ only in letter case, and the file system below `{}` has none", .directory.display())]
    CaseCollision {
        /// Where the tree was to be written.
        directory: PathBuf,
        /// One path.
        first: RelPath,
        /// The other.
        second: RelPath,
    },
    /// A content could not be read.
    #[error("can't read the content of `{path}`")]
    Blob {
        /// The file.
        path: RelPath,
        /// The cause.
        source: blob::Error,
    },
    /// The file system failed.
    #[error("can't write `{}`", .path.display())]
    Io {
        /// What was being written.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// What was written.
#[derive(Debug, Default)]
pub struct Materialised {
    /// How many files and links.
    pub written: usize,
    /// How many bytes of contents.
    pub bytes: u64,
    /// Files that were not written, as the blob store does not have their bytes: sealed and large ones.
    pub absent: BTreeMap<RelPath, Entry>,
}

/// Writes `manifest` to `directory`, which must be new or empty. What is there after an error may be deleted.
///
/// # Errors
///
/// [`Error`] names the path that failed.
pub async fn materialise(blobs: &dyn Blobs, manifest: &Manifest, directory: &Path) -> Result<Materialised, Error> {
    let (copy, root) = (manifest.clone(), directory.to_owned());
    on_thread(move || prepare(&copy, &root)).await?;
    let mut done = Materialised::default();
    let mut batch: BTreeMap<Digest, Vec<(RelPath, Mode)>> = BTreeMap::new();
    let mut batch_bytes = 0;
    for (path, entry) in manifest.iter() {
        match entry {
            Entry::Symlink { .. } => done.written += 1,
            Entry::File { mode, size, .. } => match entry.blob() {
                None => {
                    done.absent.insert(path.clone(), entry.clone());
                }
                Some(digest) => {
                    batch.entry(digest).or_default().push((path.clone(), *mode));
                    batch_bytes += size;
                    done.written += 1;
                    done.bytes += size;
                }
            },
        }
        if batch_bytes >= BATCH_BYTES {
            write_batch(blobs, std::mem::take(&mut batch), directory).await?;
            batch_bytes = 0;
        }
    }
    write_batch(blobs, batch, directory).await?;
    let (copy, root) = (manifest.clone(), directory.to_owned());
    on_thread(move || write_links(&copy, &root)).await?;
    Ok(done)
}

/// Runs file work where it does not hold up the asynchronous threads.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("file work neither panics nor is aborted")
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    |source| Error::Io { path, source }
}

/// Makes the directories.
fn prepare(manifest: &Manifest, root: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).create(root).map_err(at(root))?;
    if fs::read_dir(root).map_err(at(root))?.next().is_some() {
        return Err(Error::NotEmpty(root.to_owned()));
    }
    if let Some((first, second)) = manifest.case_collisions().into_iter().next()
        && !has_letter_case(root).map_err(at(root))?
    {
        return Err(Error::CaseCollision { directory: root.to_owned(), first, second });
    }
    let directories: BTreeSet<RelPath> = manifest.iter().flat_map(|(path, _)| path.ancestors()).collect();
    // A parent sorts before what it holds.
    for directory in directories {
        let path = directory.under(root);
        DirBuilder::new().mode(0o755).create(&path).map_err(at(&path))?;
    }
    Ok(())
}

fn has_letter_case(root: &Path) -> io::Result<bool> {
    let probe = root.join("letter-case-probe");
    DirBuilder::new().create(&probe)?;
    let merged = root.join("LETTER-CASE-PROBE").exists();
    fs::remove_dir(&probe)?;
    Ok(!merged)
}

async fn write_batch(
    blobs: &dyn Blobs,
    batch: BTreeMap<Digest, Vec<(RelPath, Mode)>>,
    root: &Path,
) -> Result<(), Error> {
    let mut contents = Vec::with_capacity(batch.len());
    for (digest, places) in batch {
        let bytes = blobs
            .get(digest, BLOB_BYTES_MAX)
            .await
            .map_err(|source| Error::Blob { path: places[0].0.clone(), source })?;
        contents.push((bytes, places));
    }
    let root = root.to_owned();
    on_thread(move || {
        for (bytes, places) in contents {
            for (path, mode) in places {
                let path = path.under(&root);
                write_file(&path, &bytes, mode).map_err(at(&path))?;
            }
        }
        Ok(())
    })
    .await
}

/// Writes a file that must not exist yet.
fn write_file(path: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    // After the bytes: writing clears setuid bits, and the process's mask does not apply here.
    file.set_permissions(Permissions::from_mode(mode.bits()))
}

fn write_links(manifest: &Manifest, root: &Path) -> Result<(), Error> {
    for (path, entry) in manifest.iter() {
        if let Entry::Symlink { target } = entry {
            let path = path.under(root);
            let target = std::ffi::OsStr::from_bytes(target.as_bytes());
            std::os::unix::fs::symlink(target, &path).map_err(at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
