//! Merkle nodes: one blob for each directory, so that a tree stores only what changed.
//!
//! A node is canonical JSON with its entries in the order of their names' bytes;
//! its digest names the directory, the root's digest names the tree. Equal trees
//! have equal digests. File contents are other blobs, which this module neither
//! stores nor reads.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::entry::{Content, Entry, LinkTarget, Mode};
use super::escape;
use super::manifest::{ENTRIES_MAX, InvalidManifest, Manifest};
use super::path::{InvalidPath, RelPath};
use crate::blob::{self, Blobs};
use crate::digest::Digest;
use crate::json;

/// The largest node that is read: a directory of some 400 000 files.
pub const NODE_BYTES_MAX: u64 = 64 << 20;

const VERSION: u32 = 1;

/// Why a tree could not be stored or loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The blob store failed.
    #[error("can't store or read a directory of tree {root}")]
    Blob {
        /// The tree.
        root: Digest,
        /// The cause.
        source: blob::Error,
    },
    /// A blob is no directory node.
    #[error("blob {digest} is not a directory of a tree: {reason}")]
    NotNode {
        /// The blob.
        digest: Digest,
        /// What is wrong with it.
        reason: String,
    },
    /// A path is impossible.
    #[error("directory {digest} holds an impossible path")]
    Path {
        /// The node.
        digest: Digest,
        /// The cause.
        source: InvalidPath,
    },
    /// The entries do not fit together.
    #[error("tree {root} is impossible")]
    Manifest {
        /// The tree.
        root: Digest,
        /// The cause.
        source: InvalidManifest,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    version: u32,
    entries: Vec<NodeEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum NodeEntry {
    Directory { name: String, digest: Digest },
    File { name: String, digest: Digest, size: u64, mode: Mode, content: Content },
    Symlink { name: String, target: LinkTarget },
}

/// The nodes of a tree.
#[derive(Debug)]
pub struct Nodes {
    /// The root's digest, which names the tree.
    pub root: Digest,
    /// Every node's bytes.
    pub blobs: BTreeMap<Digest, Vec<u8>>,
}

/// The nodes of a manifest.
pub fn nodes(manifest: &Manifest) -> Nodes {
    let entries: Vec<_> = manifest.iter().collect();
    let mut blobs = BTreeMap::new();
    let root = directory(&entries, 0, &mut blobs);
    Nodes { root, blobs }
}

/// The digest that names a tree.
pub fn root(manifest: &Manifest) -> Digest {
    nodes(manifest).root
}

/// Adds the node of the directory whose path takes the first `skip` bytes of every entry.
fn directory(entries: &[(&RelPath, &Entry)], skip: usize, blobs: &mut BTreeMap<Digest, Vec<u8>>) -> Digest {
    let mut children: Vec<(&[u8], NodeEntry)> = Vec::new();
    let mut rest = entries;
    while let Some((path, entry)) = rest.first() {
        let tail = &path.as_bytes()[skip..];
        let name = tail.split(|b| *b == b'/').next().expect("splitting yields at least one piece");
        let text = escape::encode(name);
        let taken = if name.len() == tail.len() {
            children.push((name, leaf(text, entry)));
            1
        } else {
            // Everything below one directory is contiguous, as it shares a prefix that ends in `/`.
            let inner = skip + name.len() + 1;
            let prefix = &path.as_bytes()[..inner];
            let count = rest.partition_point(|(other, _)| other.as_bytes().starts_with(prefix));
            let digest = directory(&rest[..count], inner, blobs);
            children.push((name, NodeEntry::Directory { name: text, digest }));
            count
        };
        rest = &rest[taken..];
    }
    children.sort_by_key(|(name, _)| *name);
    let node = Node { version: VERSION, entries: children.into_iter().map(|(_, entry)| entry).collect() };
    let bytes = json::canonical(&node).expect("nodes hold no floats, and sizes of files stay below 2^53");
    let digest = Digest::of(&bytes);
    blobs.insert(digest, bytes);
    digest
}

fn leaf(name: String, entry: &Entry) -> NodeEntry {
    match entry.clone() {
        Entry::File { digest, size, mode, content } => NodeEntry::File { name, digest, size, mode, content },
        Entry::Symlink { target } => NodeEntry::Symlink { name, target },
    }
}

/// Stores the nodes of a tree; when this returns they are durable.
///
/// Nodes that `known` has are taken to be stored already: pass a tree that a kept record names.
///
/// # Errors
///
/// [`Error::Blob`].
pub async fn store_tree(blobs: &dyn Blobs, manifest: &Manifest, known: Option<&Manifest>) -> Result<Digest, Error> {
    let Nodes { root, blobs: mut all } = nodes(manifest);
    if let Some(known) = known {
        for digest in nodes(known).blobs.keys() {
            all.remove(digest);
        }
    }
    let fail = |source| Error::Blob { root, source };
    blobs.put_all(all.into_values().collect()).await.map_err(fail)?;
    Ok(root)
}

/// Loads a tree.
///
/// # Errors
///
/// A missing or damaged node, a node that is not canonical, an impossible path, or too many entries.
pub async fn load_tree(blobs: &dyn Blobs, root: Digest) -> Result<Manifest, Error> {
    let mut entries = BTreeMap::new();
    // Depth first: what is pending stays small, and a bomb of nested nodes meets the limits early.
    let mut pending: Vec<(Option<RelPath>, Digest)> = vec![(None, root)];
    let mut directories = 0;
    while let Some((at, digest)) = pending.pop() {
        directories += 1;
        let bytes = blobs.get(digest, NODE_BYTES_MAX).await.map_err(|source| Error::Blob { root, source })?;
        let node = parse(digest, &bytes)?;
        if node.entries.is_empty() && at.is_some() {
            return Err(Error::NotNode { digest, reason: "a directory below the root is empty".to_owned() });
        }
        for child in node.entries {
            let (name, found) = split(child);
            let path = join(at.as_ref(), &name).map_err(|source| Error::Path { digest, source })?;
            match found {
                Found::Directory(child) => pending.push((Some(path), child)),
                Found::Leaf(entry) => {
                    entries.insert(path, entry);
                }
            }
        }
        if entries.len() > ENTRIES_MAX || directories + pending.len() > ENTRIES_MAX {
            return Err(Error::Manifest { root, source: InvalidManifest::TooManyEntries });
        }
    }
    Manifest::new(entries).map_err(|source| Error::Manifest { root, source })
}

enum Found {
    Directory(Digest),
    Leaf(Entry),
}

fn split(entry: NodeEntry) -> (String, Found) {
    match entry {
        NodeEntry::Directory { name, digest } => (name, Found::Directory(digest)),
        NodeEntry::File { name, digest, size, mode, content } => {
            (name, Found::Leaf(Entry::File { digest, size, mode, content }))
        }
        NodeEntry::Symlink { name, target } => (name, Found::Leaf(Entry::Symlink { target })),
    }
}

fn parse(digest: Digest, bytes: &[u8]) -> Result<Node, Error> {
    let refuse = |reason: String| Error::NotNode { digest, reason };
    let node: Node = json::parse_as("directory node", bytes).map_err(|e| refuse(e.to_string()))?;
    if node.version != VERSION {
        return Err(refuse(format!("version {} is not known here, only {VERSION}", node.version)));
    }
    let names: Vec<_> = node.entries.iter().map(name_of).map(escape::decode).collect();
    let ordered = names.windows(2).all(|pair| matches!(pair, [Ok(a), Ok(b)] if a < b));
    // Equal trees must have equal digests, so there is one way to write each node.
    if !ordered || json::canonical(&node).ok().as_deref() != Some(bytes) {
        return Err(refuse("it is not in canonical form".to_owned()));
    }
    Ok(node)
}

fn name_of(entry: &NodeEntry) -> &str {
    match entry {
        NodeEntry::Directory { name, .. } | NodeEntry::File { name, .. } | NodeEntry::Symlink { name, .. } => name,
    }
}

fn join(directory: Option<&RelPath>, name: &str) -> Result<RelPath, InvalidPath> {
    let child: RelPath = name.parse()?;
    if child.components().count() != 1 {
        return Err(InvalidPath { path: child.to_string(), reason: "a name in a directory holds a slash" });
    }
    match directory {
        None => Ok(child),
        Some(directory) => directory.child(child.as_bytes()),
    }
}

/// What one directory node refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// The nodes of the directories below it.
    pub directories: Vec<Digest>,
    /// The contents of its files, as far as they are stored.
    pub contents: Vec<Digest>,
}

/// Reads what a directory node refers to, for whoever has to see every blob once.
///
/// # Errors
///
/// [`Error::NotNode`].
pub fn links(digest: Digest, bytes: &[u8]) -> Result<Links, Error> {
    let mut links = Links::default();
    for entry in parse(digest, bytes)?.entries {
        match split(entry).1 {
            Found::Directory(child) => links.directories.push(child),
            Found::Leaf(entry) => links.contents.extend(entry.blob()),
        }
    }
    Ok(links)
}

/// The digests of all blobs that a tree needs: its nodes, and the contents that are stored.
pub fn blobs_of(manifest: &Manifest) -> BTreeSet<Digest> {
    let contents = manifest.iter().filter_map(|(_, entry)| entry.blob());
    nodes(manifest).blobs.into_keys().chain(contents).collect()
}

#[cfg(test)]
mod tests;
