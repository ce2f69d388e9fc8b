//! The user's workspace and the copies of it in which agents work.
//!
//! A *target* is measured by [`mod@snapshot`], copied by [`scratch`] and changed by
//! [`mod@apply`] only. Ignore rules are those of the base ([`rules`]), however the
//! agent edits them. This module decides nothing: whether a changeset may be
//! applied is the orchestrator's decision.

mod beneath;
pub(crate) mod git;

pub mod guard;
pub mod rules;

mod cache;
mod read;
mod walk;

pub mod snapshot;

pub mod restore;
pub mod scratch;

pub mod apply;

pub use apply::{Apply, Outcome, RootLock, apply, finish};
pub use cache::StatCache;
pub use rules::Rules;
pub use scratch::{Cut, Scratch};
pub use snapshot::{Snapshot, Survey, snapshot};

#[cfg(test)]
pub(crate) mod testing;

/// The directory in a target where an apply keeps its files; it belongs to no tree.
pub(crate) const STAGE_NAME: &str = ".checkrein-apply";
