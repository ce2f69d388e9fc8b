//! The fan-out folders: made once, and synced before a blob may lie in them.
//!
//! A folder that exists may still be lost in a power cut, when the process that
//! made it was killed before it synced the parent. So 'exists' is not enough:
//! only folders whose parent this process has synced count. Holds no blobs.

use std::collections::{BTreeSet, HashSet};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Error, sync_folder};

/// Which fan-out folders are known to be durable; at most 256 + 65,536 entries.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
    durable: Mutex<HashSet<PathBuf>>,
}

impl Folders {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, durable: Mutex::default() }
    }

    /// Makes `leaves` (`root/ab/cd` each) and everything above them durable.
    pub(super) fn ensure(&self, leaves: &BTreeSet<PathBuf>) -> Result<(), Error> {
        let middles = leaves.iter().filter_map(|leaf| leaf.parent().map(Path::to_path_buf)).collect();
        self.make_and_sync(middles)?;
        self.make_and_sync(leaves.clone())
    }

    /// Makes what is not known yet, then syncs each parent once.
    fn make_and_sync(&self, wanted: BTreeSet<PathBuf>) -> Result<(), Error> {
        let unknown: Vec<PathBuf> = {
            let durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
            wanted.into_iter().filter(|path| !durable.contains(path)).collect()
        };
        let mut parents = BTreeSet::new();
        for path in &unknown {
            make(path)?;
            parents.insert(path.parent().unwrap_or(&self.root).to_path_buf());
        }
        super::write::in_parallel(&parents.into_iter().collect::<Vec<_>>(), |parent| sync_folder(parent))?;
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).extend(unknown);
        Ok(())
    }

    /// Takes nothing for granted any more; for when a write failed, perhaps because a folder is gone.
    pub(super) fn forget(&self) {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn make(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(source) => Err(Error::Io { doing: format!("make the folder {}", path.display()), source }),
    }
}
