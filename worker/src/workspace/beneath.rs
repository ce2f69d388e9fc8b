//! Opening what stands beneath a directory, without ever following a link.
//!
//! Each directory on the way is opened from the one above it, so a link that
//! appears meanwhile leads to an error and never out of the directory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use checkrein_shared::tree::{LinkTarget, RelPath};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, openat, readlinkat, statat};

/// A directory, held open.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

/// An open directory and a name in it.
pub(crate) struct Place<'a> {
    /// The directory.
    pub(crate) directory: OwnedFd,
    /// The name.
    pub(crate) name: &'a [u8],
}

/// How directories are opened: never through a link.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Root {
    /// Opens a directory that the caller trusts; here links are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: rustix::fs::open(path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Its path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory beneath it, or itself.
    pub(crate) fn directory(&self, path: Option<&RelPath>) -> io::Result<OwnedFd> {
        let mut at = self.fd.try_clone()?;
        for name in path.iter().flat_map(|path| path.components()) {
            at = openat(&at, name, DIRECTORY, Mode::empty())?;
        }
        Ok(at)
    }

    /// Opens the directory that holds `path`.
    pub(crate) fn place<'a>(&self, path: &'a RelPath) -> io::Result<Place<'a>> {
        Ok(Place { directory: self.directory(path.parent().as_ref())?, name: path.name() })
    }
}

impl Place<'_> {
    /// What stands here; links are not followed.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens a regular file. A pipe or a device does not block.
    pub(crate) fn open_file(&self) -> io::Result<File> {
        open_file(&self.directory, self.name)
    }

    /// Where a link points.
    pub(crate) fn link(&self) -> io::Result<LinkTarget> {
        link(&self.directory, self.name)
    }
}

/// Opens a file in a directory; a link is an error.
pub(crate) fn open_file(directory: impl AsFd, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(openat(directory, name, flags, Mode::empty())?))
}

/// Where a link in a directory points.
pub(crate) fn link(directory: impl AsFd, name: &[u8]) -> io::Result<LinkTarget> {
    let target = readlinkat(directory, name, Vec::new())?.into_bytes();
    LinkTarget::from_bytes(target).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Whether an error says that nothing stands at a path: it, or a directory on the way, is absent or no directory.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
