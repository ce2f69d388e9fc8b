//! The simulated disk as the real reads see it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use checkrein_shared::ids::MessageId;

use super::disk::Disk;
use crate::store::error::Error;
use crate::store::journal::Position;
use crate::store::local::read::Source;
use crate::store::map::Visit;
use crate::store::model::Recorded;

/// Index, journal, and what is noted besides.
pub(super) struct View<'a> {
    pub(super) disk: &'a Disk,
    pub(super) noted: &'a Mutex<HashSet<MessageId>>,
}

impl View<'_> {
    pub(super) fn with<T>(&self, work: impl FnOnce(&dyn Source) -> T) -> T {
        work(self)
    }
}

impl Source for View<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.disk.with_index(|index| Ok(index.value(key)))
    }

    fn visit(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), Error> {
        self.disk.with_index(|index| index.range(from, to, visit).map_err(Error::Index))
    }

    fn record(&self, position: Position) -> Result<Recorded, Error> {
        self.disk.read(position)
    }

    fn delivered(&self) -> HashSet<MessageId> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
