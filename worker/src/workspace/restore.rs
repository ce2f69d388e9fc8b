//! Writing a stored tree to a directory of its own: for scratches, and for people who want to look.
//!
//! The directory must be new or empty. It never runs `git reset` or `git clean`,
//! and a target is never restored into.

use std::path::Path;

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::tree::materialise::{self, Materialised, materialise};
use checkrein_shared::tree::node;

/// Why a tree was not restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tree could not be loaded.
    #[error("can't load the tree to restore")]
    Tree(#[from] node::Error),
    /// The tree is empty.
    #[error("tree {0} is empty: there is nothing to restore")]
    Empty(Digest),
    /// It could not be written.
    #[error("can't restore tree {root}")]
    Write {
        /// The tree.
        root: Digest,
        /// The cause.
        source: materialise::Error,
    },
}

/// Writes the tree `root` to `directory`. Sealed and large files are not written; they are named in what is returned.
///
/// # Errors
///
/// An empty tree is refused: it is more often the trace of a fault than a wish.
pub async fn restore(blobs: &dyn Blobs, root: Digest, directory: &Path) -> Result<Materialised, Error> {
    let manifest = node::load_tree(blobs, root).await?;
    if manifest.is_empty() {
        return Err(Error::Empty(root));
    }
    materialise(blobs, &manifest, directory).await.map_err(|source| Error::Write { root, source })
}
