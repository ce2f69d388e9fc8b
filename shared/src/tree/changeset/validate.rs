//! Refusing records that no two trees could give.

use std::collections::BTreeMap;

use super::renames::can_be_renamed;
use super::{Change, ChangeKind, Changeset, InvalidChangeset, PathChange, Raw, VERSION, kind_in_place};
use crate::tree::{Entry, Manifest, RelPath};

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
