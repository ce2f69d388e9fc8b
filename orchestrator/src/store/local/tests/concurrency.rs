use std::collections::HashSet;

use super::*;
use crate::store::verify;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_commits_share_no_version_and_no_predecessor() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut conflicts = 0u64;
                for number in 0..125 {
                    loop {
                        let version = store.load(&task("t-1")).await.unwrap().map_or(0, |stored| stored.version);
                        match store.commit(&task("t-1"), version, commit(writer * 1_000 + number)).await {
                            Ok(committed) => break assert_eq!(committed.version, version + 1),
                            Err(CommitError::Conflict { actual }) => {
                                assert!(actual > version);
                                conflicts += 1;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                conflicts
            })
        })
        .collect();
    let mut conflicts = 0;
    for writer in writers {
        conflicts += writer.await.unwrap();
    }
    assert!(conflicts > 0, "they did race");
    let events = store.events(&task("t-1"), 0, 2_000).await.unwrap();
    let versions: Vec<u64> = events.iter().map(|event| event.record.version).collect();
    assert_eq!(versions, (1..=1_000).collect::<Vec<u64>>());
    let previous: HashSet<_> = events.iter().map(|event| event.record.previous).collect();
    assert_eq!(previous.len(), 1_000);
    store.close().await.unwrap();
    assert_eq!(verify(folder.path()).unwrap().head.count, 1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_do_not_wait_for_each_other_and_all_their_commits_count() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::open(folder.path(), &Options { segment_bytes_max: 50_000, ..options() }).unwrap());
    let writers: Vec<_> = (0..32)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let name = task(&format!("t-{writer}"));
                for version in 0..25 {
                    let messages = vec![message(&format!("m-{writer}-{version}"))];
                    store.commit(&name, version, Commit { messages, ..commit(version) }).await.unwrap();
                    if version % 2 == 0 {
                        let id = format!("m-{writer}-{version}").parse().unwrap();
                        store.mark_delivered(vec![id], at(2_000)).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(store.pending_messages(9_999).await.unwrap().len(), 32 * 12);
    store.close().await.unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.tasks, 32);
    let again = open(folder.path());
    assert_eq!(again.pending_messages(9_999).await.unwrap().len(), 32 * 12);
    assert_eq!(again.head(), report.head);
    assert_eq!(again.tasks(None, 99).await.unwrap().len(), 32);
}
