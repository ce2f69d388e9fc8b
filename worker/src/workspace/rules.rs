//! Which files count, by the ignore rules as they stood at the base.
//!
//! The rules are read from the target once and kept as a blob beside the task.
//! An agent that edits a `.gitignore` in its scratch therefore hides nothing.
//! Whatever git tracked at the base counts, ignored or not. Files that are secret
//! by their name count by their digest, even where they are ignored. A user's
//! global git settings are not read.

mod load;
mod matcher;

use std::collections::BTreeSet;
use std::ops::Bound;

use checkrein_shared::blob::{self, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::tree::RelPath;
use checkrein_shared::tree::secret::is_secret_name;
use serde::{Deserialize, Serialize};

pub use load::Error;
use matcher::Matcher;

/// The largest record of rules that is read.
const RECORD_BYTES_MAX: u64 = 64 << 20;

const VERSION: u32 = 1;

/// The rules, ready to match.
#[derive(Debug)]
pub struct Rules {
    record: Record,
    matcher: Matcher,
}

/// The rules, as they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    /// Where the workspace lies in the repository, if it is not its top.
    prefix: Option<RelPath>,
    /// Every ignore file, those of one directory in descending precedence.
    files: Vec<RuleFile>,
    /// What git tracked at the base although it is ignored or secret by its name.
    tracked: BTreeSet<RelPath>,
    /// Paths that are carried from the target, and belong to no tree.
    carried: BTreeSet<RelPath>,
}

/// One ignore file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    /// Its directory, from the repository's top.
    directory: Option<RelPath>,
    /// Its lines; those that are no UTF-8 are left out, and so ignore nothing.
    lines: Vec<String>,
}

/// What a walk does with something that it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// It counts, and its bytes are stored.
    Stored,
    /// It counts, and only its digest is kept.
    Sealed,
    /// It does not count.
    No,
}

/// What a walk does with a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enter {
    /// It goes in.
    Yes,
    /// It goes in, for tracked files only.
    TrackedOnly,
    /// It passes by.
    No,
}

impl Rules {
    /// Parses rules that [`Rules::store`] stored.
    ///
    /// # Errors
    ///
    /// A missing blob, or one that is no such record.
    pub async fn load(blobs: &dyn Blobs, digest: Digest) -> Result<Self, Error> {
        let bytes = blobs.get(digest, RECORD_BYTES_MAX).await?;
        let record: Record = json::parse_as("record of ignore rules", &bytes)?;
        if record.version != VERSION {
            return Err(Error::Version(record.version));
        }
        Ok(Self::new(record))
    }

    /// Stores the rules, so that another worker can go on with them.
    ///
    /// # Errors
    ///
    /// The blob store's.
    pub async fn store(&self, blobs: &dyn Blobs) -> Result<Digest, blob::Error> {
        let bytes = json::canonical(&self.record).expect("rules hold text and paths only");
        blobs.put(&bytes).await
    }

    /// The same rules, with `paths` carried: what stands there belongs to no tree.
    #[must_use]
    pub fn carrying(mut self, paths: &[RelPath]) -> Self {
        self.record.carried.extend(paths.iter().cloned());
        self
    }

    fn new(record: Record) -> Self {
        let matcher = Matcher::new(record.prefix.as_ref(), &record.files);
        Self { record, matcher }
    }

    /// Whether a file or link counts.
    pub(crate) fn file(&self, path: &RelPath, tracked_only: bool) -> Counts {
        let secret = is_secret_name(path.name());
        let carried = self.record.carried.contains(path);
        if self.record.tracked.contains(path) {
            Counts::Stored
        } else if tracked_only || (carried && !secret) {
            Counts::No
        } else if secret {
            Counts::Sealed
        } else if self.matcher.is_ignored(path, false) {
            Counts::No
        } else {
            Counts::Stored
        }
    }

    /// Whether a directory is walked.
    pub(crate) fn directory(&self, path: &RelPath, tracked_only: bool) -> Enter {
        // A submodule is tracked as one path, and its contents count.
        if self.record.tracked.contains(path) {
            return Enter::Yes;
        }
        let ignored = tracked_only || self.record.carried.contains(path) || self.matcher.is_ignored(path, true);
        if !ignored {
            Enter::Yes
        } else if self.tracks_below(path) {
            Enter::TrackedOnly
        } else {
            Enter::No
        }
    }

    /// Whether a path that counts as sealed may still be copied into a scratch: it is not ignored, or it is carried.
    pub(crate) fn may_be_copied(&self, path: &RelPath) -> bool {
        self.record.carried.iter().any(|carried| carried == path || path.is_below(carried))
            || !self.matcher.is_ignored(path, false)
    }

    fn tracks_below(&self, path: &RelPath) -> bool {
        let after = [path.as_bytes(), b"/"].concat();
        self.record
            .tracked
            .range::<[u8], _>((Bound::Excluded(after.as_slice()), Bound::Unbounded))
            .next()
            .is_some_and(|other| other.is_below(path))
    }
}

#[cfg(test)]
mod tests;
