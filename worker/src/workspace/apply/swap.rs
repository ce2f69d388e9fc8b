//! Swapping, placing and taking away single names, without ever overwriting one.
//!
//! Each function either did what it says or left both names as they were. Where the
//! file system lacks the atomic calls, hard links stand in for them: a replaced file
//! still survives in its slot, though for an instant another program could slip between.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use checkrein_shared::tree::RelPath;
use rustix::fs::{self as sys, AtFlags, RenameFlags};
use rustix::io::Errno;

use super::stage::Stage;
use crate::workspace::beneath::{DIRECTORY, Place, Root};

/// A name in the target and a slot in the stage.
pub(super) struct Pair<'a> {
    pub(super) place: Place<'a>,
    pub(super) stage: &'a Stage,
    pub(super) number: usize,
    /// Whether the atomic calls may be used.
    pub(super) atomic: bool,
}

fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

impl Pair<'_> {
    /// Exchanges what stands at the place with what is in the slot; both must exist.
    pub(super) fn exchange(&self) -> io::Result<()> {
        let slot = self.number.to_string();
        let (directory, stage) = (&self.place.directory, &self.stage.fd);
        if self.atomic {
            match sys::renameat_with(stage, &slot, directory, self.place.name, RenameFlags::EXCHANGE) {
                Err(e) if is_unsupported(e) => {}
                other => return Ok(other?),
            }
        }
        let hold = hold(self.number);
        sys::linkat(directory, self.place.name, stage, &hold, AtFlags::empty())?;
        sys::renameat(stage, &slot, directory, self.place.name)?;
        Ok(sys::renameat(stage, &hold, stage, &slot)?)
    }

    /// Moves what is in the slot to the place, where nothing may stand.
    pub(super) fn put(&self) -> io::Result<()> {
        let slot = self.number.to_string();
        self.relocate(&self.stage.fd, slot.as_bytes(), &self.place.directory, self.place.name)
    }

    /// Moves what stands at the place into the slot, which must be empty.
    pub(super) fn take(&self) -> io::Result<()> {
        let slot = self.number.to_string();
        self.relocate(&self.place.directory, self.place.name, &self.stage.fd, slot.as_bytes())
    }

    fn relocate(&self, from: impl AsFd, name: &[u8], to: impl AsFd, new_name: &[u8]) -> io::Result<()> {
        if self.atomic {
            match sys::renameat_with(&from, name, &to, new_name, RenameFlags::NOREPLACE) {
                Err(e) if is_unsupported(e) => {}
                other => return Ok(other?),
            }
        }
        sys::linkat(&from, name, &to, new_name, AtFlags::empty())?;
        Ok(sys::unlinkat(&from, name, AtFlags::empty())?)
    }
}

fn hold(number: usize) -> String {
    format!("{number}.hold")
}

/// Puts in order what a crash left in the middle of an exchange without the atomic call.
pub(super) fn recover_hold(stage: &Stage, number: usize) -> io::Result<()> {
    let (hold, slot) = (hold(number), number.to_string());
    // With the slot still there, the link was made and nothing was moved.
    match sys::renameat_with(&stage.fd, &hold, &stage.fd, &slot, RenameFlags::NOREPLACE) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::EXIST) => stage.remove(&hold),
        Err(e) if is_unsupported(e) => match sys::linkat(&stage.fd, &hold, &stage.fd, &slot, AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST) => stage.remove(&hold),
            Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        },
        Err(e) => Err(e.into()),
    }
}

/// Opens the directory of a path, making it and those above it as needed. Never goes through a link.
pub(super) fn make_parents(root: &Root, path: &RelPath) -> io::Result<OwnedFd> {
    let mut at = root.directory(None)?;
    let parent = path.parent();
    for name in parent.iter().flat_map(RelPath::components) {
        match sys::mkdirat(&at, name, sys::Mode::from_raw_mode(0o755)) {
            Ok(()) => sys::fsync(&at)?,
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        at = sys::openat(&at, name, DIRECTORY, sys::Mode::empty())?;
    }
    Ok(at)
}

/// Removes a directory beneath the root and the directories in it, if they hold no files at all.
pub(super) fn remove_empty(root: &Root, path: &RelPath) -> io::Result<()> {
    let directory = root.directory(Some(path))?;
    for entry in sys::Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if entry.file_type().is_dir()
            && !matches!(name, b"." | b"..")
            && let Ok(child) = path.child(name)
        {
            remove_empty(root, &child)?;
        }
    }
    let place = root.place(path)?;
    Ok(sys::unlinkat(&place.directory, place.name, AtFlags::REMOVEDIR)?)
}

/// Removes the directories above a path that hold nothing any more.
pub(super) fn prune_parents(root: &Root, path: &RelPath) {
    for directory in path.ancestors() {
        let removed = root
            .place(&directory)
            .and_then(|place| Ok(sys::unlinkat(&place.directory, place.name, AtFlags::REMOVEDIR)?));
        if removed.is_err_and(|e| e.kind() != io::ErrorKind::NotFound) {
            // It holds something, so all above it do too.
            break;
        }
    }
}
