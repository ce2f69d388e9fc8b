//! The tree in which a verifier runs: the checkpoint's, with the base's version
//! of the files by which it is measured.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::tree::{Entry, Manifest, RelPath};

use crate::globs::Globs;

/// A tree with some files taken from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restored {
    pub(crate) manifest: Manifest,
    /// What had been altered or deleted.
    pub(crate) restored: BTreeSet<RelPath>,
    /// What matches and is not at the base. It stays: new tests are welcome, and they are named.
    pub(crate) added: BTreeSet<RelPath>,
}

/// Puts back every file of `base` that matches `globs`.
pub(crate) fn restore(base: &Manifest, tree: &Manifest, globs: &Globs) -> Restored {
    let is_same = |path: &RelPath, entry: &Entry| tree.get(path).is_some_and(|now| now.same(entry));
    let wanted = || base.iter().filter(|(path, _)| globs.matches(path));
    let restored: BTreeSet<RelPath> =
        wanted().filter(|(path, entry)| !is_same(path, entry)).map(|(path, _)| path.clone()).collect();
    let added = tree.iter().filter(|(path, _)| globs.matches(path) && base.get(path).is_none());
    let added = added.map(|(path, _)| path.clone()).collect();

    let mut entries = tree.clone().into_entries();
    for path in &restored {
        make_room(&mut entries, path);
        if let Some(entry) = base.get(path) {
            entries.insert(path.clone(), entry.clone());
        }
    }
    let manifest = Manifest::new(entries).expect("room was made for every restored path, and the tree was possible");
    Restored { manifest, restored, added }
}

/// Removes what can't stand beside a file at `path`: a file or link on the way to it, and whatever stands below it.
fn make_room(entries: &mut BTreeMap<RelPath, Entry>, path: &RelPath) {
    for above in path.ancestors() {
        entries.remove(&above);
    }
    // `x-y` sorts between `x` and `x/y`, so the paths that share the bytes are looked through.
    let sharing = entries.range(path.clone()..).take_while(|(p, _)| p.as_bytes().starts_with(path.as_bytes()));
    let below: Vec<RelPath> = sharing.filter(|(p, _)| p.is_below(path)).map(|(p, _)| p.clone()).collect();
    for path in below {
        entries.remove(&path);
    }
}

/// Names the base's version of the files that `globs` match: what a cached pass was measured by.
pub(crate) fn digest(base: &Manifest, globs: &Globs) -> Digest {
    let entries: Vec<(&RelPath, &Entry)> = base.iter().filter(|(path, _)| globs.matches(path)).collect();
    json::digest(&entries).expect("entries hold no floats, and sizes of files stay below 2^53")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::manifest;

    fn paths(set: &BTreeSet<RelPath>) -> Vec<String> {
        set.iter().map(ToString::to_string).collect()
    }

    fn tests() -> Globs {
        Globs::new(["tests/**"]).unwrap()
    }

    #[test]
    fn altered_and_deleted_tests_come_back_and_new_ones_stay() {
        let base = manifest(&[("src/a", "1"), ("tests/a", "1"), ("tests/b", "2"), ("tests/c", "3")]);
        let tree = manifest(&[("src/a", "9"), ("tests/a", "9"), ("tests/c", "3"), ("tests/new", "4")]);
        let found = restore(&base, &tree, &tests());
        assert_eq!(paths(&found.restored), ["tests/a", "tests/b"]);
        assert_eq!(paths(&found.added), ["tests/new"]);
        let expected =
            manifest(&[("src/a", "9"), ("tests/a", "1"), ("tests/b", "2"), ("tests/c", "3"), ("tests/new", "4")]);
        assert_eq!(found.manifest, expected);
    }

    #[test]
    fn a_folder_of_tests_that_became_a_file_is_a_folder_again_and_the_reverse() {
        let base = manifest(&[("tests/a/b", "1"), ("tests/x", "2")]);
        let found = restore(&base, &manifest(&[("tests", "gone")]), &tests());
        assert_eq!(found.manifest, base);

        let tree = manifest(&[("tests/a/b", "1"), ("tests/x/y/z", "9"), ("tests/x-y", "kept")]);
        let found = restore(&base, &tree, &tests());
        assert_eq!(found.manifest, manifest(&[("tests/a/b", "1"), ("tests/x", "2"), ("tests/x-y", "kept")]));
    }

    #[test]
    fn without_patterns_nothing_is_touched() {
        let (base, tree) = (manifest(&[("tests/a", "1")]), manifest(&[("tests/a", "2")]));
        let found = restore(&base, &tree, &Globs::new::<&str>([]).unwrap());
        assert_eq!((found.manifest, found.restored.len()), (tree, 0));
    }

    #[test]
    fn the_digest_follows_only_what_the_patterns_match() {
        let one = digest(&manifest(&[("tests/a", "1"), ("src", "1")]), &tests());
        assert_eq!(one, digest(&manifest(&[("tests/a", "1"), ("src", "2")]), &tests()));
        assert_ne!(one, digest(&manifest(&[("tests/a", "2"), ("src", "1")]), &tests()));
    }

    proptest! {
        #[test]
        fn whatever_was_done_to_the_tests_the_base_s_version_is_back(
            base in prop::collection::btree_map("(tests/)?[ab](/[ab])?", "[12]", 0..6),
            tree in prop::collection::btree_map("(tests/)?[ab](/[ab])?|tests", "[12]", 0..6),
        ) {
            let of = |files: &std::collections::BTreeMap<String, String>| {
                let entries = files.iter().map(|(path, content)| (path.parse().unwrap(), crate::testing::file(content)));
                Manifest::new(entries.collect()).ok()
            };
            if let (Some(base), Some(tree)) = (of(&base), of(&tree)) {
                let found = restore(&base, &tree, &tests());
                for (path, entry) in base.iter().filter(|(path, _)| tests().matches(path)) {
                    prop_assert_eq!(found.manifest.get(path), Some(entry));
                }
                for (path, entry) in found.manifest.iter().filter(|(path, _)| !found.restored.contains(*path)) {
                    prop_assert_eq!(tree.get(path), Some(entry));
                }
            }
        }
    }
}
