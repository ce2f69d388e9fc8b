//! Rebuilding the index because a person wants it, and going on after a loss.
//!
//! Where somebody remembers more than the journal has, acknowledged data is gone,
//! and nothing goes on by itself. A person may decide to; first it is said what
//! would be lost. The journal is never changed but for an unfinished end.

use std::collections::HashMap;
use std::path::Path;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::TaskId;
use serde::Serialize;

use super::error::Error;
use super::index::{Index, IndexError};
use super::journal::{Head, HeadFile};
use super::keys::{self, Pointer};
use super::local::{self, Options};
use super::lock::FolderLock;
use super::verify::{Report, verify_journal};

/// How many tasks are named that would lose events.
const TASKS_NAMED: usize = 100;

/// What somebody remembers and the journal does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Who remembers it: the head file or the index.
    pub witness: &'static str,
    /// The number of the newest record that it remembers; `None` where it can't be read.
    pub recorded: Option<u64>,
    /// The number of the newest record that the journal has.
    pub found: u64,
    /// Where the numbers agree: that the record is another one.
    pub other: bool,
    /// Tasks that the index knows at a later event than the journal does; the first hundred.
    pub tasks: Vec<LostEvents>,
}

/// A task that would lose events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostEvents {
    /// The task.
    pub task: TaskId,
    /// The number of the newest event that the index knows.
    pub known: u64,
    /// The number of the newest event that the journal has; 0 where it has none.
    pub left: u64,
}

/// Why there is no new index.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// Going on would lose something; that has to be accepted first.
    #[error("acknowledged records are gone from the journal, and going on would make that final")]
    WouldLose(Vec<Loss>),
    /// The store failed, or the journal is damaged.
    #[error(transparent)]
    Store(#[from] Error),
}

/// What was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// The newest record.
    pub head: Head,
    /// How many tasks there are.
    pub tasks: u64,
    /// What was given up.
    pub losses: Vec<Loss>,
}

/// Makes the index of the store in `folder` anew from the journal, whose every record is checked first.
///
/// # Errors
///
/// [`RebuildError::WouldLose`] where somebody remembers more than the journal has and `accept_loss` is not set;
/// [`Error::InUse`] while another process has the store open; whatever is wrong with the journal.
pub fn rebuild(folder: &Path, options: &Options, accept_loss: bool) -> Result<Rebuilt, RebuildError> {
    if !folder.join("journal").exists() {
        return Err(Error::MissingSegment(folder.join("journal/00000001.jsonl")).into());
    }
    let _lock = FolderLock::take(folder, options.lock_patience, options.now)?;
    let head_file = HeadFile::new(&folder.join("journal"));
    let recorded = match head_file.read() {
        Err(Error::HeadDamaged { .. }) => Err(()),
        read => Ok(read?),
    };
    let (known, versions) = remembered(folder, options.cache_bytes);
    let wanted = [recorded.ok().flatten(), known].map(|head| head.map_or(0, |head| head.count));
    let mut hashes: HashMap<u64, Digest> = HashMap::new();
    let report = verify_journal(folder, None, |recorded| {
        if wanted.contains(&recorded.record.sequence) {
            hashes.insert(recorded.record.sequence, recorded.hash);
        }
    })?;
    let mut losses = Vec::new();
    match recorded {
        Err(()) => {
            losses.push(Loss {
                witness: "head file",
                recorded: None,
                found: report.head.count,
                other: false,
                tasks: Vec::new(),
            });
        }
        Ok(head) => losses.extend(loss("head file", head, &report, &hashes)),
    }
    if let Some(mut loss) = loss("index", known, &report, &hashes) {
        loss.tasks = lost(&versions, &report);
        losses.push(loss);
    }
    if !losses.is_empty() && !accept_loss {
        return Err(RebuildError::WouldLose(losses));
    }
    if !losses.is_empty() {
        tracing::warn!(folder = %folder.display(), ?losses, "going on after a loss that was accepted");
        head_file.write(report.head).map_err(Error::io("write the journal's head file"))?;
    }
    let head = local::rebuild_index(folder, options)?;
    Ok(Rebuilt { head, tasks: report.tasks, losses })
}

fn loss(witness: &'static str, known: Option<Head>, report: &Report, hashes: &HashMap<u64, Digest>) -> Option<Loss> {
    let known = known.filter(|known| known.count > 0)?;
    let other = known.count <= report.head.count
        && known.count > report.pruned
        && hashes.get(&known.count).copied() != known.hash;
    (known.count > report.head.count || other).then(|| Loss {
        witness,
        recorded: Some(known.count),
        found: report.head.count,
        other,
        tasks: Vec::new(),
    })
}

/// What the index knows, if it can be opened: the newest record, and the newest event of each task.
fn remembered(folder: &Path, cache_bytes: u64) -> (Option<Head>, Vec<(TaskId, u64)>) {
    let path = folder.join("index");
    let read = || -> Result<_, IndexError> {
        let index = Index::open(&path, cache_bytes)?;
        let (from, to) = keys::tasks_after(None);
        let mut versions = Vec::new();
        index.visit(&from, Some(&to), &mut |key, value| {
            versions.extend(keys::task_of(key).zip(Pointer::decode(value).map(|pointer| pointer.number)));
            Ok(true)
        })?;
        Ok((index.head(), versions))
    };
    match path.exists().then(read) {
        Some(Ok((head, versions))) => (Some(head), versions),
        Some(Err(_)) | None => (None, Vec::new()),
    }
}

fn lost(versions: &[(TaskId, u64)], report: &Report) -> Vec<LostEvents> {
    let left = |task: &TaskId| report.newest.get(task).copied().unwrap_or(0);
    let later = versions.iter().filter(|(task, known)| *known > left(task));
    later
        .take(TASKS_NAMED)
        .map(|(task, known)| LostEvents { task: task.clone(), known: *known, left: left(task) })
        .collect()
}
