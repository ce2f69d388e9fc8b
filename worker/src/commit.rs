//! One commit for each applied changeset, on the branch that the target has
//! checked out.
//!
//! The commit is made of the changeset and nothing else: through an index of
//! its own, from stored contents, and only if the branch still stands where it
//! stood. A path that was not committed at the base holds somebody's unfinished
//! work: it is never committed. Nothing is pushed, and no hook runs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use checkrein_shared::blob::{self, BLOB_BYTES_MAX, Blobs};
use checkrein_shared::digest::Digest;
use checkrein_shared::tree::changeset::PathChange;
use checkrein_shared::tree::{Changeset, Entry, RelPath};

use crate::workspace::git::{self, run, run_with};

/// How many paths one git command is given.
const BATCH: usize = 100;

/// Why no commit was made. The target has the changes all the same.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Git refused or failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A content could not be read.
    #[error("can't read the content of `{path}`")]
    Blob {
        /// The file.
        path: RelPath,
        /// The cause.
        source: blob::Error,
    },
    /// The file system failed.
    #[error("can't prepare the commit")]
    Io(#[from] io::Error),
    /// Git's answer is not what git answers.
    #[error("git answered something unexpected to `{0}`")]
    Answer(&'static str),
}

/// A commit to be made.
pub(crate) struct Commit<'a> {
    /// The target, locked by the caller.
    pub(crate) target: &'a Path,
    pub(crate) changeset: &'a Changeset,
    pub(crate) blobs: &'a dyn Blobs,
    /// An empty folder for the index and contents.
    pub(crate) folder: PathBuf,
    /// The whole message; its last line names this changeset's checkpoint and no other.
    pub(crate) message: String,
}

/// What git has at a path: mode and object id.
type Tracked = BTreeMap<Vec<u8>, (String, String)>;

impl Commit<'_> {
    /// Makes the commit; `None` where the target is in no repository, or nothing of the changeset may be committed. A
    /// commit that an earlier attempt made is found again.
    pub(crate) async fn make(&self) -> Result<Option<String>, Error> {
        if !self.target.ancestors().any(git::is_top) {
            return Ok(None);
        }
        let Ok(head) = text(self.target, &["rev-parse", "--verify", "-q", "HEAD^{commit}"]).await else {
            tracing::warn!(target = %self.target.display(), "the repository has no commit yet, so none is added");
            return Ok(None);
        };
        if text(self.target, &["log", "-1", "--format=%B", "HEAD"]).await?.ends_with(self.last_line()) {
            return Ok(Some(head));
        }
        let top = PathBuf::from(OsString::from_vec(line(run(self.target, ["rev-parse", "--show-toplevel"]).await?)));
        let prefix = line(run(self.target, ["rev-parse", "--show-prefix"]).await?);
        let tracked = tracked(&top, &head).await?;
        let clean = self.clean(&prefix, &tracked).await?;
        if clean.is_empty() {
            return Ok(None);
        }
        let changes = self.objects(&prefix, clean).await?;
        let index = self.folder.join("index");
        let own_index = [("GIT_INDEX_FILE", index.as_os_str())];
        run_with(&top, &own_index, ["read-tree", &head]).await?;
        stage(&top, &own_index, &changes).await?;
        let tree = utf8(run_with(&top, &own_index, ["write-tree"]).await?)?;
        let commit = self.commit(&top, &tree, &head).await?;
        run(&top, ["update-ref", "-m", "checkrein: an approved change", "HEAD", &commit, &head]).await?;
        // The person's own index must not show the change as undone. Where it is locked just now, `git status` tells.
        if let Err(error) = stage(&top, &[], &changes).await {
            tracing::warn!(target = %self.target.display(), %error, "the index does not know of the commit yet");
        }
        Ok(Some(commit))
    }

    fn last_line(&self) -> &str {
        self.message.trim_end().lines().last().unwrap_or_default()
    }

    /// The changes whose paths were, at the base, as they were committed.
    async fn clean(&self, prefix: &[u8], tracked: &Tracked) -> Result<Vec<PathChange<'_>>, Error> {
        let mut clean = Vec::new();
        for change in self.changeset.path_changes() {
            let at = tracked.get(&full(prefix, change.path));
            let same = match (at, change.old) {
                (None, None) => true,
                (Some((mode, id)), Some(old)) => {
                    git_mode(old) == mode
                        && Digest::of(run(self.target, ["cat-file", "blob", id]).await?) == old.content_digest()
                }
                _ => false,
            };
            let storable = change.new.is_none_or(|new| matches!(new, Entry::Symlink { .. }) || new.blob().is_some());
            if same && storable {
                clean.push(change);
            } else {
                tracing::warn!(path = %change.path, "a path that was not committed before is left out of the commit");
            }
        }
        Ok(clean)
    }

    /// Writes the new contents as objects. `None` for a path that goes.
    async fn objects(&self, prefix: &[u8], changes: Vec<PathChange<'_>>) -> Result<Changes, Error> {
        let mut result = Changes::default();
        for batch in changes.chunks(BATCH) {
            let mut command: Vec<OsString> = ["hash-object", "-w", "--no-filters", "--"].map(Into::into).to_vec();
            let mut coming = Vec::new();
            for (number, change) in batch.iter().enumerate() {
                let path = full(prefix, change.path);
                let Some(new) = change.new else {
                    result.gone.push(path);
                    continue;
                };
                let file = self.folder.join(format!("content-{number}"));
                std::fs::write(&file, self.content(change.path, new).await?)?;
                command.push(file.into());
                coming.push((path, git_mode(new)));
            }
            if coming.is_empty() {
                continue;
            }
            let ids = utf8(run(self.target, command).await?)?;
            let ids: Vec<&str> = ids.lines().collect();
            if ids.len() != coming.len() {
                return Err(Error::Answer("hash-object"));
            }
            result.set.extend(coming.into_iter().zip(ids).map(|((path, mode), id)| (path, mode, id.to_owned())));
        }
        Ok(result)
    }

    async fn content(&self, path: &RelPath, entry: &Entry) -> Result<Vec<u8>, Error> {
        match entry {
            Entry::Symlink { target } => Ok(target.as_bytes().to_vec()),
            Entry::File { digest, .. } => {
                let read = self.blobs.get(*digest, BLOB_BYTES_MAX).await;
                read.map_err(|source| Error::Blob { path: path.clone(), source })
            }
        }
    }

    async fn commit(&self, top: &Path, tree: &str, head: &str) -> Result<String, Error> {
        let message = self.folder.join("message");
        std::fs::write(&message, &self.message)?;
        let identity: [(&str, &OsStr); 4] = [
            ("GIT_AUTHOR_NAME", OsStr::new("Checkrein")),
            ("GIT_AUTHOR_EMAIL", OsStr::new("checkrein@localhost")),
            ("GIT_COMMITTER_NAME", OsStr::new("Checkrein")),
            ("GIT_COMMITTER_EMAIL", OsStr::new("checkrein@localhost")),
        ];
        let arguments =
            ["commit-tree", tree, "-p", head, "-F"].map(OsStr::new).into_iter().chain([message.as_os_str()]);
        utf8(run_with(top, &identity, arguments).await?)
    }
}

/// What an index has to learn.
#[derive(Default)]
struct Changes {
    /// Path, mode and object of what is there now.
    set: Vec<(Vec<u8>, &'static str, String)>,
    gone: Vec<Vec<u8>>,
}

async fn stage(top: &Path, variables: &[(&str, &OsStr)], changes: &Changes) -> Result<(), git::Error> {
    // What goes first: a file may take the place of a folder.
    for batch in changes.gone.chunks(BATCH) {
        let paths = batch.iter().map(|path| OsStr::from_bytes(path));
        run_with(top, variables, ["update-index", "--force-remove", "--"].map(OsStr::new).into_iter().chain(paths))
            .await?;
    }
    for batch in changes.set.chunks(BATCH) {
        let mut arguments: Vec<OsString> = ["update-index", "--add"].map(Into::into).to_vec();
        for (path, mode, id) in batch {
            arguments.push("--cacheinfo".into());
            arguments.push(OsString::from_vec([format!("{mode},{id},").as_bytes(), path].concat()));
        }
        run_with(top, variables, arguments).await?;
    }
    Ok(())
}

/// Everything that a commit has.
async fn tracked(top: &Path, head: &str) -> Result<Tracked, Error> {
    let listing = run(top, ["ls-tree", "-r", "-z", "--full-tree", head]).await?;
    let entries = listing.split(|b| *b == 0).filter(|entry| !entry.is_empty());
    let parse = |entry: &[u8]| {
        let tab = entry.iter().position(|b| *b == b'\t')?;
        let mut words = std::str::from_utf8(&entry[..tab]).ok()?.split(' ');
        let (mode, id) = (words.next()?, words.nth(1)?);
        Some((entry[tab + 1..].to_vec(), (mode.to_owned(), id.to_owned())))
    };
    entries.map(|entry| parse(entry).ok_or(Error::Answer("ls-tree"))).collect()
}

fn git_mode(entry: &Entry) -> &'static str {
    match entry {
        Entry::Symlink { .. } => "120000",
        Entry::File { mode, .. } if mode.is_executable() => "100755",
        Entry::File { .. } => "100644",
    }
}

/// A path from the repository's top.
fn full(prefix: &[u8], path: &RelPath) -> Vec<u8> {
    [prefix, path.as_bytes()].concat()
}

fn line(mut output: Vec<u8>) -> Vec<u8> {
    if output.last() == Some(&b'\n') {
        output.pop();
    }
    output
}

fn utf8(output: Vec<u8>) -> Result<String, Error> {
    let text = String::from_utf8(output).map_err(|_| Error::Answer("a question for an object's name"))?;
    Ok(text.trim_end().to_owned())
}

async fn text(directory: &Path, arguments: &[&str]) -> Result<String, Error> {
    let output = run(directory, arguments).await?;
    Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
}
