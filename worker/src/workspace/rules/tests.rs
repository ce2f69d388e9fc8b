//! Tests of which files count.

use std::fs;
use std::path::Path;

use super::*;
use crate::workspace::git;
use crate::workspace::testing::{Memory, commit, measure, measure_by, names, path, repository, rules, write};

async fn counted(root: &Path) -> Vec<String> {
    names(&measure(root, &Memory::default()).await.manifest)
}

#[tokio::test]
async fn an_agent_that_edits_ignore_files_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, &[(".gitignore", "*.log\n"), ("a.txt", "1"), ("x.log", "no")]);
    let base = rules(root).await;
    write(root, &[(".gitignore", "*\n"), ("hidden.sh", "evil"), ("d/.ignore", "*"), ("d/also", "evil"), ("y.log", "")]);
    let after = measure_by(&base, root, &Memory::default()).await;
    assert_eq!(names(&after.manifest), [".gitignore", "a.txt", "d/.ignore", "d/also", "hidden.sh"]);
}

#[tokio::test]
async fn inner_ignore_files_win_and_negation_works() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        (".gitignore", "\u{feff}*.tmp\nbuild/\n/only-top\n!keep.tmp\n\\#odd\n"),
        ("a.tmp", ""),
        ("keep.tmp", ""),
        ("only-top", ""),
        ("d/only-top", ""),
        ("d/.gitignore", "!b.tmp\n"),
        ("d/b.tmp", ""),
        ("d/c.tmp", ""),
        ("build/out", ""),
        ("build/.gitignore", "!out\n"),
        ("#odd", ""),
        ("e/build", "a file is no directory"),
    ];
    write(folder.path(), &files);
    let expected = [".gitignore", "d/.gitignore", "d/b.tmp", "d/only-top", "e/build", "keep.tmp"];
    assert_eq!(counted(folder.path()).await, expected);
}

#[tokio::test]
async fn what_git_tracks_counts_although_it_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let files = [("a", "1"), ("vendor/dist/x.js", "tracked"), ("fixtures/key.pem", "public test key")];
    repository(root, &files).await;
    write(root, &[(".gitignore", "vendor/\n"), ("vendor/dist/y.js", "untracked"), ("vendor/z/w", "untracked")]);
    let blobs = Memory::default();
    let tree = measure(root, &blobs).await.manifest;
    assert_eq!(names(&tree), [".gitignore", "a", "fixtures/key.pem", "vendor/dist/x.js"]);
    assert!(blobs.has(b"public test key"), "a tracked file is part of the project, whatever its name");
    // What git tracks later changes nothing for the task.
    let base = rules(root).await;
    commit(root).await;
    assert_eq!(names(&measure_by(&base, root, &blobs).await.manifest), names(&tree));
}

#[tokio::test]
async fn an_ignored_submodule_counts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[("a", "1")]).await;
    repository(&root.join("sub"), &[("b", "1")]).await;
    git::run(root, ["add", "sub"]).await.unwrap();
    write(root, &[(".gitignore", "sub\n")]);
    assert_eq!(counted(root).await, [".gitignore", "a", "sub/b"]);
}

#[tokio::test]
async fn exclusions_that_are_not_part_of_the_project_count_for_git_and_its_search_files_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[("a", "1"), (".ignore", "b\n")]).await;
    fs::create_dir_all(root.join(".git/info")).unwrap();
    fs::write(root.join(".git/info/exclude"), "mine\n").unwrap();
    write(root, &[("mine", "notes"), ("b", "2")]);
    assert_eq!(counted(root).await, [".ignore", "a", "b"]);
}

#[tokio::test]
async fn a_project_inside_a_repository_obeys_the_ignore_files_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[(".gitignore", "node_modules\n/apps/web/out\n"), ("apps/web/a", "1")]).await;
    write(root, &[("apps/web/node_modules/x", ""), ("apps/web/out/y", ""), ("apps/web/src/out/z", "")]);
    assert_eq!(counted(&root.join("apps/web")).await, ["a", "src/out/z"]);
}

#[tokio::test]
async fn rules_survive_being_stored_and_carried_paths_belong_to_no_tree() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[(".gitignore", "*.o\n"), ("kept.o", "tracked"), ("a", "1")]).await;
    write(root, &[("deps/lib", "x"), ("deps/key.pem", "s"), ("b.o", "")]);
    let read = Rules::read(root).await.unwrap().carrying(&[path("deps")]);
    let blobs = Memory::default();
    let digest = read.store(&blobs).await.unwrap();
    let loaded = std::sync::Arc::new(Rules::load(&blobs, digest).await.unwrap());
    assert_eq!(loaded.record, read.record);
    assert_eq!(names(&measure_by(&loaded, root, &blobs).await.manifest), [".gitignore", "a", "kept.o"]);
    let broken = blobs.put(br#"{"version":1}"#).await.unwrap();
    assert!(matches!(Rules::load(&blobs, broken).await, Err(Error::Record(_))));
}

#[tokio::test]
async fn index_flags_that_hide_changes_from_git_hide_nothing_here() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[("a", "1"), ("b", "1")]).await;
    let before = measure(root, &Memory::default()).await.root;
    git::run(root, ["update-index", "--assume-unchanged", "a"]).await.unwrap();
    git::run(root, ["update-index", "--skip-worktree", "b"]).await.unwrap();
    assert_eq!(measure(root, &Memory::default()).await.root, before);
    write(root, &[("a", "2")]);
    let edited = measure(root, &Memory::default()).await.root;
    write(root, &[("b", "2")]);
    let both = measure(root, &Memory::default()).await.root;
    assert!(edited != before && both != edited);
}

#[tokio::test]
async fn settings_of_a_repository_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    repository(root, &[("a", "1"), (".gitattributes", "* filter=spy diff=spy\n")]).await;
    let spy = format!("touch {}", root.join("ran").display());
    let script = root.join("spy.sh");
    write(root, &[("spy.sh", &format!("#!/bin/sh\n{spy}\n!"))]);
    let script = script.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", script),
        ("core.hooksPath", root.to_str().unwrap()),
        ("filter.spy.clean", &spy),
        ("filter.spy.smudge", &spy),
        ("diff.spy.textconv", script),
        ("diff.external", script),
    ] {
        git::run(root, ["config", key, value]).await.unwrap();
    }
    let blobs = Memory::default();
    let tree = measure(root, &blobs).await.manifest;
    let to = tempfile::tempdir().unwrap();
    let base = rules(root).await;
    let cut = crate::workspace::Cut {
        directory: &to.path().join("scratch"),
        tree: &tree,
        blobs: &blobs,
        target: Some(root),
        rules: &base,
        carry: &[],
    };
    crate::workspace::Scratch::create(&cut).await.unwrap();
    assert!(!root.join("ran").exists());
}
