//! The difference of two trees, found from manifests and never from `git diff`.
//!
//! A changeset is canonical: the same two trees give the same bytes, and its
//! digest is what verdicts and grants bind. It also is the redo log of an apply.
//! Its text for people is made in [`super::diff`].

mod renames;
mod validate;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::manifest::Manifest;
use super::path::RelPath;
use crate::digest::Digest;
use crate::json;

/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content changed, and perhaps its mode.
    Modified,
    /// It is gone.
    Deleted,
    /// It is new, and another path with the same content is gone.
    Renamed,
    /// Only its permission bits changed.
    ModeChanged,
    /// A file became a link or a link a file.
    TypeChanged,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// Where; for a rename, where to.
    pub path: RelPath,
    /// For a rename, where from.
    pub from: Option<RelPath>,
    /// What stood there, or for a rename what stood at `from`.
    pub old: Option<Entry>,
    /// What stands there now.
    pub new: Option<Entry>,
}

/// All changes from one tree to another, in the order of their paths' bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw")]
pub struct Changeset {
    version: u32,
    changes: Vec<Change>,
}

/// A record that is no possible changeset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a possible changeset: {0}")]
pub struct InvalidChangeset(String);

/// What happens at one path; a rename is two of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChange<'a> {
    /// The path.
    pub path: &'a RelPath,
    /// What stands there before.
    pub old: Option<&'a Entry>,
    /// What stands there after.
    pub new: Option<&'a Entry>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Changeset")]
#[serde(deny_unknown_fields)]
struct Raw {
    version: u32,
    changes: Vec<Change>,
}

impl Changeset {
    /// The changes from `old` to `new`.
    pub fn between(old: &Manifest, new: &Manifest) -> Self {
        let mut changes = Vec::new();
        let mut deleted = BTreeMap::new();
        let mut added = BTreeMap::new();
        for (path, before) in old.iter() {
            match new.get(path) {
                None => {
                    deleted.insert(path, before);
                }
                Some(after) if before.same(after) => {}
                Some(after) => changes.push(in_place(path, before, after)),
            }
        }
        added.extend(new.iter().filter(|(path, _)| old.get(path).is_none()));
        changes.extend(renames::take(&mut deleted, &mut added));
        changes.extend(deleted.into_iter().map(|(path, entry)| Change {
            kind: ChangeKind::Deleted,
            path: path.clone(),
            from: None,
            old: Some(entry.clone()),
            new: None,
        }));
        changes.extend(added.into_iter().map(|(path, entry)| Change {
            kind: ChangeKind::Added,
            path: path.clone(),
            from: None,
            old: None,
            new: Some(entry.clone()),
        }));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Self { version: VERSION, changes }
    }

    /// Parses a stored changeset.
    ///
    /// # Errors
    ///
    /// What [`json::parse_as`] refuses, and what no two trees could give.
    pub fn parse(bytes: &[u8]) -> Result<Self, json::Error> {
        json::parse_as("changeset", bytes)
    }

    /// Its canonical bytes: what a blob store keeps.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::canonical(self).expect("changesets hold no floats, and sizes of files stay below 2^53")
    }

    /// The digest of its canonical bytes.
    pub fn digest(&self) -> Digest {
        Digest::of(self.to_bytes())
    }

    /// The changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What happens at each path, in the order of their bytes; a rename gives two.
    pub fn path_changes(&self) -> Vec<PathChange<'_>> {
        let mut all = Vec::with_capacity(self.changes.len());
        for Change { path, from, old, new, .. } in &self.changes {
            match from {
                None => all.push(PathChange { path, old: old.as_ref(), new: new.as_ref() }),
                Some(from) => {
                    all.push(PathChange { path: from, old: old.as_ref(), new: None });
                    all.push(PathChange { path, old: None, new: new.as_ref() });
                }
            }
        }
        all.sort_by_key(|change| change.path);
        all
    }

    /// Every path that something happens to, both ends of renames included.
    pub fn touched(&self) -> BTreeSet<&RelPath> {
        self.changes.iter().flat_map(|change| std::iter::once(&change.path).chain(&change.from)).collect()
    }

    /// How many changes of each kind there are.
    pub fn counts(&self) -> BTreeMap<ChangeKind, usize> {
        let mut counts = BTreeMap::new();
        for change in &self.changes {
            *counts.entry(change.kind).or_default() += 1;
        }
        counts
    }

    /// The digests of the new contents that a blob store must have for this changeset to be applied.
    pub fn blobs(&self) -> BTreeSet<Digest> {
        self.changes.iter().filter_map(|change| change.new.as_ref()?.blob()).collect()
    }
}

fn in_place(path: &RelPath, old: &Entry, new: &Entry) -> Change {
    let kind = kind_in_place(old, new);
    Change { kind, path: path.clone(), from: None, old: Some(old.clone()), new: Some(new.clone()) }
}

fn kind_in_place(old: &Entry, new: &Entry) -> ChangeKind {
    match (old, new) {
        (Entry::File { digest: a, .. }, Entry::File { digest: b, .. }) if a == b => ChangeKind::ModeChanged,
        (Entry::File { .. }, Entry::File { .. }) | (Entry::Symlink { .. }, Entry::Symlink { .. }) => {
            ChangeKind::Modified
        }
        _ => ChangeKind::TypeChanged,
    }
}

#[cfg(test)]
mod tests;
