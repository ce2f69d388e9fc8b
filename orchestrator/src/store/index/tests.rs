use std::fs;

use checkrein_shared::digest::Digest;
use proptest::prelude::*;

use super::*;

const CACHE: u64 = 1 << 20;

fn head(count: u64) -> Head {
    Head { count, hash: (count > 0).then(|| Digest::of(count.to_be_bytes())) }
}

fn changes(entries: &[(&str, Option<&str>)]) -> Changes {
    let bytes = |text: &str| text.as_bytes().to_vec();
    entries.iter().map(|(key, value)| (bytes(key), value.map(bytes))).collect()
}

fn all(index: &Index) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    index
        .visit(b"a", Some(b"z"), &mut |key, value| {
            found.push((text(key), text(value)));
            Ok(true)
        })
        .unwrap();
    found
}

#[test]
fn what_was_applied_is_there_after_reopening_with_the_head_that_it_stands_for() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), CACHE).unwrap();
    assert_eq!(index.head(), head(0));
    index.apply(changes(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]), head(1)).unwrap();
    index.apply(changes(&[("a", Some("4")), ("b", None), ("d", None)]), head(2)).unwrap();
    drop(index);
    let index = Index::open(folder.path(), CACHE).unwrap();
    assert_eq!(index.head(), head(2));
    assert_eq!(all(&index), [("a".into(), "4".into()), ("c".into(), "3".into())]);
    assert_eq!(index.get(b"b").unwrap(), None);
    assert!(index.disk_bytes().unwrap() > 0);
}

#[test]
fn an_entry_that_came_back_otherwise_than_it_was_applied_is_noticed_at_open() {
    for (key, value) in [("a", Some("x")), ("a", None), ("new", Some("x"))] {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path(), CACHE).unwrap();
        index.apply(changes(&[("a", Some("1")), ("b", Some("2"))]), head(1)).unwrap();
        index.write().unwrap();
        // As if a page had been lost or had kept an older content.
        match value {
            Some(value) => index.db().insert(key, value).unwrap(),
            None => index.db().remove(key).unwrap(),
        };
        drop(index);
        let error = Index::open(folder.path(), CACHE).err();
        assert!(matches!(error, Some(IndexError::Damaged(_))), "{error:?}");
    }
}

#[test]
fn an_index_without_a_mark_but_with_entries_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), CACHE).unwrap();
    index.apply(changes(&[("a", Some("1"))]), head(1)).unwrap();
    index.write().unwrap();
    index.db().remove(MARK).unwrap();
    drop(index);
    assert!(matches!(Index::open(folder.path(), CACHE).err(), Some(IndexError::Damaged(_))));
}

#[test]
fn a_panic_in_the_library_is_an_error() {
    let error = contain::<()>(|| panic!("page {} is gone", 7)).unwrap_err();
    assert_eq!(error.to_string(), "sled panicked: page 7 is gone");
}

#[test]
fn no_file_of_the_index_can_make_opening_panic() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), CACHE).unwrap();
    for count in 1..=50u64 {
        let key = format!("k{count}");
        index.apply(changes(&[(&key, Some(&"v".repeat(300)))]), head(count)).unwrap();
        index.write().unwrap();
    }
    index.checkpoint().unwrap();
    let expected = all(&index);
    drop(index);
    let files: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    assert!(files.len() >= 2, "{files:?}");
    for path in files {
        let whole = fs::read(&path).unwrap();
        let step = (whole.len() / 12).max(1);
        for place in (0..whole.len()).step_by(step) {
            let mut flipped = whole.clone();
            flipped[place] ^= 0xff;
            for damaged in [whole[..place].to_vec(), flipped] {
                fs::write(&path, damaged).unwrap();
                // Either it says so, or it is what some batch left behind.
                if let Ok(index) = Index::open(folder.path(), CACHE) {
                    let found = all(&index);
                    assert!(found.iter().all(|entry| expected.contains(entry)));
                    assert_eq!(found.len() as u64, index.head().count);
                }
                fs::write(&path, &whole).unwrap();
            }
        }
    }
}

#[test]
fn what_comes_and_goes_again_and_again_takes_no_more_and_more_space() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::open(folder.path(), CACHE).unwrap();
    let mut sizes = Vec::new();
    for round in 0..200u64 {
        // 100 entries come and the 100 before them go: 20,000 in all.
        let name = |number: u64| format!("{number:08}").into_bytes();
        let put = (round * 100..round * 100 + 100).map(|number| (name(number), Some(vec![7; 300])));
        let removed = (round.saturating_sub(1) * 100..round * 100).map(|number| (name(number), None));
        index.apply(put.chain(removed).collect(), head(round + 1)).unwrap();
        index.write().unwrap();
        if round % 50 == 49 {
            index.checkpoint().unwrap();
            sizes.push(index.disk_bytes().unwrap());
        }
    }
    assert!(sizes[3] <= sizes[1] * 2 && sizes[3] < 32 << 20, "{sizes:?}");
    drop(index);
    assert_eq!(Index::open(folder.path(), CACHE).unwrap().head(), head(200));
}

/// What happens to an index; the numbers are keys.
#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Remove(u8),
    Write,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..12u8, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        3 => (0..12u8).prop_map(Step::Remove),
        1 => Just(Step::Write),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn readers_see_every_change_at_once_wherever_it_lies(steps in steps(), from in 0..14u8, to in 0..14u8) {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index::open(folder.path(), CACHE).unwrap();
        let mut model = std::collections::BTreeMap::new();
        for (count, step) in (1u64..).zip(steps) {
            match step {
                Step::Put(key, value) => {
                    model.insert(vec![b'a', key], vec![value]);
                    index.apply([(vec![b'a', key], Some(vec![value]))].into(), head(count)).unwrap();
                }
                Step::Remove(key) => {
                    model.remove([b'a', key].as_slice());
                    index.apply([(vec![b'a', key], None)].into(), head(count)).unwrap();
                }
                Step::Write => index.write().unwrap(),
                Step::Reopen => {
                    let known = index.head();
                    drop(index);
                    index = Index::open(folder.path(), CACHE).unwrap();
                    prop_assert_eq!(index.head(), known);
                }
            }
            let (from, to) = (vec![b'a', from], vec![b'a', to]);
            let mut found = Vec::new();
            index.visit(&from, Some(&to), &mut |key, value| {
                found.push((key.to_vec(), value.to_vec()));
                Ok(true)
            }).unwrap();
            let expected: Vec<_> =
                model.iter().filter(|(key, _)| **key >= from && **key < to).map(|(k, v)| (k.clone(), v.clone())).collect();
            prop_assert_eq!(found, expected);
            for key in 0..12u8 {
                prop_assert_eq!(&index.get(&[b'a', key]).unwrap(), &model.get([b'a', key].as_slice()).cloned());
            }
        }
    }
}

#[test]
fn an_index_is_garbage_only_where_it_takes_more_than_the_journal() {
    let mib = |count: u64| count << 20;
    assert!(!is_garbage(mib(60), 10, 0), "nobody asks about a small one");
    assert!(is_garbage(mib(700), mib(27), mib(100)));
    // Measured after a million events: it would be made anew at every opening, and be as large again.
    assert!(!is_garbage(mib(746), mib(27), mib(2_166)));
    assert!(!is_garbage(mib(700), mib(200), mib(100)), "it has that much content");
}
