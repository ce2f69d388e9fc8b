//! Events as real tasks have them, and how they are committed.

use std::path::Path;
use std::sync::Arc;

use checkrein_orchestrator::store::{Commit, LocalStore, Options, OutgoingMessage, Store, TimerChange};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::time::Timestamp;
use serde_json::{Value, json};

pub(crate) fn open(folder: &Path) -> LocalStore {
    LocalStore::open(folder, &Options::new(Timestamp::from_millis(1_000))).expect("the store opens")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn digest(task: &TaskId, what: &str, version: u64) -> String {
    Digest::of(format!("{task}/{what}/{version}")).to_string()
}

/// A state of about 2 KB that differs in a few places from one event to the next.
fn state(task: &TaskId, version: u64) -> Value {
    let steps: Vec<Value> = (0..6)
        .map(|step| {
            json!({
                "id": format!("step-{step}"), "status": if step * 100 < version { "done" } else { "waiting" },
                "needs": [format!("step-{}", step.max(1) - 1)], "tree": digest(task, "step", step),
            })
        })
        .collect();
    json!({
        "id": task.as_str(), "epoch": version / 10, "sequence": version, "state": { "running": { "worker": "w-1" } },
        "base": digest(task, "base", 0), "tree": digest(task, "tree", version), "plan": { "version": 1, "steps": steps },
        "head": { "id": format!("c-{version}"), "hash": digest(task, "head", version), "record": digest(task, "record", version) },
        "usage": { "turns": version, "tokens_total": version * 1_700, "failures": 0 }, "policy": digest(task, "policy", 0),
        "updated_at": "2026-07-27T00:00:00.000Z", "title": "make the parser refuse trailing commas",
    })
}

pub(crate) fn commit(task: &TaskId, version: u64) -> Commit {
    let timer = TimerChange::Set {
        id: "dispatch".parse().expect("a timer's name"),
        at: Timestamp::from_millis(i64::try_from(version).expect("a small number") * 1_000),
        kind: json!({ "dispatch": { "epoch": version / 10 } }),
    };
    let message = OutgoingMessage {
        id: format!("{task}-job-{version}").parse().expect("an id"),
        queue: "jobs.default".parse().expect("a queue"),
        kind: "job".to_owned(),
        epoch: version / 10,
        body: json!({ "job_id": format!("{task}-job-{version}"), "epoch": version / 10 }),
    };
    Commit {
        at: Timestamp::from_millis(1_000),
        kind: "checkpoint".to_owned(),
        cause: (version.is_multiple_of(2)).then(|| format!("{task}-in-{version}").parse().expect("an id")),
        event: json!({
            "checkpoint": { "id": format!("c-{version}"), "hash": digest(task, "head", version),
                "changeset": digest(task, "changeset", version), "evidence": digest(task, "evidence", version) }
        }),
        decision: json!({ "rules": ["default"] }),
        state: state(task, version),
        messages: if version.is_multiple_of(4) { vec![message] } else { Vec::new() },
        timers: vec![timer],
        rows: Vec::new(),
    }
}

/// Makes an event and commits it.
pub(crate) async fn step(store: &dyn Store, task: &TaskId, version: u64) {
    take(store, task, version, commit(task, version)).await;
}

/// Commits an event as the engine and the relay do: a message that went out is marked.
async fn take(store: &dyn Store, task: &TaskId, version: u64, commit: Commit) {
    let sent: Vec<_> = commit.messages.iter().map(|message| message.id.clone()).collect();
    store.commit(task, version, commit).await.expect("the commit is stored");
    store.mark_delivered(sent, Timestamp::from_millis(2_000)).await.expect("the note is taken");
}

/// What a task is about to commit: made beforehand, because making it is not the store's work.
pub(crate) type Prepared = (TaskId, Vec<Commit>);

pub(crate) fn prepare(tasks: u64, events: u64) -> Vec<Prepared> {
    let named = (0..tasks).map(|number| format!("t-{number}").parse().expect("an id"));
    named.map(|task: TaskId| (task.clone(), (0..events).map(|version| commit(&task, version)).collect())).collect()
}

/// Has all tasks at once commit their events.
pub(crate) async fn commit_all(store: &Arc<LocalStore>, tasks: Vec<Prepared>) {
    let running: Vec<_> = tasks
        .into_iter()
        .map(|(task, commits)| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for (version, commit) in (0..).zip(commits) {
                    take(store.as_ref(), &task, version, commit).await;
                }
            })
        })
        .collect();
    for task in running {
        task.await.expect("no task panics");
    }
}

/// Has `tasks` tasks at once make and commit `events` events each.
pub(crate) async fn fill(store: &Arc<LocalStore>, tasks: u64, events: u64) {
    let running: Vec<_> = (0..tasks)
        .map(|number| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let task: TaskId = format!("t-{number}").parse().expect("an id");
                for version in 0..events {
                    step(store.as_ref(), &task, version).await;
                }
            })
        })
        .collect();
    for task in running {
        task.await.expect("no task panics");
    }
}
