//! Names of targets: the same directory has the same name for whoever asks.
//!
//! It does not check whether a directory may be a workspace: see [`crate::workspace`].

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::RootId;

/// The name of an existing directory: `root-` and twelve digits of the digest of its canonical path. A specification
/// with that path names the same root.
///
/// # Errors
///
/// Where the directory does not exist or can't be reached.
pub fn root_id(directory: &Path) -> io::Result<RootId> {
    let canonical = directory.canonicalize()?;
    if !canonical.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory"));
    }
    let name = format!("root-{}", Digest::of(canonical.as_os_str().as_bytes()).short());
    Ok(name.parse().expect("hexadecimal digits after `root-` always make an id"))
}

#[cfg(test)]
mod tests {
    use checkrein_shared::records::WorkspaceSpec;

    use super::*;

    #[test]
    fn a_directory_has_one_name_whatever_path_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::os::unix::fs::symlink(&project, dir.path().join("link")).unwrap();
        let id = root_id(&project).unwrap();
        assert_eq!(root_id(&dir.path().join("link")).unwrap(), id);
        assert_eq!(root_id(&project.join("../project/.")).unwrap(), id);
        assert_ne!(root_id(dir.path()).unwrap(), id);
        let canonical = project.canonicalize().unwrap().into_os_string().into_string().unwrap();
        assert_eq!(WorkspaceSpec::Directory(canonical).root_id(), id);
    }

    #[test]
    fn a_file_or_nothing_is_no_root() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        assert!(root_id(&dir.path().join("file")).is_err());
        assert!(root_id(&dir.path().join("missing")).is_err());
    }
}
