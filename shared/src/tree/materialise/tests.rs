//! Tests of writing trees out.

use std::os::unix::fs::MetadataExt as _;

use super::super::entry::Content;
use super::super::memory::{Memory, file_with, link, manifest, path, stored};
use super::*;

#[tokio::test]
async fn a_tree_is_written_with_its_modes_and_links() {
    let blobs = Memory::default();
    for text in ["run", "odd", ""] {
        blobs.put(text.as_bytes()).await.unwrap();
    }
    let tree = manifest(&[
        ("bin/run", file_with("run", 0o750)),
        ("empty", file_with("", 0o444)),
        ("out", link("/etc/passwd")),
        ("x\ny", file_with("odd", 0o600)),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new/tree");
    let done = materialise(&blobs, &tree, &root).await.unwrap();
    assert_eq!((done.written, done.bytes), (4, 6));
    assert_eq!(fs::read(root.join("x\ny")).unwrap(), b"odd");
    assert_eq!(fs::metadata(root.join("bin/run")).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_link(root.join("out")).unwrap(), Path::new("/etc/passwd"));
}

#[tokio::test]
async fn sealed_files_are_left_out_and_named() {
    let sealed =
        Entry::File { digest: Digest::of("key"), size: 3, mode: Mode::from_bits(0o600), content: Content::Sealed };
    let folder = tempfile::tempdir().unwrap();
    let tree = manifest(&[("d/.env", sealed.clone())]);
    let done = materialise(&Memory::default(), &tree, folder.path()).await.unwrap();
    assert_eq!(done.absent, BTreeMap::from([(path("d/.env"), sealed)]));
    assert!(!folder.path().join("d/.env").exists());
}

#[tokio::test]
async fn a_directory_that_holds_something_is_refused_and_left_alone() {
    let blobs = Memory::default();
    let tree = stored(&blobs, &[("a", "1")]).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "precious").unwrap();
    assert!(matches!(materialise(&blobs, &tree, folder.path()).await, Err(Error::NotEmpty(_))));
    assert!(!folder.path().join("a").exists());
}

#[tokio::test]
async fn a_missing_content_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let tree = super::super::memory::tree(&[("a", "not stored")]);
    let error = materialise(&Memory::default(), &tree, folder.path()).await.unwrap_err();
    assert!(error.to_string().contains("`a`"), "{error}");
}

#[tokio::test]
async fn names_that_differ_only_in_case_are_both_written_where_case_counts() {
    let blobs = Memory::default();
    let tree = stored(&blobs, &[("A.txt", "1"), ("a.txt", "2")]).await;
    let folder = tempfile::tempdir().unwrap();
    match materialise(&blobs, &tree, folder.path()).await {
        Ok(_) => assert_eq!(fs::read(folder.path().join("A.txt")).unwrap(), b"1"),
        Err(error) => assert!(matches!(error, Error::CaseCollision { .. })),
    }
}
