//! Follows `extends` from a file to the built-in policy that everything starts
//! from.

use std::path::{Path, PathBuf};

use super::layer::Layer;
use super::source::{BUILT_IN, built_in, read};
use crate::policy::error::{PolicyError, Problem};
use crate::policy::nearest;
use crate::policy::yaml::{FILE_BYTES_MAX, Segment};

/// The most files that may extend one another.
const FILES_MAX: usize = 8;

/// The policy that a file extends where it does not say.
const ROOT: &str = "default";

/// What a layer is read from.
enum From {
    Name(&'static str),
    File { path: PathBuf, name: String },
}

/// The chain of a built-in policy, the most derived first.
pub(super) fn from_name(name: &str) -> Result<Vec<Layer>, PolicyError> {
    let Some(known) = known(name) else {
        let problem = Problem::whole(name, "there is no built-in policy of this name");
        let hint = nearest::hint(name, BUILT_IN.iter().copied());
        return Err(Problem { hint, ..problem }.into());
    };
    follow(vec![read_layer(&From::Name(known))?], Vec::new())
}

/// The chain of a file, the most derived first.
pub(super) fn from_file(path: &Path) -> Result<Vec<Layer>, PolicyError> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let layer = read_layer(&From::File { path: path.to_owned(), name })?;
    follow(vec![layer], vec![canonical(path)])
}

/// The chain of a text, the most derived first.
pub(super) fn from_text(name: &str, text: &[u8]) -> Result<Vec<Layer>, PolicyError> {
    let layer = Layer::read(name, name, None, text).map_err(PolicyError::new)?;
    follow(vec![layer], Vec::new())
}

fn follow(mut chain: Vec<Layer>, mut visited: Vec<PathBuf>) -> Result<Vec<Layer>, PolicyError> {
    while let Some(from) = parent(chain.last().expect("a chain starts with a layer"))? {
        let child = chain.last().expect("a chain starts with a layer");
        let refuse = |message: String| {
            PolicyError::from(child.problem(&child.origin(&[Segment::Key("extends".to_owned())]), message))
        };
        if chain.len() == FILES_MAX {
            return Err(refuse(format!("more than {FILES_MAX} files extend one another")));
        }
        let again = match &from {
            From::Name(name) => chain.iter().any(|layer| layer.built_in == Some(name)),
            From::File { path, .. } => visited.contains(&canonical(path)),
        };
        if again {
            return Err(refuse("the policy extends itself, directly or through others".to_owned()));
        }
        if let From::File { path, .. } = &from {
            visited.push(canonical(path));
        }
        let layer = read_layer(&from).map_err(|error| missing_parent(&refuse, &from, error))?;
        chain.push(layer);
    }
    Ok(chain)
}

/// A parent that can't be read at all is a problem of the line that names it.
fn missing_parent(refuse: &dyn Fn(String) -> PolicyError, from: &From, error: PolicyError) -> PolicyError {
    match (from, error.problems()) {
        (From::File { path, .. }, [only]) if only.line == 0 => refuse(format!("`{}` {}", path.display(), only.message)),
        _ => error,
    }
}

/// What `child` extends.
fn parent(child: &Layer) -> Result<Option<From>, PolicyError> {
    let extends = match child.file.extends.as_deref() {
        None if child.built_in == Some(ROOT) => return Ok(None),
        None => ROOT,
        Some(extends) => extends,
    };
    let refuse = |message: String, hint: Option<String>| {
        let problem = child.problem(&child.origin(&[Segment::Key("extends".to_owned())]), message);
        PolicyError::from(Problem { hint, ..problem })
    };
    if let Some(known) = known(extends) {
        return Ok(Some(From::Name(known)));
    }
    let is_path = extends.contains('/') || extends.ends_with(".yaml") || extends.ends_with(".yml");
    if !is_path {
        let hint = nearest::hint(extends, BUILT_IN.iter().copied());
        let message = format!("there is no built-in policy `{extends}`");
        return Err(refuse(message, hint.or_else(|| Some("a path ends in .yaml or .yml".to_owned()))));
    }
    match &child.folder {
        Some(folder) => Ok(Some(From::File { path: folder.join(extends), name: extends.to_owned() })),
        None => Err(refuse("only a policy that is a file can extend a file".to_owned(), None)),
    }
}

/// The built-in policy of this name.
fn known(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().copied().find(|known| *known == name)
}

fn read_layer(from: &From) -> Result<Layer, PolicyError> {
    match from {
        From::Name(name) => {
            let text = built_in(name).expect("the caller has checked that the policy is built in");
            let file = format!("policies/{name}.yaml");
            let mut layer = Layer::read(&file, &file, None, text.as_bytes()).map_err(PolicyError::new)?;
            layer.built_in = Some(name);
            Ok(layer)
        }
        From::File { path, name } => {
            let shown = path.display().to_string();
            let bytes = read(path, FILE_BYTES_MAX).map_err(|message| Problem::whole(&shown, message))?;
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            Layer::read(&shown, name, Some(folder), &bytes).map_err(PolicyError::new)
        }
    }
}

/// The path without links and dots, to find a file that extends itself.
fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
