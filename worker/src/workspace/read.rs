//! Reading one file while others may be writing it.

use std::io::{self, Read as _};

use checkrein_shared::digest::{Digest, Hasher};
use rustix::fs::{FileType, fstat};

use super::beneath::Place;
use super::cache::StatKey;

/// How often a file that changes is read before that is an error.
const TRIES_MAX: usize = 8;

/// One state of a file.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) stat: StatKey,
    pub(crate) size: u64,
    pub(crate) digest: Digest,
    /// Its bytes, if they were asked for and are not too many.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Reads a file until its times and size are the same before and after; keeps its bytes up to `keep`.
pub(crate) fn read_stable(place: &Place<'_>, keep: Option<u64>) -> io::Result<Contents> {
    for _ in 0..TRIES_MAX {
        let mut file = place.open_file()?;
        let stat = fstat(&file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(io::Error::other("it is no regular file any more"));
        }
        let before = StatKey::of(&stat);
        let keep = keep.filter(|limit| before.size() <= *limit);
        let mut hasher = Hasher::new();
        let mut bytes = Vec::with_capacity(keep.map_or(0, |_| usize::try_from(before.size()).unwrap_or(0)));
        let mut buffer = vec![0; 128 << 10];
        let mut size = 0;
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            size += count as u64;
            hasher.update(&buffer[..count]);
            if keep.is_some() && size <= before.size() {
                bytes.extend_from_slice(&buffer[..count]);
            }
        }
        if StatKey::of(&fstat(&file)?) == before && size == before.size() {
            return Ok(Contents { stat: before, size, digest: hasher.finish(), bytes: keep.map(|_| bytes) });
        }
    }
    Err(io::Error::other("it is being written all the time: stop what writes it, or exclude it"))
}
