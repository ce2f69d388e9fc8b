//! Looking at a store that somebody else may have open, and finishing a copy of one.
//!
//! Opens no store. The index is looked at in a copy, because opening it writes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::index::Index;
use super::journal::{self, Head, HeadFile, Scan};
use super::lock;
use super::verify::Report;
use checkrein_shared::causes::with_causes;

/// How much of the copied index is kept in memory.
const CACHE_BYTES: u64 = 8 << 20;

/// What [`check_index`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexCheck {
    /// There is none.
    Missing,
    /// Another process has it open, so it can't be looked at.
    InUse,
    /// It could not be looked at, for this reason.
    Unread(String),
    /// It is not what was written to it.
    Broken(String),
    /// It holds exactly what was written to it, up to this record.
    Sound(Head),
}

impl IndexCheck {
    /// The number of the newest record that it holds, if that is known.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Sound(head) => Some(head.count),
            Self::Missing | Self::InUse | Self::Unread(_) | Self::Broken(_) => None,
        }
    }
}

/// Checks the index of the store in `folder` without changing it.
pub fn check_index(folder: &Path) -> IndexCheck {
    let index = folder.join("index");
    if !index.exists() {
        return IndexCheck::Missing;
    }
    let copied = match lock::while_free(folder, || copy(&index)) {
        Ok(Some(copied)) => copied,
        Ok(None) => return IndexCheck::InUse,
        Err(error) => return IndexCheck::Unread(with_causes(&error)),
    };
    let copied = match copied {
        Ok(copied) => copied,
        Err(error) => return IndexCheck::Unread(format!("it can't be copied for a look: {error}")),
    };
    match Index::open(copied.path(), CACHE_BYTES) {
        Ok(index) => IndexCheck::Sound(index.head()),
        Err(error) => IndexCheck::Broken(with_causes(&error)),
    }
}

fn copy(index: &Path) -> std::io::Result<tempfile::TempDir> {
    let copied = tempfile::tempdir()?;
    let mut folders = vec![(index.to_path_buf(), copied.path().to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        std::fs::create_dir_all(&to)?;
        for entry in from.read_dir()? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push((entry.path(), target));
            } else {
                // The copy is written to, whatever may be done with the original.
                std::io::copy(&mut File::open(entry.path())?, &mut File::create(target)?)?;
            }
        }
    }
    Ok(copied)
}

/// How many records were pruned from the journal, and the number of the newest one.
///
/// # Errors
///
/// [`Error::Io`], and what is wrong with the headers of the first and the last segment.
pub fn extent(folder: &Path) -> Result<(u64, u64), Error> {
    let folder = folder.join("journal");
    let segments = journal::list(&folder)?;
    let (Some(&first), Some(&last)) = (segments.first(), segments.last()) else { return Ok((0, 0)) };
    let pruned = Scan::open(&folder, first, None)?.head().count;
    let mut scan = Scan::open(&folder, last, None)?;
    while let Ok(Some(_)) = scan.next() {}
    Ok((pruned, scan.head().count))
}

/// The segment files of the store in `folder`, oldest first.
///
/// # Errors
///
/// [`Error::Io`] and [`Error::MissingSegment`].
pub fn segment_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = folder.join("journal");
    Ok(journal::list(&folder)?.into_iter().map(|segment| journal::path_of(&folder, segment)).collect())
}

/// Makes a copied journal that `report` is about a whole one: without an unfinished end, and with its head beside it.
///
/// # Errors
///
/// [`Error::Io`].
pub fn finish_copy(folder: &Path, report: &Report) -> Result<(), Error> {
    if let Some(last) = segment_files(folder)?.last().filter(|_| report.unfinished_bytes > 0 || report.lacks_end) {
        let finish = || {
            let file = OpenOptions::new().write(true).open(last)?;
            let end = file.metadata()?.len().saturating_sub(report.unfinished_bytes);
            file.set_len(end)?;
            if report.lacks_end {
                file.write_all_at(b"\n", end)?;
            }
            file.sync_all()
        };
        finish().map_err(Error::io(format!("finish {}", last.display())))?;
    }
    HeadFile::new(&folder.join("journal")).write(report.head).map_err(Error::io("write the journal's head file"))
}

/// Wraps a failure to list a folder.
pub fn io_error(folder: &Path) -> impl FnOnce(std::io::Error) -> Error {
    Error::io(format!("list {}", folder.display()))
}
