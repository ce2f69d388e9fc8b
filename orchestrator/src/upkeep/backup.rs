//! Copying a data folder while it is in use.
//!
//! First the journal as it stands, up to its last whole record; then the blobs
//! that those records name, which are there because blobs come before records;
//! then the keys. Then the copy is checked like any data folder. A backup is a
//! data folder itself: what restores it is using it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use checkrein_shared::blob::{self, Blobs as _, FsBlobs};
use serde::Serialize;

use super::named::Named;
use super::{Audit, DataFolder, audit};
use crate::store::{self, Head};

/// The largest blob that is copied.
const BLOB_BYTES_MAX: u64 = blob::BLOB_BYTES_MAX;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder for it has something in it.
    #[error("{} is not empty: name a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// It would lie inside of what is copied.
    #[error("{} lies inside the data folder: name one elsewhere, best on another disk", .0.display())]
    Inside(PathBuf),
    /// The journal can't be read.
    #[error("the journal can't be copied")]
    Store(#[from] store::Error),
    /// A blob can't be copied.
    #[error("a blob can't be copied")]
    Blob(#[from] blob::Error),
    /// The file system failed.
    #[error("can't {doing}")]
    Io {
        /// What was being done, with the path.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// The copy is not sound, so the original may not be either.
    #[error("the copy is not sound: {}", .0.problems.first().map_or("", |problem| problem.what.as_str()))]
    Unsound(Box<Audit>),
}

impl BackupError {
    /// Whether stored data is damaged or gone.
    pub fn is_integrity(&self) -> bool {
        match self {
            Self::Store(error) => error.is_integrity(),
            Self::Blob(error) => matches!(error, blob::Error::Damaged { .. } | blob::Error::Missing(_)),
            Self::Unsound(_) => true,
            Self::NotEmpty(_) | Self::Inside(_) | Self::Io { .. } => false,
        }
    }
}

fn failed(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let doing = format!("{doing} {}", path.display());
    move |source| BackupError::Io { doing, source }
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// The newest record in it.
    pub head: Head,
    /// How many tasks it holds.
    pub tasks: u64,
    /// How many blobs were copied.
    pub blobs: u64,
    /// How many bytes they hold.
    pub bytes: u64,
    /// Whether the keys are in it, so that it has to be kept as safe as the data folder.
    pub keys: bool,
}

/// Copies `data` to `target`, which must not exist or be empty, and checks the copy.
///
/// # Errors
///
/// See [`BackupError`]; what was copied stays for a look and is no backup.
pub async fn backup(data: &DataFolder, target: &DataFolder) -> Result<Backup, BackupError> {
    prepare(data, target)?;
    let (source, copied) = (data.clone(), target.clone());
    let (head, named, tasks) = blocking(move || copy_journal(&source, &copied)).await?;
    let (root, to) = (data.blobs(), FsBlobs::open(target.blobs())?);
    let (mut blobs, mut bytes) = (0, 0);
    let listed = {
        let root = root.clone();
        // What is missing shows when the copy is checked.
        blocking(move || Ok(named.blobs(&root, &mut |_, _| {}))).await?
    };
    for digest in listed {
        let root = root.clone();
        let read = blocking(move || match blob::read_from(&root, digest, BLOB_BYTES_MAX) {
            Ok(content) => Ok(Some(content)),
            Err(blob::Error::Missing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        });
        if let Some(content) = read.await? {
            to.put(&content).await?;
            blobs += 1;
            bytes += content.len() as u64;
        }
    }
    let keys = copy_folder(&data.keys(), &target.keys())?;
    let checked = target.clone();
    let audit = blocking(move || Ok(audit(&checked))).await?;
    if audit.is_sound() {
        Ok(Backup { head, tasks, blobs, bytes, keys })
    } else {
        Err(BackupError::Unsound(Box::new(audit)))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(join) => Err(BackupError::Io { doing: "finish the backup".to_owned(), source: io::Error::other(join) }),
    }
}

fn prepare(data: &DataFolder, target: &DataFolder) -> Result<(), BackupError> {
    let root = target.root();
    make_folder(root)?;
    let entries = root.read_dir().map_err(failed("list", root))?;
    if entries.count() > 0 {
        return Err(BackupError::NotEmpty(root.to_path_buf()));
    }
    let inside = |path: &Path| path.canonicalize().map_err(failed("find", path));
    if inside(root)?.starts_with(inside(data.root())?) {
        return Err(BackupError::Inside(root.to_path_buf()));
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), BackupError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("make the folder", path))
}

/// Copies the segments as they stand; then checks the copy record by record, cuts what is unfinished and
/// notes the head. Returns what its records name.
fn copy_journal(data: &DataFolder, target: &DataFolder) -> Result<(Head, Named, u64), BackupError> {
    let (from, to) = (data.store().join("journal"), target.store().join("journal"));
    make_folder(&to)?;
    for segment in store::segment_files(&data.store())? {
        let name = segment.file_name().unwrap_or_default();
        copy_file(&from.join(name), &to.join(name))?;
    }
    let mut named = Named::default();
    let report = store::verify_each(&target.store(), |recorded| named.add(recorded))?;
    named.keep(&report.newest);
    store::finish_copy(&target.store(), &report)?;
    Ok((report.head, named, report.tasks))
}

fn copy_folder(from: &Path, to: &Path) -> Result<bool, BackupError> {
    if !from.exists() {
        return Ok(false);
    }
    make_folder(to)?;
    for entry in from.read_dir().map_err(failed("list", from))? {
        let entry = entry.map_err(failed("list", from))?;
        let is_file = entry.file_type().map_err(failed("look at", &entry.path()))?.is_file();
        if is_file {
            copy_file(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(true)
}

/// Copies a file durably, readable for its owner only; of one that grows, what was there at the beginning.
fn copy_file(from: &Path, to: &Path) -> Result<(), BackupError> {
    let source = File::open(from).map_err(failed("open", from))?;
    let size = source.metadata().map_err(failed("measure", from))?.len();
    let copy = || {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(to)?;
        io::copy(&mut source.take(size), &mut file)?;
        file.flush()?;
        file.sync_all()?;
        to.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    copy().map_err(failed("write", to))
}
