//! Stores of every format that was ever written, as they lie on people's disks.
//!
//! `CHECKREIN_BLESS=1` writes the one of the newest format anew; the older ones are never written again.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::store::verify;

const NEWEST: u64 = 2;

fn golden(format: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/store-format-{format}"))
}

/// The files of a journal and their bytes, in order.
fn journal(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder.join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// A copy that may be changed.
fn copy_of(format: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("journal")).unwrap();
    for (name, bytes) in journal(&golden(format)) {
        fs::write(folder.path().join("journal").join(name), bytes).unwrap();
    }
    folder
}

fn rows(version: u64) -> Vec<RowChange> {
    let (table, key) = ("effect".to_owned(), format!("k-{version}"));
    let put = RowChange::Put { table: table.clone(), key, value: json!({ "version": version }) };
    let older = version.checked_sub(2).map(|older| RowChange::Remove { table, key: format!("k-{older}") });
    older.into_iter().chain([put]).collect()
}

/// The story that every golden store tells, from an event of each task to another: two
/// tasks, messages, deliveries, timers, and rows since there are such.
async fn tell(store: &LocalStore, events: std::ops::Range<u64>, format: u64) {
    for version in events {
        for name in ["t-1", "t-2"] {
            let commit = Commit {
                cause: Some(format!("in-{name}-{version}").parse().unwrap()),
                event: json!({ "number": version, "text": "\"record\":} \\ \u{7f} é 😀 \u{1}" }),
                messages: vec![message(&format!("out-{name}-{version}"))],
                timers: vec![set("lease", 5_000 + i64::try_from(version).unwrap()), clear("review")],
                rows: if format == 1 { Vec::new() } else { rows(version) },
                ..commit(version)
            };
            store.commit(&task(name), version, commit).await.unwrap();
        }
        store.mark_delivered(vec![format!("out-t-1-{version}").parse().unwrap()], at(2_000)).await.unwrap();
        // Until the note about the delivery is written, so that it always stands in the same place.
        while !store.shared.delivered.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

/// What readers see of the story when it is told up to an event.
async fn check(store: &LocalStore, events: u64, with_rows: bool) {
    let first = task("t-1");
    let seen = Stored { version: events, state: json!({ "seen": events - 1 }) };
    assert_eq!(store.load(&first).await.unwrap().unwrap(), seen);
    assert_eq!(store.tasks(None, 9).await.unwrap().len(), 2);
    let pending: Vec<String> = (0..events).map(|version| format!("out-t-2-{version}")).collect();
    assert_eq!(ids(&store.pending_messages(99).await.unwrap()), pending);
    assert_eq!(due(&store.due_timers(at(9_999), 9).await.unwrap()), [("t-1", "lease"), ("t-2", "lease")]);
    assert!(store.seen(&"in-t-1-0".parse().unwrap()).await.unwrap());
    assert_eq!(store.records_after(0, 999).await.unwrap().len() as u64, events * 3);
    let found = store.rows("effect", Some(&first), None, 9).await.unwrap();
    let names: Vec<&str> = found.iter().map(|row| row.key.as_str()).collect();
    let last_two = [format!("k-{}", events - 2), format!("k-{}", events - 1)];
    assert_eq!(names, if with_rows { last_two.iter().map(String::as_str).collect() } else { Vec::new() });
}

#[tokio::test]
async fn what_this_version_writes_is_the_golden_store_of_the_newest_format_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    tell(&store, 0..6, NEWEST).await;
    store.close().await.unwrap();
    if std::env::var_os("CHECKREIN_BLESS").is_some() {
        let target = golden(NEWEST).join("journal");
        fs::create_dir_all(&target).unwrap();
        for (name, bytes) in journal(folder.path()) {
            fs::write(target.join(name), bytes).unwrap();
        }
    }
    for ((name, found), (golden_name, expected)) in journal(folder.path()).iter().zip(journal(&golden(NEWEST))) {
        assert_eq!((name, String::from_utf8_lossy(found)), (&golden_name, String::from_utf8_lossy(&expected)));
    }
    assert_eq!(journal(folder.path()).len(), journal(&golden(NEWEST)).len());
}

#[tokio::test]
async fn stores_of_every_format_are_opened_verified_and_continued() {
    for format in 1..=NEWEST {
        let before = journal(&golden(format));
        let report = verify(&golden(format)).unwrap();
        assert_eq!((report.head.count, report.tasks, report.segments as usize), (18, 2, before.len() - 1));
        let folder = copy_of(format);
        let store = LocalStore::open(folder.path(), &tiny()).unwrap();
        check(&store, 6, format > 1).await;
        assert_eq!(journal(folder.path()), before, "opening changes nothing");
        tell(&store, 6..9, NEWEST).await;
        check(&store, 9, true).await;
        store.close().await.unwrap();

        let after = journal(folder.path());
        let written = before.iter().filter(|(name, _)| name != "HEAD");
        for ((name, before), (_, after)) in written.zip(&after) {
            // A segment of an older format is never written to again; one of the newest goes on.
            let kept = if format < NEWEST { before == after } else { after.starts_with(before) };
            assert!(kept, "format {format}: {name}");
        }
        let newest = format!("\"format\":{NEWEST},");
        let (_, last) = after.iter().rfind(|(name, _)| name != "HEAD").unwrap();
        assert!(String::from_utf8_lossy(last).contains(&newest));
        assert_eq!(verify(folder.path()).unwrap().head.count, 27);
        fs::remove_dir_all(folder.path().join("index")).unwrap();
        let again = LocalStore::open(folder.path(), &tiny()).unwrap();
        check(&again, 9, true).await;
    }
}

#[tokio::test]
async fn an_empty_segment_of_an_older_format_is_followed_by_one_of_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal/00000001.jsonl");
    fs::create_dir(folder.path().join("journal")).unwrap();
    let header = "{\"checkrein\":\"journal\",\"format\":1,\"previous\":null,\"segment\":1,\"sequence\":1}\n";
    fs::write(&path, header).unwrap();
    for version in [0, 2] {
        let store = open(folder.path());
        store.commit(&task("t-1"), version, commit(version)).await.unwrap();
        store.commit(&task("t-1"), version + 1, Commit { rows: rows(version), ..commit(1) }).await.unwrap();
        store.close().await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), header);
        let report = verify(folder.path()).unwrap();
        assert_eq!((report.segments, report.head.count), (2, version + 2));
    }
}
