//! One writer for each target.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use super::Error;
use crate::workspace::beneath::Root;

/// The right to change a target, held against every process on this host until it is dropped.
///
/// It is a lock on the open directory: no file is written for it, the system
/// releases it when the process ends, and a process that is only stopped keeps it.
#[derive(Debug)]
pub struct RootLock {
    root: Arc<Root>,
    file: File,
}

impl RootLock {
    /// Takes the lock, or says at once who has to wait.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] where another process, or another part of this one, holds it.
    pub fn acquire(target: &Path) -> Result<Self, Error> {
        let at = |source| Error::Io { path: target.to_owned(), source };
        let root = Arc::new(Root::open(target).map_err(at)?);
        let file = File::open(target).map_err(at)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { root, file }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy(target.to_owned())),
            Err(TryLockError::Error(source)) => Err(at(source)),
        }
    }

    /// The locked directory.
    pub fn target(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn root(&self) -> &Arc<Root> {
        &self.root
    }
}

impl Drop for RootLock {
    /// Closing the file is not enough: a process that is being started right now has inherited it, and holds the
    /// lock until its own program begins.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, target = %self.root.path().display(), "a target's lock could not be released");
        }
    }
}
