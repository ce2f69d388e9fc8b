//! Which folders a task may work on.
//!
//! The checks here protect people from a slip of the pen. What confines an
//! agent is the worker's business.

use std::path::{Path, PathBuf};

/// What is around a task file and decides about paths.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The home folder of the user, where there is one.
    pub home: Option<PathBuf>,
    /// The data folder; it need not exist yet.
    pub data: PathBuf,
}

/// Why a folder can't be a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

fn refuse<T>(message: String, hint: &str) -> Result<T, PlaceError> {
    Err(PlaceError { message, hint: hint.to_owned() })
}

/// Checks that `path` is a folder that a task may work on, and gives its canonical path back.
///
/// # Errors
///
/// [`PlaceError`] for what is missing, no folder, `/`, the home folder, a folder around it, or one that holds the data
/// folder or stands in it.
pub fn check_workspace(path: &Path, around: &Surroundings) -> Result<PathBuf, PlaceError> {
    let shown = path.display();
    let found = match path.canonicalize() {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return refuse(format!("the workspace `{shown}` does not exist"), "create it, or name another folder");
        }
        Err(error) => return refuse(format!("the workspace `{shown}` can't be opened: {error}"), "check its rights"),
    };
    if !found.is_dir() {
        return refuse(format!("the workspace `{shown}` is not a folder"), "name the folder that holds the project");
    }
    if found.parent().is_none() {
        return refuse("the workspace is `/`".to_owned(), "name the folder of one project");
    }
    let home = around.home.as_ref().and_then(|home| home.canonicalize().ok());
    if home.is_some_and(|home| home.starts_with(&found)) {
        let message = format!("the workspace `{shown}` is your home folder, or a folder around it");
        return refuse(message, "name the folder of one project");
    }
    let data = canonical_where_it_exists(&around.data);
    if found.starts_with(&data) {
        let message = format!("the workspace `{shown}` stands in the data folder `{}`", data.display());
        return refuse(message, "name a folder elsewhere, or choose another data folder with --data");
    }
    if data.starts_with(&found) {
        let message = format!("the data folder `{}` stands in the workspace `{shown}`", data.display());
        return refuse(message, "choose a data folder outside the workspace with --data DIR or CHECKREIN_DATA");
    }
    if nix::unistd::access(&found, nix::unistd::AccessFlags::W_OK).is_err() {
        return refuse(format!("the workspace `{shown}` can't be written"), "check who owns it and its rights");
    }
    if found.to_str().is_none() {
        return refuse(format!("the path of the workspace `{shown}` is not UTF-8"), "give the folder another name");
    }
    Ok(found)
}

/// The canonical path of the part that exists, with the rest as it is.
fn canonical_where_it_exists(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in absolute.ancestors() {
        if let (Ok(found), Ok(rest)) = (ancestor.canonicalize(), absolute.strip_prefix(ancestor)) {
            return found.join(rest);
        }
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: &Path, around: &Surroundings) -> String {
        check_workspace(path, around).unwrap_err().message
    }

    #[test]
    fn folders_that_hold_too_much_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let project = home.join("project");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink("/", home.join("slash")).unwrap();
        std::os::unix::fs::symlink(&home, root.path().join("link")).unwrap();
        let around = |data: PathBuf| Surroundings { home: Some(home.clone()), data };
        let usual = around(home.join(".local/state/checkrein"));

        assert_eq!(check_workspace(&project, &usual), Ok(project.canonicalize().unwrap()));
        for (path, part) in [
            ("/".into(), "is `/`"),
            (home.join("slash"), "is `/`"),
            (home.clone(), "your home folder"),
            (root.path().join("link"), "your home folder"),
            (root.path().to_owned(), "your home folder"),
            (home.join("file"), "not a folder"),
            (home.join("none"), "does not exist"),
        ] {
            let text = message(&path, &usual);
            assert!(text.contains(part), "{}: {text}", path.display());
        }
        assert!(message(&project, &around(project.join("data"))).contains("stands in the workspace"));
        assert!(message(&project, &around(project.clone())).contains("stands in the data folder"));
        assert!(message(&project, &around(home.clone())).contains("stands in the data folder"));
    }
}
