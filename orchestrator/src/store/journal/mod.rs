//! The journal: an append-only chain of records in segment files.
//!
//! `docs/journal.md` describes the files for people. The parts: [`codec`] is the
//! text of a line, [`segment`] the names and births of files, [`scan`] reads and
//! checks the chain, [`front`] says where it may begin, [`recovery`] and [`repair`] open it after whatever happened, [`append`]
//! writes batches, [`read`] fetches single records, [`head`] is the copy of the
//! chain's head outside the chain. Nothing here knows tasks or the index.

mod append;
mod codec;
mod front;
mod head;
#[cfg(feature = "simulation")]
mod memory;
mod read;
mod recovery;
mod repair;
mod scan;
mod segment;

use checkrein_shared::digest::Digest;
use serde::{Deserialize, Serialize};

pub(super) use append::Writer;
pub(super) use codec::{Draft, FORMAT, Prepared, StateText, VALUE_DEPTH_MAX, deeper_than};
pub use front::Front;
pub(super) use front::{front, pruned, remove_before};
pub(super) use head::HeadFile;
#[cfg(feature = "simulation")]
pub(super) use memory::{MemoryJournal, Segments};
pub(super) use read::Reader;
pub(super) use recovery::{Opened, open_from};
pub use repair::TornTail;
pub(super) use repair::unfinished_tail;
pub(super) use scan::{Entry, Scan, ScanError};
pub(super) use segment::{list, path_of};

/// A broken disk, for tests of what stands on the journal.
#[cfg(test)]
pub(super) mod faults {
    pub(in crate::store) use super::append::tests::{Faults, Faulty};
}

/// The newest record of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How many records there are, which is the newest one's sequence number.
    pub count: u64,
    /// Its hash; `None` while there is none.
    pub hash: Option<Digest>,
}

/// Where a record's line lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// The segment's number.
    pub segment: u32,
    /// The line's first byte.
    pub offset: u64,
    /// The line's length in bytes, with its end.
    pub length: u32,
}
