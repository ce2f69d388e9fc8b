//! The keys and values of the index, as bytes.
//!
//! All lie in one ordered map, so that one batch changes them together. The first
//! byte says what a key is; numbers are big-endian, so that byte order is their
//! order; texts end with a zero byte, which no id contains.

use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;

use super::journal::Position;
use super::model::TimerId;

/// The largest value; sled keeps larger ones where it never syncs them. What does
/// not fit is read from its journal record instead.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// The index's own mark: see [`super::index::Mark`].
pub(super) const MARK: &[u8] = b"!";

/// Where the journal begins, as far as the index knows; missing where nothing was ever pruned.
pub(super) const FRONT: &[u8] = b"#";

const TASK: u8 = b'a';
const EVENT: u8 = b'e';
const TOMBSTONE: u8 = b'g';
const OUTBOX: u8 = b'o';
const OUTBOX_BY_ID: u8 = b'p';
const SEEN: u8 = b's';
const SEEN_BY_SEQUENCE: u8 = b'r';
const TIMER: u8 = b't';
const TIMER_BY_ID: u8 = b'u';
const ROW: u8 = b'w';
const PLACE: u8 = b'x';

/// How many events share a key: their places fit easily into a value.
const EVENTS_EACH: u64 = 64;

/// Every how many records the index notes where one lies.
const PLACE_EVERY: u64 = 64;

fn key(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(kind);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// A task's newest state.
pub(super) fn task(task: &TaskId) -> Vec<u8> {
    key(TASK, &[task.as_str().as_bytes()])
}

/// All tasks after `after`.
pub(super) fn tasks_after(after: Option<&TaskId>) -> (Vec<u8>, Vec<u8>) {
    let from = after.map_or_else(|| vec![TASK], |after| key(TASK, &[after.as_str().as_bytes(), b"\0"]));
    (from, vec![TASK + 1])
}

/// Reads the task out of the key of its state.
pub(super) fn task_of(key: &[u8]) -> Option<TaskId> {
    text(key.get(1..)?)?.parse().ok()
}

/// Where a task's events lie: some that follow each other share a key. Versions count from 1.
pub(super) fn event(task: &TaskId, version: u64) -> Vec<u8> {
    let (group, _) = event_place(version);
    key(EVENT, &[task.as_str().as_bytes(), b"\0", &group.to_be_bytes()])
}

/// The group that an event belongs to, and its place in it.
pub(super) fn event_place(version: u64) -> (u64, usize) {
    let before = version.saturating_sub(1);
    (before / EVENTS_EACH, usize::try_from(before % EVENTS_EACH).expect("a remainder is small"))
}

/// Reads the version of the first event of the group out of its key.
pub(super) fn first_version_of(key: &[u8]) -> Option<u64> {
    let (_, group) = key.split_last_chunk::<8>()?;
    u64::from_be_bytes(*group).checked_mul(EVENTS_EACH)?.checked_add(1)
}

/// Where all of a task's events lie.
pub(super) fn events_of(task: &TaskId) -> (Vec<u8>, Vec<u8>) {
    below(EVENT, &[task.as_str().as_bytes()])
}

/// What is left of a forgotten task.
pub(super) fn tombstone(task: &TaskId) -> Vec<u8> {
    key(TOMBSTONE, &[task.as_str().as_bytes()])
}

/// All tombstones after that of `after`.
pub(super) fn tombstones_after(after: Option<&TaskId>) -> (Vec<u8>, Vec<u8>) {
    let from = after.map_or_else(|| vec![TOMBSTONE], |after| key(TOMBSTONE, &[after.as_str().as_bytes(), b"\0"]));
    (from, vec![TOMBSTONE + 1])
}

/// Everything whose key begins with these parts, each with its end.
fn below(kind: u8, parts: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
    let mut from = vec![kind];
    for part in parts {
        from.extend_from_slice(part);
        from.push(0);
    }
    let mut to = from.clone();
    to.pop();
    to.push(1);
    (from, to)
}

/// A message that waits: by the record that it follows from, and its place in it.
pub(super) fn outbox(sequence: u64, ordinal: u16) -> Vec<u8> {
    key(OUTBOX, &[&sequence.to_be_bytes(), &ordinal.to_be_bytes()])
}

/// All messages that wait.
pub(super) fn outbox_range() -> (Vec<u8>, Vec<u8>) {
    (vec![OUTBOX], vec![OUTBOX + 1])
}

/// Reads sequence and ordinal out of a waiting message's key.
pub(super) fn outbox_of(key: &[u8]) -> Option<(u64, u16)> {
    let (sequence, ordinal) = key.get(1..)?.split_at_checked(8)?;
    Some((u64::from_be_bytes(sequence.try_into().ok()?), u16::from_be_bytes(ordinal.try_into().ok()?)))
}

/// The key of a waiting message, by its id.
pub(super) fn outbox_by_id(id: &MessageId) -> Vec<u8> {
    key(OUTBOX_BY_ID, &[id.as_str().as_bytes()])
}

/// The record that an incoming message caused.
pub(super) fn seen(id: &MessageId) -> Vec<u8> {
    key(SEEN, &[id.as_str().as_bytes()])
}

/// The incoming message that caused a record.
pub(super) fn seen_by_sequence(sequence: u64) -> Vec<u8> {
    key(SEEN_BY_SEQUENCE, &[&sequence.to_be_bytes()])
}

/// All incoming messages that caused records up to `sequence`.
pub(super) fn seen_until(sequence: u64) -> (Vec<u8>, Vec<u8>) {
    (vec![SEEN_BY_SEQUENCE], seen_by_sequence(sequence.saturating_add(1)))
}

/// Reads the record's number out of the key of an incoming message.
pub(super) fn seen_sequence_of(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..)?.try_into().ok()?))
}

/// A timer, by when it is due.
pub(super) fn timer(at: Timestamp, task: &TaskId, id: &TimerId) -> Vec<u8> {
    // Timestamps are never negative.
    key(TIMER, &[&at.as_millis().to_be_bytes(), task.as_str().as_bytes(), b"\0", id.as_str().as_bytes()])
}

/// All timers that are due at `now`.
pub(super) fn timers_until(now: Option<Timestamp>) -> (Vec<u8>, Vec<u8>) {
    let end = now.and_then(|now| now.as_millis().checked_add(1));
    (vec![TIMER], end.map_or_else(|| vec![TIMER + 1], |end| key(TIMER, &[&end.to_be_bytes()])))
}

/// Reads a timer's key.
pub(super) fn timer_of(key: &[u8]) -> Option<(Timestamp, TaskId, TimerId)> {
    let (at, names) = key.get(1..)?.split_at_checked(8)?;
    let split = names.iter().position(|b| *b == 0)?;
    let at = Timestamp::from_millis(i64::from_be_bytes(at.try_into().ok()?));
    Some((at, text(&names[..split])?.parse().ok()?, text(&names[split + 1..])?.parse().ok()?))
}

/// When a timer is due, by its name.
pub(super) fn timer_by_id(task: &TaskId, id: &TimerId) -> Vec<u8> {
    key(TIMER_BY_ID, &[task.as_str().as_bytes(), b"\0", id.as_str().as_bytes()])
}

/// All timers of a task by their names.
pub(super) fn timers_of(task: &TaskId) -> (Vec<u8>, Vec<u8>) {
    below(TIMER_BY_ID, &[task.as_str().as_bytes()])
}

/// The first row of any table after `table`; the first of all where there is none.
pub(super) fn next_table(table: Option<&str>) -> (Vec<u8>, Vec<u8>) {
    let from = table.map_or_else(|| vec![ROW], |table| below(ROW, &[table.as_bytes()]).1);
    (from, vec![ROW + 1])
}

/// Reads the table out of a row's key.
pub(super) fn table_of(key: &[u8]) -> Option<&str> {
    text(key.get(1..)?.split(|b| *b == 0).next()?)
}

/// A row of a task. The parts must be valid names: none contains the zero byte.
pub(super) fn row(table: &str, task: &TaskId, name: &str) -> Vec<u8> {
    key(ROW, &[table.as_bytes(), b"\0", task.as_str().as_bytes(), b"\0", name.as_bytes()])
}

/// All rows of a table after one; only those of one task where it is given.
pub(super) fn rows_after(table: &str, task: Option<&TaskId>, after: Option<(&TaskId, &str)>) -> (Vec<u8>, Vec<u8>) {
    let table_bytes = table.as_bytes();
    let (mut from, to) = match task {
        Some(task) => {
            let task = task.as_str().as_bytes();
            (key(ROW, &[table_bytes, b"\0", task, b"\0"]), key(ROW, &[table_bytes, b"\0", task, b"\x01"]))
        }
        None => (key(ROW, &[table_bytes, b"\0"]), key(ROW, &[table_bytes, b"\x01"])),
    };
    if let Some((task, name)) = after {
        let mut next = row(table, task, name);
        next.push(0);
        from = from.max(next);
    }
    (from, to)
}

/// Reads task and name out of a row's key.
pub(super) fn row_of(key: &[u8]) -> Option<(TaskId, String)> {
    let mut parts = key.get(1..)?.split(|b| *b == 0).skip(1);
    let (task, name) = (text(parts.next()?)?.parse().ok()?, text(parts.next()?)?.to_owned());
    parts.next().is_none().then_some((task, name))
}

/// Where every 64th record lies: the newest at or before `sequence`.
pub(super) fn place(sequence: u64) -> Vec<u8> {
    key(PLACE, &[&place_of(sequence).to_be_bytes()])
}

/// The places of all records up to `sequence`.
pub(super) fn places_until(sequence: u64) -> (Vec<u8>, Vec<u8>) {
    (vec![PLACE], key(PLACE, &[&sequence.saturating_add(1).to_be_bytes()]))
}

/// The number of the record whose place is noted at or before `sequence`.
pub(super) fn place_of(sequence: u64) -> u64 {
    sequence.saturating_sub(1) / PLACE_EVERY * PLACE_EVERY + 1
}

/// Whether the index notes where this record lies.
pub(super) fn has_place(sequence: u64) -> bool {
    sequence % PLACE_EVERY == 1
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// A place in the journal, and whatever of the record is worth having at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) position: Position,
    /// The version of the task, or the ordinal of the message or timer in its record.
    pub(super) number: u64,
    /// JSON, where it fits; else it is read from the record.
    pub(super) inline: Option<Vec<u8>>,
}

impl Position {
    /// How many bytes a place takes.
    pub(super) const BYTES: usize = 4 + 8 + 4;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.segment.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.offset.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let (segment, rest) = bytes.split_first_chunk::<4>().expect("16 bytes begin with 4");
        let (offset, length) = rest.split_first_chunk::<8>().expect("12 bytes begin with 8");
        let length = length.first_chunk::<4>().expect("4 bytes are left");
        Self {
            segment: u32::from_be_bytes(*segment),
            offset: u64::from_be_bytes(*offset),
            length: u32::from_be_bytes(*length),
        }
    }
}

const POINTER_BYTES: usize = Position::BYTES + 8;

impl Pointer {
    /// The bytes of a pointer; `inline` is left out where it does not fit.
    pub(super) fn encode_with(position: Position, number: u64, inline: &[u8]) -> Vec<u8> {
        let inline = if POINTER_BYTES + inline.len() <= VALUE_BYTES_MAX { inline } else { &[] };
        let mut bytes = Vec::with_capacity(POINTER_BYTES + inline.len());
        bytes.extend_from_slice(&position.encode());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(inline);
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (position, rest) = bytes.split_first_chunk::<{ Position::BYTES }>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let position = Position::decode(position);
        let inline = (!rest.is_empty()).then(|| rest.to_vec());
        Some(Self { position, number: u64::from_be_bytes(*number), inline })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timers_sort_by_time_and_the_range_ends_with_now() {
        let (task, id) = ("t-1".parse().unwrap(), "lease/1".parse().unwrap());
        let at = |millis| timer(Timestamp::from_millis(millis), &task, &id);
        let (from, to) = timers_until(Some(Timestamp::from_millis(256)));
        assert!(from < at(0) && at(0) < at(255) && at(255) < at(256) && at(256) < to && to < at(257));
        assert_eq!(timer_of(&at(256)), Some((Timestamp::from_millis(256), task, id)));
    }

    #[test]
    fn a_task_whose_name_begins_with_another_ones_is_listed_after_it() {
        let (short, long): (TaskId, TaskId) = ("t-1".parse().unwrap(), "t-1-a".parse().unwrap());
        let (from, to) = tasks_after(Some(&short));
        assert!(task(&short) < from && from < task(&long) && task(&long) < to);
        assert_eq!(task_of(&task(&long)), Some(long));
    }

    #[test]
    fn rows_are_listed_by_task_and_name_and_never_mixed_with_other_tables() {
        let (short, long): (TaskId, TaskId) = ("t-1".parse().unwrap(), "t-1-a".parse().unwrap());
        let (from, to) = rows_after("effect", None, None);
        let listed = [row("effect", &short, "a"), row("effect", &short, "b"), row("effect", &long, "a")];
        assert!(from < listed[0] && listed.is_sorted() && listed[2] < to);
        assert!(row("effec", &short, "z") < from && to < row("effects", &short, "a"));
        let (from, to) = rows_after("effect", Some(&short), None);
        assert!(from < listed[0] && listed[1] < to && to < listed[2]);
        let (from, _) = rows_after("effect", None, Some((&short, "a")));
        assert!(listed[0] < from && from < listed[1]);
        // A place in another task's rows does not lead out of the one that was asked for.
        assert!(rows_after("effect", Some(&long), Some((&short, "a"))).0 > listed[1]);
        assert_eq!(row_of(&listed[2]), Some((long, "a".to_owned())));
    }

    #[test]
    fn events_that_follow_each_other_share_a_key() {
        let task: TaskId = "t-1".parse().unwrap();
        assert_eq!(event(&task, 1), event(&task, 64));
        assert!(event(&task, 64) < event(&task, 65) && event(&task, 65) < event(&task, u64::MAX));
        assert_eq!((event_place(1), event_place(64), event_place(65)), ((0, 0), (0, 63), (1, 0)));
        assert_eq!(first_version_of(&event(&task, 130)), Some(129));
        assert!(EVENTS_EACH as usize * Position::BYTES <= VALUE_BYTES_MAX);
    }

    #[test]
    fn places_are_noted_for_the_first_of_every_64_records() {
        assert!(has_place(1) && has_place(65) && !has_place(64));
        assert_eq!(place(64), place(1));
        assert_eq!(place(65), place(128));
        assert_ne!(place(64), place(65));
    }

    proptest! {
        #[test]
        fn pointers_survive_a_round_trip_within_the_limit(segment: u32, offset: u64, length: u32, number: u64, size in 0..5000usize) {
            let position = Position { segment, offset, length };
            let bytes = Pointer::encode_with(position, number, &vec![b'7'; size]);
            prop_assert!(bytes.len() <= VALUE_BYTES_MAX);
            let fits = size > 0 && POINTER_BYTES + size <= VALUE_BYTES_MAX;
            let pointer = Pointer { position, number, inline: fits.then(|| vec![b'7'; size]) };
            prop_assert_eq!(Pointer::decode(&bytes), Some(pointer));
        }
    }
}
