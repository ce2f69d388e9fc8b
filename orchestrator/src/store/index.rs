//! The index: an ordered map on the disk that can be rebuilt from the journal.
//!
//! The only module that names sled, and it does not trust it: what sled calls
//! durable is not, and it may panic on files that a crash has left. So panics are
//! contained, one batch carries changes together with the number of the
//! journal record that they stand for, and a sum over all entries tells at open
//! whether exactly that batch is what came back. Knows nothing about the meaning
//! of keys but its own mark.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::journal::Head;
use super::keys::MARK;
use super::map::{Changes, Visit};
use pending::Pending;

mod pending;
mod sum;

/// The layout of keys and values; another one means that the index is rebuilt.
const LAYOUT: u32 = 2;

/// How often opening is tried while sled's own lock is not free yet, and the pause between two attempts.
const OPEN_ATTEMPTS_MAX: u32 = 200;
const OPEN_PAUSE: Duration = Duration::from_millis(5);

/// Up to this size, and up to that of the journal, nobody asks how much of the index is garbage.
const GARBAGE_BYTES_MIN: u64 = 64 << 20;

/// How many times larger than its content the index may be before it is rebuilt.
const GARBAGE_FACTOR: u64 = 8;

/// Why the index failed. Nothing is lost: it is rebuilt from the journal.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// sled returned an error.
    #[error("sled failed")]
    Sled(#[source] sled::Error),
    /// sled panicked.
    #[error("sled panicked: {0}")]
    Panicked(String),
    /// What was read is not what was written.
    #[error("the index is damaged: {0}")]
    Damaged(String),
    /// The file system failed.
    #[error("can't make or sync the folder of the index")]
    Io(#[source] std::io::Error),
}

/// What the index says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    layout: u32,
    /// The newest journal record that the index holds.
    head: Head,
    /// The sum over all other entries, in hexadecimal.
    sum: String,
}

/// The index.
///
/// Changes are seen at once and written to sled a little later, many together;
/// what a crash takes of them is replayed from the journal.
pub(super) struct Index {
    /// `None` only while being dropped.
    db: Option<sled::Db>,
    path: PathBuf,
    /// How much the entries took when it was opened.
    content_bytes: u64,
    /// What sled holds. Taken before `pending`, and for as long as somebody changes anything.
    written: Mutex<Written>,
    pending: RwLock<Pending>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Written {
    head: Head,
    sum: u128,
}

impl Index {
    /// Opens the index in a folder, or begins an empty one. Reads every entry: only that tells whether a crash took a
    /// page, and it is cheap, because a task's events share few entries.
    pub(super) fn open(path: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        let folder = DirBuilder::new().recursive(true).mode(0o700).create(path);
        folder.map_err(IndexError::Io)?;
        let db = open_patiently(path, cache_bytes)?;
        let (written, pending) = (Mutex::default(), RwLock::default());
        let mut index = Self { db: Some(db), path: path.to_path_buf(), content_bytes: 0, written, pending };
        let (mark, sum, content_bytes) = index.survey()?;
        index.content_bytes = content_bytes;
        if let Some(mark) = &mark
            && mark.layout != LAYOUT
        {
            return Err(IndexError::Damaged(format!("it has the layout {}, not {LAYOUT}", mark.layout)));
        }
        let (head, marked) = mark.map_or((Head::default(), "0".to_owned()), |mark| (mark.head, mark.sum));
        if format!("{sum:x}") != marked {
            return Err(IndexError::Damaged("its entries are not those of the batch that it names".to_owned()));
        }
        *index.written() = Written { head, sum };
        *index.pending.write().unwrap_or_else(PoisonError::into_inner) = Pending::after(head);
        Ok(index)
    }

    /// Reads everything that sled holds: the mark, the sum over all other entries, and their size.
    fn survey(&self) -> Result<(Option<Mark>, u128, u64), IndexError> {
        let (mut mark, mut sum, mut bytes) = (None, 0u128, 0u64);
        let mut stored = self.stored(&[], None);
        while let Some((key, value)) = stored()? {
            if key == MARK {
                mark = Some(value);
            } else {
                sum = sum.wrapping_add(sum::of(&key, &value));
                bytes += (key.len() + value.len()) as u64;
            }
        }
        let mark = mark.map(|text| serde_json::from_slice(&text)).transpose();
        Ok((mark.map_err(|error| IndexError::Damaged(format!("its mark is not readable: {error}")))?, sum, bytes))
    }

    /// The newest journal record that readers see.
    pub(super) fn head(&self) -> Head {
        self.pending().head
    }

    /// How many bytes the index takes on the disk.
    pub(super) fn disk_bytes(&self) -> Result<u64, IndexError> {
        contain(|| self.db().size_on_disk())
    }

    /// Why it should be made anew: it takes far more room than its content, and more than the journal of
    /// `journal_bytes`. A new one is much smaller than the journal, so it is not found too large again.
    pub(super) fn garbage(&self, journal_bytes: u64) -> Result<Option<String>, IndexError> {
        let (disk_bytes, content_bytes) = (self.disk_bytes()?, self.content_bytes);
        let is_garbage = is_garbage(disk_bytes, content_bytes, journal_bytes);
        Ok(is_garbage.then(|| format!("it takes {disk_bytes} bytes for {content_bytes} bytes of content")))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        let pending = self.pending();
        match pending.get(key) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.stored_value(key)?.map(|value| value.to_vec())),
        }
    }

    /// Visits entries in order, from `from` up to and without `to`, for as long as `visit` returns true.
    /// What it visits does not change meanwhile, so `visit` must not call the index.
    pub(super) fn visit(&self, from: &[u8], to: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<(), IndexError> {
        if to.is_some_and(|to| from >= to) {
            return Ok(());
        }
        self.pending().visit((from, to), self.stored(from, to), visit)
    }

    /// Makes all changes at once, and notes that the index now holds the journal up to `head`.
    /// Readers see them; for a crash or a power cut see [`Index::write`] and [`Index::checkpoint`].
    pub(super) fn apply(&self, changes: Changes, head: Head) -> Result<(), IndexError> {
        let written = self.written();
        let is_time = self.pending.write().unwrap_or_else(PoisonError::into_inner).add(changes, head);
        if is_time { self.write_pending(written) } else { Ok(()) }
    }

    /// Writes what waits, so that less has to be replayed after the process was killed.
    pub(super) fn write(&self) -> Result<(), IndexError> {
        self.write_pending(self.written())
    }

    /// Writes what waits and pushes everything to the disk, so that less has to be replayed after a power cut.
    /// sled's own flush does not wait for the disk, therefore its file is synced as well.
    pub(super) fn checkpoint(&self) -> Result<(), IndexError> {
        self.write()?;
        contain(|| self.db().flush())?;
        File::open(self.path.join("db")).and_then(|file| file.sync_data()).map_err(IndexError::Io)
    }

    /// Everything goes into one batch of sled together with the mark, so a crash leaves all of it or nothing.
    fn write_pending(&self, mut written: MutexGuard<'_, Written>) -> Result<(), IndexError> {
        let pending = self.pending();
        if pending.changes.is_empty() && pending.head == written.head {
            return Ok(());
        }
        let (head, mut sum) = (pending.head, written.sum);
        let mut batch = sled::Batch::default();
        for (key, value) in &pending.changes {
            let old = self.stored_value(key)?;
            if old.as_deref() == value.as_deref() {
                continue;
            }
            if let Some(old) = old {
                sum = sum.wrapping_sub(sum::of(key, &old));
            }
            match value {
                Some(value) => {
                    sum = sum.wrapping_add(sum::of(key, value));
                    batch.insert(key.as_slice(), value.as_slice());
                }
                None => batch.remove(key.as_slice()),
            }
        }
        let mark = Mark { layout: LAYOUT, head, sum: format!("{sum:x}") };
        let mark = serde_json::to_vec(&mark).map_err(|error| IndexError::Damaged(error.to_string()))?;
        batch.insert(MARK, mark);
        contain(|| self.db().apply_batch(batch))?;
        drop(pending);
        *written = Written { head, sum };
        *self.pending.write().unwrap_or_else(PoisonError::into_inner) = Pending::after(head);
        Ok(())
    }

    fn stored_value(&self, key: &[u8]) -> Result<Option<sled::IVec>, IndexError> {
        contain(|| self.db().get(key))
    }

    /// Goes through what sled holds in a range.
    fn stored(&self, from: &[u8], to: Option<&[u8]>) -> impl FnMut() -> Result<Option<pending::Stored>, IndexError> {
        let mut entries = match to {
            Some(to) => self.db().range(from..to),
            None => self.db().range(from..),
        };
        move || contain(|| entries.next().transpose())
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> RwLockReadGuard<'_, Pending> {
        self.pending.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn db(&self) -> &sled::Db {
        self.db.as_ref().expect("the database is taken only while dropping")
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let written = self.write();
        let db = self.db.take();
        let closed = contain(|| {
            drop(db);
            Ok(())
        });
        if let Err(error) = written.and(closed) {
            tracing::warn!(path = %self.path.display(), %error, "the index could not be closed; it may be rebuilt at the next start");
        }
    }
}

fn is_garbage(disk_bytes: u64, content_bytes: u64, journal_bytes: u64) -> bool {
    disk_bytes > GARBAGE_BYTES_MIN.max(journal_bytes) && disk_bytes / GARBAGE_FACTOR > content_bytes
}

/// sled frees its lock a moment after a database was dropped. The folder's own lock is held by now, so nobody else
/// can have the database open.
fn open_patiently(path: &Path, cache_bytes: u64) -> Result<sled::Db, IndexError> {
    let config = sled::Config::new().path(path).cache_capacity(cache_bytes).flush_every_ms(None);
    let mut attempts = 1;
    loop {
        match contain(|| config.open()) {
            Err(IndexError::Sled(sled::Error::Io(error)))
                if attempts < OPEN_ATTEMPTS_MAX && error.to_string().contains("acquire lock") =>
            {
                attempts += 1;
                std::thread::sleep(OPEN_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// Runs sled's code. A panic in it becomes an error: the caller rebuilds, it does not go on using what is broken.
fn contain<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, IndexError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(IndexError::Sled),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(IndexError::Panicked(text.unwrap_or_else(|| "without a message".to_owned())))
        }
    }
}

#[cfg(test)]
mod tests;
