//! Where in a target the stages of applies may lie.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{self as sys, AtFlags};
use rustix::io::Errno;

use crate::workspace::STAGE_NAME;
use crate::workspace::beneath::{DIRECTORY, Root};

/// The name inside `.git`, where no leading dot is needed.
pub(super) const NAME_IN_GIT: &str = "checkrein-apply";

/// Where stages may be: among git's own files, or in a directory of their own. The second part is the path.
pub(super) fn homes(root: &Root) -> [(Vec<&'static str>, PathBuf); 2] {
    [
        (vec![".git", NAME_IN_GIT], root.path().join(".git").join(NAME_IN_GIT)),
        (vec![STAGE_NAME], root.path().join(STAGE_NAME)),
    ]
}

/// Whether `.git` is a directory on the same file system; in worktrees and submodules it is a file.
pub(super) fn git_is_usable(top: &OwnedFd) -> io::Result<bool> {
    match sys::openat(top, ".git", DIRECTORY, sys::Mode::empty()) {
        Ok(git) => Ok(sys::fstat(&git)?.st_dev == sys::fstat(top)?.st_dev),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Makes a directory unless there is one.
pub(super) fn make(directory: &OwnedFd, name: &str) -> io::Result<()> {
    match sys::mkdirat(directory, name, sys::Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// What is gone need not be removed.
pub(super) fn absent(error: Errno) -> Result<(), Errno> {
    if error == Errno::NOENT { Ok(()) } else { Err(error) }
}

/// Removes a directory if it is empty.
pub(super) fn unlink_empty(directory: &OwnedFd, name: &str) -> io::Result<()> {
    match sys::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
