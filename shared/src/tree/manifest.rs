//! A whole tree in memory: every path with its entry, in the order of bytes.
//!
//! A manifest is always possible on a file system: nothing stands below a file
//! or a link. It holds no contents; [`super::node`] stores and loads it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::entry::Entry;
use super::path::RelPath;

/// The largest number of entries that a tree may have.
pub const ENTRIES_MAX: usize = 1_000_000;

/// All entries of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: BTreeMap<RelPath, Entry>,
}

/// Entries that can't stand in one tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidManifest {
    /// Something stands below a file or link.
    #[error("`{below}` can't exist: `{path}` is not a directory")]
    NotDirectory {
        /// The file or link.
        path: RelPath,
        /// What would stand below it.
        below: RelPath,
    },
    /// There are too many entries.
    #[error("the tree has more than {ENTRIES_MAX} files: exclude what does not matter with ignore rules")]
    TooManyEntries,
}

impl Manifest {
    /// Checks that the entries fit together.
    ///
    /// # Errors
    ///
    /// [`InvalidManifest`] names the paths that do not fit.
    pub fn new(entries: BTreeMap<RelPath, Entry>) -> Result<Self, InvalidManifest> {
        if entries.len() > ENTRIES_MAX {
            return Err(InvalidManifest::TooManyEntries);
        }
        // Neighbours share directories, so each is looked up once and not once a file.
        let mut parents = BTreeSet::new();
        for below in entries.keys() {
            for path in below.ancestors() {
                if parents.contains(&path) {
                    break;
                }
                if entries.contains_key(&path) {
                    return Err(InvalidManifest::NotDirectory { path, below: below.clone() });
                }
                parents.insert(path);
            }
        }
        Ok(Self { entries })
    }

    /// The entry at a path.
    pub fn get(&self, path: &RelPath) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Whether a path is a directory of this tree, which means that it holds something.
    pub fn is_directory(&self, path: &RelPath) -> bool {
        let mut after = path.as_bytes().to_vec();
        after.push(b'/');
        // `dir/` itself is no valid path, so the first path behind it is below it or nothing is.
        self.entries
            .range::<[u8], _>((Bound::Excluded(after.as_slice()), Bound::Unbounded))
            .next()
            .is_some_and(|(other, _)| other.is_below(path))
    }

    /// All entries in the order of their paths' bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&RelPath, &Entry)> {
        self.entries.iter()
    }

    /// The entries as a map.
    pub fn entries(&self) -> &BTreeMap<RelPath, Entry> {
        &self.entries
    }

    /// The entries, to build another manifest from.
    pub fn into_entries(self) -> BTreeMap<RelPath, Entry> {
        self.entries
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether both are the same to a person; see [`Entry::same`].
    pub fn same(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|((path, a), (path_b, b))| path == path_b && a.same(b))
    }

    /// Groups of paths that a file system without letter case would merge.
    pub fn case_collisions(&self) -> Vec<(RelPath, RelPath)> {
        let mut seen: BTreeMap<String, RelPath> = BTreeMap::new();
        let mut collisions = Vec::new();
        let directories: BTreeSet<RelPath> = self.entries.keys().flat_map(RelPath::ancestors).collect();
        for path in self.entries.keys().chain(&directories) {
            let folded = path.to_string().to_lowercase();
            match seen.get(&folded) {
                Some(first) if first != path => collisions.push((first.clone(), path.clone())),
                Some(_) => {}
                None => {
                    seen.insert(folded, path.clone());
                }
            }
        }
        collisions
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{file, path, tree};
    use super::*;

    #[test]
    fn nothing_stands_below_a_file() {
        let entries = BTreeMap::from([(path("a"), file("x")), (path("a-b"), file("x")), (path("a/b/c"), file("x"))]);
        let error = Manifest::new(entries).unwrap_err();
        assert_eq!(error, InvalidManifest::NotDirectory { path: path("a"), below: path("a/b/c") });
    }

    #[test]
    fn directories_are_found_between_similar_names() {
        let manifest = tree(&[("a-b", "1"), ("a/b/c", "2"), ("a0", "3")]);
        assert!(manifest.is_directory(&path("a")) && manifest.is_directory(&path("a/b")));
        for no in ["a-b", "a/b/c", "b", "a0"] {
            assert!(!manifest.is_directory(&path(no)), "{no}");
        }
    }

    #[test]
    fn names_that_differ_only_in_case_are_found_in_directories_too() {
        let manifest = tree(&[("A.txt", "1"), ("a.txt", "2"), ("Src/x", "3"), ("src/y", "4")]);
        assert_eq!(manifest.len(), 4);
        assert_eq!(manifest.case_collisions().len(), 2);
        assert!(tree(&[("a", "1"), ("b/a", "2")]).case_collisions().is_empty());
    }
}
