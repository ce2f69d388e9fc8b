//! For this crate's tests only: blobs in memory, and short ways to set up directories.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use checkrein_shared::blob::{Blobs, Error};
use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Manifest, RelPath};

use super::{Rules, Snapshot, StatCache, Survey, git, snapshot};

#[derive(Default)]
pub(crate) struct Memory(pub(crate) Mutex<BTreeMap<Digest, Vec<u8>>>);

impl Memory {
    pub(crate) fn has(&self, bytes: &[u8]) -> bool {
        self.0.lock().unwrap().contains_key(&Digest::of(bytes))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[async_trait]
impl Blobs for Memory {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        self.0.lock().unwrap().insert(digest, bytes.to_vec());
        Ok(digest)
    }

    async fn get(&self, digest: Digest, limit: u64) -> Result<Vec<u8>, Error> {
        let bytes = self.0.lock().unwrap().get(&digest).cloned().ok_or(Error::Missing(digest))?;
        let size = bytes.len() as u64;
        if size > limit { Err(Error::TooLarge { size, limit }) } else { Ok(bytes) }
    }

    async fn size(&self, digest: Digest) -> Result<Option<u64>, Error> {
        Ok(self.0.lock().unwrap().get(&digest).map(|bytes| bytes.len() as u64))
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::from_bytes(text).unwrap()
}

/// Writes files below `root`; `-> x` makes a link to `x`, `x!` an executable file with the content `x`.
pub(crate) fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let file = root.join(std::ffi::OsStr::from_bytes(name.as_bytes()));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if let Some(target) = content.strip_prefix("-> ") {
            std::os::unix::fs::symlink(target, file).unwrap();
        } else if let Some(content) = content.strip_suffix('!') {
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        } else {
            fs::write(&file, content).unwrap();
        }
    }
}

/// The rules of a directory as it stands.
pub(crate) async fn rules(root: &Path) -> Arc<Rules> {
    Arc::new(Rules::read(&root.canonicalize().unwrap()).await.unwrap())
}

/// Measures a directory by its own rules, storing everything.
pub(crate) async fn measure(root: &Path, blobs: &Memory) -> Snapshot {
    measure_by(&rules(root).await, root, blobs).await
}

/// Measures a directory by given rules, storing everything.
pub(crate) async fn measure_by(rules: &Arc<Rules>, root: &Path, blobs: &Memory) -> Snapshot {
    let survey = Survey::new(Arc::clone(rules)).storing(blobs, None);
    snapshot(root, &mut StatCache::in_memory(), &survey).await.unwrap()
}

/// The paths of a tree as text.
pub(crate) fn names(manifest: &Manifest) -> Vec<String> {
    manifest.iter().map(|(path, _)| path.to_string()).collect()
}

/// Makes a repository whose files are all committed, without any identity configured.
pub(crate) async fn repository(root: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(root).unwrap();
    git::run(root, ["init", "--quiet", "--initial-branch=main"]).await.unwrap();
    write(root, files);
    commit(root).await;
}

/// Commits everything, ignored files too.
pub(crate) async fn commit(root: &Path) {
    git::run(root, ["add", "--all", "--force"]).await.unwrap();
    let tree = git::run(root, ["write-tree"]).await.unwrap();
    let tree = String::from_utf8(tree).unwrap();
    // A commit needs an identity, and the runner gives none: this object is written by hand.
    let text = format!("tree {}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nmessage\n", tree.trim());
    let file = root.join(".git/commit-text");
    fs::write(&file, text).unwrap();
    let id = git::run(root, ["hash-object", "-t", "commit", "-w", ".git/commit-text"]).await.unwrap();
    let id = String::from_utf8(id).unwrap();
    fs::remove_file(file).unwrap();
    git::run(root, ["update-ref", "HEAD", id.trim()]).await.unwrap();
}
