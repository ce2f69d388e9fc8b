//! Forgetting tasks, and dropping what only they needed.
//!
//! The order is what makes it safe: what is still needed is written anew, then a
//! record names what goes, then the index is made durable, and only then are
//! files removed, oldest first. Opening finishes what a crash has left.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use async_trait::async_trait;
use checkrein_shared::digest::Hasher;
use checkrein_shared::ids::TaskId;
use checkrein_shared::time::Timestamp;
use serde::Serialize;
use tokio::sync::oneshot;

use super::appender::{Command, Own};
use super::shared::Shared;
use super::{LocalStore, open, read};
use crate::store::error::{CommitError, Error};
use crate::store::index::{Index, IndexError};
use crate::store::journal::{self, Front, Head, Scan};
use crate::store::keys;
use crate::store::model::Record;
use crate::store::projection::DELIVERED;
use crate::store::prune::{
    CARRIED, DroppedSegment, FORGOTTEN, Forget, NOTE_BYTES_MAX, PRUNED, Prune, Pruned, SEGMENTS_MAX, TOMBSTONES_MAX,
    Tombstone, Tombstones,
};

#[async_trait]
impl Prune for LocalStore {
    async fn forget(&self, tasks: Vec<Forget>, at: Timestamp) -> Result<(), CommitError> {
        for chunk in tasks.chunks(TOMBSTONES_MAX) {
            let chunk = chunk.to_vec();
            let forgets = chunk.iter().map(|forget| (forget.task.clone(), forget.version)).collect();
            let tombstones = self.reading(move |shared| tombstones_for(shared, chunk, at)).await?;
            let tombstones = tombstones.map_err(|actual| CommitError::Conflict { actual })?;
            self.write_own(FORGOTTEN, at, &Tombstones { tombstones }, forgets).await?;
        }
        Ok(())
    }

    async fn tombstone(&self, task: &TaskId) -> Result<Option<Tombstone>, Error> {
        let value = self.shared.with_index(|index| index.get(&keys::tombstone(task)).map_err(Error::Index))?;
        value.map(|value| read_tombstone(&self.shared, &value)).transpose()
    }

    async fn tombstones(&self, after: Option<&TaskId>, limit: usize) -> Result<Vec<Tombstone>, Error> {
        let range = keys::tombstones_after(after);
        self.reading(move |shared| {
            let found = read::collect(shared, &range.0, &range.1, limit)?;
            found.iter().map(|(_, value)| read_tombstone(shared, value)).collect()
        })
        .await
    }

    async fn droppable(&self) -> Result<Vec<DroppedSegment>, Error> {
        let folder = open::journal_folder(self.folder());
        self.reading(move |shared| droppable(shared, &folder).map(|(_, segments)| segments)).await
    }

    async fn drop_front(&self, at: Timestamp) -> Result<Vec<DroppedSegment>, CommitError> {
        // One at a time: two would name the same segments.
        let _alone = self.pruning.lock().await;
        let folder = open::journal_folder(self.folder());
        let journal_folder = folder.clone();
        let (before, segments) = self.reading(move |shared| droppable(shared, &journal_folder)).await?;
        let Some(last) = segments.last() else { return Ok(segments) };
        let front =
            Front { segment: last.segment.saturating_add(1), head: Head { count: last.last, hash: Some(last.hash) } };
        let carried = self.reading(move |shared| tombstones_before(shared, front.segment)).await?;
        for chunk in carried.chunks(TOMBSTONES_MAX) {
            self.write_own(CARRIED, at, &Tombstones { tombstones: chunk.to_vec() }, Vec::new()).await?;
        }
        self.write_own(PRUNED, at, &Pruned { before, front, segments: segments.clone() }, Vec::new()).await?;
        self.reading(move |shared| {
            // Without the old segments an index that a power cut has set back could not be brought up to date.
            shared.with_index(|index| index.checkpoint().map_err(Error::Index))?;
            shared.reader.close_before(front.segment);
            journal::remove_before(&folder, front)
        })
        .await?;
        Ok(segments)
    }
}

impl LocalStore {
    async fn write_own<T: Serialize + Sync>(
        &self,
        kind: &'static str,
        at: Timestamp,
        event: &T,
        forgets: Vec<(TaskId, u64)>,
    ) -> Result<(), CommitError> {
        let event = serde_json::to_value(event).expect("tombstones and segments are plain data");
        let (reply, answer) = oneshot::channel();
        self.send(Command::Own { own: Box::new(Own { kind, at, event, forgets }), reply }).await?;
        answer.await.unwrap_or(Err(CommitError::Store(Error::Closed))).map(|_| ())
    }
}

/// The tombstones of tasks; where one has another version than expected, that version.
fn tombstones_for(shared: &Shared, tasks: Vec<Forget>, at: Timestamp) -> Result<Result<Vec<Tombstone>, u64>, Error> {
    let mut tombstones = Vec::new();
    for Forget { task, version, mut note } in tasks {
        let last = read::events(shared, &task, version.saturating_sub(1), 2)?;
        let [last] = last.as_slice() else {
            return Ok(Err(read::load(shared, &task)?.map_or(0, |stored| stored.version)));
        };
        if note.to_string().len() > NOTE_BYTES_MAX {
            note = serde_json::Value::Null;
        }
        tombstones.push(Tombstone { task, records: version, last_hash: last.hash, forgotten_at: at, note });
    }
    Ok(Ok(tombstones))
}

fn read_tombstone(shared: &Shared, value: &[u8]) -> Result<Tombstone, Error> {
    let pointer = read::pointer(value)?;
    if let Some(text) = &pointer.inline {
        return read::inline(text);
    }
    let event = shared.reader.read(pointer.position)?.record.event;
    let tombstones: Tombstones = serde_json::from_value(event).map_err(|_| read::unreadable("a tombstone"))?;
    let ordinal = usize::try_from(pointer.number).unwrap_or(usize::MAX);
    tombstones.tombstones.into_iter().nth(ordinal).ok_or_else(|| read::unreadable("a tombstone"))
}

/// The tombstones that lie in segments before this one.
fn tombstones_before(shared: &Shared, segment: u32) -> Result<Vec<Tombstone>, Error> {
    let (from, to) = keys::tombstones_after(None);
    let lying = read::collect(shared, &from, &to, usize::MAX)?;
    let mut carried = Vec::new();
    for (_, value) in lying {
        if read::pointer(&value)?.position.segment < segment {
            carried.push(read_tombstone(shared, &value)?);
        }
    }
    Ok(carried)
}

/// Where the journal begins, and the segments from there on that nobody needs.
fn droppable(shared: &Shared, folder: &Path) -> Result<(Front, Vec<DroppedSegment>), Error> {
    let front = shared.with_index(|index| open::front_of(index).map_err(Error::Index))?.unwrap_or_default();
    let needed = shared.with_index(first_needed)?;
    let numbers = journal::list(folder)?;
    let last = numbers.last().copied().unwrap_or(front.segment);
    let (mut before, mut found) = (front.head, Vec::new());
    for number in (front.segment..last).take_while(|number| *number < needed).take(SEGMENTS_MAX) {
        let mut scan = Scan::open(folder, number, Some(before))?;
        while let Some(entry) = scan.next_sound()? {
            let damaged =
                |what| Error::Damaged { segment: scan.path().to_owned(), line: 0, offset: entry.position.offset, what };
            if is_needed(shared, &entry.decode().map_err(damaged)?.record)? {
                return Ok((front, found));
            }
        }
        let (first, head) = (before.count + 1, scan.head());
        let Some(hash) = head.hash.filter(|_| head.count >= first) else { break };
        let (sha256, bytes) = whole_file(scan.path())?;
        found.push(DroppedSegment { bytes, first, hash, last: head.count, segment: number, sha256 });
        before = head;
    }
    Ok((front, found))
}

/// The first segment that a waiting message lies in.
fn first_needed(index: &Index) -> Result<u32, Error> {
    let (from, to) = keys::outbox_range();
    let mut first = u32::MAX;
    let mut look = |_: &[u8], value: &[u8]| {
        let pointer = keys::Pointer::decode(value);
        let pointer = pointer.ok_or_else(|| IndexError::Damaged("a pointer into the journal can't be read".into()))?;
        first = first.min(pointer.position.segment);
        Ok(true)
    };
    index.visit(&from, Some(&to), &mut look).map_err(Error::Index)?;
    Ok(first)
}

/// Records of tasks are needed until those are forgotten; of the store's own only what is carried.
fn is_needed(shared: &Shared, record: &Record) -> Result<bool, Error> {
    match &record.task {
        Some(task) => {
            let tombstone = shared.with_index(|index| index.get(&keys::tombstone(task)).map_err(Error::Index))?;
            Ok(tombstone.is_none())
        }
        None => Ok(![DELIVERED, FORGOTTEN, CARRIED, PRUNED].contains(&record.kind.as_str())),
    }
}

fn whole_file(path: &Path) -> Result<(checkrein_shared::digest::Digest, u64), Error> {
    let read = || {
        let (mut file, mut hasher, mut bytes) = (File::open(path)?, Hasher::new(), 0);
        let mut buffer = vec![0; 1 << 18];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok((hasher.finish(), bytes));
            }
            hasher.update(&buffer[..count]);
            bytes += count as u64;
        }
    };
    read().map_err(Error::io(format!("read {}", path.display())))
}
