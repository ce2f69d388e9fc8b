//! Looking at what jobs left: evidence, changesets, processes.

use std::path::Path;

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::json;
use checkrein_shared::records::{ChangesetRef, EvidenceIndex, EvidenceRef};
use checkrein_shared::tree::{Changeset, node};

use super::bench::Bench;

impl Bench {
    /// Every entry of an index and its predecessors, with the stored bytes.
    pub(crate) async fn evidence(&self, mut index: Option<Digest>) -> Vec<(EvidenceRef, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some(digest) = index {
            let bytes = self.blobs.get(digest, 1 << 24).await.unwrap();
            let read: EvidenceIndex = json::parse_as("evidence index", &bytes).unwrap();
            for (reference, evidence) in read.entries {
                found.push((reference, self.blobs.get(evidence.digest, 1 << 24).await.unwrap()));
            }
            index = read.previous;
        }
        found
    }

    /// The text of one artifact.
    pub(crate) async fn text(&self, index: Digest, reference: &str) -> String {
        let all = self.evidence(Some(index)).await;
        let names: Vec<&str> = all.iter().map(|(r, _)| r.as_str()).collect();
        let found = all.iter().find(|(r, _)| r.as_str() == reference);
        let (_, bytes) = found.unwrap_or_else(|| panic!("`{reference}` is not among {names:?}"));
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The text of a file in a stored tree.
    pub(crate) async fn content(&self, tree: &Digest, path: &str) -> String {
        let manifest = node::load_tree(&*self.blobs, *tree).await.unwrap();
        let entry = manifest.get(&path.parse().unwrap()).unwrap_or_else(|| panic!("{path} is not in the tree"));
        let bytes = self.blobs.get(entry.blob().unwrap(), 1 << 20).await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What a changeset touches.
    pub(crate) async fn touched(&self, changeset: &ChangesetRef) -> Vec<String> {
        let bytes = self.blobs.get(changeset.hash, 1 << 24).await.unwrap();
        Changeset::parse(&bytes).unwrap().touched().into_iter().map(ToString::to_string).collect()
    }
}

/// Whether some process has this in its command line.
pub(crate) fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(marker))
}

/// The path of a project as a task names it.
pub(crate) fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}
