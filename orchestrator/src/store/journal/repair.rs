//! Repairing the end of the journal after a crash, and telling a crash from damage.
//!
//! Bytes that are cut off are kept beside the segment. What a crash can't have
//! left is not touched.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Head;
use super::codec;
use super::scan::{Flaw, Scan};
use crate::store::error::Error;

/// A run of zero bytes this long is a hole that a crash left, not text with a flipped bit.
const HOLE_BYTES: usize = 8;

/// What a crash left at the end of the journal, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment that was repaired.
    pub segment: PathBuf,
    /// Where it was cut.
    pub offset: u64,
    /// How many bytes were cut off; 0 where only a line's end was missing and was added.
    pub bytes: u64,
    /// Where the bytes are kept.
    pub kept: Option<PathBuf>,
}

/// How the end of the journal was repaired.
pub(super) enum Repaired {
    /// An unfinished record was cut off.
    Cut(TornTail),
    /// The last record lacked only its line's end, which was added.
    Completed(TornTail),
}

/// Repairs the end of the last segment, if a crash can have left it so. `may_cut` refuses
/// where somebody remembers more than would be left.
pub(super) fn repair(
    scan: &Scan,
    flaw: Flaw,
    may_cut: impl FnOnce(Head) -> Result<(), Error>,
) -> Result<Repaired, Error> {
    let path = scan.path().to_path_buf();
    let doing = || format!("repair {}", path.display());
    let tail = read_from(&path, flaw.offset)?;
    let bytes = tail.len() as u64;
    if let Some(sound) = flaw.sound_bytes {
        if bytes > sound + 1 {
            return Err(scan.damaged(flaw));
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(Error::io(doing()))?;
        let end = flaw.offset + sound;
        file.write_all_at(b"\n", end).and_then(|()| file.sync_all()).map_err(Error::io(doing()))?;
        tracing::warn!(segment = %path.display(), "the journal's last line had no end; it was added");
        return Ok(Repaired::Completed(TornTail { segment: path, offset: end, bytes: 0, kept: None }));
    }
    if !is_unfinished(&tail) {
        return Err(scan.damaged(flaw));
    }
    may_cut(scan.head())?;
    let kept = path.with_extension(format!("{}.torn", flaw.offset));
    let put_aside = || {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&kept)?;
        file.write_all(&tail)?;
        file.sync_all()?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
        let segment = OpenOptions::new().write(true).open(&path)?;
        segment.set_len(flaw.offset)?;
        segment.sync_all()
    };
    put_aside().map_err(Error::io(doing()))?;
    tracing::warn!(
        segment = %path.display(), offset = flaw.offset, bytes, kept = %kept.display(),
        "cut off an unfinished record that a crash left at the end of the journal; nobody had been told that it was stored"
    );
    Ok(Repaired::Cut(TornTail { segment: path, offset: flaw.offset, bytes, kept: Some(kept) }))
}

/// Whether these bytes at the end of a segment are what a crash leaves of a write: without a
/// line's end, or with a hole where a page did not reach the disk; and nothing sound after them.
pub(super) fn is_unfinished(tail: &[u8]) -> bool {
    let hole = || tail.windows(HOLE_BYTES).any(|run| run.iter().all(|b| *b == 0));
    let sound = |line: &[u8]| codec::open_line(line).is_ok();
    (!tail.contains(&b'\n') || hole()) && !tail.split_inclusive(|b| *b == b'\n').any(sound)
}

/// How many bytes are unfinished at the end of a segment; `None` where the flaw is damage.
pub(in crate::store) fn unfinished_tail(scan: &Scan, flaw: &Flaw) -> Result<Option<u64>, Error> {
    let tail = read_from(scan.path(), flaw.offset)?;
    let bytes = tail.len() as u64;
    let unfinished = match flaw.sound_bytes {
        Some(sound) => bytes <= sound + 1,
        None => is_unfinished(&tail),
    };
    Ok(unfinished.then_some(bytes))
}

fn read_from(path: &Path, offset: u64) -> Result<Vec<u8>, Error> {
    let mut tail = Vec::new();
    let mut read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        file.read_to_end(&mut tail)
    };
    read().map_err(Error::io(format!("read {}", path.display())))?;
    Ok(tail)
}
