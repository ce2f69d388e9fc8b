//! Keeping a data folder: checking all of it, counting what is in it, and copying it.
//!
//! Reads folders that another process may have open, and changes nothing in them.
//! Repair is opening, and is done by the store itself.

mod audit;
mod backup;
mod named;
mod stats;

use std::path::{Path, PathBuf};

use crate::store;

pub use audit::{Audit, Problem, audit};
pub use backup::{Backup, BackupError, backup};
pub use stats::{Amount, Stats, stats};

/// The parts of a data folder.
#[derive(Debug, Clone)]
pub struct DataFolder {
    root: PathBuf,
}

impl DataFolder {
    /// The folder; it need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where the journal and the index lie.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// Where the blobs lie.
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// Where the keys lie.
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Why the journal could not be read to its end, and what to do about it.
fn advice(error: &store::Error) -> &'static str {
    match error {
        store::Error::LostAcknowledged { .. } | store::Error::HeadMismatch { .. } => {
            "restore a backup; where there is none, `checkrein store rebuild` says what would be lost by going on"
        }
        store::Error::HeadDamaged { .. } => {
            "where the journal itself is sound, `checkrein store rebuild --accept-loss` writes the file anew"
        }
        store::Error::UnknownFormat { .. } => "use the version of Checkrein that wrote it, or a newer one",
        _ => "keep the folder as it is and restore a backup: `checkrein --data BACKUP ...` works on one directly",
    }
}
