//! Where the new content of a path comes from, and bringing it into its slot.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

use checkrein_shared::blob::{BLOB_BYTES_MAX, Blobs};
use checkrein_shared::digest::{Digest, Hasher};
use checkrein_shared::tree::{Content, Entry, LinkTarget, Mode, RelPath};

use super::Error;
use super::run::{Job, on_thread};
use super::standing::Standing;
use crate::workspace::beneath::{self, Root};

/// Stages the new file or link of the operation at `index`.
pub(super) async fn stage(job: &Arc<Job>, index: usize, blobs: &dyn Blobs) -> Result<(), Error> {
    let op = &job.ops[index];
    let (number, path) = (op.number, op.path.clone());
    let job = Arc::clone(job);
    match op.new.clone().expect("only what becomes something is staged") {
        Entry::Symlink { target } => on_thread(move || stage_link(&job, number, &target)).await,
        Entry::File { digest, mode, content: Content::Stored, .. } => {
            let read = blobs.get(digest, BLOB_BYTES_MAX).await;
            let bytes = read.map_err(|source| Error::Blob { path, source })?;
            on_thread(move || {
                clear(&job, number)?;
                let write = |file: &mut File| file.write_all(&bytes).map(|()| true);
                job.stage.fill(number, mode, write).map(drop).map_err(|e| job.fail_stage(e))
            })
            .await
        }
        Entry::File { digest, mode, .. } => on_thread(move || stage_from_files(&job, index, digest, mode)).await,
    }
}

fn stage_link(job: &Job, number: usize, target: &LinkTarget) -> Result<(), Error> {
    clear(job, number)?;
    job.stage.fill_link(number, target).map_err(|e| job.fail_stage(e))
}

/// A slot may hold somebody's edit that an earlier attempt could not put back: that is never overwritten.
pub(super) fn clear(job: &Job, number: usize) -> Result<(), Error> {
    let op = job.ops.iter().find(|op| op.number == number).expect("numbers come from these operations");
    let slot = job.stage.slot(number).map_err(|e| job.fail_stage(e))?;
    let known = slot.is(op.old.as_ref()) || slot.is(op.new.as_ref());
    match slot {
        Standing::Nothing => Ok(()),
        _ if known => job.stage.remove(&number.to_string()).map_err(|e| job.fail_stage(e)),
        _ => {
            let kept = job.stage.keep(number).map_err(|e| job.fail_stage(e))?;
            tracing::warn!(path = %op.path, kept = %kept.display(), "an edit from an earlier attempt is kept");
            Ok(())
        }
    }
}

/// Looks for a content that no blob store keeps: in the scratch, then in the target under an old name.
fn stage_from_files(job: &Job, index: usize, digest: Digest, mode: Mode) -> Result<(), Error> {
    let op = &job.ops[index];
    clear(job, op.number)?;
    let scratch = match &job.scratch {
        Some(path) => Some(Root::open(path).map_err(|source| Error::Io { path: path.clone(), source })?),
        None => None,
    };
    let has = |old: &Option<Entry>| old.as_ref().is_some_and(|old| old.content_digest() == digest);
    let olds = job.ops.iter().filter(|other| has(&other.old)).map(|other| (&*job.root, &other.path));
    for (root, path) in scratch.iter().map(|root| (root, &op.path)).chain(olds) {
        let Some(mut file) = open(root, path).map_err(|e| job.fail(path, e))? else { continue };
        let copied = job.stage.fill(op.number, mode, |to| Ok(copy(&mut file, to)? == digest));
        if copied.map_err(|e| job.fail_stage(e))? {
            return Ok(());
        }
    }
    Err(Error::NoContent { path: op.path.clone() })
}

fn open(root: &Root, path: &RelPath) -> io::Result<Option<File>> {
    match root.place(path).and_then(|place| place.open_file()) {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(e) if beneath::is_absent(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Copies and tells the digest of what was written.
fn copy(from: &mut File, to: &mut File) -> io::Result<Digest> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
    }
}
