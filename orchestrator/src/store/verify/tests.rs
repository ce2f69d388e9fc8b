use std::fs;
use std::process::{Command, Output};

use checkrein_shared::time::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::store::{Commit, Forget, LocalStore, Options, Prune, Store};

/// A store with a few records in a few segments.
async fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes_max: 1_200, ..Options::new(Timestamp::from_millis(0)) };
    let store = LocalStore::open(folder.path(), &options).unwrap();
    for version in 0..8 {
        let commit = Commit {
            at: Timestamp::from_millis(1),
            kind: "tested".to_owned(),
            cause: None,
            event: json!({ "text": "\"record\":} \\ \u{7f} é 😀 \u{1}", "hash": "sha256:0" }),
            decision: Value::Null,
            state: json!({ "number": version }),
            messages: Vec::new(),
            timers: Vec::new(),
            rows: Vec::new(),
        };
        store.commit(&"t-1".parse().unwrap(), version, commit).await.unwrap();
    }
    store.close().await.unwrap();
    folder
}

async fn last_segment() -> u32 {
    verify(store().await.path()).unwrap().segments
}

/// Runs the script of the documentation; `None` where its tools are missing.
fn by_hand(folder: &Path) -> Option<Output> {
    for tool in ["jq", "sha256sum", "sed"] {
        if Command::new(tool).arg("--version").output().is_err() {
            eprintln!("not run: there is no `{tool}` here");
            return None;
        }
    }
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/journal.md"));
    let (_, rest) = text.split_once("```sh\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    Some(Command::new("sh").arg("-c").arg(script).arg("verify.sh").arg(folder.join("journal")).output().unwrap())
}

#[tokio::test]
async fn the_documented_script_and_the_program_agree_about_a_sound_journal() {
    let folder = store().await;
    let report = verify(folder.path()).unwrap();
    assert_eq!((report.head.count, report.tasks, report.unfinished_bytes), (8, 1, 0));
    assert!(report.segments > 2);
    if let Some(output) = by_hand(folder.path()) {
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text, format!("8 records, head {}\n", report.head.hash.unwrap()), "{errors}");
    }
}

#[test]
fn they_agree_about_journals_of_every_format() {
    for format in 1..=2 {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/store-format-{format}"));
        let report = verify(&folder).unwrap();
        if let Some(output) = by_hand(&folder) {
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(text, format!("18 records, head {}\n", report.head.hash.unwrap()));
        }
    }
}

#[tokio::test]
async fn both_find_a_changed_byte_a_missing_line_and_a_cut_end() {
    let changes: [fn(&str) -> String; 3] = [
        |text| text.replacen("\"number\":", "\"bumber\":", 1),
        |text| {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            lines.remove(1);
            lines.concat()
        },
        |text| {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            lines.pop();
            lines.concat()
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        // The first segment is followed by others; the last one is not, and ends with the head.
        for segment in [1, last_segment().await] {
            let folder = store().await;
            let path = journal::path_of(&folder.path().join("journal"), segment);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, change(&text)).unwrap();
            let error = verify(folder.path()).unwrap_err();
            assert!(error.is_integrity(), "change {number} in segment {segment}: {error}");
            // The script takes a while for each record.
            if let Some(output) = (segment > 1).then(|| by_hand(folder.path())).flatten() {
                assert!(!output.status.success(), "change {number} in segment {segment}");
            }
        }
    }
}

#[test]
fn a_folder_without_a_journal_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    assert!(verify(folder.path()).unwrap_err().to_string().contains("journal"));
    fs::create_dir(folder.path().join("journal")).unwrap();
    assert!(matches!(verify(folder.path()), Err(Error::MissingSegment(_))));
}

#[tokio::test]
async fn a_pruned_journal_can_be_checked_by_hand_and_a_beheaded_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes_max: 1_200, ..Options::new(Timestamp::from_millis(0)) };
    let store = LocalStore::open(folder.path(), &options).unwrap();
    for (task, versions) in [("t-1", 0..20), ("t-2", 0..20)] {
        for version in versions {
            let commit = Commit {
                at: Timestamp::from_millis(1),
                kind: "tested".to_owned(),
                cause: None,
                event: json!({ "number": version, "text": "x".repeat(100) }),
                decision: Value::Null,
                state: Value::Null,
                messages: Vec::new(),
                timers: Vec::new(),
                rows: Vec::new(),
            };
            store.commit(&task.parse().unwrap(), version, commit).await.unwrap();
        }
    }
    let forget = Forget { task: "t-1".parse().unwrap(), version: 20, note: json!("gone") };
    store.forget(vec![forget], Timestamp::from_millis(2)).await.unwrap();
    let dropped = store.drop_front(Timestamp::from_millis(3)).await.unwrap();
    store.close().await.unwrap();
    assert!(dropped.len() > 2);
    let Some(checked) = by_hand(folder.path()) else { return };
    assert!(checked.status.success(), "{checked:?}");
    let text = String::from_utf8(checked.stdout).unwrap();
    assert!(text.contains(", pruned up to {\"segment\":"), "{text}");
    let next = journal::path_of(&folder.path().join("journal"), dropped.last().unwrap().segment + 1);
    fs::remove_file(next).unwrap();
    let refused = by_hand(folder.path()).unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("records are missing before this one"));
    assert!(verify(folder.path()).unwrap_err().is_integrity());
}
