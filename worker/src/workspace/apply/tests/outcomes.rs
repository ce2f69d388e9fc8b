//! What comes of an apply that nothing disturbs, and of one that finds another target.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::workspace::testing::{measure_by, path, repository, rules};
use crate::workspace::{StatCache, Survey, snapshot};

/// What somebody does to a target.
type Edit = fn(&Path);

fn conflicts(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Applied(_) => Vec::new(),
        Outcome::Conflict { conflicts, .. } => conflicts.iter().map(|c| c.path.to_string()).collect(),
    }
}

#[tokio::test]
async fn a_changeset_of_every_kind_is_applied_once_and_found_applied_again() {
    for atomic in [true, false] {
        let at = setting().await;
        let request = Apply { atomic, ..at.request() };
        let Outcome::Applied(applied) = at.apply(&request).await.unwrap() else { panic!("no conflict is there") };
        assert_eq!(at.state(), at.after);
        assert_eq!(applied.changed.len(), at.changeset.path_changes().len());
        let time = fs::metadata(at.target.join("changed")).unwrap().ctime_nsec();
        assert_eq!(at.apply(&request).await.unwrap(), Outcome::Applied(applied));
        assert_eq!(fs::metadata(at.target.join("changed")).unwrap().ctime_nsec(), time);
        assert_eq!(at.finish().await, Finished::default());
        assert!(!at.target.join(STAGE).exists());
        // Finished means forgotten: now everything merely stands as it should.
        let Outcome::Applied(again) = at.apply(&request).await.unwrap() else { panic!("no conflict is there") };
        assert!(again.changed.is_empty());
        assert_eq!(at.finish().await, Finished::default());
        assert_eq!(at.state(), at.after);
    }
}

#[tokio::test]
async fn a_repository_keeps_the_stage_among_its_own_files() {
    let at = setting_of(&[], &[("a", "new")]).await;
    repository(&at.target, &[]).await;
    assert!(matches!(at.apply_quietly().await.unwrap(), Outcome::Applied(_)));
    let status = crate::workspace::git::run(&at.target, ["status", "--porcelain"]).await.unwrap();
    assert_eq!(status, b"?? a\n");
    assert!(at.target.join(".git/checkrein-apply").exists());
    at.finish().await;
    assert!(!at.target.join(".git/checkrein-apply").exists());
}

#[tokio::test]
async fn the_stage_is_in_no_tree() {
    let at = setting_of(&[("a", "old")], &[("a", "new")]).await;
    assert!(matches!(at.apply_quietly().await.unwrap(), Outcome::Applied(_)));
    assert!(at.target.join(STAGE).exists());
    let expected = measure(&at.scratch, &at.blobs).await.root;
    assert_eq!(measure(&at.target, &at.blobs).await.root, expected);
}

#[tokio::test]
async fn any_other_state_is_a_conflict_that_changes_nothing() {
    let edits: [(&str, Edit); 11] = [
        ("changed", |t| fs::write(t.join("changed"), "theirs").unwrap()),
        ("changed", |t| fs::remove_file(t.join("changed")).unwrap()),
        ("mode", |t| fs::set_permissions(t.join("mode"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap()),
        ("zero", |t| fs::write(t.join("zero"), "theirs").unwrap()),
        ("gone", |t| fs::write(t.join("gone"), "theirs").unwrap()),
        ("moved/from", |t| fs::write(t.join("moved/from"), "theirs").unwrap()),
        ("dir", |t| fs::write(t.join("dir/ignored.o"), "theirs").unwrap()),
        ("link", |t| {
            fs::remove_file(t.join("link")).unwrap();
            std::os::unix::fs::symlink("theirs", t.join("link")).unwrap();
        }),
        ("changed", |t| {
            fs::remove_file(t.join("changed")).unwrap();
            fs::create_dir(t.join("changed")).unwrap();
        }),
        ("run", |t| fs::create_dir_all(t.join("run/.git")).unwrap()),
        ("file", |t| {
            fs::remove_file(t.join("file")).unwrap();
            fs::create_dir(t.join("file")).unwrap();
            fs::write(t.join("file/theirs"), "x").unwrap();
        }),
    ];
    for (index, (name, edit)) in edits.into_iter().enumerate() {
        let at = setting().await;
        edit(&at.target);
        let edited = at.state();
        let outcome = at.apply_quietly().await.unwrap();
        assert_eq!(conflicts(&outcome), [name], "edit {index}");
        assert_eq!(at.state(), edited, "edit {index}");
        assert!(!at.target.join(STAGE).exists(), "edit {index}");
    }
}

#[tokio::test]
async fn paths_that_already_are_as_they_should_be_are_done() {
    let at = setting().await;
    write(&at.target, &[("changed", "new text"), ("zero", "")]);
    fs::remove_file(at.target.join("gone")).unwrap();
    let Outcome::Applied(applied) = at.apply_quietly().await.unwrap() else { panic!("no conflict is there") };
    assert_eq!(applied.already, [path("changed"), path("gone"), path("zero")]);
    assert_eq!(at.state(), at.after);
}

#[tokio::test]
async fn nothing_is_written_through_a_link() {
    for (name, to_outside) in [("deep", true), ("deep/er", true), ("changed", true), ("changed", false)] {
        let at = setting().await;
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), &[("er/changed", "old"), ("changed", "old text")]);
        let before = state(outside.path());
        let link = at.target.join(name);
        if link.is_dir() {
            fs::remove_dir_all(&link).unwrap()
        } else {
            fs::remove_file(&link).unwrap()
        }
        let to = match (name, to_outside) {
            ("deep", _) => outside.path().to_owned(),
            ("deep/er", _) => outside.path().join("er"),
            (_, true) => outside.path().join("changed"),
            (_, false) => outside.path().join("absent"),
        };
        std::os::unix::fs::symlink(to, &link).unwrap();
        let linked = at.state();
        let outcome = at.apply_quietly().await.unwrap();
        assert!(!conflicts(&outcome).is_empty(), "{name}");
        assert_eq!(state(outside.path()), before, "{name}");
        assert_eq!(at.state(), linked, "{name}");
    }
}

#[tokio::test]
async fn contents_that_no_blob_store_keeps_come_from_the_scratch_or_from_the_old_name() {
    let before = [("big", "x".repeat(5000)), ("a.key", "old key".to_owned())];
    let after = [("renamed", "x".repeat(5000)), ("a.key", "new key".to_owned())];
    let [before, after] = [before, after].map(|files| files.map(|(name, text)| (name, text)));
    let [before, after] = [&before, &after].map(|files| files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let at = setting_of(&before, &after).await;
    let mut trees = Vec::new();
    for directory in [&at.target, &at.scratch] {
        let survey = Survey { stored_bytes_max: 1000, ..Survey::new(rules(directory).await) };
        trees.push(snapshot(directory, &mut StatCache::in_memory(), &survey).await.unwrap().manifest);
    }
    let changeset = Changeset::between(&trees[0], &trees[1]);
    assert!(changeset.blobs().is_empty());
    let without = Apply { changeset: &changeset, ..at.request() };
    let error = at.apply(&without).await.unwrap_err();
    assert!(matches!(&error, Error::NoContent { path: p } if *p == path("a.key")), "{error}");
    assert_eq!(at.state(), at.before);
    assert!(!at.target.join(STAGE).exists());
    let with = Apply { scratch: Some(at.scratch.clone()), ..without };
    assert!(matches!(at.apply(&with).await.unwrap(), Outcome::Applied(_)));
    assert_eq!(at.state(), at.after);
}

#[tokio::test]
async fn a_content_that_is_lost_is_an_error_and_the_target_is_as_before() {
    let at = setting().await;
    at.blobs.0.lock().unwrap().remove(&Digest::of("new file"));
    let error = at.apply_quietly().await.unwrap_err();
    assert!(matches!(&error, Error::Blob { path: p, .. } if *p == path("deep/er/fresh/made")), "{error}");
    assert_eq!(at.state(), at.before);
    assert!(!at.target.join(STAGE).exists());
}

#[tokio::test]
async fn one_writer_at_a_time() {
    let at = setting().await;
    let lock = RootLock::acquire(&at.target).unwrap();
    assert!(matches!(RootLock::acquire(&at.target), Err(Error::Busy(_))));
    drop(lock);
    assert!(RootLock::acquire(&at.target).is_ok());
}

#[tokio::test]
async fn an_apply_is_what_the_changeset_does_to_the_manifest() {
    let at = setting().await;
    let rules = rules(&at.target).await;
    let base = measure_by(&rules, &at.target, &at.blobs).await;
    let expected = at.changeset.apply_to(&base.manifest).unwrap();
    assert!(matches!(at.apply_quietly().await.unwrap(), Outcome::Applied(_)));
    assert!(measure_by(&rules, &at.target, &at.blobs).await.manifest.same(&expected));
}
