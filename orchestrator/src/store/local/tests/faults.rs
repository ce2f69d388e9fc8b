use std::sync::atomic::Ordering;

use checkrein_shared::blob::FsBlobs;

use super::*;
use crate::clock::SystemClock;
use crate::engine::{self, Engine};
use crate::lifecycle::EventKind;
use crate::store::journal::faults::{Faults, Faulty};
use crate::store::verify;

fn open_faulty(folder: &Path) -> (LocalStore, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let for_file = Arc::clone(&faults);
    let store = open::open(folder, &options(), |writer| {
        writer.wrap_file(|file| Box::new(Faulty { file, faults: for_file }));
    });
    (store.unwrap(), faults)
}

#[tokio::test]
async fn a_full_disk_refuses_commits_and_everything_goes_on_when_there_is_space_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = open_faulty(folder.path());
    let first = task("t-1");
    store.commit(&first, 0, Commit { messages: vec![message("m-1")], ..commit(1) }).await.unwrap();
    faults.write_stops_after.store(30, Ordering::SeqCst);
    for _ in 0..3 {
        let refused = store.commit(&first, 1, commit(2)).await.unwrap_err();
        let CommitError::Store(Error::NotStored { source, .. }) = &refused else { panic!("{refused}") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    }
    store.mark_delivered(vec!["m-1".parse().unwrap()], at(2_000)).await.unwrap();
    assert!(store.refused().is_some());
    assert_eq!(store.load(&first).await.unwrap().unwrap().version, 1, "reading works all the time");
    assert_eq!(store.head().count, 1);

    faults.write_stops_after.store(0, Ordering::SeqCst);
    assert_eq!(store.commit(&first, 1, commit(3)).await.unwrap().version, 2);
    assert_eq!(store.load(&first).await.unwrap().unwrap().state, json!({ "seen": 3 }));
    assert_eq!(store.refused(), None);
    store.close().await.unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.unfinished_bytes, 0);
    let store = open(folder.path());
    assert_eq!(store.events(&first, 0, 9).await.unwrap().len(), 2);
    assert!(store.pending_messages(9).await.unwrap().is_empty(), "the note about the delivery was not lost");
}

#[tokio::test]
async fn a_broken_index_is_mended_while_the_store_runs() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let first = task("t-1");
    store.commit(&first, 0, commit(1)).await.unwrap();
    // An entry that no record made: the pointer can't be read.
    let broken = store.shared.with_index(|index| {
        let changes = [(crate::store::keys::task(&first), Some(b"?".to_vec()))].into_iter().collect();
        index.apply(changes, Head { count: 7, hash: None }).map_err(Error::Index)
    });
    broken.unwrap();
    assert!(matches!(store.load(&first).await, Err(Error::Index(_))));
    // The next batch does not fit the broken index, so it is rebuilt from the journal.
    let committed = store.commit(&task("t-2"), 0, commit(2)).await.unwrap();
    assert_eq!(committed, Committed { sequence: 2, version: 1 });
    assert_eq!(store.load(&first).await.unwrap().unwrap(), Stored { version: 1, state: json!({ "seen": 1 }) });
    assert_eq!(store.commit(&first, 1, commit(3)).await.unwrap().version, 2);
    assert_eq!(store.records_after(0, 9).await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_index_that_was_declared_broken_is_mended_by_the_next_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let first = task("t-1");
    store.commit(&first, 0, commit(1)).await.unwrap();
    store.shared.fail("as if sled had panicked");
    assert!(matches!(store.load(&first).await, Err(Error::Unusable(_))));
    let mut attempts = 0;
    let committed = loop {
        match store.commit(&first, 1, commit(2)).await {
            Ok(committed) => break committed,
            Err(CommitError::Store(Error::Unusable(_))) => attempts += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(attempts < 100_000, "never mended");
    };
    assert_eq!(committed.version, 2);
    assert!(attempts > 0);
    store.close().await.unwrap();
    assert_eq!(verify(folder.path()).unwrap().head.count, 2);
}

/// Everybody loads a task before committing anything about it, so no commit comes while nothing can be read.
#[tokio::test]
async fn a_broken_index_is_mended_although_everybody_only_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    store.commit(&task("t-1"), 0, commit(1)).await.unwrap();
    let mut head = store.changes();
    head.mark_unchanged();
    let engine = engine_on(Arc::clone(&store), folder.path());
    store.shared.fail("as if the disk had been full");
    let handled = || async {
        let expired = EventKind::LeaseExpired { epoch: 1 };
        engine.handle(&task("t-2"), expired, None).await.unwrap_err()
    };
    assert!(matches!(handled().await, engine::Error::Store(Error::Unusable(_))));
    let healed = async {
        while !matches!(handled().await, engine::Error::NoTask(_)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), healed).await.expect("never mended");
    assert!(head.has_changed().unwrap(), "whoever waits for records looks again");
    assert_eq!(store.load(&task("t-1")).await.unwrap().unwrap().version, 1);
}

fn engine_on(store: Arc<LocalStore>, folder: &Path) -> Engine {
    let blobs = Arc::new(FsBlobs::open(folder.join("blobs")).unwrap());
    let routes = engine::Routes { jobs: "local".parse().unwrap(), reviews: "local".parse().unwrap() };
    Engine::new(store, blobs, "orchestrator".parse().unwrap(), routes, Arc::new(SystemClock::start()))
}

/// A disk of a few megabytes in memory, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Result<Self, String> {
        let at = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", "size=8m", "none"]).arg(at.path()).output();
        let output = output.map_err(|error| format!("there is no `mount`: {error}"))?;
        let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(Self(at)) } else { Err(errors) }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

/// On a real small disk, with sled in the way of the same disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_really_full_loses_nothing_and_recovers() {
    let mounted = match SmallDisk::mount() {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("not run: {why}"),
    };
    let disk = mounted.0.path();
    let folder = disk.join("store");
    let ballast = disk.join("ballast");
    let store = open(&folder);
    let mut acknowledged = 0;
    for round in 0..5 {
        let _as_much_as_fits = std::fs::write(&ballast, vec![1; 1 << 20]);
        let mut refused = 0;
        while refused < 20 {
            // In turns the journal and the index take more of the disk.
            let event = json!({ "text": "x".repeat(if round % 2 == 0 { 9_000 } else { 9 }) });
            let state = json!({ "text": "y".repeat(3_000) });
            match store.commit(&task("t-1"), acknowledged, Commit { event, state, ..commit(round) }).await {
                Ok(committed) => acknowledged = committed.version,
                Err(CommitError::Conflict { actual }) => {
                    // An answer was an error although the record is there: that is allowed, losing one is not.
                    assert_eq!(actual, acknowledged + 1);
                    acknowledged = actual;
                }
                Err(_) => refused += 1,
            }
        }
        std::fs::remove_file(&ballast).unwrap();
        let mut attempts = 0;
        loop {
            match store.commit(&task("t-1"), acknowledged, commit(round)).await {
                Ok(committed) => break acknowledged = committed.version,
                Err(CommitError::Conflict { actual }) => acknowledged = actual,
                Err(error) => {
                    attempts += 1;
                    assert!(attempts < 1_000, "round {round}: never recovered: {error:?}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
        assert_eq!(store.load(&task("t-1")).await.unwrap().unwrap().version, acknowledged);
    }
    store.close().await.unwrap();
    assert_eq!(verify(&folder).unwrap().unfinished_bytes, 0);
    assert_eq!(open(&folder).load(&task("t-1")).await.unwrap().unwrap().version, acknowledged);
}
