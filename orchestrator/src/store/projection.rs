//! What a journal record means for the index: pure bookkeeping.
//!
//! The same function serves live commits, replay after a crash and the rebuild
//! from nothing, so the three can't disagree. It writes nothing by itself.

use checkrein_shared::ids::{MessageId, TaskId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::index::IndexError;
use super::journal::{Head, Position};
use super::keys::{self, Pointer};
use super::map::{Changes, Map};
use super::model::{Record, Recorded, TimerChange};
use super::prune::{CARRIED, FORGOTTEN, PRUNED};
use super::rows::RowChange;

/// The kind of the store's own record that says which messages were delivered.
pub(super) const DELIVERED: &str = "store.delivered";

/// For how many records an incoming message is remembered.
pub(super) const SEEN_RECORDS: u64 = 200_000;

/// The event of a [`DELIVERED`] record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delivered {
    pub(super) messages: Vec<MessageId>,
}

mod pruning;

/// Collects what some consecutive records change.
pub(super) struct Projection<'a> {
    index: &'a dyn Map,
    changes: Changes,
    /// How much the changes take.
    bytes: usize,
    /// Whether the index holds nothing: then what is removed needs no mark.
    is_fresh: bool,
    head: Head,
}

impl<'a> Projection<'a> {
    pub(super) fn new(index: &'a dyn Map) -> Self {
        Self { index, changes: Changes::new(), bytes: 0, is_fresh: false, head: index.head() }
    }

    /// For an empty index: begins where the chain begins.
    pub(super) fn from_front(index: &'a dyn Map, front: Head) -> Self {
        Self { head: front, is_fresh: index.head() == Head::default(), ..Self::new(index) }
    }

    /// Writes everything that was collected.
    pub(super) fn finish(self) -> Result<(), IndexError> {
        self.index.apply(self.changes, self.head)
    }

    /// How much memory what was collected takes, at least.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next record, where its state's text is not at hand.
    #[cfg(any(test, feature = "simulation"))]
    pub(super) fn add(&mut self, recorded: &Recorded, position: Position) -> Result<(), IndexError> {
        self.add_with(recorded, position, &json(&recorded.record.state)?)
    }

    /// Adds the next record, whose state was written as `state`.
    pub(super) fn add_with(&mut self, recorded: &Recorded, position: Position, state: &[u8]) -> Result<(), IndexError> {
        let record = &recorded.record;
        if record.sequence != self.head.count + 1 || record.previous != self.head.hash {
            let (sequence, count) = (record.sequence, self.head.count);
            return Err(IndexError::Damaged(format!(
                "record {sequence} does not follow the {count} records that it holds"
            )));
        }
        if keys::has_place(record.sequence) {
            self.put(keys::place(record.sequence), Pointer::encode_with(position, 0, &[]));
        }
        if let Some(task) = &record.task {
            self.add_event(task, record.version, position)?;
            self.put(keys::task(task), Pointer::encode_with(position, record.version, state));
            self.add_messages(record, position)?;
            self.add_timers(record, position)?;
            self.add_rows(task, record, position)?;
        } else {
            self.add_own(record, position)?;
        }
        self.add_cause(record)?;
        self.head = Head { count: record.sequence, hash: Some(recorded.hash) };
        Ok(())
    }

    fn add_event(&mut self, task: &TaskId, version: u64, position: Position) -> Result<(), IndexError> {
        let key = keys::event(task, version);
        let (_, place) = keys::event_place(version);
        let mut places = if place == 0 { Vec::new() } else { self.get(&key)?.unwrap_or_default() };
        if places.is_empty() {
            // The events before it were pruned, and its task is about to be forgotten.
            places.resize(place * Position::BYTES, 0);
        }
        if places.len() != place * Position::BYTES {
            return Err(IndexError::Damaged(format!("it does not hold the event before {version} of task {task}")));
        }
        // Not with room for more: it is copied before it grows again, and large pieces are slow to come by.
        places.reserve_exact(Position::BYTES);
        places.extend_from_slice(&position.encode());
        self.put(key, places);
        Ok(())
    }

    /// A record of the store's own.
    fn add_own(&mut self, record: &Record, position: Position) -> Result<(), IndexError> {
        match record.kind.as_str() {
            DELIVERED => self.remove_delivered(record),
            FORGOTTEN => self.forget(record, position),
            CARRIED => self.add_tombstones(record, position),
            PRUNED => self.move_front(record),
            _ => Ok(()),
        }
    }

    fn add_messages(&mut self, record: &Record, position: Position) -> Result<(), IndexError> {
        for (ordinal, message) in (0u16..).zip(&record.messages) {
            let by_id = keys::outbox_by_id(&message.id);
            if let Some(older) = self.get(&by_id)? {
                self.remove(older);
            }
            let key = keys::outbox(record.sequence, ordinal);
            let inline = json(&(&record.task, message))?;
            self.put(key.clone(), Pointer::encode_with(position, u64::from(ordinal), &inline));
            self.put(by_id, key);
        }
        Ok(())
    }

    fn remove_delivered(&mut self, record: &Record) -> Result<(), IndexError> {
        let delivered: Delivered = event_of(record)?;
        for id in &delivered.messages {
            let by_id = keys::outbox_by_id(id);
            if let Some(key) = self.get(&by_id)? {
                self.remove(key);
                self.remove(by_id);
            }
        }
        Ok(())
    }

    fn add_timers(&mut self, record: &Record, position: Position) -> Result<(), IndexError> {
        let Some(task) = &record.task else { return Ok(()) };
        for (ordinal, change) in (0u64..).zip(&record.timers) {
            let by_id = keys::timer_by_id(task, change.id());
            if let Some(older) = self.get(&by_id)? {
                self.remove(older);
            }
            match change {
                TimerChange::Set { id, at, kind } => {
                    let key = keys::timer(*at, task, id);
                    self.put(key.clone(), Pointer::encode_with(position, ordinal, &json(kind)?));
                    self.put(by_id, key);
                }
                TimerChange::Clear { .. } => self.remove(by_id),
            }
        }
        Ok(())
    }

    fn add_rows(&mut self, task: &TaskId, record: &Record, position: Position) -> Result<(), IndexError> {
        for (ordinal, change) in (0u64..).zip(&record.rows) {
            let (table, name) = change.name();
            let key = keys::row(table, task, name);
            match change {
                RowChange::Put { value, .. } => {
                    self.put(key, Pointer::encode_with(position, ordinal, &json(value)?));
                }
                RowChange::Remove { .. } => self.remove(key),
            }
        }
        Ok(())
    }

    /// Remembers the incoming message, and forgets the one that left the window.
    fn add_cause(&mut self, record: &Record) -> Result<(), IndexError> {
        if let Some(cause) = &record.cause {
            self.put(keys::seen(cause), record.sequence.to_be_bytes().to_vec());
            self.put(keys::seen_by_sequence(record.sequence), cause.as_str().as_bytes().to_vec());
        }
        let Some(leaving) = record.sequence.checked_sub(SEEN_RECORDS) else { return Ok(()) };
        let by_sequence = keys::seen_by_sequence(leaving);
        let Some(id) = self.get(&by_sequence)? else { return Ok(()) };
        let id = std::str::from_utf8(&id).ok().and_then(|id| id.parse().ok());
        let id: MessageId = id.ok_or_else(|| IndexError::Damaged("a message id can't be read".to_owned()))?;
        self.forget_seen(by_sequence, leaving, &id)
    }

    fn forget_seen(&mut self, by_sequence: Vec<u8>, sequence: u64, id: &MessageId) -> Result<(), IndexError> {
        self.remove(by_sequence);
        // The same message may have come again since: then it stays for the newer record.
        let seen = keys::seen(id);
        if self.get(&seen)?.as_deref() == Some(sequence.to_be_bytes().as_slice()) {
            self.remove(seen);
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        match self.changes.get(key) {
            Some(changed) => Ok(changed.clone()),
            None => self.index.get(key),
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.change(key, Some(value));
    }

    fn remove(&mut self, key: Vec<u8>) {
        if !self.is_fresh {
            self.change(key, None);
        } else if let Some(older) = self.changes.remove(&key) {
            self.bytes -= key.len() + older.map_or(0, |value| value.len());
        }
    }

    fn change(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key_bytes = key.len();
        self.bytes += key_bytes + value.as_ref().map_or(0, Vec::len);
        if let Some(older) = self.changes.insert(key, value) {
            self.bytes -= key_bytes + older.map_or(0, |value| value.len());
        }
    }
}

/// The event of a record of the store's own.
fn event_of<T: DeserializeOwned>(record: &Record) -> Result<T, IndexError> {
    serde_json::from_value(record.event.clone())
        .map_err(|error| IndexError::Damaged(format!("record {} can't be read: {error}", record.sequence)))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, IndexError> {
    let mut text = Vec::with_capacity(512);
    serde_json::to_writer(&mut text, value).map_err(|error| IndexError::Damaged(error.to_string()))?;
    Ok(text)
}

#[cfg(test)]
mod tests;
