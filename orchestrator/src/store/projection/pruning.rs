//! What forgetting tasks and dropping segments mean for the index.
//!
//! Afterwards it is the same index that a rebuild from the pruned journal makes.

use checkrein_shared::ids::{MessageId, TaskId};

use super::{Projection, event_of, json};
use crate::store::index::IndexError;
use crate::store::journal::Position;
use crate::store::keys::{self, Pointer};
use crate::store::model::Record;
use crate::store::prune::{Pruned, Tombstones};

/// How many changed keys are collected before they are written: a long task has many.
const CHANGES_MAX: usize = 20_000;

/// Keys and values.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

impl Projection<'_> {
    /// Removes everything of the tasks but their tombstones.
    pub(super) fn forget(&mut self, record: &Record, position: Position) -> Result<(), IndexError> {
        let Tombstones { tombstones } = event_of(record)?;
        for tombstone in &tombstones {
            self.forget_task(&tombstone.task)?;
        }
        self.add_tombstones(record, position)
    }

    /// Notes tombstones at their newest place.
    pub(super) fn add_tombstones(&mut self, record: &Record, position: Position) -> Result<(), IndexError> {
        let Tombstones { tombstones } = event_of(record)?;
        for (ordinal, tombstone) in (0u64..).zip(&tombstones) {
            let pointer = Pointer::encode_with(position, ordinal, &json(tombstone)?);
            self.put(keys::tombstone(&tombstone.task), pointer);
        }
        Ok(())
    }

    /// Notes where the chain begins, and forgets places and messages of what is gone.
    pub(super) fn move_front(&mut self, record: &Record) -> Result<(), IndexError> {
        let Pruned { front, .. } = event_of(record)?;
        self.put(keys::FRONT.to_vec(), json(&front)?);
        for (place, _) in self.entries(keys::places_until(front.head.count))? {
            self.remove(place);
        }
        for (by_sequence, id) in self.entries(keys::seen_until(front.head.count))? {
            let sequence = keys::seen_sequence_of(&by_sequence);
            let id = std::str::from_utf8(&id).ok().and_then(|id| id.parse::<MessageId>().ok());
            let (Some(sequence), Some(id)) = (sequence, id) else {
                return Err(IndexError::Damaged("the note of an incoming message can't be read".to_owned()));
            };
            self.forget_seen(by_sequence, sequence, &id)?;
        }
        Ok(())
    }

    fn forget_task(&mut self, task: &TaskId) -> Result<(), IndexError> {
        self.remove(keys::task(task));
        for (event, _) in self.entries(keys::events_of(task))? {
            self.remove(event);
        }
        for (by_id, timer) in self.entries(keys::timers_of(task))? {
            self.remove(timer);
            self.remove(by_id);
        }
        self.forget_messages(task)?;
        let mut table: Option<String> = None;
        while let Some(next) = self.next_table(table.as_deref())? {
            for (row, _) in self.entries(keys::rows_after(&next, Some(task), None))? {
                self.remove(row);
            }
            table = Some(next);
        }
        self.flush_if_large()
    }

    /// A task that is over rarely has messages left, so those that wait are looked through.
    fn forget_messages(&mut self, task: &TaskId) -> Result<(), IndexError> {
        let (from, to) = keys::outbox_range();
        for (key, value) in self.entries((from, to))? {
            let pointer = Pointer::decode(&value);
            let message = pointer
                .and_then(|pointer| pointer.inline)
                .and_then(|text| serde_json::from_slice::<(TaskId, crate::store::model::OutgoingMessage)>(&text).ok());
            // A message that is too large to lie here is sent or given up like any other; its task is unknown then.
            if let Some((_, message)) = message.filter(|(of, _)| of == task) {
                self.remove(key);
                self.remove(keys::outbox_by_id(&message.id));
            }
        }
        Ok(())
    }

    fn next_table(&mut self, after: Option<&str>) -> Result<Option<String>, IndexError> {
        self.flush()?;
        let (from, to) = keys::next_table(after);
        let mut found = None;
        self.index.visit(&from, &to, &mut |key, _| {
            found = keys::table_of(key).map(str::to_owned);
            Ok(false)
        })?;
        Ok(found)
    }

    /// What lies in a range now, with everything that was collected so far.
    fn entries(&mut self, (from, to): (Vec<u8>, Vec<u8>)) -> Result<Entries, IndexError> {
        self.flush()?;
        let mut found = Entries::new();
        self.index.visit(&from, &to, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(true)
        })?;
        Ok(found)
    }

    /// Writes what was collected. The index still says that it holds the records before this one; doing this one
    /// again after a crash comes to the same.
    fn flush(&mut self) -> Result<(), IndexError> {
        if self.changes.is_empty() {
            return Ok(());
        }
        (self.bytes, self.is_fresh) = (0, false);
        self.index.apply(std::mem::take(&mut self.changes), self.head)
    }

    fn flush_if_large(&mut self) -> Result<(), IndexError> {
        if self.changes.len() > CHANGES_MAX { self.flush() } else { Ok(()) }
    }
}
