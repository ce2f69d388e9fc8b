//! Changes that readers see already and sled does not have yet.
//!
//! What changes again and again (a task's state, its timers) goes to sled once for
//! many records. Losing them costs nothing: the journal has the records.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::store::index::IndexError;
use crate::store::journal::Head;
use crate::store::map::{Changes, Visit};

/// Beyond so many keys they are written.
const ENTRIES_MAX: usize = 8_192;

/// Beyond so many bytes they are written.
const BYTES_MAX: usize = 4 << 20;

/// An entry as it lies in sled.
pub(super) type Stored = (sled::IVec, sled::IVec);

/// What waits to be written, and the journal record that it leads to.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    pub(super) head: Head,
    bytes: usize,
}

impl Pending {
    /// Nothing waits after `head`.
    pub(super) fn after(head: Head) -> Self {
        Self { head, ..Self::default() }
    }

    /// Adds newer changes; says whether it is time to write.
    pub(super) fn add(&mut self, changes: Changes, head: Head) -> bool {
        let size = |value: Option<&Vec<u8>>| value.map_or(0, Vec::len);
        for (key, value) in changes {
            let key_size = key.len();
            self.bytes += key_size + size(value.as_ref());
            if let Some(older) = self.changes.insert(key, value) {
                self.bytes -= key_size + size(older.as_ref());
            }
        }
        self.head = head;
        self.changes.len() >= ENTRIES_MAX || self.bytes >= BYTES_MAX
    }

    /// What waits for a key: `None` where nothing does, `Some(None)` where it is being removed.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.changes.get(key)
    }

    /// Visits what there is in a range, with what is `stored` seen through what waits.
    pub(super) fn visit(
        &self,
        (from, to): (&[u8], Option<&[u8]>),
        mut stored: impl FnMut() -> Result<Option<Stored>, IndexError>,
        visit: &mut Visit<'_>,
    ) -> Result<(), IndexError> {
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        let mut waiting = self.changes.range::<[u8], _>((Bound::Included(from), end)).peekable();
        let mut next = stored()?;
        loop {
            let newer = waiting.next_if(|(key, _)| next.as_ref().is_none_or(|(stored, _)| key.as_slice() <= &**stored));
            match newer {
                Some((key, value)) => {
                    if next.as_ref().is_some_and(|(stored, _)| *stored == key.as_slice()) {
                        next = stored()?;
                    }
                    if let Some(value) = value
                        && !visit(key, value)?
                    {
                        return Ok(());
                    }
                }
                None => {
                    let Some((key, value)) = next else { return Ok(()) };
                    if !visit(&key, &value)? {
                        return Ok(());
                    }
                    next = stored()?;
                }
            }
        }
    }
}
