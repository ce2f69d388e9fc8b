//! The store as its callers see it, on a real disk.

mod basics;
mod concurrency;
mod damage;
mod faults;
mod fuzz;
mod golden;
mod kill;
mod power;
mod pruning;

use checkrein_shared::ids::TaskId;
use serde_json::{Value, json};

use super::*;
use crate::store::model::{OutgoingMessage, TimerChange};
use crate::store::rows::RowChange;

fn options() -> Options {
    Options { lock_patience: Duration::from_secs(5), ..Options::new(Timestamp::from_millis(1_000)) }
}

/// Tiny segments, so that a few records fill several.
fn tiny() -> Options {
    Options { segment_bytes_max: 2_000, ..options() }
}

fn open(folder: &Path) -> LocalStore {
    LocalStore::open(folder, &options()).unwrap()
}

fn task(name: &str) -> TaskId {
    name.parse().unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn commit(number: u64) -> Commit {
    Commit {
        at: at(1_000),
        kind: "tested".to_owned(),
        cause: None,
        event: json!({ "number": number }),
        decision: Value::Null,
        state: json!({ "seen": number }),
        messages: Vec::new(),
        timers: Vec::new(),
        rows: Vec::new(),
    }
}

fn message(id: &str) -> OutgoingMessage {
    OutgoingMessage {
        id: id.parse().unwrap(),
        queue: "jobs.default".parse().unwrap(),
        kind: "job".to_owned(),
        epoch: 1,
        body: json!({ "id": id }),
    }
}

fn set(id: &str, millis: i64) -> TimerChange {
    TimerChange::Set { id: id.parse().unwrap(), at: at(millis), kind: json!({ "timer": id }) }
}

fn clear(id: &str) -> TimerChange {
    TimerChange::Clear { id: id.parse().unwrap() }
}

fn ids(messages: &[PendingMessage]) -> Vec<&str> {
    messages.iter().map(|pending| pending.message.id.as_str()).collect()
}

fn due(timers: &[DueTimer]) -> Vec<(&str, &str)> {
    timers.iter().map(|timer| (timer.task.as_str(), timer.id.as_str())).collect()
}
