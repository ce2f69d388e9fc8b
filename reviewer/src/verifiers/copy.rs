//! A private place for one run: a copy of the tree, a home, a folder for
//! temporary files, and one for the output. Nothing of it outlives the run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use checkrein_shared::blob::Blobs;
use checkrein_shared::causes::with_causes;
use checkrein_shared::tree::carry::carry;
use checkrein_shared::tree::materialise::materialise;
use checkrein_shared::tree::{Manifest, RelPath};

use super::Trouble;

/// The place.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// Changed files that could not be written, as their bytes are not in the blob store.
    pub(super) absent: Vec<RelPath>,
}

impl Place {
    /// Makes the place below `work_dir` and fills its tree.
    pub(super) async fn make(work_dir: &Path, blobs: &dyn Blobs, manifest: &Manifest) -> Result<Self, Trouble> {
        let failed = |doing: &str, e: std::io::Error| Trouble::Here(format!("can't {doing}: {e}"));
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(work_dir);
        // It is removed by `close` or by dropping the place, both of which cope with what a verifier did to it.
        let folder = folder.map_err(|e| failed("make a private folder", e))?.keep();
        let mut place = Self { folder, absent: Vec::new() };
        for sub in [place.home(), place.tmp(), place.out()] {
            fs::create_dir(&sub).map_err(|e| failed("make a private folder", e))?;
        }
        let done = materialise(blobs, manifest, &place.tree()).await.map_err(Trouble::from)?;
        place.absent = done.absent.into_keys().collect();
        Ok(place)
    }

    /// Copies what the project needs but does not own.
    pub(super) async fn carry(&self, target: &Path, paths: &[RelPath]) -> Result<(), Trouble> {
        let (target, paths, tree) = (target.to_owned(), paths.to_vec(), self.tree());
        let carried = tokio::task::spawn_blocking(move || carry(&target, &paths, &tree)).await;
        let carried = carried.expect("copying neither panics nor is aborted");
        carried.map(drop).map_err(|e| Trouble::Here(with_causes(&e)))
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(super) fn tmp(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    pub(super) fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    /// Removes the place where that does not hold up the asynchronous threads.
    pub(super) async fn close(self) {
        let removed = tokio::task::spawn_blocking(move || drop(self)).await;
        removed.expect("removing a folder neither panics nor is aborted");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "a verifier's folder can't be removed");
        }
    }
}

/// Removes a folder, also where a verifier took away its own permissions.
pub(crate) fn remove(folder: &Path) -> std::io::Result<()> {
    if fs::remove_dir_all(folder).is_ok() {
        return Ok(());
    }
    let mut pending = vec![folder.to_owned()];
    while let Some(dir) = pending.pop() {
        fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&dir)?.flatten() {
            // The type of the entry itself: a link to a folder elsewhere is not entered.
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_permissions_is_removed_and_links_are_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let (kept, folder) = (outer.path().join("kept"), outer.path().join("run-1"));
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        fs::create_dir_all(folder.join("a/b")).unwrap();
        std::os::unix::fs::symlink(&kept, folder.join("a/link")).unwrap();
        fs::set_permissions(folder.join("a"), Permissions::from_mode(0o000)).unwrap();
        drop(Place { folder: folder.clone(), absent: Vec::new() });
        assert!(!folder.exists());
        assert!(kept.join("file").exists());
    }
}
