//! Why a directory could not be measured.

use std::io;
use std::path::PathBuf;

use checkrein_shared::blob;
use checkrein_shared::tree::manifest::{ENTRIES_MAX, InvalidManifest};
use checkrein_shared::tree::node;
use checkrein_shared::tree::path::InvalidPath;

/// Why a directory could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something could not be read.
    #[error("can't read `{}`", .path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A path can't be part of a tree.
    #[error("`{}` can't be part of a tree", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: InvalidPath,
    },
    /// There are too many files.
    #[error("`{}` has more than {ENTRIES_MAX} files: exclude what does not matter with ignore rules", .0.display())]
    TooManyFiles(PathBuf),
    /// The directory changed so much meanwhile that what was found does not fit together.
    #[error("`{}` changed while it was measured: try again when it rests", .path.display())]
    Restless {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: InvalidManifest,
    },
    /// A content could not be stored.
    #[error("can't store the contents of `{}`", .path.display())]
    Blob {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: blob::Error,
    },
    /// The tree could not be stored.
    #[error("can't store the tree of `{}`", .path.display())]
    Tree {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: Box<node::Error>,
    },
}
