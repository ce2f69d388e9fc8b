use std::fs;

use super::*;
use crate::store::verify;

#[tokio::test]
async fn a_commit_is_seen_by_every_reader_and_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = task("t-1");
    for restart in 0..3 {
        let store = open(folder.path());
        if restart == 0 {
            let mut begin = commit(1);
            begin.cause = Some("m-in".parse().unwrap());
            begin.messages = vec![message("m-1"), message("m-2")];
            begin.timers = vec![set("lease", 5_000), set("budget", 9_000)];
            let committed = store.commit(&first, 0, begin).await.unwrap();
            assert_eq!(committed, Committed { sequence: 1, version: 1 });
        }
        let stored = store.load(&first).await.unwrap().unwrap();
        assert_eq!(stored, Stored { version: 1, state: json!({ "seen": 1 }) });
        assert_eq!(store.load(&task("t-2")).await.unwrap(), None);
        assert_eq!(ids(&store.pending_messages(9).await.unwrap()), ["m-1", "m-2"]);
        assert_eq!(ids(&store.pending_messages(1).await.unwrap()), ["m-1"]);
        assert_eq!(store.next_timer_at().await.unwrap(), Some(at(5_000)));
        assert_eq!(due(&store.due_timers(at(5_000), 9).await.unwrap()), [("t-1", "lease")]);
        assert_eq!(due(&store.due_timers(at(4_999), 9).await.unwrap()), []);
        assert!(store.seen(&"m-in".parse().unwrap()).await.unwrap());
        assert!(!store.seen(&"m-1".parse().unwrap()).await.unwrap());
        let events = store.events(&first, 0, 9).await.unwrap();
        assert_eq!((events.len(), events[0].record.version), (1, 1));
        assert_eq!(store.records_after(0, 9).await.unwrap(), events);
        assert_eq!(store.head(), Head { count: 1, hash: Some(events[0].hash) });
        assert_eq!((store.torn_tail(), store.rebuilt()), (None, None));
        store.close().await.unwrap();
        assert!(matches!(store.load(&first).await, Err(Error::Closed)));
        assert!(matches!(store.commit(&first, 1, commit(2)).await, Err(CommitError::Store(Error::Closed))));
    }
}

#[tokio::test]
async fn a_commit_at_another_version_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let first = task("t-1");
    for (expected, actual) in [(1, 0), (7, 0)] {
        let refused = store.commit(&first, expected, commit(1)).await;
        assert!(matches!(refused, Err(CommitError::Conflict { actual: found }) if found == actual), "{refused:?}");
    }
    store.commit(&first, 0, commit(1)).await.unwrap();
    assert!(matches!(store.commit(&first, 0, commit(1)).await, Err(CommitError::Conflict { actual: 1 })));
    assert_eq!(store.commit(&first, 1, commit(2)).await.unwrap().version, 2);
    assert_eq!(store.head().count, 2);
}

#[tokio::test]
async fn delivered_messages_leave_the_outbox_at_once_and_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let first = task("t-1");
    let store = open(folder.path());
    let messages = vec![message("m-1"), message("m-2"), message("m-3")];
    store.commit(&first, 0, Commit { messages, ..commit(1) }).await.unwrap();
    store.mark_delivered(vec!["m-2".parse().unwrap(), "m-unknown".parse().unwrap()], at(2_000)).await.unwrap();
    assert_eq!(ids(&store.pending_messages(2).await.unwrap()), ["m-1", "m-3"]);
    store.close().await.unwrap();

    let store = open(folder.path());
    assert_eq!(ids(&store.pending_messages(9).await.unwrap()), ["m-1", "m-3"]);
    let mark = store.records_after(1, 9).await.unwrap().pop().unwrap().record;
    assert_eq!((mark.kind.as_str(), mark.task, mark.version), ("store.delivered", None, 0));
    // The same id again, as for a lost job: pending once, wherever it stood before.
    let again = Commit { messages: vec![message("m-2"), message("m-1")], ..commit(2) };
    store.commit(&first, 1, again).await.unwrap();
    assert_eq!(ids(&store.pending_messages(9).await.unwrap()), ["m-3", "m-2", "m-1"]);
    let pending = store.pending_messages(9).await.unwrap();
    assert_eq!(pending[0].to_message().unwrap().body, br#"{"id":"m-3"}"#);
    assert_eq!((pending[0].task.as_str(), pending[0].sequence, pending[1].sequence), ("t-1", 1, 3));
}

#[tokio::test]
async fn timers_are_set_moved_and_cleared_per_task() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (first, second) = (task("t-1"), task("t-2"));
    let with = |timers, number| Commit { timers, ..commit(number) };
    store.commit(&first, 0, with(vec![set("a", 300), set("b", 200)], 1)).await.unwrap();
    store.commit(&second, 0, with(vec![set("a", 100)], 1)).await.unwrap();
    assert_eq!(due(&store.due_timers(at(999), 9).await.unwrap()), [("t-2", "a"), ("t-1", "b"), ("t-1", "a")]);
    store.commit(&first, 1, with(vec![set("b", 400), clear("a"), clear("unknown")], 2)).await.unwrap();
    assert_eq!(due(&store.due_timers(at(999), 9).await.unwrap()), [("t-2", "a"), ("t-1", "b")]);
    store.commit(&second, 1, with(vec![clear("a")], 2)).await.unwrap();
    let left = store.due_timers(at(999), 9).await.unwrap();
    assert_eq!(due(&left), [("t-1", "b")]);
    assert_eq!((left[0].at, &left[0].kind), (at(400), &json!({ "timer": "b" })));
    // Within one commit the last word counts.
    store.commit(&first, 2, with(vec![clear("b"), set("b", 500), set("b", 600)], 3)).await.unwrap();
    assert_eq!(store.next_timer_at().await.unwrap(), Some(at(600)));
    assert_eq!(store.due_timers(at(999), 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn rows_are_kept_per_table_and_task_and_read_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let large = json!("x".repeat(9_000));
    let put = |table: &str, key: &str, value: Value| RowChange::Put { table: table.into(), key: key.into(), value };
    let (first, second) = (task("t-1"), task("t-1-a"));
    for restart in 0..3 {
        let store = open(folder.path());
        if restart == 0 {
            let rows =
                vec![put("effect", "a", json!(1)), put("effect", "b", large.clone()), put("other", "a", json!(2))];
            store.commit(&first, 0, Commit { rows, ..commit(1) }).await.unwrap();
            let rows = vec![put("effect", "a", json!(3)), put("effect", "c", json!(4))];
            store.commit(&second, 0, Commit { rows, ..commit(1) }).await.unwrap();
            let gone = |key: &str| RowChange::Remove { table: "effect".into(), key: key.into() };
            let rows = vec![gone("c"), gone("unknown"), put("effect", "a", json!(5))];
            store.commit(&second, 1, Commit { rows, ..commit(2) }).await.unwrap();
        }
        assert_eq!(store.row(&first, "effect", "a").await.unwrap(), Some(json!(1)));
        assert_eq!(store.row(&first, "effect", "b").await.unwrap(), Some(large.clone()));
        assert_eq!(store.row(&second, "effect", "a").await.unwrap(), Some(json!(5)));
        assert_eq!(store.row(&second, "effect", "c").await.unwrap(), None);
        assert_eq!(store.row(&second, "No table", "a\0").await.unwrap(), None);
        let names =
            |rows: Vec<Row>| rows.into_iter().map(|row| format!("{} {}", row.task, row.key)).collect::<Vec<_>>();
        let all = ["t-1 a", "t-1 b", "t-1-a a"];
        assert_eq!(names(store.rows("effect", None, None, 9).await.unwrap()), all);
        assert_eq!(names(store.rows("effect", None, None, 2).await.unwrap()), all[..2]);
        assert_eq!(names(store.rows("effect", None, Some((&first, "b")), 9).await.unwrap()), all[2..]);
        assert_eq!(names(store.rows("effect", Some(&first), None, 9).await.unwrap()), all[..2]);
        assert_eq!(names(store.rows("effect", Some(&first), Some((&first, "a")), 9).await.unwrap()), all[1..2]);
        assert!(store.rows("effect", Some(&first), Some((&second, "a")), 9).await.unwrap().is_empty());
        assert_eq!(store.rows("effect", Some(&first), None, 9).await.unwrap()[1].value, large);
        assert_eq!(names(store.rows("other", None, None, 9).await.unwrap()), ["t-1 a"]);
        store.close().await.unwrap();
        if restart == 1 {
            fs::remove_dir_all(folder.path().join("index")).unwrap();
        }
    }
}

#[tokio::test]
async fn what_is_too_large_for_the_index_is_read_from_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let large = "x".repeat(30_000);
    let first = task("t-1");
    let body = json!({ "large": large });
    let messages = vec![message("m-1"), OutgoingMessage { body: body.clone(), ..message("m-2") }];
    let id = "large".parse().unwrap();
    let timers = vec![set("small", 50), TimerChange::Set { id, at: at(60), kind: body.clone() }];
    let state = json!({ "state": large });
    store.commit(&first, 0, Commit { messages, timers, state: state.clone(), ..commit(1) }).await.unwrap();
    assert_eq!(store.load(&first).await.unwrap().unwrap().state, state);
    assert_eq!(store.tasks(None, 9).await.unwrap()[0].stored.state, state);
    let pending = store.pending_messages(9).await.unwrap();
    assert_eq!((ids(&pending), &pending[1].message.body), (vec!["m-1", "m-2"], &body));
    let timers = store.due_timers(at(99), 9).await.unwrap();
    assert_eq!((due(&timers), &timers[1].kind), (vec![("t-1", "small"), ("t-1", "large")], &body));
}

#[tokio::test]
async fn what_could_not_be_read_back_or_sent_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let first = task("t-1");
    let deep = (0..60).fold(Value::Null, |inner, _| json!([inner]));
    let large = OutgoingMessage { body: json!("x".repeat(70_000)), ..message("m-1") };
    let put = |table: &str, key: &str| RowChange::Put { table: table.into(), key: key.into(), value: deep.clone() };
    let row = |table: &str, key: &str| RowChange::Remove { table: table.into(), key: key.into() };
    let bad: Vec<Commit> = vec![
        Commit { rows: vec![put("effect", "deep")], ..commit(1) },
        Commit { rows: vec![row("Effect", "k")], ..commit(1) },
        Commit { rows: vec![row("effect", "")], ..commit(1) },
        Commit { rows: vec![row("effect", "k"), row("effect", "k")], ..commit(1) },
        Commit { rows: (0..257).map(|n| row("effect", &format!("{n}"))).collect(), ..commit(1) },
        Commit { kind: "store.delivered".to_owned(), ..commit(1) },
        Commit { kind: String::new(), ..commit(1) },
        Commit { state: json!(0.5), ..commit(1) },
        Commit { event: json!(u64::MAX), ..commit(1) },
        Commit { decision: deep.clone(), ..commit(1) },
        Commit { state: json!("x".repeat(9 << 20)), ..commit(1) },
        Commit { messages: vec![large], ..commit(1) },
        Commit { messages: vec![OutgoingMessage { kind: "Two words".to_owned(), ..message("m-1") }], ..commit(1) },
        Commit { messages: vec![message("m-1"), message("m-1")], ..commit(1) },
        Commit { messages: (0..257).map(|n| message(&format!("m-{n}"))).collect(), ..commit(1) },
        Commit { timers: (0..257).map(|n| set(&format!("{n}"), n)).collect(), ..commit(1) },
    ];
    for commit in bad {
        let text = format!("{:.80}", format!("{commit:?}"));
        let refused = store.commit(&first, 0, commit).await;
        assert!(!matches!(refused, Ok(_) | Err(CommitError::Store(_) | CommitError::Conflict { .. })), "{text}");
    }
    assert_eq!(store.head().count, 0);
    // The deepest that is accepted can be read back, also by the strict parser.
    let deepest = (0..56).fold(Value::Null, |inner, _| json!([inner]));
    let body = OutgoingMessage { body: deepest.clone(), ..message("m-1") };
    store.commit(&first, 0, Commit { event: deepest, messages: vec![body], ..commit(1) }).await.unwrap();
    assert_eq!(verify(folder.path()).unwrap().head, store.head());
}

#[tokio::test]
async fn tasks_and_records_come_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), &tiny()).unwrap();
    let names: Vec<TaskId> = (0..7).map(|n| task(&format!("t-{n}"))).collect();
    for round in 0..30 {
        for name in &names {
            store.commit(name, round, commit(round)).await.unwrap();
        }
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.tasks(after.as_ref(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.task.clone());
        seen.extend(page.into_iter().map(|stored| stored.task));
    }
    assert_eq!(seen, names);
    let (mut sequences, mut sequence) = (Vec::new(), 0);
    loop {
        let page = store.records_after(sequence, 50).await.unwrap();
        let Some(last) = page.last() else { break };
        sequence = last.record.sequence;
        sequences.extend(page.iter().map(|recorded| recorded.record.sequence));
    }
    assert_eq!(sequences, (1..=210).collect::<Vec<u64>>());
    let versions: Vec<u64> =
        store.events(&names[3], 25, 3).await.unwrap().iter().map(|event| event.record.version).collect();
    assert_eq!(versions, [26, 27, 28]);
    assert!(fs::read_dir(folder.path().join("journal")).unwrap().count() > 10, "tiny segments");
    store.close().await.unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!((report.head.count, report.tasks, report.head_file), (210, 7, Some(report.head)));
    assert_eq!(LocalStore::open(folder.path(), &tiny()).unwrap().head(), report.head);
}

#[tokio::test]
async fn a_second_opener_is_refused_and_the_first_is_unaffected() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let impatient = Options { lock_patience: Duration::from_millis(40), ..options() };
    let error = LocalStore::open(folder.path(), &impatient).unwrap_err();
    assert!(matches!(&error, Error::InUse { holder: Some(holder), .. } if holder.pid == std::process::id()), "{error}");
    store.commit(&task("t-1"), 0, commit(1)).await.unwrap();
    drop(store);
    open(folder.path());
}

#[tokio::test]
async fn watchers_learn_of_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut changes = store.changes();
    let watcher = tokio::spawn(async move {
        let head = changes.wait_for(|head| head.count == 3).await.unwrap();
        head.count
    });
    for version in 0..3 {
        store.commit(&task("t-1"), version, commit(version)).await.unwrap();
    }
    assert_eq!(watcher.await.unwrap(), 3);
}
