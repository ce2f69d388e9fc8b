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

/// What to do without a head file.
const WITHOUT_HEAD_FILE: &str = "restore the file or a backup; where there is none and the journal itself is sound, \
    `checkrein store rebuild --accept-loss` writes the file anew";

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

    /// Whether something was stored here and nothing of the journal is left: then this is no first run.
    ///
    /// # Errors
    ///
    /// Where it can't be told: a folder that may not be read, or that is none.
    pub fn has_lost_its_journal(&self) -> Result<bool, store::Error> {
        if !names(&self.store().join("journal"))?.is_empty() {
            return Ok(false);
        }
        let left = names(&self.store())?;
        // Blobs lie in folders named by two digits; the others are made when the folder is opened.
        let is_blob = |name: &std::ffi::OsString| name.len() == 2;
        Ok(left.iter().any(|name| name.to_string_lossy().starts_with("index"))
            || names(&self.blobs())?.iter().any(is_blob))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// The names in a folder, which need not be there.
fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, store::Error> {
    let names = match folder.read_dir() {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    names.map_err(store::io_error(folder))
}

/// Why the journal could not be read to its end, and what to do about it.
fn advice(error: &store::Error) -> &'static str {
    match error {
        store::Error::LostAcknowledged { .. } | store::Error::HeadMismatch { .. } => {
            "restore a backup; where there is none, `checkrein store rebuild` says what would be lost by going on"
        }
        store::Error::HeadDamaged { .. } | store::Error::Unwitnessed { .. } => WITHOUT_HEAD_FILE,
        store::Error::Io { .. } => "see who owns the data folder, who may read it, and whether its disk is sound",
        store::Error::UnknownFormat { .. } => "use the version of Checkrein that wrote it, or a newer one",
        _ => "keep the folder as it is and restore a backup: `checkrein --data BACKUP ...` works on one directly",
    }
}
