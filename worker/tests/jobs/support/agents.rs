//! Scripts that play agents.

use std::path::{Path, PathBuf};

/// Where the scripts lie: outside of every scratch and readable by all commands.
pub(crate) struct Agents(PathBuf);

impl Agents {
    pub(crate) fn new(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        Self(directory.to_owned())
    }

    /// Writes a script and returns the command that runs it.
    pub(crate) fn script(&self, name: &str, text: &str) -> Vec<String> {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        vec!["sh".into(), path.to_str().unwrap().into()]
    }
}
