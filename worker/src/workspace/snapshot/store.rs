//! Reading files in batches and storing their contents, with bounded memory.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use checkrein_shared::digest::Digest;
use checkrein_shared::tree::{Content, RelPath};

use super::{Error, Survey, content_of, on_thread};
use crate::workspace::beneath::Root;
use crate::workspace::read::{Contents, read_stable};
use crate::workspace::walk::Found;

/// Bytes and files that one batch holds in memory, at most one file more.
const BATCH_BYTES: u64 = 32 << 20;
const BATCH_FILES: usize = 1024;

/// A file that was read.
pub(super) type Read = (RelPath, Contents, Content);

/// Reads files and stores those contents that `stored` does not have yet. Files that are gone meanwhile are left out.
pub(super) async fn read_all(
    root: &Arc<Root>,
    to_read: Vec<Found>,
    survey: &Survey<'_>,
    mut stored: BTreeSet<Digest>,
    threads: usize,
) -> Result<Vec<Read>, Error> {
    let mut done = Vec::with_capacity(to_read.len());
    let keep = survey.blobs.map(|_| survey.stored_bytes_max);
    let jobs = to_read.into_iter().map(|item| {
        let content = content_of(&item, survey);
        (item, content)
    });
    for batch in batches(jobs) {
        let root_too = Arc::clone(root);
        let mut read = on_thread(move || read_batch(&root_too, &batch, keep, threads)).await?;
        let mut new = Vec::new();
        for (_, contents, content) in &mut read {
            let bytes = contents.bytes.take();
            // It may have grown or shrunk across the limit since it was found.
            if *content != Content::Sealed {
                *content = if contents.size > survey.stored_bytes_max { Content::Large } else { Content::Stored };
            }
            if *content == Content::Stored
                && let Some(bytes) = bytes
                && stored.insert(contents.digest)
            {
                new.push(bytes);
            }
        }
        if let Some(blobs) = survey.blobs {
            let failed = |source| Error::Blob { path: root.path().to_owned(), source };
            blobs.put_all(new).await.map_err(failed)?;
        }
        done.append(&mut read);
    }
    Ok(done)
}

fn batches(items: impl Iterator<Item = (Found, Content)>) -> Vec<Vec<(Found, Content)>> {
    let mut batches = Vec::new();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for (item, content) in items {
        bytes += item.stat.size();
        batch.push((item, content));
        if bytes >= BATCH_BYTES || batch.len() >= BATCH_FILES {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    batches.push(batch);
    batches
}

fn read_batch(root: &Root, batch: &[(Found, Content)], keep: Option<u64>, threads: usize) -> Result<Vec<Read>, Error> {
    let next = AtomicUsize::new(0);
    let read = || {
        let mut done = Vec::new();
        while let Some((item, content)) = batch.get(next.fetch_add(1, Ordering::Relaxed)) {
            let keep = keep.filter(|_| *content != Content::Sealed);
            match root.place(&item.path).and_then(|place| read_stable(&place, keep)) {
                Ok(contents) => done.push((item.path.clone(), contents, *content)),
                // Only what is gone is left out; what became something else is an error, never a gap.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Io { path: item.path.under(root.path()), source }),
            }
        }
        Ok(done)
    };
    let results: Vec<Result<Vec<Read>, Error>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads.min(batch.len())).map(|_| scope.spawn(read)).collect();
        handles.into_iter().map(|handle| handle.join().expect("reading does not panic")).collect()
    });
    let mut all = Vec::with_capacity(batch.len());
    for result in results {
        all.extend(result?);
    }
    Ok(all)
}
