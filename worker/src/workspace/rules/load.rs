//! Reading the rules from a target: ignore files, git's exclusions, and what git tracks.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use checkrein_shared::tree::RelPath;
use checkrein_shared::tree::path::{InvalidPath, is_git_name};
use checkrein_shared::{blob, json};
use rustix::fs::Dir;

use super::{Counts, Enter, Record, RuleFile, Rules, VERSION};
use crate::workspace::beneath::{self, Root};
use crate::workspace::{STAGE_NAME, git};

/// The largest ignore file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The largest number of ignore files.
const FILES_MAX: usize = 10_000;

/// Why the rules could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Git refused or failed.
    #[error("can't list what git tracks")]
    Git(#[from] git::Error),
    /// Something could not be read.
    #[error("can't read `{}`", .path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A name is impossible in a tree.
    #[error("can't read the ignore rules")]
    Path(#[from] InvalidPath),
    /// There is too much to read.
    #[error("`{}` has more than {FILES_MAX} ignore files, or one of more than {FILE_BYTES_MAX} bytes", .0.display())]
    TooMuch(PathBuf),
    /// The stored record is missing or damaged.
    #[error("can't load the ignore rules of the base")]
    Blob(#[from] blob::Error),
    /// The stored record is no record of rules.
    #[error("can't load the ignore rules of the base")]
    Record(#[from] json::Error),
    /// The stored record is of another version.
    #[error("ignore rules of version {0} are not known here")]
    Version(u32),
}

impl Rules {
    /// Reads the rules of a target as it stands now. `target` is a canonical path.
    ///
    /// # Errors
    ///
    /// What can't be read is an error: rules that were overlooked could hide changes or show too much.
    pub async fn read(target: &Path) -> Result<Self, Error> {
        let top = target.ancestors().find(|above| git::is_top(above)).map(Path::to_owned);
        let tracked = match &top {
            // `-z` keeps every byte of every name.
            Some(_) => git::run(target, ["ls-files", "-z", "--cached"]).await?,
            None => Vec::new(),
        };
        let exclude = match &top {
            Some(_) => Some(exclude_file(target).await?),
            None => None,
        };
        let target = target.to_owned();
        tokio::task::spawn_blocking(move || read(&target, top.as_deref(), exclude.as_deref(), &tracked))
            .await
            .expect("reading rules neither panics nor is aborted")
    }
}

/// Where git keeps the exclusions that are not part of the project; worktrees and submodules have them elsewhere.
async fn exclude_file(target: &Path) -> Result<PathBuf, Error> {
    let mut path = git::run(target, ["rev-parse", "--git-path", "info/exclude"]).await?;
    if path.last() == Some(&b'\n') {
        path.pop();
    }
    Ok(target.join(std::ffi::OsStr::from_bytes(&path)))
}

fn read(target: &Path, top: Option<&Path>, exclude: Option<&Path>, tracked: &[u8]) -> Result<Rules, Error> {
    let prefix = match top.and_then(|top| target.strip_prefix(top).ok()) {
        Some(prefix) if !prefix.as_os_str().is_empty() => Some(RelPath::from_path(prefix)?),
        _ => None,
    };
    let mut rules = Rules::new(Record { version: VERSION, prefix: prefix.clone(), ..Record::default() });
    if let Some(top) = top {
        read_above(&mut rules, top, prefix.as_ref())?;
    }
    read_below(&mut rules, target, top.is_some())?;
    if let Some(exclude) = exclude {
        add_file(&mut rules, None, exclude)?;
    }
    for name in tracked.split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let path = RelPath::from_bytes(name)?;
        if is_exception(&rules, &path) {
            rules.record.tracked.insert(path);
        }
    }
    Ok(rules)
}

/// Whether a tracked path would not be stored without being named.
fn is_exception(rules: &Rules, path: &RelPath) -> bool {
    rules.file(path, false) != Counts::Stored
        || path.ancestors().any(|above| rules.directory(&above, false) != Enter::Yes)
}

/// The ignore files of the repository above the workspace.
fn read_above(rules: &mut Rules, top: &Path, prefix: Option<&RelPath>) -> Result<(), Error> {
    let Some(prefix) = prefix else { return Ok(()) };
    let directories: Vec<_> = prefix.ancestors().map(Some).chain([None]).collect();
    for directory in directories {
        let path = directory.as_ref().map_or_else(|| top.to_owned(), |d| d.under(top)).join(".gitignore");
        add_file(rules, directory, &path)?;
    }
    Ok(())
}

/// The ignore files of the workspace; ignored directories have no say.
fn read_below(rules: &mut Rules, target: &Path, is_git: bool) -> Result<(), Error> {
    let root = Root::open(target).map_err(|source| Error::Io { path: target.to_owned(), source })?;
    let mut pending: Vec<Option<RelPath>> = vec![None];
    while let Some(directory) = pending.pop() {
        let path = directory.as_ref().map_or_else(|| target.to_owned(), |d| d.under(target));
        let at = |source: io::Error| Error::Io { path: path.clone(), source };
        // Plain directories may also use the files of search tools, which rank above git's.
        let names: &[&str] = if is_git { &[".gitignore"] } else { &[".ignore", ".gitignore"] };
        let place = match (&rules.record.prefix, &directory) {
            (None, directory) => directory.clone(),
            (Some(prefix), None) => Some(prefix.clone()),
            (Some(prefix), Some(d)) => Some(RelPath::from_bytes([prefix.as_bytes(), b"/", d.as_bytes()].concat())?),
        };
        for name in names {
            add_file(rules, place.clone(), &path.join(name))?;
        }
        let fd = match root.directory(directory.as_ref()) {
            Err(e) if directory.is_some() && beneath::is_absent(&e) => continue,
            other => other.map_err(at)?,
        };
        for child in Dir::new(fd).map_err(|e| at(e.into()))? {
            let child = child.map_err(|e| at(e.into()))?;
            let name = child.file_name().to_bytes();
            if !child.file_type().is_dir() || matches!(name, b"." | b"..") || is_git_name(name) {
                continue;
            }
            let path = match &directory {
                None if name == STAGE_NAME.as_bytes() => continue,
                None => RelPath::from_bytes(name)?,
                Some(directory) => directory.child(name)?,
            };
            if rules.directory(&path, false) == Enter::Yes {
                pending.push(Some(path));
            }
        }
    }
    Ok(())
}

/// Adds an ignore file if there is one. Links are not followed, as in git.
fn add_file(rules: &mut Rules, directory: Option<RelPath>, path: &Path) -> Result<(), Error> {
    let at = |source| Error::Io { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(()),
        Err(e) if beneath::is_absent(&e) => return Ok(()),
        Err(e) => return Err(at(e)),
    }
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(at)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(at)?;
    if bytes.len() as u64 > FILE_BYTES_MAX || rules.record.files.len() >= FILES_MAX {
        return Err(Error::TooMuch(path.to_owned()));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let lines = text.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let lines: Vec<String> = lines
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if !lines.is_empty() {
        let file = RuleFile { directory, lines };
        rules.matcher.add(&file);
        rules.record.files.push(file);
    }
    Ok(())
}
