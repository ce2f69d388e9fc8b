//! The isolated copy in which an agent works.
//!
//! A scratch is written from a stored tree, so that any worker can make it. With
//! the target at hand it also gets what the blob store does not have: large files,
//! sealed files that are part of the project, carried paths, and a copy of the git
//! history. Nothing in a scratch is linked with the target: no hard link, no git
//! remote, no shared object. What the agent does with its git has no effect on
//! the changeset.

mod fill;
mod history;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use checkrein_shared::blob::Blobs;
use checkrein_shared::tree::carry::{self, carry};
use checkrein_shared::tree::materialise::{self, materialise};
use checkrein_shared::tree::{Entry, Manifest, RelPath};

use super::{git, rules::Rules};

/// Why a scratch could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tree could not be written.
    #[error("can't write the scratch")]
    Materialise(#[from] materialise::Error),
    /// A carried path could not be copied.
    #[error("can't carry what the task names into the scratch")]
    Carry(#[from] carry::Error),
    /// The git history could not be copied.
    #[error("can't copy the git history into the scratch")]
    Git(#[from] git::Error),
    /// The file system failed.
    #[error("can't work on `{}`", .path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// What a scratch is made of.
pub struct Cut<'a> {
    /// Where: a new or empty directory.
    pub directory: &'a Path,
    /// The tree to write: the base, or a later tree of the task.
    pub tree: &'a Manifest,
    /// Where its contents are.
    pub blobs: &'a dyn Blobs,
    /// The target, if it is on this host.
    pub target: Option<&'a Path>,
    /// The rules of the base.
    pub rules: &'a Rules,
    /// Paths to copy from the target although they belong to no tree.
    pub carry: &'a [RelPath],
}

/// An isolated copy.
#[derive(Debug)]
pub struct Scratch {
    directory: PathBuf,
    absent: BTreeMap<RelPath, Entry>,
    missing_carried: Vec<RelPath>,
}

impl Scratch {
    /// Makes a scratch.
    ///
    /// # Errors
    ///
    /// [`Error`]; what was written until then may be deleted.
    pub async fn create(cut: &Cut<'_>) -> Result<Self, Error> {
        let written = materialise(cut.blobs, cut.tree, cut.directory).await?;
        let mut scratch =
            Self { directory: cut.directory.to_owned(), absent: written.absent, missing_carried: Vec::new() };
        if let Some(target) = cut.target {
            scratch.absent = fill::fill(target, cut.directory, scratch.absent, cut.rules).await?;
            if git::is_top(target) {
                history::copy(target, cut.directory).await?;
            }
            let (from, to, paths) = (target.to_owned(), cut.directory.to_owned(), cut.carry.to_vec());
            let carried = tokio::task::spawn_blocking(move || carry(&from, &paths, &to));
            scratch.missing_carried = carried.await.expect("copying neither panics nor is aborted")?.missing;
        } else {
            scratch.missing_carried = cut.carry.to_vec();
        }
        Ok(scratch)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Files of the tree that are not in the scratch: pass them to every survey of it.
    pub fn absent(&self) -> &BTreeMap<RelPath, Entry> {
        &self.absent
    }

    /// Carried paths that the target does not have.
    pub fn missing_carried(&self) -> &[RelPath] {
        &self.missing_carried
    }

    /// Removes it, read-only directories included.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where something can't be removed.
    pub async fn remove(self) -> Result<(), Error> {
        remove(&self.directory).await
    }
}

/// Removes a directory with all that it holds, even where an agent took away its own permissions.
///
/// # Errors
///
/// [`Error::Io`] where something can't be removed. A directory that does not exist is no error.
pub async fn remove(directory: &Path) -> Result<(), Error> {
    let path = directory.to_owned();
    let removed = tokio::task::spawn_blocking(move || match fs::remove_dir_all(&path) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            unlock(&path);
            fs::remove_dir_all(&path)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    });
    let removed = removed.await.expect("removing neither panics nor is aborted");
    removed.map_err(|source| Error::Io { path: directory.to_owned(), source })
}

/// Gives the owner back every directory; what fails here fails again, and louder, when it is removed.
fn unlock(directory: &Path) {
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
        let Ok(children) = fs::read_dir(&path) else { continue };
        // `file_type` does not follow links, so nothing outside is touched.
        pending.extend(children.flatten().filter(|c| c.file_type().is_ok_and(|t| t.is_dir())).map(|c| c.path()));
    }
}

#[cfg(test)]
mod tests;
