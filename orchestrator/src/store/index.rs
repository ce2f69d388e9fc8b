//! The index: an ordered map on the disk that can be rebuilt from the journal.
//!
//! The only module that names sled, and it does not trust it: what sled calls
//! durable is not, and it may panic on files that a crash has left. So panics are
//! contained, one batch carries all changes together with the number of the
//! journal record that they stand for, and a sum over all entries tells at open
//! whether exactly that batch is what came back. Knows nothing about the meaning
//! of keys but its own mark.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;

use checkrein_shared::digest::{Digest, Hasher};
use serde::{Deserialize, Serialize};

use super::journal::Head;
use super::keys::MARK;
use super::map::{Changes, Visit};

/// The layout of keys and values; another one means that the index is rebuilt.
const LAYOUT: u32 = 1;

/// Up to this size nobody asks how much of the index is garbage.
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
pub(super) struct Index {
    /// `None` only while being dropped.
    db: Option<sled::Db>,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    head: Head,
    sum: u128,
}

impl Index {
    /// Opens the index in a folder, or begins an empty one. Reads every entry.
    pub(super) fn open(path: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        let folder = DirBuilder::new().recursive(true).mode(0o700).create(path);
        folder.map_err(IndexError::Io)?;
        let db = contain(|| sled::Config::new().path(path).cache_capacity(cache_bytes).flush_every_ms(None).open())?;
        let state = State { head: Head::default(), sum: 0 };
        let index = Self { db: Some(db), path: path.to_path_buf(), state: Mutex::new(state) };
        let (mark, sum, content_bytes) = index.survey()?;
        if let Some(mark) = &mark
            && mark.layout != LAYOUT
        {
            return Err(IndexError::Damaged(format!("it has the layout {}, not {LAYOUT}", mark.layout)));
        }
        let (head, marked) = mark.map_or((Head::default(), "0".to_owned()), |mark| (mark.head, mark.sum));
        if format!("{sum:x}") != marked {
            return Err(IndexError::Damaged("its entries are not those of the batch that it names".to_owned()));
        }
        let disk_bytes = index.disk_bytes()?;
        if disk_bytes > GARBAGE_BYTES_MIN && disk_bytes / GARBAGE_FACTOR > content_bytes {
            return Err(IndexError::Damaged(format!(
                "it takes {disk_bytes} bytes for {content_bytes} bytes of content"
            )));
        }
        *index.state.lock().unwrap_or_else(PoisonError::into_inner) = State { head, sum };
        Ok(index)
    }

    /// Reads everything: the mark, the sum over all other entries, and their size.
    fn survey(&self) -> Result<(Option<Mark>, u128, u64), IndexError> {
        let (mut mark, mut sum, mut bytes) = (None, 0u128, 0u64);
        self.visit(&[], None, &mut |key, value| {
            if key == MARK {
                mark = Some(value.to_vec());
            } else {
                sum = sum.wrapping_add(entry_sum(key, value));
                bytes += (key.len() + value.len()) as u64;
            }
            Ok(true)
        })?;
        let mark = mark.map(|text| serde_json::from_slice(&text)).transpose();
        Ok((mark.map_err(|error| IndexError::Damaged(format!("its mark is not readable: {error}")))?, sum, bytes))
    }

    /// The newest journal record that the index holds.
    pub(super) fn head(&self) -> Head {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).head
    }

    /// How many bytes the index takes on the disk.
    pub(super) fn disk_bytes(&self) -> Result<u64, IndexError> {
        contain(|| self.db().size_on_disk())
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        contain(|| self.db().get(key)).map(|value| value.map(|value| value.to_vec()))
    }

    /// Visits entries in order, from `from` up to and without `to`, for as long as `visit` returns true.
    pub(super) fn visit(&self, from: &[u8], to: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<(), IndexError> {
        let mut entries = match to {
            Some(to) => self.db().range(from..to),
            None => self.db().range(from..),
        };
        while let Some((key, value)) = contain(|| entries.next().transpose())? {
            if !visit(&key, &value)? {
                break;
            }
        }
        Ok(())
    }

    /// Makes all changes at once, and notes that the index now holds the journal up to `head`.
    /// Only one thread may call this. Survives the death of the process; for a power cut see
    /// [`Index::checkpoint`].
    pub(super) fn apply(&self, changes: &Changes, head: Head) -> Result<(), IndexError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = state.sum;
        let mut batch = sled::Batch::default();
        for (key, value) in changes {
            let old = self.get(key)?;
            if old == *value {
                continue;
            }
            if let Some(old) = old {
                sum = sum.wrapping_sub(entry_sum(key, &old));
            }
            match value {
                Some(value) => {
                    sum = sum.wrapping_add(entry_sum(key, value));
                    batch.insert(key.as_slice(), value.as_slice());
                }
                None => batch.remove(key.as_slice()),
            }
        }
        let mark = Mark { layout: LAYOUT, head, sum: format!("{sum:x}") };
        let mark = serde_json::to_vec(&mark).map_err(|error| IndexError::Damaged(error.to_string()))?;
        batch.insert(MARK, mark);
        contain(|| self.db().apply_batch(batch.clone()))?;
        *state = State { head, sum };
        Ok(())
    }

    /// Pushes everything to the disk, so that less has to be replayed after a crash.
    /// sled's own flush does not wait for the disk, therefore its file is synced as well.
    pub(super) fn checkpoint(&self) -> Result<(), IndexError> {
        contain(|| self.db().flush())?;
        File::open(self.path.join("db")).and_then(|file| file.sync_data()).map_err(IndexError::Io)
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
        let db = self.db.take();
        if let Err(error) = contain(|| {
            drop(db);
            Ok(())
        }) {
            tracing::warn!(path = %self.path.display(), %error, "the index could not be closed; it may be rebuilt at the next start");
        }
    }
}

/// What an entry adds to the sum of all entries.
fn entry_sum(key: &[u8], value: &[u8]) -> u128 {
    let mut hasher = Hasher::new();
    hasher.update(&(key.len() as u64).to_be_bytes());
    hasher.update(key);
    hasher.update(value);
    half(hasher.finish())
}

fn half(digest: Digest) -> u128 {
    let (half, _) = digest.as_bytes().split_first_chunk::<16>().expect("a digest has 32 bytes");
    u128::from_be_bytes(*half)
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
