//! Putting a changeset into a target: all of it or nothing, and never over somebody's edit.
//!
//! Every path must stand as the changeset expects it, or already as it shall
//! become. New files are staged beside the target, then swapped in one by one,
//! and what each swap displaced is compared again: an edit that came between
//! looking and swapping is swapped back. Displaced files stay until [`finish`].
//! The changeset is the redo log: after a crash the same call goes on, and what
//! is done is found done. This module holds no grant and asks for none, and it
//! runs no git: commits are made from an [`Applied`] by whoever holds the lock.

mod classify;
mod home;
mod lock;
mod plan;
mod source;
mod stage;
mod standing;
mod survey;
mod swap;

mod finish;
mod forward;
mod run;
mod undo;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Changeset, Entry, RelPath};

pub use finish::{Finished, finish};
pub use lock::RootLock;

/// Why an apply did not come to an outcome. What had been done is undone first, except after [`Error::Stopped`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else applies to this target.
    #[error("another process is changing `{}`: try again when it is done", .0.display())]
    Busy(PathBuf),
    /// A new content is nowhere to be had.
    #[error(
        "the new content of `{path}` is not in the blob store and not in the scratch: apply it where the scratch is"
    )]
    NoContent {
        /// The file.
        path: RelPath,
    },
    /// A new content could not be read from the blob store.
    #[error("can't read the new content of `{path}`")]
    Blob {
        /// The file.
        path: RelPath,
        /// The cause.
        source: blob::Error,
    },
    /// A path lies on another file system than the target's root.
    #[error("`{0}` lies on another file system than the workspace: it can't be swapped in place")]
    OtherFileSystem(RelPath),
    /// A path is where an apply keeps its own files.
    #[error("`{0}` is where an apply keeps its own files")]
    Reserved(RelPath),
    /// The file system failed.
    #[error("can't work on `{}`", .path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The caller's `steps` stopped it. The next call with the same changeset goes on.
    #[error("the apply was stopped")]
    Stopped,
}

/// What is applied, and what it is made of.
pub struct Apply<'a> {
    /// The changeset.
    pub changeset: &'a Changeset,
    /// Where the new contents are.
    pub blobs: &'a dyn Blobs,
    /// Where the contents are that no blob store keeps: sealed and large files.
    pub scratch: Option<PathBuf>,
    /// Whether swaps may use one atomic system call where there is one. Only tests have a reason to say no.
    pub atomic: bool,
    /// Hears of every step.
    pub steps: Steps,
}

/// Hears of every step; it stops an apply by refusing one.
pub type Steps = Arc<dyn Fn(Step<'_>) -> Result<(), Stopped> + Send + Sync>;

/// A step was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// What happens next, or has just happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Every path was looked at; nothing was touched.
    Preflighted,
    /// The new file of a path is ready beside the target, and durable.
    Staged(&'a RelPath),
    /// Everything is staged. From here on the target changes.
    Planned,
    /// A path is about to be swapped.
    Swapping(&'a RelPath),
    /// It was swapped; what was displaced is not compared yet.
    Swapped(&'a RelPath),
    /// What was displaced is what the changeset expects.
    Checked(&'a RelPath),
    /// A path is about to be put back.
    Undoing(&'a RelPath),
    /// Every path is done, and durable.
    Synced,
}

/// What came of an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The target has the changes, durably.
    Applied(Applied),
    /// The target does not stand as expected. It has none of the changes but those named in `not_undone`.
    Conflict {
        /// What stands otherwise.
        conflicts: Vec<Conflict>,
        /// Paths that somebody changed while they were being put back; they were left alone.
        not_undone: Vec<RelPath>,
    },
}

/// A changeset that the target has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The changeset's digest.
    pub changeset: Digest,
    /// Paths that were changed, now or before a crash.
    pub changed: Vec<RelPath>,
    /// Paths that already stood as they should.
    pub already: Vec<RelPath>,
}

/// A path that does not stand as a changeset expects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub path: RelPath,
    /// What the changeset expects there.
    pub expected: Option<Entry>,
    /// What stands there, if it is a file or a link.
    pub found: Option<Entry>,
    /// What stands there, in words.
    pub note: String,
}

impl<'a> Apply<'a> {
    /// An apply that nobody listens to.
    pub fn new(changeset: &'a Changeset, blobs: &'a dyn Blobs) -> Self {
        Self { changeset, blobs, scratch: None, atomic: true, steps: Arc::new(|_| Ok(())) }
    }
}

/// Applies a changeset to the locked target, or goes on where a crash cut it off.
///
/// When this returns [`Outcome::Applied`], the changes survive a power cut.
///
/// # Errors
///
/// [`Error`]; the target has none of the changes then, except after [`Error::Stopped`].
pub async fn apply(lock: &RootLock, request: &Apply<'_>) -> Result<Outcome, Error> {
    run::run(lock, request).await
}

#[cfg(test)]
mod tests;
