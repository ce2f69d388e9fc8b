//! Measuring a directory: the tree that stands there now.
//!
//! The whole directory is found and every file's digest known from the cache or
//! by reading it; where a blob store is given, the contents and the tree's nodes
//! are in it when the snapshot is returned. Nothing in the directory is changed.
//! A file that can't be read is an error and never a gap.

mod absent;
mod error;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_shared::blob::Blobs;
use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Content, Entry, Manifest, Mode, RelPath, node};

pub use error::Error;

use super::beneath::Root;
use super::cache::StatCache;
use super::rules::Rules;
use super::walk::{self, Found};

/// How a directory is measured.
pub struct Survey<'a> {
    /// Which files count.
    pub rules: Arc<Rules>,
    /// Where contents and nodes are stored; without it only digests are computed.
    pub blobs: Option<&'a dyn Blobs>,
    /// A tree that a kept record names: what it holds is stored already.
    pub known: Option<&'a Manifest>,
    /// Files that could not be written here; where nothing stands at their path, they count as unchanged.
    pub absent: BTreeMap<RelPath, Entry>,
    /// Reads every file, whatever the cache says.
    pub verify: bool,
    /// Larger files count by their digest only.
    pub stored_bytes_max: u64,
}

/// The largest file whose content is stored, unless a survey says otherwise: 64 MiB.
pub const STORED_BYTES_MAX: u64 = 64 << 20;

impl<'a> Survey<'a> {
    /// A survey that stores nothing.
    pub fn new(rules: Arc<Rules>) -> Self {
        let absent = BTreeMap::new();
        Self { rules, blobs: None, known: None, absent, verify: false, stored_bytes_max: STORED_BYTES_MAX }
    }

    /// The same survey, storing into `blobs` what `known` does not have.
    #[must_use]
    pub fn storing(self, blobs: &'a dyn Blobs, known: Option<&'a Manifest>) -> Self {
        Self { blobs: Some(blobs), known, ..self }
    }
}

/// A directory at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The digest that names the tree.
    pub root: Digest,
    /// The tree.
    pub manifest: Manifest,
    /// What was found and can't be part of a tree: pipes, sockets, devices.
    pub skipped: Vec<Skipped>,
    /// What it cost.
    pub cost: Cost,
}

/// Something that is not part of the tree although no rule excludes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// What.
    pub path: PathBuf,
    /// Why.
    pub reason: &'static str,
}

/// What a snapshot cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Files that were read.
    pub files_read: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
}

/// Files to be read, and what is known so far.
struct Sorted {
    entries: BTreeMap<RelPath, Entry>,
    to_read: Vec<Found>,
}

/// Measures a directory.
///
/// # Errors
///
/// [`Error`] names what could not be read or stored. The cache stays true after an error.
pub async fn snapshot(directory: &Path, cache: &mut StatCache, survey: &Survey<'_>) -> Result<Snapshot, Error> {
    let at = |source| Error::Io { path: directory.to_owned(), source };
    let read_at = cache.now().map_err(at)?;
    let root = Arc::new(Root::open(directory).map_err(at)?);
    let threads = threads();
    let found = {
        let (root, rules) = (Arc::clone(&root), Arc::clone(&survey.rules));
        on_thread(move || walk::walk(&root, &rules, threads)).await?
    };
    let stored = survey.known.map(contents).unwrap_or_default();
    let Sorted { mut entries, to_read } = sort(&root, found.found, cache, survey, &stored).await?;
    let mut cost = Cost::default();
    let read = store::read_all(&root, to_read, survey, stored, threads).await?;
    for (path, contents, content) in read {
        cost.files_read += 1;
        cost.bytes_read += contents.size;
        let mode = Mode::from_bits(contents.stat.mode());
        let entry = Entry::File { digest: contents.digest, size: contents.size, mode, content };
        cache.put(path.clone(), contents.stat, contents.digest, read_at);
        entries.insert(path, entry);
    }
    cache.retain(|path| entries.contains_key(path));
    absent::add(&mut entries, &survey.absent);
    let restless = |source| Error::Restless { path: directory.to_owned(), source };
    let manifest = Manifest::new(entries).map_err(restless)?;
    let tree = |source| Error::Tree { path: directory.to_owned(), source: Box::new(source) };
    let name = match survey.blobs {
        Some(blobs) => node::store_tree(blobs, &manifest, survey.known).await.map_err(tree)?,
        None => node::root(&manifest),
    };
    let mut skipped = found.skipped;
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Snapshot { root: name, manifest, skipped, cost })
}

/// Runs file work where it does not hold up the asynchronous threads.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("file work neither panics nor is aborted")
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8))
}

fn contents(manifest: &Manifest) -> BTreeSet<Digest> {
    manifest.iter().filter_map(|(_, entry)| entry.blob()).collect()
}

/// Separates what is known for certain from what has to be read.
async fn sort(
    root: &Root,
    found: Vec<Found>,
    cache: &StatCache,
    survey: &Survey<'_>,
    stored: &BTreeSet<Digest>,
) -> Result<Sorted, Error> {
    let mut sorted = Sorted { entries: BTreeMap::new(), to_read: Vec::new() };
    for item in found {
        if item.is_link {
            match root.place(&item.path).and_then(|place| place.link()) {
                Ok(target) => {
                    sorted.entries.insert(item.path, Entry::Symlink { target });
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Io { path: item.path.under(root.path()), source }),
            }
            continue;
        }
        let cached = if survey.verify { None } else { cache.get(&item.path, &item.stat) };
        let content = content_of(&item, survey);
        match cached {
            Some(digest) if content != Content::Stored || is_stored(survey, stored, digest, root).await? => {
                let mode = Mode::from_bits(item.stat.mode());
                sorted.entries.insert(item.path, Entry::File { digest, size: item.stat.size(), mode, content });
            }
            _ => sorted.to_read.push(item),
        }
    }
    // By path, so that the files of one directory are read one after the other.
    sorted.to_read.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sorted)
}

fn content_of(item: &Found, survey: &Survey<'_>) -> Content {
    if item.sealed {
        Content::Sealed
    } else if item.stat.size() > survey.stored_bytes_max {
        Content::Large
    } else {
        Content::Stored
    }
}

async fn is_stored(survey: &Survey<'_>, stored: &BTreeSet<Digest>, digest: Digest, root: &Root) -> Result<bool, Error> {
    match survey.blobs {
        Some(blobs) if !stored.contains(&digest) => {
            // A tree is about to name it without putting it again.
            let size = blobs.keep(digest).await;
            Ok(size.map_err(|source| Error::Blob { path: root.path().to_owned(), source })?.is_some())
        }
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests;
