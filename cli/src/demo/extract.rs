//! A fresh copy of an example, from this binary.

use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rust_embed::Embed;

use crate::args::DemoName;
use crate::failure::Failure;

/// The folder `examples` as it was when this binary was built.
#[derive(Embed)]
#[folder = "../examples"]
struct Examples;

/// A demo's folder: the example, and beside it the data folder.
pub(super) struct Place {
    pub(super) root: PathBuf,
    name: &'static str,
}

impl Place {
    pub(super) fn example(&self) -> PathBuf {
        self.root.join(self.name)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.example().join("project")
    }

    pub(super) fn task_file(&self) -> PathBuf {
        self.example().join("task.yaml")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.root.join("data")
    }
}

/// Makes a copy in `to`, or in a new folder among the temporary ones.
pub(super) fn fresh(name: DemoName, to: Option<&Path>) -> Result<Place, Failure> {
    let name = name.as_str();
    let root = match to {
        Some(folder) => empty(folder)?,
        None => {
            let mut builder = tempfile::Builder::new();
            let folder = builder.prefix(&format!("checkrein-demo-{name}-")).tempdir();
            folder.map_err(|error| Failure::caused("there is no folder for the demo", &error))?.keep()
        }
    };
    let root = root.canonicalize().map_err(|error| failed(&root, &error))?;
    let place = Place { root, name };
    for path in Examples::iter().filter(|path| path.starts_with(&format!("{name}/"))) {
        let file = Examples::get(&path).expect("the iterator names only files that are there");
        write(&place.root.join(path.as_ref()), &file.data)?;
    }
    Ok(place)
}

fn empty(folder: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mut inside = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    if inside.next().is_some() {
        return Err(Failure::usage("the folder is not empty")
            .at(folder.display())
            .hint("name a new one with --to DIR"));
    }
    Ok(folder.to_owned())
}

/// Writes a file; scripts are made executable, which the binary does not remember.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().expect("every file of an example stands in its folder");
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mode = if bytes.starts_with(b"#!") { 0o755 } else { 0o644 };
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        std::io::Write::write_all(&mut file, bytes)?;
        // The umask may have taken the bit away.
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    };
    write().map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::caused("the demo can't be written", error).at(path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_folder_as_it_is_in_the_repository() {
        let root = tempfile::tempdir().unwrap();
        for name in [DemoName::Hello, DemoName::Drift, DemoName::Takeover] {
            let place = fresh(name, Some(&root.path().join(name.as_str()))).unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name.as_str());
            for file in ["task.yaml", "policy.yaml", "agent.sh", "README.md", "project/test.sh"] {
                let (copy, original) = (place.example().join(file), source.join(file));
                assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&original).unwrap(), "{file}");
                let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o111;
                assert_eq!(mode(&copy), mode(&original), "{file}");
            }
        }
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("mine"), "x").unwrap();
        assert!(fresh(DemoName::Hello, Some(root.path())).is_err());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
