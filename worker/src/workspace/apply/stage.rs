//! The directory beside the target where new files wait and displaced files are kept.
//!
//! It lies in the target's `.git` where there is one, else in a directory of its
//! own that ignores itself: on the target's file system, so that files can be
//! swapped, and in no tree. Each path of a changeset has one numbered slot: before
//! the swap it holds the new file, afterwards what the swap displaced.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::tree::{LinkTarget, Mode};
use rustix::fs::{self as sys, AtFlags, Dir, OFlags, RenameFlags};
use rustix::io::Errno;

use super::home::{self, make, unlink_empty};
use super::plan::{Plan, VERSION};
use super::standing::{Standing, standing_at};
use crate::workspace::STAGE_NAME;
use crate::workspace::beneath::{DIRECTORY, Place, Root};

const PLAN: &str = "plan";
const PLAN_BYTES_MAX: u64 = 64 << 20;

/// An open stage.
#[derive(Debug)]
pub(super) struct Stage {
    holder: OwnedFd,
    pub(super) fd: OwnedFd,
    name: String,
    /// Its path, for messages.
    pub(super) path: PathBuf,
}

impl Stage {
    /// Opens the stage of a changeset, or `None` if there is none.
    pub(super) fn existing(root: &Root, changeset: Digest) -> io::Result<Option<Self>> {
        for (names, path) in home::homes(root) {
            if let Some(stage) = Self::enter(root, &names, path, changeset)? {
                return Ok(Some(stage));
            }
        }
        Ok(None)
    }

    fn enter(root: &Root, names: &[&str], path: PathBuf, changeset: Digest) -> io::Result<Option<Self>> {
        let mut holder = root.directory(None)?;
        let name = changeset.to_hex();
        let opened = names.iter().try_for_each(|part| {
            holder = sys::openat(&holder, *part, DIRECTORY, sys::Mode::empty())?;
            Ok(())
        });
        let fd = opened.and_then(|()| sys::openat(&holder, name.as_str(), DIRECTORY, sys::Mode::empty()));
        match fd {
            Ok(fd) => Ok(Some(Self { path: path.join(&name), holder, fd, name })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens the stage of a changeset, making it if need be.
    pub(super) fn open(root: &Root, changeset: Digest) -> io::Result<Self> {
        if let Some(stage) = Self::existing(root, changeset)? {
            return Ok(stage);
        }
        let top = root.directory(None)?;
        let [(in_git, git_path), (own, own_path)] = home::homes(root);
        let (names, path) = if home::git_is_usable(&top)? { (in_git, git_path) } else { (own, own_path) };
        let mut holder = top;
        for part in &names {
            make(&holder, part)?;
            holder = sys::openat(&holder, *part, DIRECTORY, sys::Mode::empty())?;
        }
        if names.len() == 1 {
            // So that it never shows in anybody's `git status`.
            match write_new(&holder, ".gitignore", b"*\n") {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
        }
        make(&holder, &changeset.to_hex())?;
        sys::fsync(&holder)?;
        let missing = || io::Error::other("it was removed while it was made");
        Self::enter(root, &names, path, changeset)?.ok_or_else(missing)
    }

    /// Reads the plan. One that is cut off was never acted on, so it counts as none.
    pub(super) fn plan(&self, changeset: Digest) -> io::Result<Option<Plan>> {
        let file = match sys::openat(&self.fd, PLAN, OFlags::RDONLY | OFlags::NOFOLLOW, sys::Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            other => File::from(other?),
        };
        let mut bytes = Vec::new();
        file.take(PLAN_BYTES_MAX).read_to_end(&mut bytes)?;
        let plan: Plan = json::parse_as("plan", &bytes).map_err(io::Error::other)?;
        if plan.version != VERSION || plan.changeset != changeset {
            return Err(io::Error::other("it is the plan of another changeset or version"));
        }
        Ok(Some(plan))
    }

    /// Writes the plan, durably and whole.
    pub(super) fn write_plan(&self, plan: &Plan) -> io::Result<()> {
        let bytes = json::canonical(plan).map_err(io::Error::other)?;
        self.remove("plan.new")?;
        write_new(&self.fd, "plan.new", &bytes)?.sync_all()?;
        sys::renameat(&self.fd, "plan.new", &self.fd, PLAN)?;
        self.sync()
    }

    /// What is in a slot.
    pub(super) fn slot(&self, number: usize) -> io::Result<Standing> {
        let name = number.to_string();
        standing_at(&Place { directory: self.fd.try_clone()?, name: name.as_bytes() })
    }

    /// Fills a slot with a file whose bytes `write` writes. What is in the slot is replaced.
    pub(super) fn fill(
        &self,
        number: usize,
        mode: Mode,
        write: impl FnOnce(&mut File) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let name = format!("{number}.new");
        self.remove(&name)?;
        let mut file = write_new(&self.fd, &name, b"")?;
        if !write(&mut file)? {
            self.remove(&name)?;
            return Ok(false);
        }
        file.set_permissions(Permissions::from_mode(mode.bits()))?;
        file.sync_all()?;
        sys::renameat(&self.fd, &name, &self.fd, number.to_string())?;
        Ok(true)
    }

    /// Fills a slot with a link.
    pub(super) fn fill_link(&self, number: usize, target: &LinkTarget) -> io::Result<()> {
        let name = format!("{number}.new");
        self.remove(&name)?;
        sys::symlinkat(target.as_bytes(), &self.fd, &name)?;
        Ok(sys::renameat(&self.fd, &name, &self.fd, number.to_string())?)
    }

    /// Moves what is in a slot out of the way, under a name that is free; nothing is ever overwritten.
    pub(super) fn keep(&self, number: usize) -> io::Result<PathBuf> {
        for attempt in 0..1000 {
            let name = format!("{number}.kept-{attempt}");
            match sys::renameat_with(&self.fd, number.to_string(), &self.fd, &name, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    match sys::linkat(&self.fd, number.to_string(), &self.fd, &name, AtFlags::empty()) {
                        Err(Errno::EXIST) => {}
                        linked => {
                            linked?;
                            self.remove(&number.to_string())?;
                            return Ok(self.path.join(name));
                        }
                    }
                }
                renamed => {
                    renamed?;
                    return Ok(self.path.join(name));
                }
            }
        }
        Err(io::Error::other("too many files are kept already"))
    }

    /// Removes a file of the stage if it is there.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match sys::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// The names of everything in the stage.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Makes all names in the stage durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(sys::fsync(&self.fd)?)
    }

    /// Removes the stage itself, and its home, where they are empty.
    pub(super) fn dissolve(&self, root: &Root) -> io::Result<()> {
        match sys::unlinkat(&self.holder, self.name.as_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        let top = root.directory(None)?;
        if !self.path.starts_with(root.path().join(STAGE_NAME)) {
            let git = sys::openat(&top, ".git", DIRECTORY, sys::Mode::empty())?;
            return unlink_empty(&git, home::NAME_IN_GIT);
        }
        let others = Dir::read_from(&self.holder)?.flatten().any(|entry| {
            let name = entry.file_name().to_bytes();
            !matches!(name, b"." | b".." | b".gitignore")
        });
        if others {
            return Ok(());
        }
        sys::unlinkat(&self.holder, ".gitignore", AtFlags::empty()).or_else(home::absent)?;
        unlink_empty(&top, STAGE_NAME)
    }
}

fn write_new(directory: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(directory, name, flags, sys::Mode::RUSR | sys::Mode::WUSR)?);
    file.write_all(bytes)?;
    Ok(file)
}
