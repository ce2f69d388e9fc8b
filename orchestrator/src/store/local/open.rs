//! Opening: lock, index, journal, and bringing the one up to the other.
//!
//! The index is opened first, because what it remembers decides whether an
//! unfinished end of the journal may be cut off. It is never the truth: whatever
//! is wrong with it, it is moved aside and rebuilt.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread;

use tokio::sync::{mpsc, watch};

use super::appender::Appender;
use super::{LocalStore, Options, QUEUE_LENGTH, Shared, indexer};
use crate::store::error::Error;
use crate::store::index::Index;
use crate::store::journal::{self, Head, HeadFile, Reader, Scan};
use crate::store::lock::FolderLock;
use crate::store::projection::Projection;

/// How many batches may wait for the indexer.
const BATCHES_WAITING: usize = 4;

/// How many changed keys are collected before replay writes them.
const REPLAY_CHANGES: usize = 20_000;

/// How many indexes that were moved aside are kept.
const ASIDE_MAX: u32 = 3;

pub(in crate::store) fn journal_folder(folder: &Path) -> PathBuf {
    folder.join("journal")
}

fn index_folder(folder: &Path) -> PathBuf {
    folder.join("index")
}

pub(super) fn open(folder: &Path, options: &Options) -> Result<LocalStore, Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(Error::io(format!("make the folder {}", folder.display())))?;
    let lock = FolderLock::take(folder, options.lock_patience, options.now)?;
    let index_folder = index_folder(folder);
    // The journal is begun before the index, so where there is an index this is not the first run.
    let had_index = index_folder.exists();
    let (mut index, mut rebuilt) = match had_index.then(|| Index::open(&index_folder, options.cache_bytes)) {
        Some(Ok(index)) => (Some(index), None),
        Some(Err(error)) => (None, Some(chain(&error))),
        None => (None, None),
    };
    let known = index.as_ref().map(Index::head);
    let journal_folder = journal_folder(folder);
    let opened = journal::open(&journal_folder, options.segment_bytes_max, known, had_index)?;
    let head = opened.writer.head();
    if !had_index && head.count > 0 {
        rebuilt = Some("it was missing".to_owned());
    }
    if let Some(ready) = &index
        && let Err(error) = replay(ready, &journal_folder, head)
    {
        match error {
            Error::Index(error) => {
                rebuilt = Some(chain(&error));
                index = None;
            }
            other => return Err(other),
        }
    }
    let index = match index {
        Some(index) => index,
        None => rebuild(&index_folder, &journal_folder, head, options.cache_bytes, rebuilt.as_deref())?,
    };
    start(folder, lock, index, opened, rebuilt)
}

/// Moves the index aside, if there is one, and makes a new one from the journal.
fn rebuild(
    index_folder: &Path,
    journal_folder: &Path,
    head: Head,
    cache_bytes: u64,
    why: Option<&str>,
) -> Result<Index, Error> {
    if let Some(reason) = why {
        let folder = index_folder.display();
        tracing::warn!(%folder, reason, records = head.count, "the index is rebuilt from the journal");
    }
    move_aside(index_folder)?;
    let index = Index::open(index_folder, cache_bytes).map_err(Error::Index)?;
    replay(&index, journal_folder, head)?;
    index.checkpoint().map_err(Error::Index)?;
    Ok(index)
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

/// Applies what the index does not hold yet.
fn replay(index: &Index, journal_folder: &Path, head: Head) -> Result<(), Error> {
    let known = index.head();
    if known == head {
        return Ok(());
    }
    tracing::info!(from = known.count + 1, to = head.count, "the index is behind the journal; replaying");
    let segments = journal::list(journal_folder)?;
    let mut first = segments.len();
    while first > 1 && Scan::open(journal_folder, segments[first - 1], None)?.head().count > known.count {
        first -= 1;
    }
    let mut projection = Projection::new(index);
    let mut before = None;
    for number in &segments[first.saturating_sub(1)..] {
        let mut scan = Scan::open(journal_folder, *number, before)?;
        while let Some(entry) = scan.next_sound()? {
            if entry.head.count <= known.count {
                continue;
            }
            let recorded = entry.decode().map_err(|what| Error::Damaged {
                segment: scan.path().to_path_buf(),
                line: 0,
                offset: entry.position.offset,
                what,
            })?;
            projection.add(&recorded, entry.position).map_err(Error::Index)?;
            if projection.len() >= REPLAY_CHANGES {
                projection.finish().map_err(Error::Index)?;
                projection = Projection::new(index);
            }
        }
        before = Some(scan.head());
    }
    projection.finish().map_err(Error::Index)
}

fn start(
    folder: &Path,
    lock: FolderLock,
    index: Index,
    opened: journal::Opened,
    rebuilt: Option<String>,
) -> Result<LocalStore, Error> {
    let journal_folder = journal_folder(folder);
    let shared = Arc::new(Shared {
        index: RwLock::new(Some(index)),
        reader: Reader::new(journal_folder.clone()),
        head: watch::Sender::new(opened.writer.head()),
        delivered: Mutex::new(HashSet::new()),
        failure: OnceLock::new(),
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
        torn: opened.torn,
        rebuilt,
    })
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
