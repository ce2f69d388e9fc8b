//! Finding everything that counts beneath a directory, on several threads.
//!
//! Links are found and never followed. Git's own files are passed by at any
//! depth, whether `.git` is a directory or, in worktrees and submodules, a file;
//! the contents beside them count.

use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard};

use checkrein_shared::tree::RelPath;
use checkrein_shared::tree::manifest::ENTRIES_MAX;
use checkrein_shared::tree::path::is_git_name;
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::STAGE_NAME;
use super::beneath::Root;
use super::cache::StatKey;
use super::rules::{Counts, Enter, Rules};
use super::snapshot::{Error, Skipped};

/// Something that counts.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: RelPath,
    pub(crate) stat: StatKey,
    pub(crate) is_link: bool,
    pub(crate) sealed: bool,
}

/// What a walk found, in no order.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) found: Vec<Found>,
    pub(crate) skipped: Vec<Skipped>,
}

/// A directory that waits to be read.
struct Job {
    directory: Option<RelPath>,
    tracked_only: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Vec<Job>,
    busy: usize,
    walk: Walk,
    failed: Option<Error>,
}

/// Walks a directory.
pub(crate) fn walk(root: &Root, rules: &Rules, threads: usize) -> Result<Walk, Error> {
    let first = Job { directory: None, tracked_only: false };
    let shared = Mutex::new(Shared { waiting: vec![first], ..Shared::default() });
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| work(root, rules, &shared, &changed));
        }
    });
    let shared = shared.into_inner().expect(NO_PANIC);
    match shared.failed {
        Some(error) => Err(error),
        None => Ok(shared.walk),
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect(NO_PANIC)
}

fn work(root: &Root, rules: &Rules, shared: &Mutex<Shared>, changed: &Condvar) {
    loop {
        let mut guard = lock(shared);
        let job = loop {
            match guard.waiting.pop() {
                Some(job) => break job,
                None if guard.busy == 0 => return,
                None => guard = changed.wait(guard).expect(NO_PANIC),
            }
        };
        guard.busy += 1;
        drop(guard);
        let result = read_directory(root, rules, &job);
        let mut guard = lock(shared);
        guard.busy -= 1;
        match result {
            Ok((jobs, walk)) => {
                guard.waiting.extend(jobs);
                guard.walk.found.extend(walk.found);
                guard.walk.skipped.extend(walk.skipped);
                if guard.walk.found.len() > ENTRIES_MAX {
                    guard.waiting.clear();
                    guard.failed = Some(Error::TooManyFiles(root.path().to_owned()));
                }
            }
            Err(error) => {
                guard.waiting.clear();
                guard.failed.get_or_insert(error);
            }
        }
        if guard.failed.is_some() {
            guard.waiting.clear();
        }
        changed.notify_all();
    }
}

fn read_directory(root: &Root, rules: &Rules, job: &Job) -> Result<(Vec<Job>, Walk), Error> {
    let (mut jobs, mut walk) = (Vec::new(), Walk::default());
    let path = job.directory.as_ref().map_or_else(|| root.path().to_owned(), |d| d.under(root.path()));
    let fd = match root.directory(job.directory.as_ref()) {
        // It went away between being listed and being opened.
        Err(e) if job.directory.is_some() && e.kind() == io::ErrorKind::NotFound => return Ok((jobs, walk)),
        other => other.map_err(|e| unreadable(path.clone(), e))?,
    };
    let entries = Dir::read_from(&fd).map_err(|e| unreadable(path.clone(), e.into()))?;
    for entry in entries {
        let entry = entry.map_err(|e| unreadable(path.clone(), e.into()))?;
        let name = entry.file_name().to_bytes();
        let at_top = job.directory.is_none();
        if matches!(name, b"." | b".." | b".git") || (at_top && name == STAGE_NAME.as_bytes()) {
            continue;
        }
        let here = path.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
        if is_git_name(name) {
            walk.skipped.push(Skipped { path: here, reason: "its name is git's, in other letter case" });
            continue;
        }
        let child = match &job.directory {
            None => RelPath::from_bytes(name),
            Some(directory) => directory.child(name),
        };
        let child = child.map_err(|source| Error::Path { path: here.clone(), source })?;
        let stat = match statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => continue,
            other => other.map_err(|e| unreadable(here.clone(), e.into()))?,
        };
        let key = StatKey::of(&stat);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => match rules.directory(&child, job.tracked_only) {
                Enter::No => {}
                enter => jobs.push(Job { directory: Some(child), tracked_only: enter == Enter::TrackedOnly }),
            },
            kind @ (FileType::RegularFile | FileType::Symlink) => match rules.file(&child, job.tracked_only) {
                Counts::No => {}
                counts => walk.found.push(Found {
                    path: child,
                    stat: key,
                    is_link: kind == FileType::Symlink,
                    sealed: counts == Counts::Sealed,
                }),
            },
            _ if rules.file(&child, job.tracked_only) == Counts::No => {}
            _ => walk.skipped.push(Skipped { path: here, reason: "it is neither a file, a link nor a directory" }),
        }
    }
    Ok((jobs, walk))
}

fn unreadable(path: PathBuf, source: io::Error) -> Error {
    Error::Io { path, source }
}
