//! One process at a time has a store open.
//!
//! The kernel frees the lock when its holder dies, so a stale file never blocks
//! anybody. The file's text only tells people who the holder is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use checkrein_shared::json;
use checkrein_shared::time::Timestamp;

use super::error::{Error, Holder};

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// The longest text of a lock file that is read.
const TEXT_BYTES_MAX: u64 = 4096;

/// The lock on a folder; dropping it frees the folder.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock. Tries again for `patience`, because the store of a process
    /// that is just ending frees it a moment late.
    pub(super) fn take(folder: &Path, patience: Duration, now: Timestamp) -> Result<Self, Error> {
        let path = folder.join("lock");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io(format!("open the lock {}", path.display())))?;
        let mut left = patience;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if !left.is_zero() => {
                    sleep(PAUSE.min(left));
                    left = left.saturating_sub(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::InUse { path: folder.to_path_buf(), holder: read(&mut file) });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(Error::Io { doing: format!("lock {}", path.display()), source });
                }
            }
        }
        let holder = Holder { pid: std::process::id(), since: now };
        // On a full disk the text can't be written; the lock holds all the same.
        if let Err(error) = write(&mut file, &holder) {
            tracing::warn!(path = %path.display(), %error, "can't note in the lock file who holds it");
        }
        Ok(Self { _file: file })
    }
}

/// Does something while nobody has the folder open, and keeps others out meanwhile; `None` where somebody has it
/// open. Changes nothing.
pub(super) fn while_free<T>(folder: &Path, work: impl FnOnce() -> T) -> Result<Option<T>, Error> {
    let path = folder.join("lock");
    let file = match File::open(&path) {
        Ok(file) => file,
        // Nobody has ever opened it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Some(work())),
        Err(source) => return Err(Error::Io { doing: format!("open the lock {}", path.display()), source }),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(work())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::Io { doing: format!("lock {}", path.display()), source }),
    }
}

fn write(file: &mut File, holder: &Holder) -> std::io::Result<()> {
    let text = serde_json::to_vec(holder)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&text)
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(TEXT_BYTES_MAX).read_to_end(&mut text).ok()?;
    json::parse_as("lock file", &text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is_and_waits_only_briefly() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(1_000);
        let first = FolderLock::take(folder.path(), Duration::ZERO, now).unwrap();
        let error = FolderLock::take(folder.path(), Duration::from_millis(30), now).unwrap_err();
        let Error::InUse { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(holder.as_ref().unwrap(), &Holder { pid: std::process::id(), since: now });
        assert!(error.to_string().contains("another instance is running (process "), "{error}");
        drop(first);
        FolderLock::take(folder.path(), Duration::ZERO, now).unwrap();
    }

    #[test]
    fn a_lock_that_is_freed_a_moment_late_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(1_000);
        let first = FolderLock::take(folder.path(), Duration::ZERO, now).unwrap();
        let path = folder.path().to_path_buf();
        let second = std::thread::spawn(move || FolderLock::take(&path, Duration::from_secs(30), now));
        drop(first);
        second.join().unwrap().unwrap();
    }
}
