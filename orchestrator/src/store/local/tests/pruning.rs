use std::fs;

use super::*;
use crate::store::journal::{self, Front};
use crate::store::prune::{Forget, Prune};
use crate::store::{RowChange, verify};

/// Commits `number` events of a task, with messages, timers and rows.
async fn live(store: &LocalStore, name: &str, from: u64, to: u64) {
    for version in from..to {
        let id = format!("m-{name}-{version}");
        let row =
            RowChange::Put { table: "effect".into(), key: format!("k-{version}"), value: json!({ "n": version }) };
        let commit = Commit {
            cause: Some(format!("in-{name}-{version}").parse().unwrap()),
            messages: vec![message(&id)],
            timers: vec![set(&format!("timer-{}", version % 3), 1_000)],
            rows: vec![row],
            ..commit(version)
        };
        store.commit(&task(name), version, commit).await.unwrap();
        store.mark_delivered(vec![id.parse().unwrap()], at(2_000)).await.unwrap();
    }
}

fn forget(name: &str, version: u64) -> Forget {
    Forget { task: task(name), version, note: json!({ "name": name }) }
}

fn segments(folder: &Path) -> Vec<u32> {
    journal::list(&folder.join("journal")).unwrap()
}

/// Every entry of the index.
fn entries(store: &LocalStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let mut see = |key: &[u8], value: &[u8]| {
        if key != crate::store::keys::MARK {
            entries.push((key.to_vec(), value.to_vec()));
        }
        Ok(true)
    };
    store.shared.with_index(|index| index.visit(&[], None, &mut see).map_err(Error::Index)).unwrap();
    entries
}

/// Two old tasks, one that goes on beside the second, and a newer one; the two old ones are forgotten.
async fn forgetful(folder: &Path) -> LocalStore {
    let store = LocalStore::open(folder, &tiny()).unwrap();
    live(&store, "t-old", 0, 90).await;
    live(&store, "t-older", 0, 20).await;
    live(&store, "t-new", 0, 30).await;
    live(&store, "t-older", 20, 40).await;
    live(&store, "t-new", 30, 60).await;
    // Until the notes about deliveries are written too, so that nothing waits.
    while !store.pending_messages(9).await.unwrap().is_empty() || !store.shared.delivered.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    store.forget(vec![forget("t-old", 90), forget("t-older", 40)], at(9_000)).await.unwrap();
    store
}

#[tokio::test]
async fn a_forgotten_task_leaves_a_tombstone_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    live(&store, "t-1", 0, 7).await;
    live(&store, "t-1-a", 0, 2).await;
    let last = store.events(&task("t-1"), 6, 9).await.unwrap().pop().unwrap().hash;
    for wrong in [6, 8] {
        let refused = store.forget(vec![forget("t-1", wrong)], at(9)).await;
        assert!(matches!(refused, Err(CommitError::Conflict { actual: 7 })), "{refused:?}");
    }
    store.forget(vec![forget("t-1", 7)], at(9)).await.unwrap();
    for restart in 0..2 {
        let store = if restart == 0 { &store } else { &open(folder.path()) };
        assert_eq!(store.load(&task("t-1")).await.unwrap(), None);
        assert_eq!(store.events(&task("t-1"), 0, 9).await.unwrap(), []);
        assert_eq!(store.tasks(None, 9).await.unwrap().len(), 1);
        assert_eq!(store.due_timers(at(9_999), 9).await.unwrap().len(), 2, "those of the other task");
        assert_eq!(store.rows("effect", None, None, 99).await.unwrap().len(), 2);
        let tombstone = store.tombstone(&task("t-1")).await.unwrap().unwrap();
        assert_eq!((tombstone.records, tombstone.last_hash, tombstone.forgotten_at), (7, last, at(9)));
        assert_eq!(tombstone.note, json!({ "name": "t-1" }));
        assert_eq!(store.tombstones(None, 9).await.unwrap(), [tombstone]);
        // Its name is not free again, and nobody can expect a version of it.
        for expected in [0, 7] {
            let refused = store.commit(&task("t-1"), expected, commit(8)).await;
            assert!(matches!(refused, Err(CommitError::Conflict { .. })), "{refused:?}");
        }
        if restart == 0 {
            store.close().await.unwrap();
        }
    }
    verify(folder.path()).unwrap();
}

#[tokio::test]
async fn segments_of_forgotten_tasks_are_dropped_and_the_chain_stays_verifiable() {
    let folder = tempfile::tempdir().unwrap();
    let store = forgetful(folder.path()).await;
    let before = segments(folder.path());
    let planned = store.droppable().await.unwrap();
    assert_eq!(segments(folder.path()), before, "only looked at");
    let dropped = store.drop_front(at(9_100)).await.unwrap();
    assert_eq!(dropped, planned);
    assert!(dropped.len() > 5 && dropped[0].first == 1, "{dropped:?}");
    let left = segments(folder.path());
    assert_eq!(left[0], dropped.last().unwrap().segment + 1);
    assert!(store.drop_front(at(9_200)).await.unwrap().is_empty(), "the newer task's records come next");
    // Readers find everything that is left, and what comes later.
    live(&store, "t-new", 60, 70).await;
    let first = store.records_after(0, 1).await.unwrap().pop().unwrap().record.sequence;
    assert_eq!(first, dropped.last().unwrap().last + 1);
    assert_eq!(store.events(&task("t-new"), 0, 99).await.unwrap().len(), 70);
    for sequence in [0, 1, first, first + 1, first + 70] {
        let next = store.records_after(sequence, 1).await.unwrap().pop().unwrap().record.sequence;
        assert_eq!(next, (sequence + 1).max(first));
    }
    store.close().await.unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!((report.pruned, report.tasks), (first - 1, 1));

    // A rebuild makes the same index.
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let known = entries(&store);
    drop(store);
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    assert!(store.rebuilt().is_some());
    assert_eq!(entries(&store), known);
    assert_eq!(store.tombstones(None, 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn tombstones_are_carried_for_as_long_as_segments_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = forgetful(folder.path()).await;
    store.drop_front(at(9_100)).await.unwrap();
    live(&store, "t-new", 60, 90).await;
    store.forget(vec![forget("t-new", 90)], at(9_200)).await.unwrap();
    live(&store, "t-last", 0, 40).await;
    let dropped = store.drop_front(at(9_300)).await.unwrap();
    assert!(!dropped.is_empty());
    assert_eq!(store.tombstones(None, 9).await.unwrap().len(), 3);
    store.close().await.unwrap();
    assert_eq!(verify(folder.path()).unwrap().tasks, 1);
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    assert_eq!(store.tombstones(None, 9).await.unwrap().len(), 3);
    assert_eq!(store.events(&task("t-last"), 0, 99).await.unwrap().len(), 40);
}

#[tokio::test]
async fn a_crash_between_the_record_and_the_last_file_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let whole = tempfile::tempdir().unwrap();
    let store = forgetful(folder.path()).await;
    store.close().await.unwrap();
    super::damage::copy(folder.path(), whole.path());
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let dropped = store.drop_front(at(9_100)).await.unwrap();
    drop(store);
    // The record is there; of the files, the first `gone` are not.
    for gone in 0..=dropped.len() {
        for with_index in [true, false] {
            let crashed = tempfile::tempdir().unwrap();
            super::damage::copy(folder.path(), crashed.path());
            for segment in &dropped[gone..] {
                let path = journal::path_of(Path::new("journal"), segment.segment);
                fs::copy(whole.path().join(&path), crashed.path().join(&path)).unwrap();
            }
            if !with_index {
                fs::remove_dir_all(crashed.path().join("index")).unwrap();
            }
            verify(crashed.path()).unwrap();
            let store = LocalStore::open(crashed.path(), &tiny()).unwrap();
            assert_eq!(segments(crashed.path()), segments(folder.path()), "{gone} {with_index}");
            assert_eq!(store.events(&task("t-new"), 0, 99).await.unwrap().len(), 60);
        }
    }
}

#[tokio::test]
async fn a_front_that_is_missing_without_such_a_record_is_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let store = forgetful(folder.path()).await;
    store.close().await.unwrap();
    let lose = |from: &Path, numbers: &[u32]| {
        let copied = tempfile::tempdir().unwrap();
        super::damage::copy(from, copied.path());
        numbers.iter().for_each(|n| fs::remove_file(journal::path_of(&copied.path().join("journal"), *n)).unwrap());
        copied
    };
    let check = |copied: &Path| {
        for remove_index in [false, true] {
            if remove_index {
                fs::remove_dir_all(copied.join("index")).unwrap();
            }
            let error = LocalStore::open(copied, &tiny()).unwrap_err();
            assert!(error.is_integrity() && matches!(error, Error::MissingSegment(_)), "{error}");
        }
        assert!(verify(copied).unwrap_err().is_integrity());
    };
    check(lose(folder.path(), &[1]).path());
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let dropped = store.drop_front(at(9_100)).await.unwrap();
    drop(store);
    let next = dropped.last().unwrap().segment + 1;
    check(lose(folder.path(), &[next]).path());
}

#[tokio::test]
async fn what_still_waits_to_be_sent_keeps_its_segment() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let large = OutgoingMessage { body: json!("x".repeat(9_000)), ..message("m-large") };
    store.commit(&task("t-1"), 0, Commit { messages: vec![large], ..commit(1) }).await.unwrap();
    store.forget(vec![forget("t-1", 1)], at(9)).await.unwrap();
    live(&store, "t-2", 0, 30).await;
    assert!(store.drop_front(at(10)).await.unwrap().is_empty());
    store.mark_delivered(vec!["m-large".parse().unwrap()], at(11)).await.unwrap();
    while !store.shared.delivered.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.drop_front(at(12)).await.unwrap().len(), 1);
    assert_ne!(Front::default().segment, segments(folder.path())[0]);
}
