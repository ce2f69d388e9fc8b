//! Opening: lock, index, journal, and bringing the one up to the other.
//!
//! The index is opened first, because what it remembers decides whether an
//! unfinished end of the journal may be cut off. It is never the truth: whatever
//! is wrong with it, it is moved aside and rebuilt.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

use checkrein_shared::causes::with_causes;
use tokio::sync::{mpsc, watch};

use super::appender::Appender;
use super::replay::replay;
use super::shared::Shared;
use super::{LocalStore, Options, QUEUE_LENGTH, indexer};
use crate::store::error::Error;
use crate::store::index::{Index, IndexError};
use crate::store::journal::{self, Front, Head, HeadFile, Reader, Writer};
use crate::store::keys;
use crate::store::lock::FolderLock;

/// How many batches may wait for the indexer.
const BATCHES_WAITING: usize = 4;

/// How many indexes that were moved aside are kept.
const ASIDE_MAX: u32 = 3;

pub(in crate::store) fn journal_folder(folder: &Path) -> PathBuf {
    folder.join("journal")
}

fn index_folder(folder: &Path) -> PathBuf {
    folder.join("index")
}

pub(super) fn open(folder: &Path, options: &Options, adjust: impl FnOnce(&mut Writer)) -> Result<LocalStore, Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(Error::io(format!("make the folder {}", folder.display())))?;
    let lock = FolderLock::take(folder, options.lock_patience, options.now)?;
    // The journal is begun before the index, so where there is an index this is not the first run.
    let had_index = index_folder(folder).exists();
    let found = try_index(folder, options.cache_bytes);
    let known = found.as_ref().ok().map(Index::head);
    let known_front = found.as_ref().ok().and_then(|index| front_of(index).ok()).flatten();
    let mut opened =
        journal::open_from(&journal_folder(folder), options.segment_bytes_max, known, had_index, known_front)?;
    let reach = (opened.front, opened.writer.head());
    let (index, rebuilt) = ready_index(folder, options.cache_bytes, reach, found)?;
    finish_pruning(folder, &index)?;
    adjust(&mut opened.writer);
    start(folder, options.cache_bytes, lock, index, opened, rebuilt)
}

/// The index, brought up to `head`; and why it had to be rebuilt, if it had.
pub(super) fn index_at(folder: &Path, cache_bytes: u64, head: Head) -> Result<(Index, Option<String>), Error> {
    let found = try_index(folder, cache_bytes);
    let journal_folder = journal_folder(folder);
    let front = journal::front(&journal_folder, &journal::list(&journal_folder)?, None)?;
    ready_index(folder, cache_bytes, (front, head), found)
}

/// Moves the index aside and makes a new one from the journal alone; whoever calls this holds the folder's lock.
pub(in crate::store) fn rebuild_index(folder: &Path, options: &Options) -> Result<Head, Error> {
    let journal_folder = journal_folder(folder);
    let opened = journal::open_from(&journal_folder, options.segment_bytes_max, None, true, None)?;
    let head = opened.writer.head();
    let why = "somebody asked for it";
    let index = rebuild(&index_folder(folder), &journal_folder, (opened.front, head), options.cache_bytes, why)?;
    finish_pruning(folder, &index)?;
    HeadFile::new(&journal_folder).write(head).map_err(Error::io("write the journal's head file"))?;
    Ok(head)
}

/// Where the journal begins, as far as the index knows.
pub(super) fn front_of(index: &Index) -> Result<Option<Front>, IndexError> {
    let text = index.get(keys::FRONT)?;
    text.map(|text| serde_json::from_slice(&text).map_err(|error| IndexError::Damaged(error.to_string()))).transpose()
}

/// Removes the segments that a journaled record has given up, where a crash came in between.
fn finish_pruning(folder: &Path, index: &Index) -> Result<(), Error> {
    match front_of(index).map_err(Error::Index)? {
        Some(front) => journal::remove_before(&journal_folder(folder), front).map(|_| ()),
        None => Ok(()),
    }
}

/// The index as it stands, or what is wrong with it.
fn try_index(folder: &Path, cache_bytes: u64) -> Result<Index, String> {
    let index_folder = index_folder(folder);
    if !index_folder.exists() {
        return Err("it was missing".to_owned());
    }
    Index::open(&index_folder, cache_bytes).map_err(|error| with_causes(&error))
}

fn ready_index(
    folder: &Path,
    cache_bytes: u64,
    reach: (Front, Head),
    found: Result<Index, String>,
) -> Result<(Index, Option<String>), Error> {
    let (index_folder, journal_folder) = (index_folder(folder), journal_folder(folder));
    let reason = match found {
        Err(reason) => reason,
        Ok(index) => match index.garbage(journal_bytes(&journal_folder)?) {
            Ok(Some(why)) => why,
            Err(error) => with_causes(&error),
            Ok(None) => match replay(&index, &journal_folder, reach) {
                Ok(()) => return Ok((index, None)),
                Err(Error::Index(error)) => with_causes(&error),
                Err(other) => return Err(other),
            },
        },
    };
    let index = rebuild(&index_folder, &journal_folder, reach, cache_bytes, &reason)?;
    Ok((index, (reach.1.count > 0).then_some(reason)))
}

fn journal_bytes(folder: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for number in journal::list(folder)? {
        let path = journal::path_of(folder, number);
        bytes += path.metadata().map_err(Error::io(format!("measure {}", path.display())))?.len();
    }
    Ok(bytes)
}

/// Moves the index aside, if there is one, and makes a new one from the journal.
fn rebuild(
    index_folder: &Path,
    journal_folder: &Path,
    reach: (Front, Head),
    cache_bytes: u64,
    reason: &str,
) -> Result<Index, Error> {
    let (_, head) = reach;
    if head.count > 0 {
        let folder = index_folder.display();
        tracing::warn!(%folder, reason, records = head.count, "the index is rebuilt from the journal");
    }
    move_aside(index_folder)?;
    let build = || {
        let index = Index::open(index_folder, cache_bytes).map_err(Error::Index)?;
        replay(&index, journal_folder, reach)?;
        index.checkpoint().map_err(Error::Index)?;
        Ok(index)
    };
    // Half an index of our own making is of no use to anybody, and on a full disk it is in the way.
    build().inspect_err(|_| drop(std::fs::remove_dir_all(index_folder)))
}

/// Keeps a few broken indexes for whoever wants to know what happened to them.
fn move_aside(index_folder: &Path) -> Result<(), Error> {
    if !index_folder.exists() {
        return Ok(());
    }
    let aside = |number: u32| index_folder.with_extension(format!("aside-{number}"));
    let free = (1..=ASIDE_MAX).find(|number| !aside(*number).exists());
    let target = aside(free.unwrap_or(ASIDE_MAX));
    if free.is_none() {
        std::fs::remove_dir_all(&target).map_err(Error::io(format!("remove {}", target.display())))?;
    }
    std::fs::rename(index_folder, &target).map_err(Error::io(format!(
        "move {} to {}",
        index_folder.display(),
        target.display()
    )))
}

fn start(
    folder: &Path,
    cache_bytes: u64,
    lock: FolderLock,
    index: Index,
    opened: journal::Opened,
    rebuilt: Option<String>,
) -> Result<LocalStore, Error> {
    let journal_folder = journal_folder(folder);
    let shared = Arc::new(Shared {
        folder: folder.to_path_buf(),
        cache_bytes,
        index: RwLock::new(Some(index)),
        reader: Reader::new(journal_folder.clone()),
        head: watch::Sender::new(opened.writer.head()),
        unanswered: AtomicUsize::new(0),
        delivered: Mutex::new(HashSet::new()),
        refused: Mutex::new(None),
        failure: Mutex::new(None),
    });
    let (commands, receiver) = mpsc::channel(QUEUE_LENGTH);
    let (durable, batches) = sync_channel(BATCHES_WAITING);
    let appender = Appender::new(Arc::clone(&shared), opened.writer, HeadFile::new(&journal_folder), durable);
    let appending = thread::Builder::new()
        .name("store-append".to_owned())
        .spawn(move || appender.run(receiver))
        .map_err(Error::io("start a thread of the store"))?;
    let for_indexer = Arc::clone(&shared);
    let indexing = thread::Builder::new()
        .name("store-index".to_owned())
        .spawn(move || indexer::run(&for_indexer, &batches, lock))
        .map_err(Error::io("start a thread of the store"))?;
    Ok(LocalStore {
        folder: folder.to_path_buf(),
        shared,
        commands: Mutex::new(Some(commands)),
        threads: Mutex::new(vec![appending, indexing]),
        pruning: tokio::sync::Mutex::new(()),
        torn: opened.torn,
        head_file_was_missing: opened.head_file_was_missing,
        rebuilt,
    })
}
