//! Tests of measuring directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use checkrein_shared::tree::{ChangeKind, Changeset};

use super::*;
use crate::workspace::git;
use crate::workspace::testing::{Memory, measure, measure_by, names, path, repository, rules, write};

#[tokio::test]
async fn names_of_any_bytes_are_in_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let all: [&[u8]; 8] =
        [b"caf\xc3\xa9.md", b"a b", b"x\ny", "sep\u{2028}two".as_bytes(), b"\xff\xfe", b"-rf", b"A.txt", b"a.txt"];
    for name in all {
        fs::write(root.join(OsStr::from_bytes(name)), name).unwrap();
    }
    let blobs = Memory::default();
    let found = measure(root, &blobs).await;
    assert_eq!(found.manifest.len(), all.len());
    for name in all {
        assert!(found.manifest.get(&RelPath::from_bytes(name).unwrap()).is_some() && blobs.has(name));
    }
    assert_eq!(node::load_tree(&blobs, found.root).await.unwrap(), found.manifest);
}

#[tokio::test]
async fn links_are_recorded_and_never_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), &[("secret", "outside")]);
    let root = folder.path();
    let to = format!("-> {}", outside.path().display());
    write(root, &[("out", &to), ("l", "-> a"), ("dangling", "-> nowhere"), ("a", "1")]);
    let blobs = Memory::default();
    let before = measure(root, &blobs).await.manifest;
    assert_eq!(names(&before), ["a", "dangling", "l", "out"]);
    assert!(!blobs.has(b"outside"));
    fs::remove_file(root.join("l")).unwrap();
    write(root, &[("l", "-> dangling")]);
    let changes = Changeset::between(&before, &measure(root, &blobs).await.manifest);
    assert_eq!(changes.counts(), BTreeMap::from([(ChangeKind::Modified, 1)]));
}

#[tokio::test]
async fn contents_of_nested_repositories_count_and_their_git_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[("a", "1")]).await;
    repository(&root.join("nested"), &[("b", "1")]).await;
    write(root, &[("sub/.git", "gitdir: ../.git/modules/sub\n"), ("sub/c", "1")]);
    let before = measure(root, &Memory::default()).await;
    assert_eq!(names(&before.manifest), ["a", "nested/b", "sub/c"]);
    write(root, &[("sub/c", "2")]);
    assert_ne!(measure(root, &Memory::default()).await.root, before.root);
    assert!(root.join("nested/.git/HEAD").exists() && root.join("sub/.git").is_file());
}

#[tokio::test]
async fn permission_bits_count() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, &[("run", "x")]);
    let before = measure(root, &Memory::default()).await.manifest;
    fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o4755)).unwrap();
    let changes = Changeset::between(&before, &measure(root, &Memory::default()).await.manifest);
    assert_eq!(changes.changes()[0].kind, ChangeKind::ModeChanged);
    assert_eq!(changes.changes()[0].new.as_ref().unwrap().mode().unwrap().to_string(), "4755");
}

#[tokio::test]
async fn an_unchanged_file_is_not_read_again_and_every_change_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, &[("big", &"x".repeat(1 << 20)), ("small", "1")]);
    let rules = rules(root).await;
    let blobs = Memory::default();
    let mut cache = StatCache::in_memory();
    let survey = Survey::new(Arc::clone(&rules)).storing(&blobs, None);
    let first = snapshot(root, &mut cache, &survey).await.unwrap();
    assert_eq!(first.cost, Cost { files_read: 2, bytes_read: (1 << 20) + 1 });
    // Just written: they might change again within the same tick, so they are read again.
    assert_eq!(snapshot(root, &mut cache, &survey).await.unwrap().cost.files_read, 2);
    cache.age();
    let second = snapshot(root, &mut cache, &survey).await.unwrap();
    assert_eq!((second.cost, second.root), (Cost::default(), first.root));
    // An edit that keeps size and time is seen: nobody can set a file's change time.
    let time = fs::metadata(root.join("small")).unwrap().modified().unwrap();
    fs::write(root.join("small"), "2").unwrap();
    fs::File::options().write(true).open(root.join("small")).unwrap().set_modified(time).unwrap();
    let third = snapshot(root, &mut cache, &survey).await.unwrap();
    assert_eq!(third.cost.files_read, 1);
    assert_ne!(third.root, first.root);
    cache.age();
    let verify = Survey { verify: true, ..Survey::new(rules) };
    assert_eq!(snapshot(root, &mut cache, &verify).await.unwrap().cost.files_read, 2);
}

#[tokio::test]
async fn a_content_that_the_cache_knows_but_the_store_lost_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a", "precious")]);
    let rules = rules(folder.path()).await;
    let mut cache = StatCache::in_memory();
    let blobs = Memory::default();
    let survey = Survey::new(Arc::clone(&rules)).storing(&blobs, None);
    let first = snapshot(folder.path(), &mut cache, &survey).await.unwrap();
    cache.age();
    let empty = Memory::default();
    let survey = Survey::new(rules).storing(&empty, None);
    let second = snapshot(folder.path(), &mut cache, &survey).await.unwrap();
    assert_eq!(second.root, first.root);
    assert!(empty.has(b"precious"));
    assert_eq!(empty.count(), blobs.count());
}

#[tokio::test]
async fn what_a_kept_record_names_is_not_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, &[("a/x", "1"), ("b/y", "1b"), ("c", "1c")]);
    let rules = rules(root).await;
    let first = measure_by(&rules, root, &Memory::default()).await;
    write(root, &[("b/y", "2")]);
    let blobs = Memory::default();
    let survey = Survey::new(rules).storing(&blobs, Some(&first.manifest));
    snapshot(root, &mut StatCache::in_memory(), &survey).await.unwrap();
    // The new content, its directory and the root.
    assert_eq!(blobs.count(), 3);
}

#[tokio::test]
async fn secrets_count_by_their_digest_only() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[(".gitignore", ".env\nlocal/\n"), ("a", "1")]).await;
    let rules = rules(root).await;
    let blobs = Memory::default();
    let before = measure_by(&rules, root, &blobs).await;
    write(root, &[(".env", "TOKEN=s3cret"), ("deploy/id_rsa", "key"), ("local/.env", "deeper")]);
    let after = measure_by(&rules, root, &blobs).await;
    let changes = Changeset::between(&before.manifest, &after.manifest);
    assert_eq!(names(&after.manifest), [".env", ".gitignore", "a", "deploy/id_rsa"]);
    assert_eq!(changes.changes().len(), 2);
    assert!(changes.blobs().is_empty());
    assert!(!blobs.has(b"TOKEN=s3cret") && !blobs.has(b"key"));
    write(root, &[(".env", "TOKEN=other")]);
    assert_ne!(measure_by(&rules, root, &blobs).await.root, after.root);
}

#[tokio::test]
async fn a_large_file_is_covered_by_the_tree_and_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("model.bin", &"m".repeat(5000)), ("a", "1")]);
    let blobs = Memory::default();
    let survey = Survey { stored_bytes_max: 4096, ..Survey::new(rules(folder.path()).await).storing(&blobs, None) };
    let found = snapshot(folder.path(), &mut StatCache::in_memory(), &survey).await.unwrap();
    let entry = found.manifest.get(&path("model.bin")).unwrap();
    assert!(matches!(entry, Entry::File { content: Content::Large, size: 5000, .. }));
    assert!(!blobs.has("m".repeat(5000).as_bytes()) && blobs.has(b"1"));
}

#[tokio::test]
async fn line_endings_are_bytes_like_any_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[("a", "one\r\ntwo\r\n"), (".gitattributes", "* text=auto eol=lf\n")]).await;
    let before = measure(root, &Memory::default()).await;
    git::run(root, ["config", "core.autocrlf", "true"]).await.unwrap();
    git::run(root, ["add", "--renormalize", "."]).await.unwrap();
    assert_eq!(measure(root, &Memory::default()).await.root, before.root);
    write(root, &[("a", "one\r\r\ntwo\r\n")]);
    assert_ne!(measure(root, &Memory::default()).await.root, before.root);
}

#[tokio::test]
async fn pipes_are_named_and_do_not_block() {
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    write(folder.path(), &[(".GIT/hooks/x", "y"), ("a", "1")]);
    let found = measure(folder.path(), &Memory::default()).await;
    assert_eq!(names(&found.manifest), ["a"]);
    assert_eq!(found.skipped.len(), 2);
}

#[tokio::test]
async fn files_that_could_not_be_written_count_as_unchanged_until_something_takes_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, &[("a", "1"), ("d/.env", "s")]);
    let rules = rules(root).await;
    let full = measure_by(&rules, root, &Memory::default()).await;
    let absent = BTreeMap::from([(path("d/.env"), full.manifest.get(&path("d/.env")).unwrap().clone())]);
    fs::remove_dir_all(root.join("d")).unwrap();
    let survey = Survey { absent, ..Survey::new(rules) };
    let mut cache = StatCache::in_memory();
    assert_eq!(snapshot(root, &mut cache, &survey).await.unwrap().root, full.root);
    write(root, &[("d/.env/x", "now a directory")]);
    let found = snapshot(root, &mut cache, &survey).await.unwrap();
    assert_eq!(names(&found.manifest), ["a", "d/.env/x"]);
    fs::remove_dir_all(root.join("d")).unwrap();
    write(root, &[("d", "now a file")]);
    let found = snapshot(root, &mut cache, &survey).await.unwrap();
    assert_eq!(names(&found.manifest), ["a", "d"]);
}

#[tokio::test]
async fn many_files_are_all_found_and_stored() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3000 {
        let directory = folder.path().join(format!("d{}/e{}", n % 7, n % 30));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(n.to_string()), n.to_string()).unwrap();
    }
    let blobs = Memory::default();
    let found = measure(folder.path(), &blobs).await;
    assert_eq!(found.manifest.len(), 3000);
    assert!((0..3000).all(|n| blobs.has(n.to_string().as_bytes())));
}

#[tokio::test]
async fn a_directory_that_is_gone_is_an_error_and_never_an_empty_tree() {
    let folder = tempfile::tempdir().unwrap();
    let rules = rules(folder.path()).await;
    let gone = folder.path().join("gone");
    let result = snapshot(&gone, &mut StatCache::in_memory(), &Survey::new(rules)).await;
    assert!(matches!(result, Err(Error::Io { path, .. }) if path == gone));
}
