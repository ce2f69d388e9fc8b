//! Which blobs and checkpoints the records of a journal name.
//!
//! Follows every reference to the last blob; what it can't follow is told, not
//! passed over. Reads blobs only to see what they name.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use checkrein_shared::blob;
use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::CheckpointRef;
use serde::Deserialize as _;

use crate::engine::read_state;
use crate::gc::refs::{self, Kind, Refs};
use crate::gc::seen::Seen;
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
    /// What must be there; the same bytes may be several things.
    sure: HashSet<(Kind, Digest)>,
    /// What may be a reference.
    maybe: HashSet<Digest>,
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
        of_task.sure.extend(sure);
        of_task.maybe.extend(maybe);
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
        let (mut seen, mut lying) = (Seen::default(), HashSet::new());
        // What is sure comes last, so that it is taken first.
        let maybe = self.tasks.values().flat_map(|of_task| &of_task.maybe);
        let sure = self.tasks.values().flat_map(|of_task| &of_task.sure);
        let maybe = maybe.map(|digest| (Kind::Unknown, *digest, false));
        let mut open: Vec<(Kind, Digest, bool)> =
            maybe.chain(sure.map(|(kind, digest)| (*kind, *digest, true))).collect();
        while let Some((kind, digest, sure)) = open.pop() {
            if !seen.meet(kind, digest, sure) {
                continue;
            }
            match names(root, kind, digest) {
                Ok(Some(refs)) => {
                    lying.insert(digest);
                    open.extend(refs.maybe.into_iter().map(|digest| (Kind::Unknown, digest, false)));
                    open.extend(refs.sure.into_iter().map(|(kind, digest)| (kind, digest, true)));
                }
                Ok(None) if !sure => {}
                Ok(None) => damage(digest, format!("it is missing, and it is one of the {}", kind.name())),
                Err(why) if sure => damage(digest, format!("{why}; it is one of the {}", kind.name())),
                Err(_) => {}
            }
        }
        lying.into_iter().collect()
    }
}

/// What a blob names; `None` where there is no such blob.
fn names(root: &Path, kind: Kind, digest: Digest) -> Result<Option<Refs>, String> {
    if !kind.is_read() {
        let size = blob::size_in(root, digest).map_err(|error| with_causes(&error))?;
        return Ok(size.map(|_| Refs::default()));
    }
    match blob::read_from(root, digest, READ_BYTES_MAX) {
        Ok(bytes) => refs::of_blob(kind, digest, &bytes).map(Some),
        Err(blob::Error::Missing(_)) => Ok(None),
        // An artifact that is too large to be a record names nothing.
        Err(blob::Error::TooLarge { .. }) if matches!(kind, Kind::Artifact | Kind::Unknown) => {
            Ok(Some(Refs::default()))
        }
        Err(error) => Err(with_causes(&error)),
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

#[cfg(test)]
mod tests {
    use checkrein_shared::blob::{Blobs as _, FsBlobs};
    use checkrein_shared::tree::{Content, Entry, Manifest, Mode, node};

    use super::*;

    fn tree(path: &str, bytes: &[u8]) -> Manifest {
        let (digest, size) = (Digest::of(bytes), bytes.len() as u64);
        let file = Entry::File { digest, size, mode: Mode::from_bits(0o644), content: Content::Stored };
        Manifest::new([(path.parse().unwrap(), file)].into()).unwrap()
    }

    #[tokio::test]
    async fn a_file_with_the_bytes_of_a_directory_hides_nothing_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FsBlobs::open(folder.path()).unwrap();
        // What lies below is gone, and that must show.
        let gone = Digest::of(b"precious");
        let root = node::store_tree(&blobs, &tree("notes.txt", b"precious"), None).await.unwrap();
        let twin = tree("twin", &blobs.get(root, 1 << 20).await.unwrap());
        let other = node::store_tree(&blobs, &twin, None).await.unwrap();
        let mut named = Named::default();
        let mut task = |id: &str, sure: &[(Kind, Digest)]| {
            let of_task = OfTask { sure: sure.iter().copied().collect(), ..OfTask::default() };
            named.tasks.insert(id.parse().unwrap(), of_task);
        };
        task("t-1", &[(Kind::Tree, root), (Kind::File, root)]);
        task("t-2", &[(Kind::Tree, other), (Kind::Evidence, root)]);
        let mut missing = Vec::new();
        let lying = named.blobs(folder.path(), &mut |digest, _| missing.push(digest));
        assert_eq!(missing, [gone]);
        assert_eq!(lying.into_iter().collect::<HashSet<_>>(), HashSet::from([root, other]));
    }
}
