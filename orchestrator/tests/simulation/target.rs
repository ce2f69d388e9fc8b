//! A target: files in memory that a worker may change under a lock and people at any time.

use std::collections::BTreeMap;

use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Content, Entry, Manifest, Mode, RelPath, node};

use crate::blobs::MemoryBlobs;
use crate::exec::Process;
use crate::rng::Rng;

pub(crate) type Files = BTreeMap<String, String>;

/// The names that everybody fights over.
const NAMES: &[&str] = &["a", "b", "c", "dir/d", "dir/e"];

#[derive(Debug, Default)]
pub(crate) struct Target {
    pub(crate) files: Files,
    pub(crate) locked_by: Option<Process>,
}

impl Target {
    pub(crate) fn new() -> Self {
        let file = |name: &&str| ((*name).to_owned(), format!("first {name}\n"));
        Self { files: NAMES[..4].iter().map(file).collect(), locked_by: None }
    }

    /// What a worker measures: the tree and its digest, everything of it stored.
    pub(crate) fn measure(&self, blobs: &MemoryBlobs) -> (Manifest, Digest) {
        store(&self.files, blobs)
    }
}

/// Stores files as a tree.
pub(crate) fn store(files: &Files, blobs: &MemoryBlobs) -> (Manifest, Digest) {
    let entry = |(name, content): (&String, &String)| {
        let digest = blobs.keep(content.as_bytes());
        let size = content.len() as u64;
        let entry = Entry::File { digest, size, mode: Mode::from_bits(0o644), content: Content::Stored };
        (RelPath::from_bytes(name.as_bytes()).expect("a path"), entry)
    };
    let manifest = Manifest::new(files.iter().map(entry).collect()).expect("names that fit together");
    (manifest.clone(), store_manifest(&manifest, blobs))
}

/// Stores the nodes of a tree whose contents are stored.
pub(crate) fn store_manifest(manifest: &Manifest, blobs: &MemoryBlobs) -> Digest {
    let nodes = node::nodes(manifest);
    for bytes in nodes.blobs.values() {
        blobs.keep(bytes);
    }
    nodes.root
}

/// The files of a tree.
pub(crate) fn files(manifest: &Manifest, blobs: &MemoryBlobs) -> Files {
    let file = |(path, entry): (&RelPath, &Entry)| {
        let content = blobs.bytes(entry.content_digest()).expect("contents are stored before trees");
        (path.to_string(), String::from_utf8(content).expect("simulated files are text"))
    };
    manifest.iter().map(file).collect()
}

/// Changes one file as an author would: new text, the first text again, or away with it.
pub(crate) fn edit(files: &mut Files, author: &str, rng: &Rng) {
    let name = (*rng.pick(NAMES)).to_owned();
    match rng.below(8) {
        0 if files.len() > 2 => drop(files.remove(&name)),
        1 | 2 => drop(files.insert(name.clone(), format!("first {name}\n"))),
        _ => drop(files.insert(name, format!("by {author} {}\n", rng.below(1_000)))),
    }
}
