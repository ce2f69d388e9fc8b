//! New contents that no blob store keeps: files that are secret by their name,
//! and very large ones.
//!
//! The scratch is gone when a job ends, but a later step or the apply needs
//! them; so this host keeps them in the worker's cache until they are applied.
//! Losing them costs a conflict that names the path, and never a wrong file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use checkrein_shared::digest::{Digest, Hasher};
use checkrein_shared::ids::TaskId;
use checkrein_shared::tree::{Changeset, Entry, RelPath};

use crate::room::Cache;

/// Tasks whose contents are kept at most; beyond that the oldest go.
const TASKS_MAX: usize = 200;

fn folder(cache: &Cache, task: &TaskId) -> PathBuf {
    cache.kept().join(task.as_str())
}

/// Where the kept contents of a task lie, at the paths that they have in its tree; `None` where there are none.
pub(crate) fn of(cache: &Cache, task: &TaskId) -> Option<PathBuf> {
    Some(folder(cache, task)).filter(|folder| folder.is_dir())
}

/// Keeps what the changeset needs and no blob store has: from the scratch, or as it was kept before.
///
/// It may copy large files: call it where that holds up nobody.
pub(crate) fn keep(cache: &Cache, task: &TaskId, changeset: &Changeset, scratch: &Path) -> io::Result<()> {
    let wanted: Vec<(&RelPath, Digest)> = changeset
        .path_changes()
        .into_iter()
        .filter_map(|change| match change.new {
            Some(entry @ Entry::File { digest, .. }) if entry.blob().is_none() => Some((change.path, *digest)),
            _ => None,
        })
        .collect();
    let folder = folder(cache, task);
    if wanted.is_empty() {
        return remove(&folder);
    }
    let fresh = cache.kept().join(format!("{task}.new"));
    remove(&fresh)?;
    for (path, digest) in wanted {
        let to = path.under(&fresh);
        fs::create_dir_all(to.parent().unwrap_or(&fresh))?;
        // The command is over, so nothing moves under our hands; the digest tells whether it is the right file.
        let sources = [path.under(scratch), path.under(&folder)];
        if !sources.iter().any(|from| is_copied(from, &to, digest)) {
            tracing::warn!(task.id = %task, %path, "a content that is not stored could not be kept");
        }
    }
    remove(&folder)?;
    fs::rename(&fresh, &folder)
}

/// Puts kept contents into a scratch in which they are absent.
pub(crate) fn fill(cache: &Cache, task: &TaskId, absent: &BTreeMap<RelPath, Entry>, scratch: &Path) {
    let Some(folder) = of(cache, task) else { return };
    for (path, entry) in absent {
        let to = path.under(scratch);
        let filled = copy(&path.under(&folder), &to).and_then(|found| {
            if found != entry.content_digest() {
                return fs::remove_file(&to);
            }
            let mode = entry.mode().map_or(0o600, |mode| mode.bits());
            fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(mode))
        });
        if let Err(error) = filled {
            tracing::info!(task.id = %task, %path, %error, "a content that is not stored is missing in the scratch");
        }
    }
}

/// Drops what a task has kept.
pub(crate) fn forget(cache: &Cache, task: &TaskId) {
    if let Err(error) = remove(&folder(cache, task)) {
        tracing::warn!(task.id = %task, %error, "kept contents could not be deleted");
    }
}

/// Drops the contents of the tasks that were looked at longest ago, where there are too many.
pub(crate) fn sweep(kept: &Path) -> io::Result<()> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(kept)? {
        let entry = entry?;
        folders.push((entry.metadata()?.modified()?, entry.path()));
    }
    folders.sort();
    let surplus = folders.len().saturating_sub(TASKS_MAX);
    folders.into_iter().take(surplus).try_for_each(|(_, path)| remove(&path))
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a file; where it is not the right one, nothing stays.
fn is_copied(from: &Path, to: &Path, digest: Digest) -> bool {
    let right = copy(from, to).is_ok_and(|found| found == digest);
    if !right {
        // It may not exist at all, which is what is wanted.
        let _ = fs::remove_file(to);
    }
    right
}

/// Copies a regular file and returns the digest of what was written.
fn copy(from: &Path, to: &Path) -> io::Result<Digest> {
    if !from.symlink_metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut from = fs::File::open(from)?;
    let mut to = fs::File::create_new(to)?;
    let (mut hasher, mut buffer) = (Hasher::new(), vec![0; 128 << 10]);
    loop {
        match io::Read::read(&mut from, &mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => {
                hasher.update(&buffer[..count]);
                io::Write::write_all(&mut to, &buffer[..count])?;
            }
        }
    }
}
