//! Opening a journal after whatever happened to it.
//!
//! Only the end of the last segment can be unfinished by a crash: bytes of a
//! batch that nobody was told about. They are put aside and cut off, once, and
//! that is logged. Everything else that is wrong is an error that names the
//! place; nothing that was acknowledged is ever cut off, and a journal that has
//! lost its end is never taken for a shorter one, nor for a new one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::guards::guard;

use super::front::{Front, front};
use super::head::HeadFile;
use super::repair::{Repaired, TornTail, repair};
use super::scan::{Scan, ScanError, last_record};
use super::{FORMAT, Head, Writer, segment};
use crate::store::error::Error;

/// Something outside the journal that remembers how long it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Witness {
    pub(super) name: &'static str,
    pub(super) head: Head,
}

/// A journal that is ready.
pub(in crate::store) struct Opened {
    pub(in crate::store) writer: Writer,
    pub(in crate::store) torn: Option<TornTail>,
    /// Where the chain begins.
    pub(in crate::store) front: Front,
    /// Whether the head file was missing and was written anew.
    pub(in crate::store) head_file_was_missing: bool,
}

/// As [`open_from`], where nobody knows of anything pruned.
#[cfg(test)]
pub(in crate::store) fn open(
    folder: &Path,
    segment_bytes_max: u64,
    index: Option<Head>,
    had_index: bool,
) -> Result<Opened, Error> {
    open_from(folder, segment_bytes_max, index, had_index, None)
}

/// Opens the journal in `folder`, or begins it where there is nothing at all.
///
/// `index` is what the index knows, if there is one; `had_index` says that one
/// has been there at all, so that this can't be the first run; `known_front` is
/// where the chain begins as far as the index knows.
pub(in crate::store) fn open_from(
    folder: &Path,
    segment_bytes_max: u64,
    index: Option<Head>,
    had_index: bool,
    known_front: Option<Front>,
) -> Result<Opened, Error> {
    let head_file = HeadFile::new(folder);
    let recorded = head_file.read()?;
    let segments = if is_there(folder)? { segment::list(folder)? } else { Vec::new() };
    let witnesses: Vec<Witness> = [("head file", recorded), ("index", index)]
        .into_iter()
        .filter_map(|(name, head)| Some(Witness { name, head: head? }))
        .collect();
    let Some(&last) = segments.last() else {
        return begin(folder, segment_bytes_max, &head_file, &witnesses, had_index);
    };
    let front = front(folder, &segments, known_front)?;
    if witnesses.is_empty() && !is_unused(folder, last)? {
        return Err(Error::Unwitnessed { path: head_file.path().to_path_buf() });
    }
    segment::clear_unborn(folder)?;
    let mut opened = resume(folder, segment_bytes_max, (front, last), &witnesses)?;
    if recorded.is_none() {
        tracing::warn!(folder = %folder.display(), "the journal's head file was missing and is written anew");
        head_file.write(opened.writer.head()).map_err(Error::io("write the journal's head file"))?;
        opened.head_file_was_missing = opened.writer.head().count > 0;
    }
    Ok(opened)
}

fn is_there(folder: &Path) -> Result<bool, Error> {
    folder.try_exists().map_err(Error::io(format!("look at the folder {}", folder.display())))
}

/// Whether nothing has ever been written but the header of the first segment: a crash in the first moment leaves that,
/// and no head file yet.
fn is_unused(folder: &Path, last: u32) -> Result<bool, Error> {
    let scan = Scan::open(folder, last, None)?;
    let length = scan.path().metadata().map_err(Error::io(format!("measure {}", scan.path().display())))?.len();
    Ok(last == 1 && length == scan.offset())
}

/// The first run: there must be no sign of an earlier one.
fn begin(
    folder: &Path,
    segment_bytes_max: u64,
    head_file: &HeadFile,
    witnesses: &[Witness],
    had_index: bool,
) -> Result<Opened, Error> {
    for witness in witnesses {
        if witness.head.count > 0 {
            return Err(Error::LostAcknowledged { witness: witness.name, recorded: witness.head.count, found: 0 });
        }
    }
    if had_index {
        return Err(Error::MissingSegment(segment::path_of(folder, 1)));
    }
    let doing = || format!("begin the journal in {}", folder.display());
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(Error::io(format!("make the folder {}", folder.display())))?;
    segment::clear_unborn(folder)?;
    // The folders themselves may be as young as what is in them.
    for above in folder.ancestors().skip(1).take(2).filter(|above| !above.as_os_str().is_empty()) {
        File::open(above).and_then(|above| above.sync_all()).map_err(Error::io(doing()))?;
    }
    let head = Head::default();
    let (file, length) = segment::create(folder, 1, head).map_err(Error::io(doing()))?;
    head_file.write(head).map_err(Error::io(doing()))?;
    let writer = Writer::new(folder.to_path_buf(), 1, file, length, head, segment_bytes_max);
    Ok(Opened { writer, torn: None, front: Front::default(), head_file_was_missing: false })
}

fn resume(
    folder: &Path,
    segment_bytes_max: u64,
    (front, last): (Front, u32),
    witnesses: &[Witness],
) -> Result<Opened, Error> {
    let checker = Checker { witnesses };
    let first = first_to_scan(folder, (front, last), witnesses)?;
    let mut before = Some(check_ends(folder, front, first)?);
    for number in first..last {
        let mut scan = Scan::open(folder, number, before)?;
        checker.check(scan.head())?;
        while let Some(entry) = scan.next_sound()? {
            checker.check(entry.head)?;
        }
        before = Some(scan.head());
    }
    let mut scan = Scan::open(folder, last, before)?;
    checker.check(scan.head())?;
    let torn = loop {
        match scan.next() {
            Ok(Some(entry)) => checker.check(entry.head)?,
            Ok(None) => break None,
            Err(ScanError::Flaw(flaw)) => match repair(&scan, flaw, |left| checker.check_end(left))? {
                Repaired::Cut(torn) => break Some(torn),
                // The last record is whole now, so everything is read once more.
                Repaired::Completed(torn) => {
                    let opened = resume(folder, segment_bytes_max, (front, last), witnesses)?;
                    return Ok(Opened { torn: Some(torn), ..opened });
                }
            },
            Err(ScanError::Other(error)) => return Err(error),
        }
    };
    checker.check_end(scan.head())?;
    let path = scan.path();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(Error::io(format!("open {} for writing", path.display())))?;
    // A killed process may have written records that no sync has reached. They are read and acted upon from now on,
    // so they must survive a power cut from now on.
    file.sync_data().map_err(Error::io(format!("sync {}", path.display())))?;
    let mut writer = Writer::new(folder.to_path_buf(), last, file, scan.offset(), scan.head(), segment_bytes_max);
    if scan.format() != FORMAT {
        writer.begin_segment();
    }
    Ok(Opened { writer, torn, front, head_file_was_missing: false })
}

/// The segment from which on everything is read: it holds the oldest record that a witness names.
/// What lies before was checked when it was written, and is checked when it is read.
fn first_to_scan(folder: &Path, (front, last): (Front, u32), witnesses: &[Witness]) -> Result<u32, Error> {
    let oldest = witnesses.iter().map(|witness| witness.head.count).min().unwrap_or(0);
    for number in (front.segment + 1..=last).rev() {
        if Scan::open(folder, number, None)?.head().count <= oldest {
            return Ok(number);
        }
    }
    Ok(front.segment)
}

/// Checks header and last record of each segment before `first`, so that none has lost its
/// end; returns the head before `first`.
fn check_ends(folder: &Path, front: Front, first: u32) -> Result<Head, Error> {
    let mut before = front.head;
    for number in front.segment..first {
        Scan::open(folder, number, Some(before))?;
        before = last_record(folder, number)?;
    }
    Ok(before)
}

/// Compares the chain with what others remember of it.
pub(super) struct Checker<'a> {
    pub(super) witnesses: &'a [Witness],
}

impl Checker<'_> {
    pub(super) fn check(&self, head: Head) -> Result<(), Error> {
        for Witness { name, head: recorded } in self.witnesses {
            if recorded.count == head.count && recorded.hash != head.hash {
                return Err(Error::mismatch(name, head.count, recorded.hash, head.hash));
            }
        }
        Ok(())
    }

    pub(super) fn check_end(&self, head: Head) -> Result<(), Error> {
        match self.witnesses.iter().find(|w| !guard!(NothingAcknowledgedLost, w.head.count <= head.count)) {
            Some(Witness { name: witness, head: recorded }) => {
                Err(Error::LostAcknowledged { witness, recorded: recorded.count, found: head.count })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
