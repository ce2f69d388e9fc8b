//! Checking a commit before it costs anybody else time.
//!
//! Nothing may be stored that could not be read back or sent; the store does not
//! look into the values otherwise.

use std::collections::HashSet;

use checkrein_shared::bus::Message;
use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde_json::Value;

use crate::guards::guard;
use crate::store::error::CommitError;
use crate::store::journal::{Draft, Prepared, VALUE_DEPTH_MAX, deeper_than};
use crate::store::model::{Commit, MESSAGES_MAX, OutgoingMessage, RECORD_BYTES_MAX, TIMERS_MAX, TimerChange};
use crate::store::projection::{DELIVERED, Delivered};
use crate::store::rows::{ROWS_MAX, RowChange, is_key, is_table};

/// The longest kind of an event, in bytes.
const KIND_BYTES_MAX: usize = 64;

/// Kinds with this beginning are the store's own.
const OWN_KINDS: &str = "store.";

/// Checks a commit, and does all of its encoding that does not depend on its place.
pub(in crate::store) fn prepare(task: &TaskId, expected_version: u64, commit: Commit) -> Result<Prepared, CommitError> {
    let Commit { at, kind, cause, event, decision, state, messages, timers, rows } = commit;
    if kind.is_empty() || kind.len() > KIND_BYTES_MAX || kind.starts_with(OWN_KINDS) {
        return Err(CommitError::Kind(kind));
    }
    for (name, value) in [("event", &event), ("decision", &decision), ("state", &state)] {
        check_depth(name, value)?;
    }
    check_messages(task, &messages)?;
    check_timers(&timers)?;
    check_rows(&rows)?;
    let task = Some(task.clone());
    let version = expected_version.saturating_add(1);
    let draft = Draft { at, cause, decision, event, kind, messages, rows, state, task, timers, version };
    let prepared = Prepared::new(draft).map_err(CommitError::NotCanonical)?;
    match prepared.size() {
        size if size > RECORD_BYTES_MAX => Err(CommitError::TooLarge { size, limit: RECORD_BYTES_MAX }),
        _ => Ok(prepared),
    }
}

/// The compare-and-set: an event is appended only to the state that it was decided about.
pub(in crate::store) fn check_version(actual: u64, expected: u64) -> Result<(), CommitError> {
    if guard!(VersionIsNewest, actual == expected) { Ok(()) } else { Err(CommitError::Conflict { actual }) }
}

/// The store's own record that says which messages were delivered.
pub(in crate::store) fn delivered(messages: &[MessageId], at: Timestamp) -> Prepared {
    let event = serde_json::to_value(Delivered { messages: messages.to_vec() }).expect("ids are texts");
    own(DELIVERED, at, event).expect("texts have a canonical form")
}

/// A record of the store's own.
pub(super) fn own(kind: &str, at: Timestamp, event: Value) -> Result<Prepared, checkrein_shared::json::Error> {
    Prepared::new(Draft {
        at,
        cause: None,
        decision: Value::Null,
        event,
        kind: kind.to_owned(),
        messages: Vec::new(),
        rows: Vec::new(),
        state: Value::Null,
        task: None,
        timers: Vec::new(),
        version: 0,
    })
}

fn check_messages(task: &TaskId, messages: &[OutgoingMessage]) -> Result<(), CommitError> {
    check_count("messages", messages.len(), MESSAGES_MAX)?;
    let mut ids = HashSet::new();
    for OutgoingMessage { id, queue, kind, epoch, body } in messages {
        if !ids.insert(id) {
            return Err(CommitError::Twice(id.to_string()));
        }
        check_depth("body", body)?;
        Message::new(id.clone(), kind, task.clone(), *epoch, queue.clone(), body).map_err(CommitError::Message)?;
    }
    Ok(())
}

fn check_timers(timers: &[TimerChange]) -> Result<(), CommitError> {
    check_count("timers", timers.len(), TIMERS_MAX)?;
    for change in timers {
        if let TimerChange::Set { kind, .. } = change {
            check_depth("timer", kind)?;
        }
    }
    Ok(())
}

fn check_rows(rows: &[RowChange]) -> Result<(), CommitError> {
    check_count("rows", rows.len(), ROWS_MAX)?;
    let mut names = HashSet::new();
    for change in rows {
        let (table, key) = change.name();
        if !is_table(table) || !is_key(key) {
            return Err(CommitError::Row(format!("{table}/{key}")));
        }
        if !names.insert((table, key)) {
            return Err(CommitError::Twice(format!("{table}/{key}")));
        }
        if let RowChange::Put { value, .. } = change {
            check_depth("row", value)?;
        }
    }
    Ok(())
}

fn check_depth(name: &'static str, value: &Value) -> Result<(), CommitError> {
    if deeper_than(value, VALUE_DEPTH_MAX) { Err(CommitError::TooDeep(name)) } else { Ok(()) }
}

fn check_count(what: &'static str, count: usize, limit: usize) -> Result<(), CommitError> {
    if count > limit { Err(CommitError::TooMany { what, count, limit }) } else { Ok(()) }
}
