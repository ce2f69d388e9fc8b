//! What the threads and all readers share, and what happens when the index breaks.
//!
//! A broken index makes the store unusable until it is mended, because going on
//! could show an old state. The journal is never touched from here.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError, RwLock};

use checkrein_shared::ids::MessageId;
use tokio::sync::watch;

use super::open;
use super::read::Source;
use crate::store::error::Error;
use crate::store::index::Index;
use crate::store::journal::{Head, Position, Reader};
use crate::store::map::Visit;
use crate::store::model::Recorded;

/// What both threads and all readers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    pub(super) cache_bytes: u64,
    /// The index; `None` once the store is closed, and while the index is broken.
    pub(super) index: RwLock<Option<Index>>,
    pub(super) reader: Reader,
    /// The newest record that is acknowledged.
    pub(super) head: watch::Sender<Head>,
    /// How many callers wait for an answer although their records are on the disk.
    pub(super) unanswered: AtomicUsize,
    /// Messages whose delivery is noted but not yet in the index.
    pub(super) delivered: Mutex<HashSet<MessageId>>,
    /// Why the newest attempt to append to the journal failed; `None` when it worked.
    pub(super) refused: Mutex<Option<String>>,
    /// Why the index can't be used now. The indexer tries to mend it now and then, and whenever there is work.
    pub(super) failure: Mutex<Option<String>>,
}

impl Source for Shared {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.with_index(|index| index.get(key).map_err(Error::Index))
    }

    fn visit(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), Error> {
        self.with_index(|index| index.visit(from, Some(to), visit).map_err(Error::Index))
    }

    fn record(&self, position: Position) -> Result<Recorded, Error> {
        self.reader.read(position)
    }

    fn delivered(&self) -> HashSet<MessageId> {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    /// Runs something with the index, if it is usable.
    pub(super) fn with_index<T>(&self, work: impl FnOnce(&Index) -> Result<T, Error>) -> Result<T, Error> {
        if let Some(failure) = self.failure() {
            return Err(Error::Unusable(failure));
        }
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let result = work(index.as_ref().ok_or(Error::Closed)?);
        if let Err(Error::Index(error)) = &result {
            self.fail(&error.to_string());
        }
        result
    }

    /// Why the index can't be used now, if it can't.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the store unusable for now: going on with a broken index could show an old state.
    pub(super) fn fail(&self, why: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            tracing::error!(error = why, "the store's index failed; it will be opened again or rebuilt");
            *failure = Some(why.to_owned());
        }
    }

    /// Opens the index again, or rebuilds it, up to `head`.
    pub(super) fn mend(&self, head: Head) -> Result<(), Error> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        // It must be closed before its files are opened again.
        drop(index.take());
        let (mended, _) = open::index_at(&self.folder, self.cache_bytes, head)?;
        *index = Some(mended);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        tracing::info!(records = head.count, "the store's index is usable again");
        Ok(())
    }
}
