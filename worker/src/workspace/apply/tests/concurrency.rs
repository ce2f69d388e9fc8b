//! Edits that come while an apply is under way are never lost.

use super::*;

const EDIT: &[u8] = b"somebody's edit";

/// The ways in which an editor writes a file.
#[derive(Debug, Clone, Copy)]
enum Way {
    InPlace,
    ByRename,
    AsLink,
}

/// Writes an edit; false where a person could not, as the path is a directory or its directory is not there.
fn edit(file: &Path, way: Way) -> bool {
    let beside = file.with_extension("editing");
    if !file.parent().is_some_and(Path::is_dir) || (file.is_dir() && !file.is_symlink()) {
        return false;
    }
    match way {
        Way::InPlace => {
            // Following a link would edit another file.
            if file.is_symlink() {
                fs::remove_file(file).unwrap();
            }
            fs::write(file, EDIT).unwrap();
        }
        Way::ByRename => {
            fs::write(&beside, EDIT).unwrap();
            fs::rename(&beside, file).unwrap();
        }
        Way::AsLink => {
            std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(EDIT), &beside).unwrap();
            fs::rename(&beside, file).unwrap();
        }
    }
    true
}

#[tokio::test]
async fn an_edit_of_any_path_at_any_moment_survives() {
    let names: Vec<String> =
        setting().await.changeset.path_changes().iter().map(|change| change.path.to_string()).collect();
    let mut edits = 0;
    for name in names {
        let own = ["Swapping", "Swapped", "Checked"].map(|step| format!("{step}(`{name}`)"));
        let moments = ["Preflighted", "Planned", "Synced"].map(str::to_owned).into_iter().chain(own);
        for moment in moments {
            for way in [Way::InPlace, Way::ByRename, Way::AsLink] {
                let at = setting().await;
                let made = edit_during(&at, &name, &moment, way).await;
                edits += usize::from(made);
            }
        }
    }
    assert!(edits > 200, "most edits can be made: {edits}");
}

/// Applies with one edit of one path at one moment, and checks that nothing is lost.
async fn edit_during(at: &Setting, name: &str, moment: &str, way: Way) -> bool {
    let made = Arc::new(Mutex::new(false));
    let (file, reached, wanted) = (at.target.join(name), Arc::clone(&made), moment.to_owned());
    let steps: Steps = Arc::new(move |step| {
        if format!("{step:?}") == wanted {
            *reached.lock().unwrap() = edit(&file, way);
        }
        Ok(())
    });
    let outcome = at.apply(&Apply { steps, ..at.request() }).await.unwrap();
    let made = *made.lock().unwrap();
    let what = format!("{name}, {moment}, {way:?}, made: {made}: {outcome:?}");
    let edited = all_contents(&at.target).iter().any(|content| content == EDIT);
    assert_eq!(edited, made, "the edit is lost: {what}");
    let others = |state: &State| {
        let mut state = state.clone();
        // The edited path, and the directories that stand or fall with it.
        state.retain(|path, _| !path.starts_with(name) && !Path::new(name).starts_with(path));
        state
    };
    let expected = match outcome {
        Outcome::Applied(_) => &at.after,
        Outcome::Conflict { .. } => &at.before,
    };
    assert!(made || matches!(outcome, Outcome::Applied(_)), "a conflict without an edit: {what}");
    assert_eq!(others(&at.state()), others(expected), "{what}");
    made
}

#[tokio::test]
async fn an_edit_between_looking_and_swapping_is_swapped_back() {
    for (atomic, name) in [(true, "changed"), (false, "changed"), (true, "gone"), (false, "gone"), (true, "link")] {
        let at = setting().await;
        let (target, wanted) = (at.target.clone(), name.to_owned());
        let steps: Steps = Arc::new(move |step| {
            if matches!(step, Step::Swapping(path) if path.as_bytes() == wanted.as_bytes()) {
                assert!(edit(&target.join(&wanted), Way::ByRename));
            }
            Ok(())
        });
        let outcome = at.apply(&Apply { atomic, steps, ..at.request() }).await.unwrap();
        let Outcome::Conflict { conflicts, not_undone } = outcome else { panic!("{name}") };
        assert_eq!(conflicts[0].path.as_path(), Path::new(name));
        assert!(not_undone.is_empty());
        let mut expected = at.before.clone();
        expected.insert(name.into(), at.state()[Path::new(name)].clone());
        assert_eq!(at.state(), expected);
        assert_eq!(fs::read(at.target.join(name)).unwrap(), EDIT);
        assert!(!at.target.join(STAGE).exists(), "{name}");
    }
}

#[tokio::test]
async fn two_edits_of_one_path_both_survive() {
    for name in ["changed", "gone"] {
        let at = setting().await;
        let (target, wanted) = (at.target.clone(), name.to_owned());
        let steps: Steps = Arc::new(move |step| {
            let file = target.join(&wanted);
            match step {
                Step::Swapping(path) if path.as_bytes() == wanted.as_bytes() => assert!(edit(&file, Way::ByRename)),
                Step::Swapped(path) if path.as_bytes() == wanted.as_bytes() => fs::write(&file, "second").unwrap(),
                _ => {}
            }
            Ok(())
        });
        let outcome = at.apply(&Apply { steps, ..at.request() }).await.unwrap();
        let Outcome::Conflict { conflicts, .. } = outcome else { panic!("{name}") };
        assert!(conflicts[0].note.contains("is kept at"), "{}", conflicts[0].note);
        assert_eq!(fs::read(at.target.join(name)).unwrap(), b"second");
        assert!(all_contents(&at.target.join(STAGE)).iter().any(|content| content == EDIT), "{name}");
        let Finished { kept } = at.finish().await;
        assert_eq!(fs::read(&kept[0]).unwrap(), EDIT);
    }
}

#[tokio::test]
async fn an_edit_of_what_was_applied_is_left_alone_when_the_rest_is_taken_back() {
    let at = setting().await;
    let target = at.target.clone();
    let steps: Steps = Arc::new(move |step| {
        match step {
            Step::Checked(path) if path.as_bytes() == b"changed" => {
                assert!(edit(&target.join("changed"), Way::InPlace))
            }
            Step::Swapping(path) if path.as_bytes() == b"zero" => fs::write(target.join("zero"), "theirs").unwrap(),
            _ => {}
        }
        Ok(())
    });
    let outcome = at.apply(&Apply { steps, ..at.request() }).await.unwrap();
    let Outcome::Conflict { not_undone, .. } = outcome else { panic!("`zero` is there") };
    assert_eq!(not_undone, [crate::workspace::testing::path("changed")]);
    assert_eq!(fs::read(at.target.join("changed")).unwrap(), EDIT);
    // What the edit replaced is not thrown away either.
    assert!(all_contents(&at.target.join(STAGE)).iter().any(|content| content == b"old text"));
}

#[tokio::test]
async fn a_program_that_still_writes_to_a_displaced_file_loses_nothing() {
    let at = setting().await;
    let mut open = fs::OpenOptions::new().append(true).open(at.target.join("changed")).unwrap();
    assert!(matches!(at.apply_quietly().await.unwrap(), Outcome::Applied(_)));
    std::io::Write::write_all(&mut open, b" and more").unwrap();
    let Finished { kept } = at.finish().await;
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read(&kept[0]).unwrap(), b"old text and more");
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_meanwhile_leads_nowhere() {
    for moment in ["swapping", "planned"] {
        let at = setting().await;
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), &[("er/changed", "old")]);
        let before = state(outside.path());
        let (target, to) = (at.target.clone(), outside.path().to_owned());
        let steps: Steps = Arc::new(move |step| {
            let now = match step {
                Step::Swapping(path) => moment == "swapping" && path.as_bytes() == b"deep/er/changed",
                Step::Planned => moment == "planned",
                _ => false,
            };
            if now {
                fs::rename(target.join("deep"), target.join("deep-moved")).unwrap();
                std::os::unix::fs::symlink(&to, target.join("deep")).unwrap();
            }
            Ok(())
        });
        let outcome = at.apply(&Apply { steps, ..at.request() }).await.unwrap();
        assert!(matches!(outcome, Outcome::Conflict { .. }), "{moment}");
        assert_eq!(state(outside.path()), before, "{moment}");
        assert_eq!(fs::read(at.target.join("deep-moved/er/changed")).unwrap(), b"old");
    }
}
