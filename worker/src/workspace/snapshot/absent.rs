//! Files of the tree that could not be written to the directory that is measured.

use std::collections::BTreeMap;
use std::ops::Bound;

use checkrein_shared::tree::{Entry, RelPath};

/// Adds what could not be written here, unless something else stands in its place now.
pub(super) fn add(entries: &mut BTreeMap<RelPath, Entry>, absent: &BTreeMap<RelPath, Entry>) {
    for (path, entry) in absent {
        let in_the_way = path.ancestors().any(|above| entries.contains_key(&above));
        if !in_the_way && !entries.contains_key(path) {
            entries.insert(path.clone(), entry.clone());
        }
    }
    // A directory may have come where the file was: then the file is gone.
    let gone: Vec<RelPath> = absent
        .keys()
        .filter(|path| {
            let after = [path.as_bytes(), b"/"].concat();
            entries
                .range::<[u8], _>((Bound::Excluded(after.as_slice()), Bound::Unbounded))
                .next()
                .is_some_and(|(other, _)| other.is_below(path))
        })
        .cloned()
        .collect();
    for path in gone {
        entries.remove(&path);
    }
}
