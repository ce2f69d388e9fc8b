//! Tests of compare-and-apply: every crash, and every edit that comes in between.

mod concurrency;
mod crashes;
mod outcomes;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::*;
use crate::workspace::testing::{Memory, measure, write};

/// A target, the changeset to apply to it, and the trees before and after.
struct Setting {
    _folder: tempfile::TempDir,
    target: PathBuf,
    scratch: PathBuf,
    blobs: Memory,
    changeset: Changeset,
    before: State,
    after: State,
}

/// Every file and link by its path, with its content and its mode; directories only if they are empty.
type State = BTreeMap<PathBuf, (Vec<u8>, u32)>;

/// One change of every kind, and both turns between a file and a directory.
const BEFORE: [(&str, &str); 12] = [
    ("changed", "old text"),
    ("deep/er/changed", "old"),
    ("dir/becomes", "file 1"),
    ("dir/too", "file 2"),
    ("emptied/only", "gone"),
    ("file", "becomes a directory"),
    ("gone", "to be deleted"),
    ("link", "-> changed"),
    ("mode", "script"),
    ("moved/from", "moved content"),
    ("same", "untouched"),
    ("type", "file"),
];

const AFTER: [(&str, &str); 12] = [
    ("changed", "new text"),
    ("deep/er/changed", "new"),
    ("deep/er/fresh/made", "new file"),
    ("dir", "was a directory"),
    ("file/now/holds", "a file"),
    ("link", "-> same"),
    ("mode", "script!"),
    ("moved/to/here", "moved content"),
    ("run", "executable!"),
    ("same", "untouched"),
    ("type", "-> same"),
    ("zero", ""),
];

async fn setting_of(before: &[(&str, &str)], after: &[(&str, &str)]) -> Setting {
    let folder = fast_folder();
    let root = folder.path().canonicalize().unwrap();
    let (target, scratch) = (root.join("target"), root.join("scratch"));
    let blobs = Memory::default();
    for (directory, files) in [(&target, before), (&scratch, after)] {
        fs::create_dir(directory).unwrap();
        write(directory, files);
    }
    let old = measure(&target, &blobs).await.manifest;
    let new = measure(&scratch, &blobs).await.manifest;
    let changeset = Changeset::between(&old, &new);
    let (before, after) = (state(&target), state(&scratch));
    Setting { _folder: folder, target, scratch, blobs, changeset, before, after }
}

/// A folder in memory, where there is one: these tests wait for the disk thousands of times otherwise.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

async fn setting() -> Setting {
    setting_of(&BEFORE, &AFTER).await
}

impl Setting {
    fn request(&self) -> Apply<'_> {
        Apply::new(&self.changeset, &self.blobs)
    }

    async fn apply(&self, request: &Apply<'_>) -> Result<Outcome, Error> {
        apply(&RootLock::acquire(&self.target).unwrap(), request).await
    }

    async fn apply_quietly(&self) -> Result<Outcome, Error> {
        self.apply(&self.request()).await
    }

    async fn finish(&self) -> Finished {
        finish(&RootLock::acquire(&self.target).unwrap(), &self.changeset).await.unwrap()
    }

    /// What stands in the target, without the files of the apply itself.
    fn state(&self) -> State {
        state(&self.target)
    }
}

fn state(root: &Path) -> State {
    let mut state = State::new();
    read(root, root, &mut state);
    state
}

fn read(root: &Path, directory: &Path, state: &mut State) {
    for child in fs::read_dir(directory).unwrap() {
        let path = child.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_owned();
        if name == Path::new(STAGE) || name == Path::new(".git") {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        if metadata.is_symlink() {
            state.insert(name, (fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(), 0));
        } else if metadata.is_dir() {
            let before = state.len();
            read(root, &path, state);
            if state.len() == before {
                state.insert(name, (b"empty directory".to_vec(), 0));
            }
        } else {
            state.insert(name, (fs::read(&path).unwrap(), mode));
        }
    }
}

const STAGE: &str = crate::workspace::STAGE_NAME;

/// Everything that stands anywhere below a directory, the files of an apply included.
fn all_contents(directory: &Path) -> Vec<Vec<u8>> {
    let mut contents = Vec::new();
    for child in fs::read_dir(directory).unwrap() {
        let path = child.unwrap().path();
        if path.is_symlink() {
            contents.push(fs::read_link(&path).unwrap().into_os_string().as_bytes().to_vec());
        } else if path.is_dir() {
            contents.extend(all_contents(&path));
        } else {
            contents.push(fs::read(&path).unwrap());
        }
    }
    contents
}

/// Steps that stop an apply at the `number`th one.
fn stop_at(number: usize) -> Steps {
    let left = Mutex::new(number);
    Arc::new(move |_| {
        let mut left = left.lock().unwrap();
        *left = left.checked_sub(1).ok_or(Stopped)?;
        Ok(())
    })
}
