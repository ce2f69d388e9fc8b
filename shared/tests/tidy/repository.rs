//! The repository's files, as git lists them. It changes none of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that is tracked, or new and not ignored.
pub(crate) struct File {
    /// Its path from the repository's root, with `/`.
    pub(crate) path: String,
    /// Its content; `None` where it is not UTF-8.
    pub(crate) text: Option<String>,
    /// Whether it may be executed.
    pub(crate) executable: bool,
}

impl File {
    /// The file's text and path, where it has that extension.
    pub(crate) fn with_extension(&self, extension: &str) -> Option<(&str, &str)> {
        let text = self.text.as_deref()?;
        Path::new(&self.path).extension().is_some_and(|e| e == extension).then_some((self.path.as_str(), text))
    }
}

/// The repository's root: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a member lies in the workspace").to_owned()
}

/// Every file of the repository.
pub(crate) fn files() -> Vec<File> {
    let root = root();
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
        .current_dir(&root)
        .output()
        .expect("git is needed for the tests");
    assert!(output.status.success(), "git can't list the files: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("the repository's own file names are UTF-8");
    let files: Vec<File> = names.split_terminator('\0').filter_map(|path| read(&root, path)).collect();
    assert!(files.len() > 30, "git lists only {} files", files.len());
    files
}

fn read(root: &Path, path: &str) -> Option<File> {
    let whole = root.join(path);
    let metadata = std::fs::symlink_metadata(&whole).ok().filter(std::fs::Metadata::is_file)?;
    let text = String::from_utf8(std::fs::read(whole).expect("a tracked file can be read")).ok();
    Some(File { path: path.to_owned(), text, executable: metadata.permissions().mode() & 0o111 != 0 })
}

/// The folders of the workspace's members, from the root's `Cargo.toml`.
pub(crate) fn members(files: &[File]) -> Vec<String> {
    let manifest = files.iter().find(|f| f.path == "Cargo.toml").and_then(|f| f.text.as_deref());
    let line = manifest.and_then(|m| m.lines().find(|l| l.starts_with("members = "))).expect("members on one line");
    line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Path and text of each Rust file of the workspace's members.
pub(crate) fn rust_sources(files: &[File]) -> Vec<(&str, &str)> {
    let members = members(files);
    let ours = |path: &str| members.iter().any(|m| path.strip_prefix(m.as_str()).is_some_and(|p| p.starts_with('/')));
    files.iter().filter(|f| ours(&f.path)).filter_map(|f| f.with_extension("rs")).collect()
}
