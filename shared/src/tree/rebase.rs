//! Moving a changeset to another base, where both sides touched different paths.
//!
//! It compares whole files only: two edits of one file overlap, however far
//! apart they stand. It merges no text and asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use super::changeset::Changeset;
use super::manifest::{InvalidManifest, Manifest};
use super::path::RelPath;

/// What came of moving a changeset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Rebased {
    /// The tree on the new base.
    Clean(Manifest),
    /// Both sides changed these paths, in different ways.
    Overlap(BTreeSet<RelPath>),
}

/// The paths that do not stand as a changeset expects them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tree is not the one that the changeset was made from: {} of its paths differ", .0.len())]
pub struct Mismatch(pub BTreeSet<RelPath>);

impl Changeset {
    /// The tree that this changeset makes of `manifest`. A path that already has the new entry is done.
    ///
    /// # Errors
    ///
    /// [`Mismatch`] with every path that has neither the old nor the new entry, or that stands in the way.
    pub fn apply_to(&self, manifest: &Manifest) -> Result<Manifest, Mismatch> {
        let mut entries = manifest.entries().clone();
        let mut wrong = BTreeSet::new();
        for change in self.path_changes() {
            let current = entries.get(change.path);
            let stands = |wanted: Option<&super::Entry>| match (current, wanted) {
                (Some(a), Some(b)) => a.same(b),
                (a, b) => a.is_none() && b.is_none(),
            };
            if !stands(change.old) && !stands(change.new) {
                wrong.insert(change.path.clone());
            }
            match change.new {
                Some(entry) => entries.insert(change.path.clone(), entry.clone()),
                None => entries.remove(change.path),
            };
        }
        if !wrong.is_empty() {
            return Err(Mismatch(wrong));
        }
        Manifest::new(entries).map_err(|e| Mismatch(paths_of(e)))
    }

    /// The paths that both changesets touch and leave different; changes that agree do not overlap.
    pub fn overlap(&self, other: &Self) -> BTreeSet<RelPath> {
        let theirs: BTreeMap<_, _> = other.path_changes().into_iter().map(|change| (change.path, change.new)).collect();
        let ours = self.path_changes();
        let mut paths = BTreeSet::new();
        for change in &ours {
            let agree = match (theirs.get(change.path), change.new) {
                (None, _) | (Some(None), None) => true,
                (Some(Some(a)), Some(b)) => a.same(b),
                _ => false,
            };
            if !agree {
                paths.insert(change.path.clone());
            }
        }
        paths.extend(nested(&ours, &other.path_changes()));
        paths
    }
}

/// Paths where one side leaves a file and the other something below it.
fn nested(ours: &[super::changeset::PathChange<'_>], theirs: &[super::changeset::PathChange<'_>]) -> BTreeSet<RelPath> {
    let left = |side: &[super::changeset::PathChange<'_>]| -> BTreeSet<RelPath> {
        side.iter().filter(|change| change.new.is_some()).map(|change| change.path.clone()).collect()
    };
    let (ours, theirs) = (left(ours), left(theirs));
    let mut paths = BTreeSet::new();
    for (files, others) in [(&ours, &theirs), (&theirs, &ours)] {
        for below in others {
            for path in below.ancestors().filter(|path| files.contains(path)) {
                paths.extend([path, below.clone()]);
            }
        }
    }
    paths
}

/// Moves the changes from `base_old` to `tree` onto `base_new`.
pub fn rebase(base_old: &Manifest, tree: &Manifest, base_new: &Manifest) -> Rebased {
    let ours = Changeset::between(base_old, tree);
    let theirs = Changeset::between(base_old, base_new);
    let overlap = ours.overlap(&theirs);
    if !overlap.is_empty() {
        return Rebased::Overlap(overlap);
    }
    match ours.apply_to(base_new) {
        Ok(tree) => Rebased::Clean(tree),
        Err(Mismatch(paths)) => Rebased::Overlap(paths),
    }
}

fn paths_of(error: InvalidManifest) -> BTreeSet<RelPath> {
    match error {
        InvalidManifest::NotDirectory { path, below } => BTreeSet::from([path, below]),
        InvalidManifest::TooManyEntries => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::memory::{file, path, tree};
    use super::*;

    #[test]
    fn changes_of_different_paths_are_joined() {
        let base = tree(&[("a", "1"), ("b", "1"), ("c", "1x")]);
        let ours = tree(&[("a", "2"), ("b", "1"), ("d/c", "1x")]);
        let theirs = tree(&[("a", "1"), ("b", "3"), ("c", "1x"), ("e", "new")]);
        let joined = tree(&[("a", "2"), ("b", "3"), ("d/c", "1x"), ("e", "new")]);
        assert_eq!(rebase(&base, &ours, &theirs), Rebased::Clean(joined));
    }

    #[test]
    fn the_same_path_overlaps_unless_both_sides_agree() {
        let base = tree(&[("a", "1"), ("b", "1")]);
        let ours = tree(&[("a", "2"), ("b", "9")]);
        assert_eq!(rebase(&base, &ours, &tree(&[("a", "3"), ("b", "9")])), Rebased::Overlap([path("a")].into()));
        assert_eq!(rebase(&base, &ours, &tree(&[("b", "9")])), Rebased::Overlap([path("a")].into()));
        assert_eq!(rebase(&base, &ours, &ours), Rebased::Clean(ours.clone()));
    }

    #[test]
    fn a_file_on_one_side_and_a_directory_on_the_other_overlap() {
        let base = tree(&[("x", "1")]);
        let (ours, theirs) = (tree(&[("x", "1"), ("d", "file")]), tree(&[("x", "1"), ("d/e", "below")]));
        assert_eq!(rebase(&base, &ours, &theirs), Rebased::Overlap([path("d"), path("d/e")].into()));
        // A directory that already stood in the base is in the way as well.
        let into = tree(&[("x/y", "ours")]);
        assert!(matches!(rebase(&base, &into, &tree(&[("x", "2")])), Rebased::Overlap(_)));
    }

    #[test]
    fn a_changeset_made_from_another_tree_names_what_differs() {
        let changes = Changeset::between(&tree(&[("a", "1"), ("b", "1")]), &tree(&[("a", "2"), ("b", "2")]));
        let error = changes.apply_to(&tree(&[("a", "other"), ("b", "2")])).unwrap_err();
        assert_eq!(error.0, [path("a")].into());
    }

    fn trees() -> impl Strategy<Value = Manifest> {
        prop::collection::btree_map("[ab](/[ab]){0,2}", "[xy]", 0..6).prop_filter_map("impossible", |files| {
            Manifest::new(files.iter().map(|(p, c)| (path(p), file(c))).collect()).ok()
        })
    }

    proptest! {
        #[test]
        fn a_changeset_makes_the_new_tree_of_the_old_one_and_is_idempotent(old in trees(), new in trees()) {
            let changes = Changeset::between(&old, &new);
            prop_assert_eq!(changes.apply_to(&old).unwrap(), new.clone());
            prop_assert_eq!(changes.apply_to(&new).unwrap(), new);
        }

        #[test]
        fn a_clean_rebase_keeps_both_sides(base in trees(), ours in trees(), theirs in trees()) {
            if let Rebased::Clean(joined) = rebase(&base, &ours, &theirs) {
                prop_assert_eq!(Changeset::between(&base, &theirs).apply_to(&joined).unwrap(), joined.clone());
                prop_assert_eq!(Changeset::between(&base, &ours).apply_to(&joined).unwrap(), joined.clone());
                prop_assert_eq!(rebase(&base, &theirs, &ours), Rebased::Clean(joined));
            }
        }
    }
}
