//! The little that is asked of an index: an ordered map of bytes that changes in
//! batches. On the disk it is sled's; a simulation keeps it in memory.

use std::collections::BTreeMap;

use super::index::{Index, IndexError};
use super::journal::Head;

/// Changes that belong together: `None` removes a key.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Looks at an entry, and says whether to go on.
pub(super) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<bool, IndexError> + 'a;

/// An ordered map that knows which journal record it stands for.
pub(super) trait Map {
    /// The newest journal record that it holds.
    fn head(&self) -> Head;

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError>;

    /// Visits entries in order, from `from` up to and without `to`, for as long as `visit` returns true.
    fn visit(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), IndexError>;

    /// Makes all changes at once, and notes that it now stands for `head`.
    fn apply(&self, changes: Changes, head: Head) -> Result<(), IndexError>;
}

impl Map for Index {
    fn head(&self) -> Head {
        Self::head(self)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Self::get(self, key)
    }

    fn visit(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), IndexError> {
        Self::visit(self, from, Some(to), visit)
    }

    fn apply(&self, changes: Changes, head: Head) -> Result<(), IndexError> {
        Self::apply(self, changes, head)
    }
}
