//! The one thread that appends to the journal.
//!
//! It takes whatever waits, gives each record its place in the chain and in its
//! task, and puts all of them on the disk with one sync. It answers nobody whose
//! record went to the disk: the indexer does, once the record can be read.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use checkrein_shared::ids::{MessageId, TaskId};
use checkrein_shared::time::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use super::check;
use super::indexer::{Durable, Reply};
use super::shared::Shared;
use crate::store::error::{CommitError, Error};
use crate::store::journal::{HeadFile, Prepared, Writer};
use crate::store::keys;

/// How many records go to the disk together.
const BATCH_RECORDS_MAX: usize = 512;

/// How many bytes go to the disk together; one more record may exceed it.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// How many delivered messages one record names.
const DELIVERED_MAX: usize = 1_000;

/// From so many callers on, they are taken for a crowd.
const CROWD: usize = 8;

/// How long the appender waits for the rest of a crowd: half of what the next sync is going to take, within these
/// bounds, and looking so often.
const PATIENCE_MIN: Duration = Duration::from_micros(200);
const PATIENCE_MAX: Duration = Duration::from_millis(2);
const WAIT: Duration = Duration::from_micros(50);

/// Every how many records the head file is written, besides at each segment's birth.
const HEAD_EVERY: u64 = 10_000;

/// How many versions are remembered before those that the index holds are dropped.
const VERSIONS_MAX: usize = 4_096;

/// What the appender is asked for.
pub(super) enum Command {
    Commit { prepared: Box<Prepared>, expected_version: u64, reply: Reply },
    Delivered { ids: Vec<MessageId>, at: Timestamp },
    Own { own: Box<Own>, reply: Reply },
}

/// A record of the store's own that is about forgetting.
pub(super) struct Own {
    pub(super) kind: &'static str,
    pub(super) at: Timestamp,
    pub(super) event: Value,
    /// Tasks that are forgotten by it, and the version that each must have.
    pub(super) forgets: Vec<(TaskId, u64)>,
}

/// The version of a forgotten task: nobody can expect it.
const FORGOTTEN_VERSION: u64 = u64::MAX;

/// A record on its way to the disk, and who waits for it.
struct Staged {
    prepared: Prepared,
    reply: Option<Reply>,
}

pub(super) struct Appender {
    shared: Arc<Shared>,
    writer: Writer,
    head_file: HeadFile,
    /// The count that the head file says.
    head_written: u64,
    durable: SyncSender<Vec<Durable>>,
    /// Versions that the index may not have yet, each with the record that made it.
    versions: HashMap<TaskId, (u64, u64)>,
    /// Delivered messages that no record names yet.
    delivered: Vec<MessageId>,
    delivered_at: Option<Timestamp>,
    /// How many callers there were when the last batch went to the disk.
    crowd: usize,
    /// How long the last batch took to get there.
    took: Duration,
}

impl Appender {
    pub(super) fn new(
        shared: Arc<Shared>,
        writer: Writer,
        head_file: HeadFile,
        durable: SyncSender<Vec<Durable>>,
    ) -> Self {
        Self {
            shared,
            head_written: 0,
            writer,
            head_file,
            durable,
            versions: HashMap::new(),
            delivered: Vec::new(),
            delivered_at: None,
            crowd: 0,
            took: Duration::ZERO,
        }
    }

    /// Works until nobody can send commands any more, then leaves a clean end.
    pub(super) fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(first) = commands.blocking_recv() {
            let mut batch = Vec::new();
            let mut versions = HashMap::new();
            let (mut bytes, begun) = (0, Instant::now());
            let mut next = Some(first);
            while let Some(command) = next {
                bytes += self.stage(command, &mut batch, &mut versions);
                let full = batch.len() >= BATCH_RECORDS_MAX || bytes >= BATCH_BYTES_MAX;
                next = if full { None } else { self.more(&mut commands, batch.len(), begun) };
            }
            let (staged, unanswered) = (batch.len(), self.shared.unanswered.load(Ordering::Relaxed));
            self.stage_delivered(&mut batch);
            if !batch.is_empty() {
                self.append(batch, versions);
            }
            // Who came while the disk was busy, and who has no answer yet, is there as well.
            self.crowd = staged + unanswered + commands.len();
        }
        // Notes that could not be written with the last batch get one more chance.
        let mut batch = Vec::new();
        self.stage_delivered(&mut batch);
        if !batch.is_empty() {
            self.append(batch, HashMap::new());
        }
        self.write_head();
    }

    /// What else is to go to the disk now. Without patience a crowd falls apart into groups that take turns, each
    /// waiting for the sync of the others; with a little, all share one. A lone caller never waits.
    fn more(&self, commands: &mut mpsc::Receiver<Command>, staged: usize, begun: Instant) -> Option<Command> {
        let patience = (self.took / 2).clamp(PATIENCE_MIN, PATIENCE_MAX);
        loop {
            if let Ok(command) = commands.try_recv() {
                return Some(command);
            }
            if self.crowd < CROWD || staged >= self.crowd || begun.elapsed() >= patience {
                return None;
            }
            std::thread::sleep(WAIT);
        }
    }

    /// Takes a command into the batch, or answers it; returns about how many bytes it adds.
    fn stage(&mut self, command: Command, batch: &mut Vec<Staged>, versions: &mut HashMap<TaskId, u64>) -> usize {
        match command {
            Command::Delivered { ids, at } => {
                self.delivered.extend(ids);
                self.delivered_at = Some(at);
                0
            }
            Command::Commit { prepared, expected_version, reply } => {
                let checked = self.check_version(&prepared, expected_version, versions);
                staged(checked.map(|()| *prepared), reply, batch)
            }
            Command::Own { own, reply } => staged(self.check_own(*own, versions), reply, batch),
        }
    }

    /// Every task that is to be forgotten must still be as whoever wants it saw it.
    fn check_own(&self, own: Own, versions: &mut HashMap<TaskId, u64>) -> Result<Prepared, CommitError> {
        let Own { kind, at, event, forgets } = own;
        for (task, version) in &forgets {
            check::check_version(self.version_of(task, versions)?, *version)?;
        }
        let prepared = check::own(kind, at, event).map_err(CommitError::NotCanonical)?;
        versions.extend(forgets.into_iter().map(|(task, _)| (task, FORGOTTEN_VERSION)));
        Ok(prepared)
    }

    /// This thread is the only one that gives out versions.
    fn check_version(
        &self,
        prepared: &Prepared,
        expected: u64,
        versions: &mut HashMap<TaskId, u64>,
    ) -> Result<(), CommitError> {
        if let Some(failure) = self.shared.failure() {
            // An empty batch makes the indexer try to mend the index; it may be at it already.
            let _busy = self.durable.try_send(Vec::new());
            return Err(CommitError::Store(Error::Unusable(failure)));
        }
        let Some(task) = &prepared.draft().task else { return Err(CommitError::Store(Error::Closed)) };
        check::check_version(self.version_of(task, versions)?, expected)?;
        versions.insert(task.clone(), expected + 1);
        Ok(())
    }

    fn version_of(&self, task: &TaskId, versions: &HashMap<TaskId, u64>) -> Result<u64, CommitError> {
        Ok(match (versions.get(task), self.versions.get(task)) {
            (Some(staged), _) => *staged,
            (None, Some((durable, _))) => *durable,
            (None, None) => self.shared.with_index(|index| {
                let get = |key: &[u8]| index.get(key).map_err(Error::Index);
                match get(&keys::task(task))? {
                    Some(value) => super::read::pointer(&value).map(|pointer| pointer.number),
                    None => Ok(get(&keys::tombstone(task))?.map_or(0, |_| FORGOTTEN_VERSION)),
                }
            })?,
        })
    }

    /// Lets the notes about deliveries ride along with whatever is being written.
    fn stage_delivered(&mut self, batch: &mut Vec<Staged>) {
        let Some(at) = self.delivered_at else { return };
        for messages in self.delivered.chunks(DELIVERED_MAX) {
            let prepared = check::delivered(messages, at);
            batch.push(Staged { prepared, reply: None });
        }
    }

    fn append(&mut self, batch: Vec<Staged>, versions: HashMap<TaskId, u64>) {
        let mut previous = self.writer.head().hash;
        let prepared: Vec<&Prepared> = batch.iter().map(|staged| &staged.prepared).collect();
        let begun = Instant::now();
        let appended = self.writer.append(&prepared);
        self.took = begun.elapsed();
        let appended = match appended {
            Ok(appended) => appended,
            Err(error) => {
                self.note_refused(Some(error.to_string()));
                return refuse(batch, error);
            }
        };
        self.note_refused(None);
        let sequence = self.writer.head().count;
        // Every batch holds all notes that there were.
        self.delivered.clear();
        let mut durable = Vec::with_capacity(batch.len());
        for (Staged { prepared, reply }, appended) in batch.into_iter().zip(appended) {
            let (recorded, state) = prepared.into_recorded(previous, appended.head);
            previous = appended.head.hash;
            durable.push(Durable { recorded, state, position: appended.position, reply });
        }
        self.versions.extend(versions.into_iter().map(|(task, version)| (task, (version, sequence))));
        if self.versions.len() > VERSIONS_MAX {
            let indexed = self.shared.head.borrow().count;
            self.versions.retain(|_, (_, sequence)| *sequence > indexed);
        }
        let waiting = durable.iter().filter(|durable| durable.reply.is_some()).count();
        self.shared.unanswered.fetch_add(waiting, Ordering::Relaxed);
        if self.durable.send(durable).is_err() {
            self.shared.fail("the thread that writes the index has ended");
        }
        if self.writer.take_born() || sequence >= self.head_written + HEAD_EVERY {
            self.write_head();
        }
    }

    fn note_refused(&self, why: Option<String>) {
        *self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Notes the head outside the chain. A failure is no loss: the next one is written later.
    fn write_head(&mut self) {
        let head = self.writer.head();
        match self.head_file.write(head) {
            Ok(()) => self.head_written = head.count,
            Err(error) => tracing::warn!(%error, "can't write the journal's head file; it is tried again later"),
        }
    }
}

/// Takes what was checked into the batch, or answers it; returns about how many bytes it adds.
fn staged(checked: Result<Prepared, CommitError>, reply: Reply, batch: &mut Vec<Staged>) -> usize {
    match checked {
        Ok(prepared) => {
            let size = prepared.size();
            batch.push(Staged { prepared, reply: Some(reply) });
            size
        }
        Err(error) => {
            // Whoever asked may have given up waiting.
            let _gone = reply.send(Err(error));
            0
        }
    }
}

/// Tells everybody in a batch that nothing was stored.
fn refuse(batch: Vec<Staged>, error: io::Error) {
    tracing::error!(%error, records = batch.len(), "can't append to the journal; nothing was stored");
    let source = Arc::new(error);
    for reply in batch.into_iter().filter_map(|staged| staged.reply) {
        let doing = "append to the journal".to_owned();
        let _gone = reply.send(Err(CommitError::Store(Error::NotStored { doing, source: Arc::clone(&source) })));
    }
}
