//! Which directories may be workspaces at all.
//!
//! It looks at paths only, once, when a task is created or a job starts.

use std::io;
use std::path::{Path, PathBuf};

/// Why a directory can't be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is `/`.
    #[error("`/` can't be a workspace: name the project's directory")]
    FileSystemRoot,
    /// It is the user's home directory, or holds it.
    #[error("`{}` holds your home directory and can't be a workspace: name the project's directory", .0.display())]
    Home(PathBuf),
    /// It and the data directory contain one another.
    #[error("the workspace `{}` and the data directory `{}` must not contain one another: move the data directory with `--data`", .workspace.display(), .data.display())]
    DataDirectory {
        /// The workspace.
        workspace: PathBuf,
        /// The data directory.
        data: PathBuf,
    },
    /// It lies inside a repository's own files.
    #[error("`{}` lies inside a `.git` directory and can't be a workspace", .0.display())]
    InsideGit(PathBuf),
    /// It is no directory.
    #[error("`{}` is not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// It can't be looked at.
    #[error("can't open the workspace `{}`", .path.display())]
    Io {
        /// The workspace.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Checks a workspace and returns its canonical path. The data directory need not exist yet.
///
/// # Errors
///
/// [`Refused`] with what to do instead.
pub fn check(workspace: &Path, home: Option<&Path>, data: &Path) -> Result<PathBuf, Refused> {
    let at = |source| Refused::Io { path: workspace.to_owned(), source };
    let path = workspace.canonicalize().map_err(at)?;
    if !path.is_dir() {
        return Err(Refused::NotDirectory(path));
    }
    if path.parent().is_none() {
        return Err(Refused::FileSystemRoot);
    }
    if home.is_some_and(|home| home.is_absolute() && canonical(home).starts_with(&path)) {
        return Err(Refused::Home(path));
    }
    if path.components().any(|name| name.as_os_str().eq_ignore_ascii_case(".git")) {
        return Err(Refused::InsideGit(path));
    }
    let data = canonical(&std::path::absolute(data).map_err(at)?);
    if data.starts_with(&path) || path.starts_with(&data) {
        return Err(Refused::DataDirectory { workspace: path, data });
    }
    Ok(path)
}

/// Resolves as much of a path as exists.
fn canonical(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            return rest.iter().rev().fold(found, |path, name| path.join(name));
        }
        rest.extend(above.file_name());
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn home_root_and_the_data_directory_are_no_workspaces() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [home, project, data] = ["home", "home/project", "data"].map(|name| root.join(name));
        fs::create_dir_all(&project).unwrap();
        let check = |path: &Path, data: &Path| check(path, Some(&home), data);
        assert_eq!(check(&project, &data).unwrap(), project);
        assert!(matches!(check(Path::new("/"), &data), Err(Refused::FileSystemRoot)));
        assert!(matches!(check(&home, &data), Err(Refused::Home(_))));
        assert!(matches!(check(&root, &data), Err(Refused::Home(_))));
        assert!(matches!(check(&project, &project.join(".checkrein")), Err(Refused::DataDirectory { .. })));
        assert!(matches!(check(&project, &home), Err(Refused::DataDirectory { .. })));
        assert!(matches!(check(&root.join("absent"), &data), Err(Refused::Io { .. })));
    }

    #[test]
    fn a_link_does_not_get_around_the_rules() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let link = folder.path().join("link");
        fs::create_dir_all(home.join("repo/.git/hooks")).unwrap();
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let data = folder.path().join("data");
        assert!(matches!(check(&link, Some(&home), &data), Err(Refused::Home(_))));
        assert!(matches!(
            check(&home.join("repo"), Some(&link), &link.join("repo/x")),
            Err(Refused::DataDirectory { .. })
        ));
        assert!(matches!(check(&home.join("repo/.git"), Some(&home), &data), Err(Refused::InsideGit(_))));
    }
}
