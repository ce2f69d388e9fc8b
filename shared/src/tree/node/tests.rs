//! Tests of storing and loading trees.

use proptest::prelude::*;

use super::super::memory::{Memory, file, file_with, link, manifest, path, tree};
use super::*;

async fn round_trip(manifest: &Manifest) -> Manifest {
    let blobs = Memory::default();
    let root = store_tree(&blobs, manifest, None).await.unwrap();
    load_tree(&blobs, root).await.unwrap()
}

#[tokio::test]
async fn trees_survive_a_round_trip() {
    let odd = RelPath::from_bytes(&b"d/\xff\n"[..]).unwrap();
    let mut entries = manifest(&[
        ("a-b", file("1")),
        ("a/b/c", file_with("2", 0o755)),
        ("a/b.c", link("../x")),
        ("a0", file("")),
        ("café", file("x")),
    ])
    .into_entries();
    entries.insert(odd, file("odd"));
    let all = Manifest::new(entries).unwrap();
    assert_eq!(round_trip(&all).await, all);
    assert_eq!(round_trip(&Manifest::default()).await, Manifest::default());
}

#[test]
fn digests_of_trees_do_not_change_between_versions() {
    let tree = manifest(&[("README", file("hi\n")), ("bin/run", file_with("#!", 0o755)), ("l", link("README"))]);
    let text = "sha256:ed1d94a6987c213cb5b50dd9d22c5cec9b89251e85be6d0d35c4ffa037c4d9fa";
    assert_eq!(root(&tree).to_string(), text);
}

#[tokio::test]
async fn only_changed_directories_are_stored_again() {
    let blobs = Memory::default();
    let old = tree(&[("a/x", "1"), ("b/c/y", "2"), ("d/z", "3")]);
    let new = tree(&[("a/x", "1"), ("b/c/y", "changed"), ("d/z", "3")]);
    store_tree(&blobs, &old, None).await.unwrap();
    let before = blobs.0.lock().unwrap().len();
    let root = store_tree(&blobs, &new, Some(&old)).await.unwrap();
    assert_eq!(blobs.0.lock().unwrap().len() - before, 3);
    assert_eq!(load_tree(&blobs, root).await.unwrap(), new);
}

#[tokio::test]
async fn nodes_that_plant_hooks_or_leave_the_tree_are_refused() {
    let entry = r#"{"digest":"D","name":"NAME","type":"directory"}"#;
    let empty = r#"{"entries":[],"version":1}"#;
    let blobs = Memory::default();
    let inner = blobs.put(empty.as_bytes()).await.unwrap();
    for name in [".git", "..", "a/b", ".GIT", "", r"\\x41", "fine"] {
        let entry = entry.replace("NAME", name).replace('D', &inner.to_string());
        let node = format!(r#"{{"entries":[{entry}],"version":1}}"#);
        let root = blobs.put(node.as_bytes()).await.unwrap();
        assert!(load_tree(&blobs, root).await.is_err(), "{name}");
    }
    for bad in ["", "null", "{}", r#"{"entries":[],"version":2}"#, r#"{"version":1,"entries":[]}"#] {
        let root = blobs.put(bad.as_bytes()).await.unwrap();
        assert!(matches!(load_tree(&blobs, root).await, Err(Error::NotNode { .. })), "{bad}");
    }
    assert!(load_tree(&blobs, Digest::of("absent")).await.is_err());
    assert!(load_tree(&blobs, inner).await.unwrap().is_empty());
}

proptest! {
    #[test]
    fn any_possible_tree_loads_as_it_was(
        paths in prop::collection::btree_map("[a-c.-]{1,2}(/[a-c]{1,2}){0,3}", ".{0,3}", 0..12)
    ) {
        let entries = paths.iter().filter_map(|(p, c)| Some((RelPath::from_bytes(p.as_str()).ok()?, file(c))));
        if let Ok(manifest) = Manifest::new(entries.collect()) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert_eq!(runtime.block_on(round_trip(&manifest)), manifest);
        }
    }
}

#[test]
fn a_moved_file_changes_the_tree_and_path_order_does_not_confuse_it() {
    assert_ne!(root(&tree(&[("a/b", "1")])), root(&tree(&[("a", "1")])));
    assert_ne!(root(&tree(&[("a/b", "1")])), root(&manifest(&[("a/b", file_with("1", 0o755))])));
    assert_eq!(path("a/b").to_string(), "a/b");
}
