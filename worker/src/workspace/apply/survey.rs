//! Looking at every path of a changeset before anything is touched.

use std::collections::BTreeMap;
use std::io;

use checkrein_shared::tree::{Entry, RelPath};
use rustix::fs::{Dir, fstat};

use super::classify::{Remains, classify};
use super::plan::Op;
use super::run::Job;
use super::standing::{Standing, standing};
use super::swap::recover_hold;
use super::{Conflict, Error};
use crate::workspace::beneath::{self, Root};

/// What every path needs, in the order of the operations.
pub(super) struct Survey {
    pub(super) remains: Vec<Remains>,
    pub(super) conflicts: Vec<Conflict>,
}

/// Looks at every path and every slot.
pub(super) fn survey(job: &Job) -> Result<Survey, Error> {
    let news: BTreeMap<&RelPath, Option<&Entry>> = job.ops.iter().map(|op| (&op.path, op.new.as_ref())).collect();
    let device = fstat(&job.stage.fd).map_err(|e| job.fail_stage(e.into()))?.st_dev;
    let mut all = Survey { remains: Vec::with_capacity(job.ops.len()), conflicts: Vec::new() };
    for op in &job.ops {
        recover_hold(&job.stage, op.number).map_err(|e| job.fail_stage(e))?;
        let at = |e| job.fail(&op.path, e);
        if device_of(&job.root, &op.path).map_err(at)? != device {
            return Err(Error::OtherFileSystem(op.path.clone()));
        }
        let target = standing(&job.root, &op.path).map_err(at)?;
        let slot = job.stage.slot(op.number).map_err(|e| job.fail_stage(e))?;
        let clears = clears(&job.root, op, &target, &news).map_err(at)?;
        let remains = classify(op, &target, &slot, clears);
        match remains {
            Remains::Conflict => all.conflicts.push(conflict(op, target)),
            Remains::GiveBack => all.conflicts.push(conflict(op, slot)),
            Remains::Nothing | Remains::Swap | Remains::StageAndSwap => {}
        }
        all.remains.push(remains);
    }
    Ok(all)
}

pub(super) fn conflict(op: &Op, found: Standing) -> Conflict {
    let note = found.note();
    Conflict { path: op.path.clone(), expected: op.old.clone(), found: found.into_entry(), note }
}

/// Whether what is in the way is this changeset's own: about to be deleted by it, or put there by it before a crash.
fn clears(root: &Root, op: &Op, target: &Standing, news: &BTreeMap<&RelPath, Option<&Entry>>) -> io::Result<bool> {
    let deleting = op.new.is_none();
    match target {
        Standing::Blocked(by) => Ok(news.get(by).is_some_and(|new| new.is_some() == deleting)),
        Standing::Directory if deleting || op.old.is_none() => {
            all_below(root, &op.path, &|path| news.get(path).is_some_and(|new| new.is_some() == deleting))
        }
        _ => Ok(false),
    }
}

/// Whether every file below a directory satisfies a condition. Ignored files are looked at as well.
fn all_below(root: &Root, directory: &RelPath, fits: &dyn Fn(&RelPath) -> bool) -> io::Result<bool> {
    for entry in Dir::new(root.directory(Some(directory))?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        // A name that no tree can hold, such as `.git`, belongs to somebody else.
        let Ok(child) = directory.child(name) else { return Ok(false) };
        let fine = if entry.file_type().is_dir() { all_below(root, &child, fits)? } else { fits(&child) };
        if !fine {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The file system of the innermost directory on the way to a path that exists.
fn device_of(root: &Root, path: &RelPath) -> io::Result<u64> {
    for directory in path.ancestors().map(Some).chain([None]) {
        match root.directory(directory.as_ref()) {
            Err(e) if beneath::is_absent(&e) => {}
            other => return Ok(fstat(&other?)?.st_dev),
        }
    }
    Err(io::Error::from(io::ErrorKind::NotFound))
}
