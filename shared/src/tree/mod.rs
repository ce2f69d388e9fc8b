//! Trees of files as values: manifests, their Merkle nodes, changesets, diffs
//! for people, and writing a tree out to a new directory.
//!
//! Workers and reviewers both use it. It does not read a user's workspace and
//! never changes one: that is the worker's part.

pub mod escape;
pub mod path;

pub mod entry;
pub mod manifest;
pub mod secret;

pub mod node;

pub mod changeset;
pub mod rebase;

pub mod diff;

pub mod carry;
pub mod materialise;

#[cfg(test)]
pub(crate) mod memory;

pub use changeset::{Change, ChangeKind, Changeset};
pub use entry::{Content, Entry, LinkTarget, Mode};
pub use manifest::Manifest;
pub use path::RelPath;
