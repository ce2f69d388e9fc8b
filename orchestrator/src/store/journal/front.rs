//! The front of the journal: where the chain begins that is still there.
//!
//! A chain begins with segment 1, or later where a record inside it says that
//! what came before was pruned. Anything else is a loss. Drops nothing by itself;
//! it removes the files that such a record names.

use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::scan::Scan;
use super::{Head, segment};
use crate::store::error::Error;
use crate::store::prune::{PRUNED, Pruned};

/// Where a chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// The chain's head before its first record.
    pub head: Head,
    /// The segment that holds the first record.
    pub segment: u32,
}

impl Default for Front {
    fn default() -> Self {
        Self { head: Head::default(), segment: 1 }
    }
}

/// Where the chain in `segments` begins, if it may begin there. `known` is what an index remembers.
pub(in crate::store) fn front(folder: &Path, segments: &[u32], known: Option<Front>) -> Result<Front, Error> {
    let Some(&first) = segments.first().filter(|first| **first > 1) else { return Ok(Front::default()) };
    let found = Front { head: Scan::open(folder, first, None)?.head(), segment: first };
    // An index may be behind, so what it does not know is looked for in the journal itself.
    if known == Some(found) || newest_pruned(folder, segments)?.is_some_and(|pruned| pruned.allows(found)) {
        return Ok(found);
    }
    Err(Error::MissingSegment(segment::path_of(folder, first - 1)))
}

/// The newest record about pruning, read from the end; a flawed end is for others to judge.
fn newest_pruned(folder: &Path, segments: &[u32]) -> Result<Option<Pruned>, Error> {
    for number in segments.iter().rev() {
        let mut scan = Scan::open(folder, *number, None)?;
        let mut newest = None;
        while let Ok(Some(entry)) = scan.next() {
            newest = entry.pruned().or(newest);
        }
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

/// Reads the event of a record about pruning.
pub(in crate::store) fn pruned(kind: &str, event: &serde_json::Value) -> Option<Result<Pruned, String>> {
    (kind == PRUNED).then(|| Pruned::deserialize(event).map_err(|error| error.to_string()))
}

/// Removes the segments before the front, oldest first, so that what is left is always in one piece.
pub(in crate::store) fn remove_before(folder: &Path, front: Front) -> Result<u32, Error> {
    let mut removed = 0;
    for number in segment::list(folder)?.into_iter().take_while(|number| *number < front.segment) {
        let path = segment::path_of(folder, number);
        std::fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
        segment::remove_torn(folder, number)?;
        removed += 1;
    }
    if removed > 0 {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(Error::io(format!("sync the folder {}", folder.display())))?;
        tracing::info!(folder = %folder.display(), segments = removed, "pruned segments of the journal are gone");
    }
    Ok(removed)
}
