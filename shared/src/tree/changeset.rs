//! The difference of two trees, found from manifests and never from `git diff`.
//!
//! A changeset is canonical: the same two trees give the same bytes, and its
//! digest is what verdicts and grants bind. It also is the redo log of an apply.
//! Its text for people is made in [`super::diff`].

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
        changes.extend(take_renames(&mut deleted, &mut added));
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

/// Moves pairs of files with the same content out of both maps; files that kept their name are paired first.
fn take_renames<'a>(
    deleted: &mut BTreeMap<&'a RelPath, &'a Entry>,
    added: &mut BTreeMap<&'a RelPath, &'a Entry>,
) -> Vec<Change> {
    let mut sources: BTreeMap<Digest, Vec<&RelPath>> = BTreeMap::new();
    for (path, entry) in deleted.iter().filter(|(_, entry)| can_be_renamed(entry)) {
        sources.entry(entry.content_digest()).or_default().push(path);
    }
    let mut pairs: Vec<(&RelPath, &RelPath)> = Vec::new();
    let mut taken = BTreeSet::new();
    for same_name in [true, false] {
        for (path, entry) in added.iter().filter(|(_, entry)| can_be_renamed(entry)) {
            if taken.contains(path) {
                continue;
            }
            let Some(candidates) = sources.get_mut(&entry.content_digest()) else { continue };
            let found = candidates.iter().position(|from| !same_name || from.name() == path.name());
            if let Some(index) = found {
                pairs.push((candidates.remove(index), path));
                taken.insert(*path);
            }
        }
    }
    let both = "pairs are made of entries that were in the maps, each once";
    let rename = |(from, path): (&'a RelPath, &'a RelPath)| Change {
        kind: ChangeKind::Renamed,
        path: path.clone(),
        from: Some(from.clone()),
        old: Some(deleted.remove(from).expect(both).clone()),
        new: Some(added.remove(path).expect(both).clone()),
    };
    pairs.into_iter().map(rename).collect()
}

/// Empty files are all alike, and links too often: to pair them would tell a story that nobody wrote.
fn can_be_renamed(entry: &Entry) -> bool {
    matches!(entry, Entry::File { size, .. } if *size > 0)
}

impl TryFrom<Raw> for Changeset {
    type Error = InvalidChangeset;
    fn try_from(raw: Raw) -> Result<Self, InvalidChangeset> {
        let refuse = |reason: String| Err(InvalidChangeset(reason));
        if raw.version != VERSION {
            return refuse(format!("version {} is not known here, only {VERSION}", raw.version));
        }
        if !raw.changes.windows(2).all(|pair| pair[0].path < pair[1].path) {
            return refuse("the changes are not in the order of their paths".to_owned());
        }
        if let Some(change) = raw.changes.iter().find(|change| !is_possible(change)) {
            return refuse(format!("the entries of `{}` do not fit its kind", change.path));
        }
        let changeset = Self { version: raw.version, changes: raw.changes };
        let paths = changeset.path_changes();
        if let Some(pair) = paths.windows(2).find(|pair| pair[0].path == pair[1].path) {
            return refuse(format!("`{}` is changed twice", pair[0].path));
        }
        for entries in [side(&paths, |change| change.old), side(&paths, |change| change.new)] {
            Manifest::new(entries).map_err(|e| InvalidChangeset(e.to_string()))?;
        }
        Ok(changeset)
    }
}

fn side<'a>(paths: &[PathChange<'a>], pick: impl Fn(&PathChange<'a>) -> Option<&'a Entry>) -> BTreeMap<RelPath, Entry> {
    paths.iter().filter_map(|change| Some((change.path.clone(), pick(change)?.clone()))).collect()
}

fn is_possible(change: &Change) -> bool {
    match (change.kind, &change.from, &change.old, &change.new) {
        (ChangeKind::Added, None, None, Some(_)) | (ChangeKind::Deleted, None, Some(_), None) => true,
        (ChangeKind::Renamed, Some(from), Some(old), Some(new)) => {
            from != &change.path
                && can_be_renamed(old)
                && can_be_renamed(new)
                && old.content_digest() == new.content_digest()
        }
        (kind, None, Some(old), Some(new)) => !old.same(new) && kind == kind_in_place(old, new),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{file, file_with, link, manifest, path, tree};
    use super::*;

    fn summary(old: &Manifest, new: &Manifest) -> Vec<String> {
        let changes = Changeset::between(old, new);
        let again = Changeset::parse(&changes.to_bytes()).unwrap();
        assert_eq!(again, changes);
        let from = |c: &Change| c.from.as_ref().map(|p| format!("{p} -> ")).unwrap_or_default();
        changes.changes().iter().map(|c| format!("{:?} {}{}", c.kind, from(c), c.path)).collect()
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let old = manifest(&[
            ("gone", file("1")),
            ("link", link("a")),
            ("mode", file("2")),
            ("moved/x", file("3")),
            ("same", file("4")),
            ("text", file("5")),
            ("type", file("6")),
        ]);
        let new = manifest(&[
            ("elsewhere/x", file_with("3", 0o755)),
            ("fresh", file("7")),
            ("link", link("b")),
            ("mode", file_with("2", 0o755)),
            ("same", file("4")),
            ("text", file("changed")),
            ("type", link("text")),
        ]);
        let expected = [
            "Renamed moved/x -> elsewhere/x",
            "Added fresh",
            "Deleted gone",
            "Modified link",
            "ModeChanged mode",
            "Modified text",
            "TypeChanged type",
        ];
        assert_eq!(summary(&old, &new), expected);
        assert!(summary(&old, &old).is_empty());
    }

    #[test]
    fn renames_prefer_the_same_name_and_never_pair_empty_files() {
        let old = tree(&[("a/one", "same"), ("a/two", "same"), ("empty", "")]);
        let new = tree(&[("b/one", "same"), ("b/two", "same"), ("b/zero", "same"), ("void", "")]);
        let expected =
            ["Renamed a/one -> b/one", "Renamed a/two -> b/two", "Added b/zero", "Deleted empty", "Added void"];
        assert_eq!(summary(&old, &new), expected);
    }

    #[test]
    fn a_file_that_becomes_a_directory_is_a_deletion_and_additions() {
        let (old, new) = (tree(&[("a", "1")]), tree(&[("a/b", "2")]));
        assert_eq!(summary(&old, &new), ["Deleted a", "Added a/b"]);
        assert_eq!(summary(&new, &old), ["Added a", "Deleted a/b"]);
    }

    #[test]
    fn a_changeset_that_no_two_trees_give_is_refused() {
        let good = Changeset::between(&tree(&[("a", "1"), ("b", "1x")]), &tree(&[("a", "2"), ("c", "1x")]));
        let text = String::from_utf8(good.to_bytes()).unwrap();
        assert!(Changeset::parse(text.as_bytes()).is_ok());
        for (from, to) in [
            (r#""kind":"modified""#, r#""kind":"added""#),
            (r#""kind":"modified""#, r#""kind":"type_changed""#),
            (r#""path":"a""#, r#""path":"d""#),
            (r#""path":"a""#, r#""path":".git/config""#),
            (r#""from":"b""#, r#""from":"a""#),
            (r#""from":"b""#, r#""from":null"#),
            (r#""version":1"#, r#""version":2"#),
            (r#""version":1"#, r#""version":1,"x":1"#),
            (r#""path":"c""#, r#""path":"a/c""#),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(Changeset::parse(text.replacen(from, to, 1).as_bytes()).is_err(), "{from} -> {to}");
        }
        for bad in ["", "null", "[]", "{}"] {
            assert!(Changeset::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn five_thousand_files_are_five_thousand_changes() {
        let entries = (0..5000).map(|n| (path(&format!("d{}/f{n}", n % 50)), file(&n.to_string())));
        let new = Manifest::new(entries.collect()).unwrap();
        let changes = Changeset::between(&Manifest::default(), &new);
        assert_eq!(changes.changes().len(), new.len());
        assert_eq!(changes.counts()[&ChangeKind::Added], 5000);
        assert_eq!(Changeset::parse(&changes.to_bytes()).unwrap(), changes);
    }
}
