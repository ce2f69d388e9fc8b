//! Which blobs and checkpoints the records of a journal name.
//!
//! Follows every reference to the last blob; what it can't follow is told, not
//! passed over. Reads blobs only to see what they name.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use checkrein_shared::blob;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::CheckpointRef;
use serde::Deserialize as _;

use crate::engine::read_state;
use crate::gc::refs::{self, Kind, Refs};
use crate::lifecycle::{EventKind, Task};
use crate::store::Recorded;

/// The largest blob that is read to see what it names: the largest directory.
const READ_BYTES_MAX: u64 = 64 << 20;

/// What the records of a journal name, by task: a task that was forgotten names nothing any more.
#[derive(Debug, Default)]
pub(super) struct Named {
    tasks: BTreeMap<TaskId, OfTask>,
    /// States that can't be read.
    pub(super) unreadable: Vec<String>,
}

/// What the records of one task name.
#[derive(Debug, Default)]
pub(super) struct OfTask {
    /// Each with whether it must be there.
    blobs: HashMap<Digest, (Kind, bool)>,
    /// The chain, oldest first.
    pub(super) chain: Vec<CheckpointRef>,
    /// The end of the chain as the newest state says it.
    pub(super) head: Option<CheckpointRef>,
}

impl Named {
    /// Notes what a record names.
    pub(super) fn add(&mut self, recorded: &Recorded) {
        let record = &recorded.record;
        let Some(id) = &record.task else { return };
        let task = match read_state(id, record.state.clone()) {
            Ok(task) => task,
            Err(error) => return self.unreadable.push(format!("record {}: {error}", record.sequence)),
        };
        let of_task = self.tasks.entry(id.clone()).or_default();
        let Refs { sure, maybe } = refs::of_record(record, &task);
        for (kind, digest) in sure {
            of_task.blobs.insert(digest, (kind, true));
        }
        for digest in maybe {
            of_task.blobs.entry(digest).or_insert((Kind::Unknown, false));
        }
        of_task.lengthen(&record.event, task);
    }

    /// Keeps only tasks that the journal did not forget.
    pub(super) fn keep(&mut self, kept: &BTreeMap<TaskId, u64>) {
        self.tasks.retain(|task, _| kept.contains_key(task));
    }

    pub(super) fn tasks(&self) -> impl Iterator<Item = (&TaskId, &OfTask)> {
        self.tasks.iter()
    }

    /// Every blob that is named, also by other blobs; `damage` is told of those that must be there and are not.
    pub(super) fn blobs(&self, root: &Path, damage: &mut dyn FnMut(Digest, String)) -> Vec<Digest> {
        let mut seen: HashMap<Digest, bool> = HashMap::new();
        let mut open: Vec<(Kind, Digest, bool)> = Vec::new();
        for of_task in self.tasks.values() {
            open.extend(of_task.blobs.iter().map(|(digest, (kind, sure))| (*kind, *digest, *sure)));
        }
        // What is sure comes last, so that it is taken first.
        open.sort_by_key(|(_, _, sure)| *sure);
        while let Some((kind, digest, sure)) = open.pop() {
            if seen.get(&digest).is_some_and(|known| *known >= sure) {
                continue;
            }
            match names(root, kind, digest) {
                Ok(Some(refs)) => {
                    seen.insert(digest, sure);
                    open.extend(refs.maybe.into_iter().map(|digest| (Kind::Unknown, digest, false)));
                    open.extend(refs.sure.into_iter().map(|(kind, digest)| (kind, digest, true)));
                }
                Ok(None) if !sure => {}
                Ok(None) => damage(digest, format!("it is missing, and it is one of the {}", kind.name())),
                Err(why) if sure => damage(digest, format!("{why}; it is one of the {}", kind.name())),
                Err(_) => {}
            }
        }
        seen.into_keys().collect()
    }
}

/// What a blob names; `None` where there is no such blob.
fn names(root: &Path, kind: Kind, digest: Digest) -> Result<Option<Refs>, String> {
    if !kind.is_read() {
        let size = blob::size_in(root, digest).map_err(|error| crate::chain_of(&error))?;
        return Ok(size.map(|_| Refs::default()));
    }
    match blob::read_from(root, digest, READ_BYTES_MAX) {
        Ok(bytes) => refs::of_blob(kind, digest, &bytes).map(Some),
        Err(blob::Error::Missing(_)) => Ok(None),
        // An artifact that is too large to be a record names nothing.
        Err(blob::Error::TooLarge { .. }) if matches!(kind, Kind::Artifact | Kind::Unknown) => {
            Ok(Some(Refs::default()))
        }
        Err(error) => Err(crate::chain_of(&error)),
    }
}

impl OfTask {
    fn lengthen(&mut self, event: &serde_json::Value, task: Task) {
        if let Ok(EventKind::CheckpointWritten { checkpoint, record, .. }) = EventKind::deserialize(event) {
            self.push(CheckpointRef {
                id: checkpoint.checkpoint_id.clone(),
                hash: checkpoint.integrity.checkpoint_hash,
                sequence: checkpoint.sequence,
                record,
            });
        }
        if let Some(head) = &task.head {
            self.push(head.clone());
        }
        self.head = task.head;
    }

    fn push(&mut self, reference: CheckpointRef) {
        if self.chain.last().is_none_or(|last| last.sequence < reference.sequence) {
            self.chain.push(reference);
        }
    }
}
