//! What readers see: the index, and the journal where the index only points to it.
//!
//! Changes nothing. All answers are bounded by the caller's limit.

use std::collections::HashSet;
use std::path::Path;

use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::open;
use super::shared::Shared;
use crate::store::error::Error;
use crate::store::index::IndexError;
use crate::store::journal::{self, Position, Scan};
use crate::store::keys::{self, Pointer};
use crate::store::map::Visit;
use crate::store::model::{
    DueTimer, OutgoingMessage, PendingMessage, Record, Recorded, Stored, StoredTask, TimerChange,
};
use crate::store::rows::{self, Row, RowChange};

/// What answers are made from.
pub(in crate::store) trait Source {
    /// The value of a key of the index.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Visits entries of the index, from `from` up to and without `to`, for as long as `visit` returns true.
    fn visit(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), Error>;

    /// The journal's record at a place.
    fn record(&self, position: Position) -> Result<Recorded, Error>;

    /// Messages whose delivery is noted but not yet in the index.
    fn delivered(&self) -> HashSet<MessageId>;
}

pub(in crate::store) fn load(source: &dyn Source, task: &TaskId) -> Result<Option<Stored>, Error> {
    let value = source.get(&keys::task(task))?;
    value.map(|value| stored(source, &pointer(&value)?)).transpose()
}

pub(in crate::store) fn tasks(
    source: &dyn Source,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<StoredTask>, Error> {
    let (from, to) = keys::tasks_after(after);
    let mut found = Vec::new();
    for (key, value) in collect(source, &from, &to, limit)? {
        let task = keys::task_of(&key).ok_or_else(|| unreadable("the key of a task"))?;
        found.push(StoredTask { task, stored: stored(source, &pointer(&value)?)? });
    }
    Ok(found)
}

pub(in crate::store) fn row(
    source: &dyn Source,
    task: &TaskId,
    table: &str,
    key: &str,
) -> Result<Option<Value>, Error> {
    if !rows::is_table(table) || !rows::is_key(key) {
        return Ok(None);
    }
    let value = source.get(&keys::row(table, task, key))?;
    value.map(|value| row_value(source, &pointer(&value)?)).transpose()
}

pub(in crate::store) fn rows(
    source: &dyn Source,
    table: &str,
    task: Option<&TaskId>,
    after: Option<(&TaskId, &str)>,
    limit: usize,
) -> Result<Vec<Row>, Error> {
    if !rows::is_table(table) {
        return Ok(Vec::new());
    }
    let (from, to) = keys::rows_after(table, task, after);
    if from >= to {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (key, value) in collect(source, &from, &to, limit)? {
        let (task, key) = keys::row_of(&key).ok_or_else(|| unreadable("the key of a row"))?;
        found.push(Row { task, key, value: row_value(source, &pointer(&value)?)? });
    }
    Ok(found)
}

fn row_value(source: &dyn Source, pointer: &Pointer) -> Result<Value, Error> {
    if let Some(text) = &pointer.inline {
        return inline(text);
    }
    let mut record = source.record(pointer.position)?.record;
    let ordinal = usize::try_from(pointer.number).map_err(|_| unreadable("a row"))?;
    match (ordinal < record.rows.len()).then(|| record.rows.swap_remove(ordinal)) {
        Some(RowChange::Put { value, .. }) => Ok(value),
        _ => Err(unreadable("a row")),
    }
}

pub(in crate::store) fn pending_messages(source: &dyn Source, limit: usize) -> Result<Vec<PendingMessage>, Error> {
    let (from, to) = keys::outbox_range();
    // Those whose delivery is noted but not indexed yet must not crowd out the others.
    let noted = source.delivered();
    let mut found = Vec::new();
    for (key, value) in collect(source, &from, &to, limit.saturating_add(noted.len()))? {
        let (sequence, ordinal) = keys::outbox_of(&key).ok_or_else(|| unreadable("the key of a message"))?;
        let pointer = pointer(&value)?;
        let (task, message) = match &pointer.inline {
            Some(text) => inline::<(TaskId, OutgoingMessage)>(text)?,
            None => waiting(source.record(pointer.position)?.record, ordinal)?,
        };
        if noted.contains(&message.id) {
            continue;
        }
        found.push(PendingMessage { task, sequence, message });
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}

fn waiting(mut record: Record, ordinal: u16) -> Result<(TaskId, OutgoingMessage), Error> {
    let ordinal = usize::from(ordinal);
    let message = (ordinal < record.messages.len()).then(|| record.messages.swap_remove(ordinal));
    record.task.zip(message).ok_or_else(|| unreadable("a message"))
}

pub(in crate::store) fn due_timers(source: &dyn Source, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>, Error> {
    let (from, to) = keys::timers_until(Some(now));
    let mut found = Vec::new();
    for (key, value) in collect(source, &from, &to, limit)? {
        let (at, task, id) = keys::timer_of(&key).ok_or_else(|| unreadable("the key of a timer"))?;
        let pointer = pointer(&value)?;
        let kind = match &pointer.inline {
            Some(text) => inline::<Value>(text)?,
            None => timer_kind(source.record(pointer.position)?.record, pointer.number)?,
        };
        found.push(DueTimer { task, id, at, kind });
    }
    Ok(found)
}

fn timer_kind(mut record: Record, ordinal: u64) -> Result<Value, Error> {
    let ordinal = usize::try_from(ordinal).map_err(|_| unreadable("a timer"))?;
    match (ordinal < record.timers.len()).then(|| record.timers.swap_remove(ordinal)) {
        Some(TimerChange::Set { kind, .. }) => Ok(kind),
        _ => Err(unreadable("a timer")),
    }
}

pub(in crate::store) fn next_timer_at(source: &dyn Source) -> Result<Option<Timestamp>, Error> {
    let (from, to) = keys::timers_until(None);
    let first = collect(source, &from, &to, 1)?.pop();
    first
        .map(|(key, _)| keys::timer_of(&key).map(|(at, ..)| at).ok_or_else(|| unreadable("the key of a timer")))
        .transpose()
}

pub(in crate::store) fn seen(source: &dyn Source, id: &MessageId) -> Result<bool, Error> {
    source.get(&keys::seen(id)).map(|value| value.is_some())
}

pub(in crate::store) fn events(
    source: &dyn Source,
    task: &TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Error> {
    let first = after.saturating_add(1);
    let (from, to) = (keys::event(task, first), keys::event(task, u64::MAX));
    let mut positions = Vec::new();
    // The rest of the group that the first one lies in, and whole groups from there on.
    let mut visit = |key: &[u8], value: &[u8]| {
        let (places, rest) = value.as_chunks::<{ Position::BYTES }>();
        let Some(group) = keys::first_version_of(key).filter(|_| rest.is_empty()) else {
            return Err(IndexError::Damaged("the places of events can't be read".to_owned()));
        };
        let found = (group..).zip(places).filter(|(version, _)| *version >= first);
        positions.extend(found.map(|(_, place)| Position::decode(place)).take(limit - positions.len()));
        Ok(positions.len() < limit)
    };
    if limit > 0 {
        source.visit(&from, &to, &mut visit)?;
    }
    positions.into_iter().map(|position| source.record(position)).collect()
}

pub(super) fn records_after(
    shared: &Shared,
    folder: &Path,
    sequence: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Error> {
    let head = shared.head.borrow().count;
    let mut found = Vec::new();
    if sequence >= head || limit == 0 {
        return Ok(found);
    }
    let (front, place) = shared.with_index(|index| {
        let front = open::front_of(index).map_err(Error::Index)?.unwrap_or_default();
        Ok((front, index.get(&keys::place(sequence.max(front.head.count) + 1)).map_err(Error::Index)?))
    })?;
    let (mut number, mut scan) = match place {
        Some(place) => {
            let place = pointer(&place)?.position;
            (place.segment, Scan::open_at(folder, place, keys::place_of(sequence.max(front.head.count) + 1))?)
        }
        // The place of the first records after a pruned front was in what is gone.
        None if keys::place_of(sequence.max(front.head.count) + 1) <= front.head.count => {
            (front.segment, Scan::open(folder, front.segment, Some(front.head))?)
        }
        None => return Err(unreadable("the place of a record")),
    };
    while found.len() < limit {
        let Some(entry) = scan.next_sound()? else {
            number += 1;
            scan = Scan::open(folder, number, Some(scan.head()))?;
            continue;
        };
        if entry.head.count > sequence {
            found.push(entry.decode().map_err(|what| Error::Damaged {
                segment: journal::path_of(folder, number),
                line: 0,
                offset: entry.position.offset,
                what,
            })?);
        }
        // What comes after the head may be half written, and nobody has been told about it.
        if entry.head.count == head {
            break;
        }
    }
    Ok(found)
}

fn stored(source: &dyn Source, pointer: &Pointer) -> Result<Stored, Error> {
    let state = match &pointer.inline {
        Some(text) => inline(text)?,
        None => source.record(pointer.position)?.record.state,
    };
    Ok(Stored { version: pointer.number, state })
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The first `limit` entries of a range of the index.
pub(super) fn collect(source: &dyn Source, from: &[u8], to: &[u8], limit: usize) -> Result<Entries, Error> {
    let mut found = Entries::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        if found.len() < limit {
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(found.len() < limit)
    };
    source.visit(from, to, &mut visit)?;
    Ok(found)
}

/// Reads a value that holds a pointer.
pub(in crate::store) fn pointer(value: &[u8]) -> Result<Pointer, Error> {
    Pointer::decode(value).ok_or_else(|| unreadable("a pointer into the journal"))
}

pub(super) fn inline<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|error| Error::Index(IndexError::Damaged(error.to_string())))
}

pub(super) fn unreadable(what: &str) -> Error {
    Error::Index(IndexError::Damaged(format!("{what} can't be read")))
}
