//! Reading one blob, and checking that it is what its name says.
//!
//! Never trusts a file: a symbolic link is not followed, a size is checked
//! before memory is taken, and the digest of the bytes decides.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Error, path_of};
use crate::digest::Digest;

/// Reads at most `limit` bytes of a blob below `root` and checks its digest. Changes nothing, so the folder may be
/// somebody else's.
///
/// # Errors
///
/// As [`super::super::Blobs::get`].
pub fn read(root: &Path, digest: Digest, limit: u64) -> Result<Vec<u8>, Error> {
    let path = path_of(root, digest);
    let doing = || format!("read {}", path.display());
    let Some(file) = open(&path)? else { return Err(Error::Missing(digest)) };
    let size = file.metadata().map_err(|source| Error::Io { doing: doing(), source })?.len();
    if size > limit {
        return Err(Error::TooLarge { size, limit });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // One byte more than the size: a file that grew meanwhile fails its digest, not our memory.
    file.take(size + 1).read_to_end(&mut bytes).map_err(|source| Error::Io { doing: doing(), source })?;
    match Digest::of(&bytes) {
        found if found == digest => Ok(bytes),
        found => Err(Error::Damaged { expected: digest, found }),
    }
}

/// The size of a blob's file below `root`, if there is one. Changes nothing.
///
/// # Errors
///
/// As [`super::super::Blobs::size`].
pub fn size(root: &Path, digest: Digest) -> Result<Option<u64>, Error> {
    let path = path_of(root, digest);
    match std::fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { doing: format!("measure {}", path.display()), source }),
    }
}

/// Whether `path` holds exactly `bytes`.
pub(super) fn holds(path: &Path, bytes: &[u8]) -> Result<Option<File>, Error> {
    let Some(mut file) = open(path)? else { return Ok(None) };
    let doing = || format!("compare {}", path.display());
    let size = file.metadata().map_err(|source| Error::Io { doing: doing(), source })?.len();
    if size != bytes.len() as u64 {
        return Ok(None);
    }
    let mut rest = bytes;
    let mut buffer = vec![0; rest.len().clamp(1, 1 << 16)];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Error::Io { doing: doing(), source }),
        };
        match rest.split_at_checked(count) {
            Some((head, tail)) if count > 0 && head == &buffer[..count] => rest = tail,
            Some(_) if count == 0 && rest.is_empty() => return Ok(Some(file)),
            _ => return Ok(None),
        }
    }
}

fn open(path: &Path) -> Result<Option<File>, Error> {
    match OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path) {
        Ok(file) if file.metadata().is_ok_and(|metadata| metadata.is_file()) => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // What a symbolic link answers under O_NOFOLLOW: it is not a blob.
        Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => Ok(None),
        Err(source) => Err(Error::Io { doing: format!("open {}", path.display()), source }),
    }
}
