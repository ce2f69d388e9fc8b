//! Segment files: their names, their order, and their birth.
//!
//! A segment appears under its name only with its header written and synced, so
//! a header is never half there. Reads and writes no records.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Head;
use super::codec::{Header, HeaderFlaw};
use crate::store::error::Error;

const SUFFIX: &str = ".jsonl";
const TEMP_SUFFIX: &str = ".tmp";

/// The file of a segment.
pub(in crate::store) fn path_of(folder: &Path, segment: u32) -> PathBuf {
    folder.join(format!("{segment:08}{SUFFIX}"))
}

/// The numbers of all segments, in order and without gaps. Whether the first may be another than 1 is for
/// [`super::front`] to say.
pub(in crate::store) fn list(folder: &Path) -> Result<Vec<u32>, Error> {
    let doing = || format!("list the journal in {}", folder.display());
    let mut segments = Vec::new();
    for entry in folder.read_dir().map_err(Error::io(doing()))? {
        let name = entry.map_err(Error::io(doing()))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)).and_then(|digits| digits.parse().ok());
        if let Some(number) = number.filter(|number| path_of(folder, *number).file_name() == Some(&name)) {
            segments.push(number);
        }
    }
    segments.sort_unstable();
    let first = segments.first().copied().unwrap_or(1);
    match (first..).zip(&segments).find(|(expected, found)| expected != *found) {
        Some((missing, _)) => Err(Error::MissingSegment(path_of(folder, missing))),
        None => Ok(segments),
    }
}

/// Makes the segment that follows `head`, durably; returns it with its length.
pub(super) fn create(folder: &Path, segment: u32, head: Head) -> std::io::Result<(File, u64)> {
    let path = path_of(folder, segment);
    let temp = path.with_extension(format!("jsonl{TEMP_SUFFIX}"));
    let header = Header::new(segment, head).encode();
    let mut file = OpenOptions::new().create(true).truncate(true).read(true).write(true).mode(0o600).open(&temp)?;
    let written = file.write_all(&header).and_then(|()| file.sync_all());
    written.and_then(|()| std::fs::rename(&temp, &path)).inspect_err(|_| drop(std::fs::remove_file(&temp)))?;
    File::open(folder)?.sync_all()?;
    Ok((file, header.len() as u64))
}

/// Removes files whose birth was interrupted; they never held a record.
pub(super) fn clear_unborn(folder: &Path) -> Result<(), Error> {
    let doing = || format!("list the journal in {}", folder.display());
    for entry in folder.read_dir().map_err(Error::io(doing()))? {
        let path = entry.map_err(Error::io(doing()))?.path();
        if path.extension().is_some_and(|extension| extension == &TEMP_SUFFIX[1..]) {
            std::fs::remove_file(&path).map_err(Error::io(format!("remove the leftover {}", path.display())))?;
        }
    }
    Ok(())
}

/// Removes what crashes left of a segment's end; it goes with the segment.
pub(super) fn remove_torn(folder: &Path, segment: u32) -> Result<(), Error> {
    let doing = || format!("list the journal in {}", folder.display());
    let begin = format!("{segment:08}.");
    for entry in folder.read_dir().map_err(Error::io(doing()))? {
        let path = entry.map_err(Error::io(doing()))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(&begin) && name.ends_with(".torn") {
            std::fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
        }
    }
    Ok(())
}

/// Reads the header line of a segment.
pub(super) fn read_header(path: &Path, segment: u32, line: &[u8]) -> Result<Header, Error> {
    let damaged = |what| Error::Damaged { segment: path.to_path_buf(), line: 1, offset: 0, what };
    let header = Header::decode(line).map_err(|flaw| match flaw {
        HeaderFlaw::Format(found) => Error::UnknownFormat { path: path.to_path_buf(), found, supported: super::FORMAT },
        HeaderFlaw::Text(what) => damaged(what),
    })?;
    if header.segment != segment {
        return Err(damaged(format!("the header is that of segment {}", header.segment)));
    }
    if (header.sequence == 1) != header.previous.is_none() {
        return Err(damaged("the header contradicts itself".to_owned()));
    }
    Ok(header)
}
