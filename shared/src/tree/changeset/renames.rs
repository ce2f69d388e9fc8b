//! Finding renames: files that went and came with the same content.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, ChangeKind};
use crate::digest::Digest;
use crate::tree::{Entry, RelPath};

/// Moves pairs of files with the same content out of both maps; files that kept their name are paired first.
pub(super) fn take<'a>(
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
pub(super) fn can_be_renamed(entry: &Entry) -> bool {
    matches!(entry, Entry::File { size, .. } if *size > 0)
}
