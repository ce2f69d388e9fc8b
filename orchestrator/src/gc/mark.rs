//! Following every reference from the journal to the last blob.
//!
//! Reads the whole journal and every record and directory among the blobs, each
//! once; of files and artifacts only the names are kept. What can't be followed
//! is damage, and is collected, not passed over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::discriminant;
use std::time::Duration;

use checkrein_shared::blob::{self, Sweep};
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use checkrein_shared::time::Timestamp;

use super::refs::{self, Kind, Refs};
use super::seen::Seen;
use super::{Error, breathe};
use crate::engine::read_state;
use crate::lifecycle::{State, Task};
use crate::store::{Forget, Prune, Record};

/// How many records are read at a time.
const PAGE: usize = 64;

/// The largest blob that is read to see what it refers to: the largest directory.
const READ_BYTES_MAX: u64 = 64 << 20;

/// How many damaged blobs are named.
const DAMAGE_NAMED: usize = 20;

/// How much older than an attempt a blob may be that the attempt still counts on.
const MARGIN: Duration = Duration::from_secs(3_600);

/// What is referred to.
#[derive(Debug, Default)]
pub(super) struct Marked {
    blobs: Seen,
    /// What each task is doing, and since when.
    doing: BTreeMap<TaskId, (Doing, Timestamp)>,
    pub(super) damage: Damage,
}

/// Missing and damaged blobs.
#[derive(Debug, Default)]
pub(super) struct Damage {
    count: u64,
    first: Vec<String>,
}

impl Damage {
    pub(super) fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < DAMAGE_NAMED {
            self.first.push(what());
        }
    }

    pub(super) fn check(&mut self) -> Result<(), Error> {
        let Self { count, first } = std::mem::take(self);
        if count == 0 { Ok(()) } else { Err(Error::Damage { count, first }) }
    }
}

/// What an attempt or a round is recognised by.
type Doing = (std::mem::Discriminant<State>, u64, u32);

impl Marked {
    /// What refers to a blob.
    pub(super) fn kind(&self, digest: Digest) -> Option<Kind> {
        self.blobs.kind(digest)
    }

    /// Everything that must be there and begins with this byte.
    pub(super) fn required(&self, first: u8) -> HashSet<Digest> {
        self.blobs.required().filter(|digest| digest.as_bytes()[0] == first).collect()
    }

    /// Blobs from then on stay: those of an attempt or a review that goes on, however long it takes, are not referred
    /// to before it reports.
    pub(super) fn young_from(&self, now: Timestamp, young: Duration) -> Timestamp {
        let earlier = |at: Timestamp, by: Duration| {
            Timestamp::from_millis(at.as_millis().saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
        };
        let oldest = self.doing.values().map(|(_, since)| earlier(*since, MARGIN)).min();
        oldest.map_or(earlier(now, young), |oldest| oldest.min(earlier(now, young)))
    }

    /// Notes what a task does after a record; only work that may store blobs counts.
    fn note_doing(&mut self, record: &Record, task: &Task) {
        if !matches!(task.state, State::Running { .. } | State::Reviewing { .. } | State::Cancelling { .. }) {
            self.doing.remove(&task.id);
            return;
        }
        let doing: Doing = (discriminant(&task.state), task.epoch, task.round);
        match self.doing.get(&task.id) {
            Some((known, _)) if *known == doing => {}
            _ => drop(self.doing.insert(task.id.clone(), (doing, record.at))),
        }
    }
}

/// Marks everything that records refer to, but for those of tasks that are about to be pruned.
pub(super) async fn mark(
    store: &dyn Prune,
    blobs: &dyn Sweep,
    retired: &[Forget],
    rest: Duration,
) -> Result<Marked, Error> {
    let retired: HashSet<&TaskId> = retired.iter().map(|forget| &forget.task).collect();
    let mut forgotten: HashMap<TaskId, bool> = HashMap::new();
    let mut marked = Marked::default();
    let mut after = 0;
    loop {
        let page = store.records_after(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.record.sequence;
        for record in page.into_iter().map(|recorded| recorded.record) {
            let Some(id) = record.task.as_ref().filter(|id| !retired.contains(id)) else { continue };
            let is_forgotten = match forgotten.get(id) {
                Some(known) => *known,
                None => {
                    let gone = store.tombstone(id).await?.is_some();
                    forgotten.insert(id.clone(), gone);
                    gone
                }
            };
            if !is_forgotten {
                let task = read_state(id, record.state.clone())?;
                marked.note_doing(&record, &task);
                follow(blobs, refs::of_record(&record, &task), &mut marked).await?;
            }
        }
        breathe(rest).await;
    }
    Ok(marked)
}

/// Follows references, what is sure before what is not.
async fn follow(blobs: &dyn Sweep, refs: Refs, marked: &mut Marked) -> Result<(), Error> {
    let (mut sure, mut maybe) = (refs.sure, refs.maybe);
    loop {
        let (kind, digest, required) = match (sure.pop(), maybe.is_empty()) {
            (Some((kind, digest)), _) => (kind, digest, true),
            (None, false) => match maybe.pop() {
                Some(digest) => (Kind::Unknown, digest, false),
                None => continue,
            },
            (None, true) => return Ok(()),
        };
        if marked.blobs.meet(kind, digest, required) && kind.is_read() {
            let found = read(blobs, (kind, digest, required), &mut marked.damage).await?;
            sure.extend(found.sure);
            maybe.extend(found.maybe);
        }
    }
}

async fn read(
    blobs: &dyn Sweep,
    (kind, digest, required): (Kind, Digest, bool),
    damage: &mut Damage,
) -> Result<Refs, Error> {
    match blobs.get(digest, READ_BYTES_MAX).await {
        Ok(bytes) => match refs::of_blob(kind, digest, &bytes) {
            Ok(refs) => return Ok(refs),
            Err(why) => damage.add(|| format!("{digest} ({}): {why}", kind.name())),
        },
        // An artifact that is too large to be a record names nothing.
        Err(blob::Error::TooLarge { .. }) if matches!(kind, Kind::Artifact | Kind::Unknown) => {}
        Err(blob::Error::Missing(_)) if !required => {}
        Err(error @ blob::Error::Io { .. }) => return Err(error.into()),
        Err(error) => damage.add(|| format!("{digest} ({}): {error}", kind.name())),
    }
    Ok(Refs::default())
}

#[cfg(test)]
mod tests {
    use checkrein_shared::blob::{Blobs as _, FsBlobs};
    use checkrein_shared::tree::{Content, Entry, Manifest, Mode, node};

    use super::*;

    fn file(bytes: &[u8]) -> Entry {
        let (digest, size) = (Digest::of(bytes), bytes.len() as u64);
        Entry::File { digest, size, mode: Mode::from_bits(0o644), content: Content::Stored }
    }

    fn tree(path: &str, bytes: &[u8]) -> Manifest {
        Manifest::new([(path.parse().unwrap(), file(bytes))].into()).unwrap()
    }

    #[tokio::test]
    async fn a_file_with_the_bytes_of_a_kept_directory_hides_nothing_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FsBlobs::open(folder.path()).unwrap();
        let kept = tree("notes.txt", b"precious");
        let root = node::store_tree(&blobs, &kept, None).await.unwrap();
        let precious = blobs.put(b"precious").await.unwrap();
        // Another tree has a file whose content is the first tree's root.
        let twin = tree("twin", &blobs.get(root, 1 << 20).await.unwrap());
        let other = node::store_tree(&blobs, &twin, None).await.unwrap();
        for order in [[root, other], [other, root]] {
            let mut marked = Marked::default();
            let sure = order.map(|digest| (Kind::Tree, digest)).to_vec();
            follow(&blobs, Refs { sure, maybe: Vec::new() }, &mut marked).await.unwrap();
            marked.damage.check().unwrap();
            assert_eq!(marked.kind(precious), Some(Kind::File));
            assert!(marked.required(precious.as_bytes()[0]).contains(&precious));
        }
    }
}
