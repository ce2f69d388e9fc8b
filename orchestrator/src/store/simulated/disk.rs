//! The simulated disk: what is on it, what of that is durable, and what a crash
//! leaves.
//!
//! A killed process leaves everything that it wrote. A power cut leaves what was
//! synced and a part of the rest; the index may be gone with it. Nothing here
//! draws a random number: the crash says what is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::error::Error;
use crate::store::index::IndexError;
use crate::store::journal::{Head, MemoryJournal, Position, Prepared, Segments};
use crate::store::map::{Changes, Map, Visit};
use crate::store::model::Recorded;
use crate::store::projection::Projection;
use checkrein_shared::causes::with_causes;

/// How a process ends without having been asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process dies; the system lives on, and so does everything that was written.
    Kill,
    /// The power fails.
    Power {
        /// How many of the bytes that were not synced are there anyway; more than there are means all.
        keep: usize,
        /// How many zero bytes follow them, where the file had grown and its pages had not.
        zeros: usize,
        /// Whether the index is lost.
        index_lost: bool,
    },
    /// The disk has lied about its last sync: this many durable bytes are gone.
    Loss {
        /// How many.
        bytes: usize,
    },
}

/// A record that was appended.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) recorded: Arc<Recorded>,
    pub(super) position: Position,
}

/// The index in memory.
#[derive(Default)]
pub(super) struct MemoryMap(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_key: BTreeMap<Vec<u8>, Vec<u8>>,
    head: Head,
}

impl MemoryMap {
    fn inner(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner().by_key.get(key).cloned()
    }

    pub(super) fn range(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), IndexError> {
        for (key, value) in self.inner().by_key.range(from.to_vec()..to.to_vec()) {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }
}

impl Map for MemoryMap {
    fn head(&self) -> Head {
        self.inner().head
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(self.value(key))
    }

    fn visit(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), IndexError> {
        self.range(from, to, visit)
    }

    fn apply(&self, changes: Changes, head: Head) -> Result<(), IndexError> {
        let mut inner = self.inner();
        for (key, value) in changes {
            match value {
                Some(value) => drop(inner.by_key.insert(key, value)),
                None => drop(inner.by_key.remove(&key)),
            }
        }
        inner.head = head;
        Ok(())
    }
}

struct Inner {
    journal: MemoryJournal,
    /// How many bytes of the last segment are durable; all of the others are.
    synced: usize,
    /// The head that is kept outside the chain.
    head_file: Head,
    /// The newest record that somebody was told about.
    acknowledged: u64,
    index: Arc<MemoryMap>,
    /// The places of all records, oldest first.
    places: Vec<Position>,
    /// Records that can't be lost any more and that nobody has looked at yet.
    fresh: Vec<Arc<Recorded>>,
    /// How many records were fresh so far.
    seen: u64,
}

/// A disk. It outlives the processes that use it.
pub struct Disk {
    segment_bytes_max: usize,
    inner: Mutex<Inner>,
}

impl Disk {
    /// An empty disk.
    ///
    /// # Errors
    ///
    /// None in practice: nothing is on it.
    pub fn new(segment_bytes_max: usize) -> Result<Self, Error> {
        let (journal, _) = MemoryJournal::open(Segments::new(), segment_bytes_max, &[])?;
        let synced = last_length(&journal);
        let inner = Inner {
            journal,
            synced,
            head_file: Head::default(),
            acknowledged: 0,
            index: Arc::default(),
            places: Vec::new(),
            fresh: Vec::new(),
            seen: 0,
        };
        Ok(Self { segment_bytes_max, inner: Mutex::new(inner) })
    }

    /// Leaves what a crash leaves. Whoever had the disk open must be gone.
    pub fn crash(&self, crash: Crash) {
        let mut inner = self.inner();
        let journal = std::mem::replace(&mut inner.journal, MemoryJournal::empty(self.segment_bytes_max));
        let mut segments = journal.into_segments();
        if let Some(last) = segments.last_mut() {
            match crash {
                Crash::Kill => {}
                Crash::Power { keep, zeros, .. } => {
                    last.truncate(inner.synced.saturating_add(keep));
                    last.resize(last.len() + zeros, 0);
                }
                Crash::Loss { bytes } => last.truncate(inner.synced.saturating_sub(bytes)),
            }
        }
        if matches!(crash, Crash::Power { index_lost: true, .. } | Crash::Loss { .. }) {
            inner.index = Arc::default();
        }
        inner.journal = MemoryJournal::crashed(segments, self.segment_bytes_max);
    }

    /// Notes the head outside the chain, as the store does now and then.
    pub fn note_head(&self) {
        let mut inner = self.inner();
        let durable = inner.index.head();
        inner.head_file = durable;
    }

    /// How many records the note outside the chain names.
    pub fn noted_head(&self) -> u64 {
        self.inner().head_file.count
    }

    /// All bytes, to put them back with [`Disk::restore`]: a backup.
    pub fn backup(&self) -> Vec<Vec<u8>> {
        self.inner().journal.segments().clone()
    }

    /// Puts a backup back.
    pub fn restore(&self, segments: Vec<Vec<u8>>) {
        self.inner().journal = MemoryJournal::crashed(segments, self.segment_bytes_max);
    }

    /// The newest record that somebody was told about.
    pub fn acknowledged(&self) -> u64 {
        self.inner().acknowledged
    }

    /// The records that became safe since this was last asked, oldest first.
    pub fn take_fresh(&self) -> Vec<Arc<Recorded>> {
        std::mem::take(&mut self.inner().fresh)
    }

    /// Checks the whole chain, and where wanted reads every record as strictly as a verification does; returns the
    /// head.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn verify(&self, strictly: bool) -> Result<Head, String> {
        let inner = self.inner();
        let segments = inner.journal.segments().clone();
        let opened = MemoryJournal::open(segments, self.segment_bytes_max, &[("index", inner.index.head())]);
        let (journal, found) = opened.map_err(|error| with_causes(&error))?;
        for appended in found.iter().filter(|_| strictly) {
            journal.read_strictly(appended.position)?;
        }
        Ok(journal.head())
    }

    pub(super) fn recover(&self) -> Result<Head, Error> {
        let mut inner = self.inner();
        let segments = inner.journal.segments().clone();
        let witnesses = [("head file", inner.head_file), ("index", inner.index.head())];
        let (journal, found) = MemoryJournal::open(segments, self.segment_bytes_max, &witnesses)?;
        let known = inner.index.head();
        let mut projection = Projection::new(inner.index.as_ref());
        let mut fresh = Vec::new();
        for appended in &found {
            let (is_new, is_fresh) = (appended.head.count > known.count, appended.head.count > inner.seen);
            if is_new || is_fresh {
                let recorded = Arc::new(journal.read(appended.position)?);
                if is_new {
                    projection.add(&recorded, appended.position).map_err(Error::Index)?;
                }
                if is_fresh {
                    fresh.push(recorded);
                }
            }
        }
        projection.finish().map_err(Error::Index)?;
        inner.seen += fresh.len() as u64;
        inner.fresh.append(&mut fresh);
        inner.places = found.iter().map(|appended| appended.position).collect();
        // Opening syncs what it keeps, as the real one does where it repairs, and reads it back in any case.
        inner.synced = last_length(&journal);
        let head = journal.head();
        inner.journal = journal;
        Ok(head)
    }

    pub(super) fn append(&self, batch: Vec<Prepared>) -> Vec<Written> {
        let mut inner = self.inner();
        // A segment is born only where everything before it is synced.
        if inner.synced == last_length(&inner.journal) {
            inner.journal.roll();
            inner.synced = inner.synced.min(last_length(&inner.journal));
        }
        let mut written = Vec::with_capacity(batch.len());
        for prepared in batch {
            let previous = inner.journal.head().hash;
            let appended = inner.journal.append(&prepared);
            inner.places.push(appended.position);
            let recorded = Arc::new(prepared.into_recorded(previous, appended.head).0);
            written.push(Written { recorded, position: appended.position });
        }
        written
    }

    pub(super) fn sync<'a>(&self, written: impl Iterator<Item = &'a Written>) {
        let mut inner = self.inner();
        inner.synced = last_length(&inner.journal);
        for written in written {
            inner.fresh.push(Arc::clone(&written.recorded));
            inner.seen += 1;
        }
    }

    pub(super) fn acknowledge(&self, sequence: u64) {
        let mut inner = self.inner();
        inner.acknowledged = inner.acknowledged.max(sequence);
    }

    pub(super) fn with_index<T>(&self, work: impl FnOnce(&MemoryMap) -> Result<T, Error>) -> Result<T, Error> {
        let index = Arc::clone(&self.inner().index);
        work(&index)
    }

    pub(super) fn read(&self, position: Position) -> Result<Recorded, Error> {
        self.inner().journal.read(position)
    }

    pub(super) fn records_after(&self, sequence: u64, head: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
        let inner = self.inner();
        let (from, to) = (usize::try_from(sequence), usize::try_from(head));
        let range = from.unwrap_or(usize::MAX)..to.unwrap_or(usize::MAX).min(inner.places.len());
        let places = inner.places.get(range).unwrap_or_default();
        places.iter().take(limit).map(|place| inner.journal.read(*place)).collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn last_length(journal: &MemoryJournal) -> usize {
    journal.segments().last().map_or(0, Vec::len)
}
