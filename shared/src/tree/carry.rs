//! Copying what a project needs but does not own: `node_modules`, `.venv`, `.m2`.
//!
//! A task names these paths (`carry`); they are copied from the target into the
//! scratch and into the copies that verifiers run in. Links are copied as links
//! and never followed. The files are made read-only; they belong to no tree, so
//! nothing that happens to them reaches the target.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::path::RelPath;

/// The largest number of files and links that are carried.
pub const CARRIED_MAX: usize = 1_000_000;

/// Why a path could not be carried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are too many files.
    #[error("the carried paths hold more than {CARRIED_MAX} files: carry less")]
    TooMany,
    /// A path to be carried lies behind a link.
    #[error("`{0}` can't be carried: a directory on the way to it is a link")]
    BehindLink(RelPath),
    /// The file system failed.
    #[error("can't carry `{}`", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// What was carried.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// How many files and links.
    pub files: usize,
    /// The named paths that do not exist in the source; a project that was never installed has none.
    pub missing: Vec<RelPath>,
}

/// Copies `paths` from `source` to `directory`. What already stands there is left as it is.
///
/// # Errors
///
/// [`Error`] names the path that failed.
pub fn carry(source: &Path, paths: &[RelPath], directory: &Path) -> Result<Carried, Error> {
    let mut carried = Carried::default();
    for path in paths {
        let from = path.under(source);
        if behind_link(source, path) || behind_link(directory, path) {
            return Err(Error::BehindLink(path.clone()));
        }
        match fs::symlink_metadata(&from) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                carried.missing.push(path.clone());
            }
            Err(e) => return Err(at(&from)(e)),
            Ok(_) => {
                let to = path.under(directory);
                if let Some(parent) = to.parent() {
                    DirBuilder::new().recursive(true).create(parent).map_err(at(parent))?;
                }
                copy_all(from, to, &mut carried)?;
            }
        }
    }
    Ok(carried)
}

fn behind_link(root: &Path, path: &RelPath) -> bool {
    path.ancestors().any(|above| above.under(root).is_symlink())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    |source| Error::Io { path, source }
}

fn copy_all(from: PathBuf, to: PathBuf, carried: &mut Carried) -> Result<(), Error> {
    let mut pending = vec![(from, to)];
    while let Some((from, to)) = pending.pop() {
        let kind = fs::symlink_metadata(&from).map_err(at(&from))?.file_type();
        if kind.is_dir() {
            match DirBuilder::new().create(&to) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !to.is_symlink() && to.is_dir() => {}
                other => other.map_err(at(&to))?,
            }
            for child in fs::read_dir(&from).map_err(at(&from))? {
                let name = child.map_err(at(&from))?.file_name();
                pending.push((from.join(&name), to.join(&name)));
            }
            continue;
        }
        carried.files += 1;
        if carried.files + pending.len() > CARRIED_MAX {
            return Err(Error::TooMany);
        }
        if fs::symlink_metadata(&to).is_ok() {
            continue;
        }
        if kind.is_symlink() {
            let target = fs::read_link(&from).map_err(at(&from))?;
            std::os::unix::fs::symlink(target, &to).map_err(at(&to))?;
        } else if kind.is_file() {
            // Never a hard link: writing through it would reach the target.
            fs::copy(&from, &to).map_err(at(&from))?;
            let mode = fs::metadata(&to).map_err(at(&to))?.permissions().mode();
            fs::set_permissions(&to, Permissions::from_mode(mode & 0o0555)).map_err(at(&to))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::memory::path;
    use super::*;

    #[test]
    fn carried_files_are_copies_that_keep_links_as_links() {
        let folder = tempfile::tempdir().unwrap();
        let (source, to) = (folder.path().join("source"), folder.path().join("to"));
        fs::create_dir_all(source.join("deps/bin")).unwrap();
        fs::write(source.join("deps/lib"), "code").unwrap();
        std::os::unix::fs::symlink("/etc", source.join("deps/bin/link")).unwrap();
        fs::create_dir(&to).unwrap();
        let carried = carry(&source, &[path("deps"), path("absent/x")], &to).unwrap();
        assert_eq!(carried, Carried { files: 2, missing: vec![path("absent/x")] });
        assert_eq!(fs::read_link(to.join("deps/bin/link")).unwrap(), Path::new("/etc"));
        assert_eq!(fs::metadata(to.join("deps/lib")).unwrap().permissions().mode() & 0o222, 0);
        fs::remove_file(to.join("deps/lib")).unwrap();
        assert_eq!(fs::read(source.join("deps/lib")).unwrap(), b"code");
        // Once more: what stands is left alone.
        assert_eq!(carry(&source, &[path("deps")], &to).unwrap().files, 2);
    }

    #[test]
    fn a_path_behind_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (source, to) = (folder.path().join("source"), folder.path().join("to"));
        fs::create_dir_all(&source).unwrap();
        fs::create_dir_all(&to).unwrap();
        std::os::unix::fs::symlink("/etc", source.join("deps")).unwrap();
        assert!(matches!(carry(&source, &[path("deps/passwd")], &to), Err(Error::BehindLink(_))));
        assert!(carry(&source, &[path("deps")], &to).is_ok());
        assert!(to.join("deps").is_symlink());
    }
}
