//! Checking a journal from beginning to end without changing anything.
//!
//! What `docs/journal.md` lets a person do with `sha256sum` and `jq`, and more:
//! the canonical form, the versions of each task, and the head file. Works while
//! another process has the store open. Does not look at the index, which is
//! derived, nor at blobs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use checkrein_shared::ids::TaskId;

use super::error::Error;
use super::journal::{self, Head, HeadFile, Scan, ScanError};
use super::model::{Record, Recorded};
use super::prune::{CARRIED, FORGOTTEN, Tombstones};
use serde::Deserialize as _;

/// What [`verify`] found in a journal that is sound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many segment files there are.
    pub segments: u32,
    /// How many bytes they hold.
    pub bytes: u64,
    /// The newest record.
    pub head: Head,
    /// What the head file says; `None` where it is missing.
    pub head_file: Option<Head>,
    /// How many records were pruned from the front.
    pub pruned: u64,
    /// How many tasks have events.
    pub tasks: u64,
    /// The number of the newest event of each task.
    pub newest: BTreeMap<TaskId, u64>,
    /// Bytes after the newest record: a batch that is being written, or that a crash
    /// left unfinished. The next opening puts them aside.
    pub unfinished_bytes: u64,
}

/// Checks the journal of the store in `folder`. Changes nothing.
///
/// # Errors
///
/// The first damage, as [`Error`]; [`Error::is_integrity`] holds for it.
pub fn verify(folder: &Path) -> Result<Report, Error> {
    verify_each(folder, |_| {})
}

/// As [`verify`], and shows every sound record to `see` on the way.
///
/// # Errors
///
/// As [`verify`]; records before the damage were seen then.
pub fn verify_each(folder: &Path, see: impl FnMut(&Recorded)) -> Result<Report, Error> {
    let head_file = HeadFile::new(&folder.join("journal")).read()?;
    verify_journal(folder, head_file, see)
}

/// As [`verify_each`], against what is known of the head.
pub(super) fn verify_journal(
    folder: &Path,
    head_file: Option<Head>,
    mut see: impl FnMut(&Recorded),
) -> Result<Report, Error> {
    let journal_folder = folder.join("journal");
    let segments = journal::list(&journal_folder)?;
    let mut report = Report { head_file, ..Report::default() };
    if segments.is_empty() {
        return Err(Error::MissingSegment(journal::path_of(&journal_folder, 1)));
    }
    let front = journal::front(&journal_folder, &segments, None)?;
    report.pruned = front.head.count;
    let mut versions = Versions { begins_later: front.head.count > 0, ..Versions::default() };
    let mut before = Some(front.head);
    for (index, number) in segments.iter().enumerate() {
        let mut scan = Scan::open(&journal_folder, *number, before)?;
        let is_last = index + 1 == segments.len();
        loop {
            match scan.next() {
                Ok(None) => break,
                Ok(Some(entry)) => {
                    let offset = entry.position.offset;
                    let damaged =
                        |what| Error::Damaged { segment: scan.path().to_path_buf(), line: scan.line(), offset, what };
                    let recorded = entry.decode_strictly().map_err(damaged)?;
                    versions.check(&recorded.record).map_err(damaged)?;
                    see(&recorded);
                    check_head(head_file, entry.head)?;
                }
                Err(ScanError::Flaw(flaw)) => {
                    let unfinished = if is_last { journal::unfinished_tail(&scan, &flaw)? } else { None };
                    report.unfinished_bytes = unfinished.ok_or_else(|| scan.damaged(flaw))?;
                    break;
                }
                Err(ScanError::Other(error)) => return Err(error),
            }
        }
        report.segments += 1;
        report.bytes += scan.offset();
        report.head = scan.head();
        before = Some(scan.head());
    }
    versions
        .check_all()
        .map_err(|what| Error::Pruned { segment: journal::path_of(&journal_folder, front.segment), what })?;
    report.tasks = versions.newest.len() as u64;
    report.newest = versions.newest.into_iter().collect();
    match head_file {
        Some(recorded) if recorded.count > report.head.count => {
            Err(Error::LostAcknowledged { witness: "head file", recorded: recorded.count, found: report.head.count })
        }
        _ => Ok(report),
    }
}

/// The numbers of each task's events: without gaps, and from 1 unless the task was forgotten.
#[derive(Default)]
struct Versions {
    begins_later: bool,
    newest: HashMap<TaskId, u64>,
    /// Tasks whose first events are gone.
    beheaded: HashSet<TaskId>,
    forgotten: HashSet<TaskId>,
}

impl Versions {
    fn check(&mut self, record: &Record) -> Result<(), String> {
        let Some(task) = &record.task else {
            if record.version != 0 {
                return Err("a record without a task has a version".to_owned());
            }
            return self.note_forgotten(record);
        };
        if self.forgotten.contains(task) {
            return Err(format!("task {task} goes on although it was forgotten"));
        }
        let newest = match self.newest.get(task) {
            None if self.begins_later && record.version > 1 => {
                self.beheaded.insert(task.clone());
                record.version - 1
            }
            newest => newest.copied().unwrap_or(0),
        };
        if record.version != newest + 1 {
            return Err(format!("task {task} goes from version {newest} to {}", record.version));
        }
        self.newest.insert(task.clone(), record.version);
        Ok(())
    }

    fn note_forgotten(&mut self, record: &Record) -> Result<(), String> {
        if ![FORGOTTEN, CARRIED].contains(&record.kind.as_str()) {
            return Ok(());
        }
        let Tombstones { tombstones } = Tombstones::deserialize(&record.event).map_err(|error| error.to_string())?;
        for tombstone in tombstones {
            if let Some(newest) = self.newest.remove(&tombstone.task)
                && newest != tombstone.records
            {
                return Err(format!(
                    "task {} was forgotten after {newest} records, not {}",
                    tombstone.task, tombstone.records
                ));
            }
            self.beheaded.remove(&tombstone.task);
            self.forgotten.insert(tombstone.task);
        }
        Ok(())
    }

    /// Nobody but forgotten tasks may have lost its beginning.
    fn check_all(&self) -> Result<(), String> {
        match self.beheaded.iter().next() {
            Some(task) => Err(format!("task {task} has lost its first records and was not forgotten")),
            None => Ok(()),
        }
    }
}

fn check_head(recorded: Option<Head>, head: Head) -> Result<(), Error> {
    match recorded {
        Some(recorded) if recorded.count == head.count && recorded.hash != head.hash => {
            Err(Error::mismatch("head file", head.count, recorded.hash, head.hash))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
