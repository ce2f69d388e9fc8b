//! Tests of the copies that agents work in.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;

use super::*;
use crate::workspace::restore::{self, restore};
use crate::workspace::testing::{Memory, measure, measure_by, names, path, repository, rules, write};
use crate::workspace::{Snapshot, StatCache, Survey, snapshot};

struct Setting {
    _folder: tempfile::TempDir,
    target: PathBuf,
    to: PathBuf,
    blobs: Memory,
}

fn setting() -> Setting {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (target, to) = (root.join("target"), root.join("scratch"));
    fs::create_dir(&target).unwrap();
    Setting { _folder: folder, target, to, blobs: Memory::default() }
}

impl Setting {
    async fn cut(&self, base: &Snapshot, rules: &Arc<Rules>, carry: &[RelPath]) -> Scratch {
        let cut = Cut {
            directory: &self.to,
            tree: &base.manifest,
            blobs: &self.blobs,
            target: Some(&self.target),
            rules,
            carry,
        };
        Scratch::create(&cut).await.unwrap()
    }

    async fn measure(&self, scratch: &Scratch, rules: &Arc<Rules>) -> Snapshot {
        let survey = Survey { absent: scratch.absent().clone(), ..Survey::new(Arc::clone(rules)) };
        snapshot(scratch.directory(), &mut StatCache::in_memory(), &survey).await.unwrap()
    }
}

#[tokio::test]
async fn a_scratch_has_the_tree_of_the_target_and_its_history_and_no_way_back() {
    let at = setting();
    repository(&at.target, &[("a", "1"), ("run", "x!"), ("l", "-> a"), (".gitignore", "*.o\n")]).await;
    write(&at.target, &[("a", "dirty"), ("new", "untracked"), ("x.o", "ignored")]);
    let rules = rules(&at.target).await;
    let base = measure(&at.target, &at.blobs).await;
    let scratch = at.cut(&base, &rules, &[]).await;
    assert_eq!(at.measure(&scratch, &rules).await.root, base.root);
    let log = git::run(&at.to, ["log", "--format=%s", "main"]).await.unwrap();
    assert_eq!(log, b"message\n");
    let status = git::run(&at.to, ["status", "--porcelain"]).await.unwrap();
    assert_eq!(String::from_utf8(status).unwrap(), " M a\n?? new\n");
    assert_eq!(git::run(&at.to, ["remote"]).await.unwrap(), b"");
    let config = fs::read_to_string(at.to.join(".git/config")).unwrap();
    assert!(!config.contains(at.target.to_str().unwrap()));
}

#[tokio::test]
async fn what_an_agent_does_with_git_changes_no_tree_and_no_target() {
    let at = setting();
    repository(&at.target, &[("a", "1")]).await;
    let rules = rules(&at.target).await;
    let base = measure(&at.target, &at.blobs).await;
    let scratch = at.cut(&base, &rules, &[]).await;
    write(&at.to, &[("b", "2"), (".git/hooks/post-checkout", "#!/bin/sh\nexit 1\n!"), (".gitignore", "*\n")]);
    git::run(&at.to, ["config", "core.excludesFile", "/dev/null"]).await.unwrap();
    crate::workspace::testing::commit(&at.to).await;
    let after = at.measure(&scratch, &rules).await;
    assert_eq!(names(&after.manifest), [".gitignore", "a", "b"]);
    assert_eq!(git::run(&at.target, ["rev-list", "--count", "main"]).await.unwrap(), b"1\n");
    for object in ["objects", "refs/heads"] {
        let ours = walk(&at.to.join(".git").join(object));
        let theirs = walk(&at.target.join(".git").join(object));
        assert!(!ours.is_empty() && !theirs.is_empty() && ours.iter().all(|inode| !theirs.contains(inode)));
    }
}

/// The inodes of all files below a directory.
fn walk(directory: &Path) -> Vec<u64> {
    let mut inodes = Vec::new();
    for child in fs::read_dir(directory).unwrap() {
        let path = child.unwrap().path();
        if path.is_dir() {
            inodes.extend(walk(&path));
        } else {
            inodes.push(fs::metadata(&path).unwrap().ino());
        }
    }
    inodes
}

#[tokio::test]
async fn an_empty_repository_and_a_worktree_can_be_cut_from() {
    let at = setting();
    git::run(&at.target, ["init", "--quiet"]).await.unwrap();
    write(&at.target, &[("a", "1")]);
    let rules_of_empty = rules(&at.target).await;
    let base = measure(&at.target, &at.blobs).await;
    let scratch = at.cut(&base, &rules_of_empty, &[]).await;
    assert_eq!(git::run(&at.to, ["status", "--porcelain"]).await.unwrap(), b"?? a\n");
    scratch.remove().await.unwrap();
    assert!(!at.to.exists());

    let at = setting();
    let main = at.target.with_file_name("main-repository");
    repository(&main, &[("a", "1")]).await;
    let target = at.target.as_os_str();
    let arguments = ["worktree", "add", "--quiet", "-b", "side"].map(AsRef::as_ref);
    git::run(&main, arguments.into_iter().chain([target])).await.unwrap();
    assert!(at.target.join(".git").is_file());
    let rules = rules(&at.target).await;
    let base = measure(&at.target, &at.blobs).await;
    at.cut(&base, &rules, &[]).await;
    assert_eq!(git::run(&at.to, ["branch", "--show-current"]).await.unwrap(), b"side\n");
    assert_eq!(git::run(&at.to, ["status", "--porcelain"]).await.unwrap(), b"");
}

#[tokio::test]
async fn large_files_come_from_the_target_and_ignored_secrets_only_if_carried() {
    let at = setting();
    write(&at.target, &[(".gitignore", ".env\ndeps/\n"), (".env", "TOKEN"), ("cert.pem", "shared"), ("deps/x", "d")]);
    write(&at.target, &[("big", &"b".repeat(9000))]);
    let rules = rules(&at.target).await;
    let survey = Survey { stored_bytes_max: 1000, ..Survey::new(Arc::clone(&rules)).storing(&at.blobs, None) };
    let base = snapshot(&at.target, &mut StatCache::in_memory(), &survey).await.unwrap();
    let scratch = at.cut(&base, &rules, &[path("deps"), path("absent")]).await;
    assert_eq!(fs::read(at.to.join("big")).unwrap().len(), 9000);
    assert_eq!(fs::read(at.to.join("cert.pem")).unwrap(), b"shared");
    assert_eq!(fs::read(at.to.join("deps/x")).unwrap(), b"d");
    assert!(!at.to.join(".env").exists());
    assert_eq!(scratch.absent().keys().collect::<Vec<_>>(), [&path(".env")]);
    assert_eq!(scratch.missing_carried(), [path("absent")]);
    assert_eq!(at.measure(&scratch, &rules).await.manifest.len(), base.manifest.len());
    scratch.remove().await.unwrap();

    let carried = Arc::new(Rules::read(&at.target).await.unwrap().carrying(&[path(".env")]));
    let scratch = at.cut(&base, &carried, &[path(".env")]).await;
    assert_eq!(fs::read(at.to.join(".env")).unwrap(), b"TOKEN");
    assert!(scratch.absent().is_empty());
    let survey = Survey { stored_bytes_max: 1000, ..Survey::new(carried) };
    let again = snapshot(&at.to, &mut StatCache::in_memory(), &survey).await.unwrap();
    assert_eq!(again.root, base.root);
}

#[tokio::test]
async fn a_file_that_the_target_changed_meanwhile_is_not_copied_as_if_it_were_the_base() {
    let at = setting();
    write(&at.target, &[("cert.pem", "shared")]);
    let rules = rules(&at.target).await;
    let base = measure(&at.target, &at.blobs).await;
    write(&at.target, &[("cert.pem", "edited")]);
    let scratch = at.cut(&base, &rules, &[]).await;
    assert!(!at.to.join("cert.pem").exists());
    assert_eq!(at.measure(&scratch, &rules).await.root, base.root);
}

#[tokio::test]
async fn another_worker_goes_on_from_digests_alone() {
    let at = setting();
    write(&at.target, &[("a", "1"), ("d/b", "2")]);
    let base_rules = rules(&at.target).await;
    let base = measure(&at.target, &at.blobs).await;
    let scratch = at.cut(&base, &base_rules, &[]).await;
    write(&at.to, &[("d/b", "changed"), ("c", "new")]);
    let tree = measure_by(&base_rules, scratch.directory(), &at.blobs).await;
    let stored = base_rules.store(&at.blobs).await.unwrap();
    fs::remove_dir_all(&at.target).unwrap();

    let loaded = Arc::new(Rules::load(&at.blobs, stored).await.unwrap());
    let manifest = checkrein_shared::tree::node::load_tree(&at.blobs, tree.root).await.unwrap();
    let directory = at.to.with_file_name("second");
    let cut =
        Cut { directory: &directory, tree: &manifest, blobs: &at.blobs, target: None, rules: &loaded, carry: &[] };
    let second = Scratch::create(&cut).await.unwrap();
    assert_eq!(at.measure(&second, &loaded).await.root, tree.root);
}

#[tokio::test]
async fn restoring_refuses_an_empty_tree_and_a_directory_with_files() {
    let at = setting();
    let empty = measure(&at.target, &at.blobs).await;
    assert!(matches!(restore(&at.blobs, empty.root, &at.to).await, Err(restore::Error::Empty(_))));
    write(&at.target, &[("a", "1")]);
    let base = measure(&at.target, &at.blobs).await;
    restore(&at.blobs, base.root, &at.to).await.unwrap();
    assert_eq!(fs::read(at.to.join("a")).unwrap(), b"1");
    assert!(matches!(restore(&at.blobs, base.root, &at.target).await, Err(restore::Error::Write { .. })));
}

#[tokio::test]
async fn a_scratch_with_locked_directories_can_be_removed() {
    let at = setting();
    write(&at.to, &[("d/e/f", "1")]);
    fs::set_permissions(at.to.join("d/e"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(at.to.join("d"), fs::Permissions::from_mode(0o000)).unwrap();
    remove(&at.to).await.unwrap();
    assert!(!at.to.exists());
    remove(&at.to).await.unwrap();
}
