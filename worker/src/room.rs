//! The folders of one attempt, and the cache folder that holds them.
//!
//! Everything here can vanish: what is needed to go on is in blobs and the job.
//! A room that an earlier process left behind is never used again, only swept.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_shared::records::Job;
use nix::fcntl::{Flock, FlockArg};

use crate::kept;

/// The file that says that a worker uses the folder.
const LOCK_FILE: &str = "lock";

/// Why a cache folder or a room in it could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another worker uses it.
    #[error("the cache folder `{}` is in use by another worker: give each worker its own", .0.display())]
    InUse(PathBuf),
    /// The file system failed.
    #[error("can't {doing} `{}`", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A worker's cache folder, held for as long as the worker lives.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    rooms: AtomicU64,
    _lock: Flock<File>,
}

impl Cache {
    /// Takes the folder, makes it where it is missing, and sweeps what a dead worker left in it.
    pub(crate) fn open(root: &Path) -> Result<Self, Error> {
        make_private(root)?;
        let path = root.join(LOCK_FILE);
        let file = File::options().create(true).append(true).open(&path).map_err(io_error("open", &path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| match e {
            nix::errno::Errno::EWOULDBLOCK => Error::InUse(root.to_owned()),
            other => io_error("lock", &path)(other.into()),
        })?;
        let cache = Self { root: root.to_owned(), rooms: AtomicU64::new(1), _lock: lock };
        remove(&cache.rooms())?;
        make_private(&cache.rooms())?;
        make_private(&cache.stats())?;
        make_private(&cache.kept())?;
        kept::sweep(&cache.kept()).map_err(io_error("sweep", &cache.kept()))?;
        Ok(cache)
    }

    fn rooms(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Where the stat caches of targets lie; each can be lost at any time.
    pub(crate) fn stats(&self) -> PathBuf {
        self.root.join("stat")
    }

    /// Where contents lie that no blob store keeps, a folder for each task.
    pub(crate) fn kept(&self) -> PathBuf {
        self.root.join("kept")
    }

    /// A new room for one attempt.
    pub(crate) fn room(&self, job: &Job) -> Result<Room, Error> {
        // Each room is a new one: the same attempt may need several, and the one before may still be being deleted.
        let number = self.rooms.fetch_add(1, Ordering::Relaxed);
        let root = self.rooms().join(format!("{}-{number}", job.job_id));
        for folder in ["", "home", "tmp", "brief", "out"] {
            make_private(&root.join(folder))?;
        }
        Ok(Room { root })
    }
}

/// The folders of one attempt. They are gone when it is closed or dropped, and otherwise at the worker's next start.
#[derive(Debug)]
pub(crate) struct Room {
    root: PathBuf,
}

impl Room {
    /// The isolated copy of the workspace; made by whoever cuts it.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// A home without anything in it.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// For temporary files of commands.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The instruction and the texts that it names.
    pub(crate) fn brief(&self) -> PathBuf {
        self.root.join("brief")
    }

    /// Where an agent may leave its result file.
    pub(crate) fn result(&self) -> PathBuf {
        self.root.join("out").join("result.json")
    }

    /// Where an agent may leave what it needs to go on.
    pub(crate) fn run_state(&self) -> PathBuf {
        self.root.join("out").join("run-state")
    }

    /// The raw output of the command; nobody but the worker reads it.
    pub(crate) fn output(&self) -> PathBuf {
        self.root.join("output")
    }

    /// What a command may write.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        vec![self.scratch(), self.home(), self.temporary(), self.brief(), self.root.join("out")]
    }

    /// Empties the scratch, for whoever has to cut it once more.
    pub(crate) fn clear_scratch(&self) -> Result<(), Error> {
        remove(&self.scratch())
    }

    /// Deletes the folders, and returns when they are gone.
    pub(crate) async fn close(mut self) {
        let root = std::mem::take(&mut self.root);
        // Large scratches take a while, which asynchronous threads do not have.
        let deleted = tokio::task::spawn_blocking(move || delete(&root)).await;
        deleted.expect("deleting neither panics nor is aborted");
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // Only where a job was cut off: all others close their rooms.
        if !self.root.as_os_str().is_empty() {
            delete(&self.root);
        }
    }
}

fn delete(root: &Path) {
    if let Err(error) = remove(root) {
        tracing::warn!(path = %root.display(), %error, "a job's folder could not be deleted");
    }
}

/// Deletes a folder with all that is in it, also what a command made unreadable.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => {
            unlock_folders(path);
            fs::remove_dir_all(path).map_err(io_error("delete", path))
        }
    }
}

/// Folders without write permission can't be emptied; links are not followed.
fn unlock_folders(path: &Path) {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|m| m.is_dir());
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop().filter(|folder| is_folder(folder)) {
        // What can't be changed shows itself when it is deleted.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(entries.map(|entry| entry.path()).filter(|path| is_folder(path)));
    }
}

fn make_private(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error("make", path))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_worker_left_is_swept_even_where_it_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("jobs/job-1-1/scratch/locked");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("half-made"), "x").unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o500)).unwrap();
        Cache::open(dir.path()).unwrap();
        assert!(!dir.path().join("jobs/job-1-1").exists());
    }

    #[test]
    fn two_workers_never_share_a_cache_folder() {
        let dir = tempfile::tempdir().unwrap();
        let first = Cache::open(dir.path()).unwrap();
        assert!(matches!(Cache::open(dir.path()), Err(Error::InUse(_))));
        drop(first);
        assert!(Cache::open(dir.path()).is_ok());
    }
}
