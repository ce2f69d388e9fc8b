use std::fs;
use std::path::PathBuf;

use super::*;
use crate::store::verify;

/// Copies a folder as it stands, as a crash would leave it.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(fs::copy(entry.path(), target))
        }
    }
}

async fn fill(store: &LocalStore, from: u64, to: u64) {
    for version in from..to {
        let messages = vec![message(&format!("m-{version}"))];
        let timers = vec![set(&format!("timer-{}", version % 3), 1_000 + i64::try_from(version).unwrap())];
        store.commit(&task("t-1"), version, Commit { messages, timers, ..commit(version) }).await.unwrap();
        if version % 3 == 0 {
            store.mark_delivered(vec![format!("m-{version}").parse().unwrap()], at(2_000)).await.unwrap();
        }
    }
    // Until the notes about deliveries are written too, so that a copy is of one moment.
    while !store.shared.delivered.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Everything that readers can see, to compare two stores.
async fn contents(store: &LocalStore) -> String {
    let tasks = store.tasks(None, 99).await.unwrap();
    let pending = store.pending_messages(999).await.unwrap();
    let timers = store.due_timers(at(99_999), 999).await.unwrap();
    let events = store.events(&task("t-1"), 0, 999).await.unwrap();
    let records = store.records_after(0, 9_999).await.unwrap();
    format!("{tasks:?}\n{pending:?}\n{timers:?}\n{events:?}\n{records:?}\n{:?}", store.head())
}

#[tokio::test]
async fn an_index_that_is_missing_behind_or_broken_is_brought_up_to_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let early = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    fill(&store, 0, 20).await;
    store.close().await.unwrap();
    copy(&folder.path().join("index"), early.path());
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    fill(&store, 20, 40).await;
    store.close().await.unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let expected = contents(&store).await;
    drop(store);
    let index = folder.path().join("index");

    fs::remove_dir_all(&index).unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    assert_eq!((contents(&store).await, store.rebuilt()), (expected.clone(), Some("it was missing")));
    drop(store);

    fs::remove_dir_all(&index).unwrap();
    copy(early.path(), &index);
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    assert_eq!((contents(&store).await, store.rebuilt()), (expected.clone(), None), "behind: replayed");
    drop(store);

    for _ in 0..5 {
        fs::write(index.join("conf"), vec![0x5a; 300]).unwrap();
        let store = LocalStore::open(folder.path(), &tiny()).unwrap();
        assert_eq!(contents(&store).await, expected);
        assert!(store.rebuilt().is_some());
    }
    let aside = fs::read_dir(folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("index.aside-"))
        .count();
    assert_eq!(aside, 3, "kept, but not without bound");
}

#[tokio::test]
async fn whatever_a_kill_leaves_opens_with_every_acknowledged_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    for round in 0..12 {
        fill(&store, round * 5, round * 5 + 5).await;
        let acknowledged = store.head().count;
        // The store is not closed: this is what a kill at this moment leaves.
        let crashed = tempfile::tempdir().unwrap();
        copy(folder.path(), crashed.path());
        let again = LocalStore::open(crashed.path(), &tiny()).unwrap();
        assert!(again.head().count >= acknowledged);
        let stored = again.load(&task("t-1")).await.unwrap().unwrap();
        assert_eq!(stored, Stored { version: round * 5 + 5, state: json!({ "seen": round * 5 + 4 }) });
        fill(&again, stored.version, stored.version + 2).await;
        again.close().await.unwrap();
        verify(crashed.path()).unwrap();
    }
}

#[tokio::test]
async fn an_index_that_is_ahead_of_the_journal_or_of_another_one_stops_everything() {
    let folder = tempfile::tempdir().unwrap();
    let early = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    fill(&store, 0, 5).await;
    store.close().await.unwrap();
    copy(&folder.path().join("journal"), early.path());
    let store = open(folder.path());
    fill(&store, 5, 9).await;
    store.close().await.unwrap();
    // The journal alone was restored from a backup.
    let journal = folder.path().join("journal");
    fs::remove_dir_all(&journal).unwrap();
    copy(early.path(), &journal);
    let error = LocalStore::open(folder.path(), &options()).unwrap_err();
    assert!(matches!(error, Error::LostAcknowledged { witness: "index", .. }) && error.is_integrity(), "{error}");

    // Another history of the same length.
    let other = tempfile::tempdir().unwrap();
    let store = open(other.path());
    store.commit(&task("t-other"), 0, commit(1)).await.unwrap();
    fill(&store, 0, 20).await;
    store.close().await.unwrap();
    fs::remove_dir_all(&journal).unwrap();
    copy(&other.path().join("journal"), &journal);
    let error = LocalStore::open(folder.path(), &options()).unwrap_err();
    assert!(matches!(error, Error::HeadMismatch { witness: "index", .. }) && error.is_integrity(), "{error}");

    fs::remove_dir_all(&journal).unwrap();
    let error = LocalStore::open(folder.path(), &options()).unwrap_err();
    assert!(matches!(error, Error::LostAcknowledged { found: 0, .. }), "never taken for a first run: {error}");
}

#[tokio::test]
async fn a_torn_tail_is_told_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    fill(&store, 0, 3).await;
    copy(folder.path(), crashed.path());
    let segment = crashed.path().join("journal/00000001.jsonl");
    let mut text = fs::read(&segment).unwrap();
    let length = text.len();
    text.extend_from_slice(b"{\"hash\":\"sha256:0123");
    fs::write(&segment, &text).unwrap();
    assert_eq!(verify(crashed.path()).unwrap().unfinished_bytes, 20);
    let again = open(crashed.path());
    let torn = again.torn_tail().unwrap().clone();
    assert_eq!((torn.offset, torn.bytes), (length as u64, 20));
    fill(&again, 3, 4).await;
    again.close().await.unwrap();
    let report = verify(crashed.path()).unwrap();
    assert_eq!(report.unfinished_bytes, 0);
    let again = open(crashed.path());
    assert_eq!(again.torn_tail(), None);
    assert_eq!(again.load(&task("t-1")).await.unwrap().unwrap().version, 4);
    assert!(torn.kept.unwrap().exists());
}

#[tokio::test]
async fn damage_in_an_old_record_is_an_error_when_it_is_read_and_when_verified() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    fill(&store, 0, 20).await;
    store.close().await.unwrap();
    let segment: PathBuf = folder.path().join("journal/00000002.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    assert!(text.contains("\"tested\""));
    fs::write(&segment, text.replacen("\"tested\"", "\"tasted\"", 1)).unwrap();
    let error = verify(folder.path()).unwrap_err();
    assert!(matches!(&error, Error::Damaged { segment: found, line: 2.., .. } if *found == segment), "{error}");
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let error = store.events(&task("t-1"), 0, 99).await.unwrap_err();
    assert!(matches!(&error, Error::Damaged { segment: found, .. } if *found == segment), "{error}");
    assert!(store.records_after(0, 999).await.unwrap_err().is_integrity());
    // What is sound stays usable.
    assert_eq!(store.load(&task("t-1")).await.unwrap().unwrap().version, 20);
    drop(store);
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    assert!(LocalStore::open(folder.path(), &tiny()).unwrap_err().is_integrity(), "no index from a damaged journal");
}

#[tokio::test]
async fn a_store_that_was_just_dropped_opens_at_once_with_its_index() {
    let folder = tempfile::tempdir().unwrap();
    for version in 0..12 {
        let store = open(folder.path());
        assert_eq!(store.rebuilt(), None, "the index was there and free");
        store.commit(&task("t-1"), version, commit(version)).await.unwrap();
        // Not closed: dropping frees the folder, too.
        drop(store);
    }
}
