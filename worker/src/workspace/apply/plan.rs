//! The plan: what an apply does at each path, kept beside the staged files.
//!
//! It is written once everything is staged and before anything is swapped. A stage
//! without a plan has displaced nothing and may be thrown away; one with a plan
//! tells which paths were already as they should be, and so must not be undone.

use std::collections::BTreeSet;

use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Changeset, Entry, RelPath};
use serde::{Deserialize, Serialize};

/// The version of the format that this build writes and reads.
pub(super) const VERSION: u32 = 1;

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) version: u32,
    pub(super) changeset: Digest,
    /// The numbers of the paths that stood as they should before anything was done.
    pub(super) already: BTreeSet<usize>,
}

/// What is to be done at one path.
#[derive(Debug, Clone)]
pub(super) struct Op {
    /// Its number, which names its file in the stage.
    pub(super) number: usize,
    pub(super) path: RelPath,
    pub(super) old: Option<Entry>,
    pub(super) new: Option<Entry>,
}

/// The operations of a changeset in the order in which they are done: deletions, innermost first, then the rest.
pub(super) fn ops(changeset: &Changeset) -> Vec<Op> {
    let numbered = changeset.path_changes().into_iter().enumerate();
    let op = |(number, change): (usize, checkrein_shared::tree::changeset::PathChange<'_>)| Op {
        number,
        path: change.path.clone(),
        old: change.old.cloned(),
        new: change.new.cloned(),
    };
    // Deletions first: a directory can only become a file once it is empty.
    let (mut deletions, rest): (Vec<Op>, Vec<Op>) = numbered.map(op).partition(|op| op.new.is_none());
    deletions.reverse();
    deletions.into_iter().chain(rest).collect()
}
