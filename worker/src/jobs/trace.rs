//! Telling the traces of an interrupted apply from other people's edits.
//!
//! A grant is bound to the base. A target that is partly changed already is no
//! longer the base; but where all that differs is what this changeset puts
//! there, going on is what the grant allows. Pure: it looks at trees only.

use checkrein_shared::tree::{Changeset, Manifest};

/// Whether the target differs from the base only where the changeset changes it, and only by having the new entry
/// already. Going on from there loses nobody's work, whoever put it there.
pub(super) fn is_own_trace(base: &Manifest, target: &Manifest, changeset: &Changeset) -> bool {
    let differences = Changeset::between(base, target);
    let planned = changeset.path_changes();
    differences.path_changes().into_iter().all(|found| {
        let at = planned.binary_search_by(|change| change.path.cmp(found.path));
        at.is_ok_and(|at| match (planned[at].new, found.new) {
            (Some(wanted), Some(stands)) => wanted.same(stands),
            (wanted, stands) => wanted.is_none() && stands.is_none(),
        })
    })
}

#[cfg(test)]
mod tests {
    use checkrein_shared::digest::Digest;
    use checkrein_shared::tree::{Content, Entry, Mode, RelPath};
    use proptest::prelude::*;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> Manifest {
        let entry = |text: &str| Entry::File {
            digest: Digest::of(text),
            size: text.len() as u64,
            mode: Mode::from_bits(0o644),
            content: Content::Stored,
        };
        let entries = files.iter().map(|(path, text)| (RelPath::from_bytes(*path).unwrap(), entry(text)));
        Manifest::new(entries.collect()).unwrap()
    }

    #[test]
    fn a_half_done_apply_is_recognised_and_anything_else_is_not() {
        let base = tree(&[("a", "1"), ("b", "1"), ("gone", "1"), ("other", "1")]);
        let wanted = tree(&[("a", "2"), ("b", "2"), ("new", "2"), ("other", "1")]);
        let changeset = Changeset::between(&base, &wanted);
        let own = [
            tree(&[("a", "1"), ("b", "1"), ("gone", "1"), ("other", "1")]),
            tree(&[("a", "2"), ("b", "1"), ("gone", "1"), ("other", "1")]),
            tree(&[("a", "2"), ("b", "1"), ("new", "2"), ("other", "1")]),
            wanted,
        ];
        assert!(own.iter().all(|target| is_own_trace(&base, target, &changeset)));
        let others = [
            tree(&[("a", "3"), ("b", "1"), ("gone", "1"), ("other", "1")]),
            tree(&[("a", "2"), ("b", "1"), ("gone", "1"), ("other", "2")]),
            tree(&[("a", "2"), ("b", "1"), ("gone", "1")]),
            tree(&[("a", "1"), ("b", "1"), ("gone", "1"), ("other", "1"), ("new", "3")]),
            tree(&[("a", "1"), ("b", "1"), ("gone", "1"), ("other", "1"), ("theirs", "2")]),
        ];
        assert!(!others.iter().any(|target| is_own_trace(&base, target, &changeset)));
    }

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn trees() -> impl Strategy<Value = Vec<Option<u8>>> {
        prop::collection::vec(prop::option::of(0..3u8), NAMES.len())
    }

    fn as_tree(contents: &[Option<u8>]) -> Manifest {
        let files: Vec<(&str, String)> =
            NAMES.iter().zip(contents).filter_map(|(name, text)| Some((*name, text.as_ref()?.to_string()))).collect();
        tree(&files.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn a_target_counts_as_base_exactly_where_every_path_is_old_or_new(base in trees(), new in trees(), now in trees()) {
            let changeset = Changeset::between(&as_tree(&base), &as_tree(&new));
            let each = (0..NAMES.len()).all(|i| now[i] == base[i] || now[i] == new[i]);
            prop_assert_eq!(is_own_trace(&as_tree(&base), &as_tree(&now), &changeset), each);
        }
    }
}
