//! For this crate's tests only: blobs in memory, and short ways to write trees.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::entry::{Content, Entry, LinkTarget, Mode};
use super::manifest::Manifest;
use super::path::RelPath;
use crate::blob::{Blobs, Error};
use crate::digest::Digest;

#[derive(Default)]
pub(crate) struct Memory(pub(crate) Mutex<BTreeMap<Digest, Vec<u8>>>);

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

pub(crate) fn file(content: &str) -> Entry {
    file_with(content, 0o644)
}

pub(crate) fn file_with(content: &str, mode: u32) -> Entry {
    Entry::File {
        digest: Digest::of(content),
        size: content.len() as u64,
        mode: Mode::from_bits(mode),
        content: Content::Stored,
    }
}

pub(crate) fn link(target: &str) -> Entry {
    Entry::Symlink { target: LinkTarget::from_bytes(target).unwrap() }
}

pub(crate) fn manifest(entries: &[(&str, Entry)]) -> Manifest {
    Manifest::new(entries.iter().map(|(p, e)| (path(p), e.clone())).collect()).unwrap()
}

pub(crate) fn tree(files: &[(&str, &str)]) -> Manifest {
    Manifest::new(files.iter().map(|(p, content)| (path(p), file(content))).collect()).unwrap()
}

/// Stores the contents of `files` and returns their tree.
pub(crate) async fn stored(blobs: &Memory, files: &[(&str, &str)]) -> Manifest {
    for (_, content) in files {
        blobs.put(content.as_bytes()).await.unwrap();
    }
    tree(files)
}
