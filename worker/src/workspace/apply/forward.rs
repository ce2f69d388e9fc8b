//! The swaps: each path takes its new state, and what it displaced is compared.

use std::io;

use super::classify::Remains;
use super::plan::Op;
use super::run::{Job, single};
use super::source::clear;
use super::standing::{Standing, standing};
use super::survey::conflict;
use super::swap::{Pair, make_parents, remove_empty};
use super::{Conflict, Error, Step};
use crate::workspace::beneath::{self, Place};

/// Why an apply does not go on.
pub(super) enum Halt {
    Conflicts(Vec<Conflict>),
    Error(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Swaps every path that remains; adds the index of each one that was swapped to `done`.
pub(super) fn swap_all(job: &Job, remains: &[Remains], done: &mut Vec<usize>) -> Result<(), Halt> {
    for (index, op) in job.ops.iter().enumerate() {
        if remains[index] == Remains::Nothing {
            continue;
        }
        job.step(Step::Swapping(&op.path))?;
        match (&op.old, &op.new) {
            (Some(_), Some(_)) => replace(job, op)?,
            (None, Some(_)) => add(job, op)?,
            (_, None) => delete(job, op)?,
        }
        done.push(index);
        job.step(Step::Checked(&op.path))?;
    }
    Ok(())
}

fn pair<'a>(job: &'a Job, place: Place<'a>, number: usize) -> Pair<'a> {
    Pair { place, stage: &job.stage, number, atomic: job.atomic }
}

/// What stands at a path now, as the conflict that it is.
fn refuse(job: &Job, op: &Op) -> Halt {
    match standing(&job.root, &op.path) {
        Ok(found) => Halt::Conflicts(vec![conflict(op, found)]),
        Err(e) => job.fail(&op.path, e).into(),
    }
}

fn replace(job: &Job, op: &Op) -> Result<(), Halt> {
    let place = match job.root.place(&op.path) {
        Err(e) if beneath::is_absent(&e) => return Err(refuse(job, op)),
        other => other.map_err(|e| job.fail(&op.path, e))?,
    };
    // A directory could be exchanged as well as a file, and must not be.
    if !job.atomic && !look(job, op)?.is(op.old.as_ref()) {
        return Err(refuse(job, op));
    }
    let pair = pair(job, place, op.number);
    match pair.exchange() {
        Err(e) if beneath::is_absent(&e) => return Err(refuse(job, op)),
        other => other.map_err(|e| job.fail(&op.path, e))?,
    }
    job.step(Step::Swapped(&op.path))?;
    let displaced = job.stage.slot(op.number).map_err(|e| job.fail_stage(e))?;
    if displaced.is(op.old.as_ref()) {
        return Ok(());
    }
    Err(give_back(job, op, displaced).into_halt())
}

fn add(job: &Job, op: &Op) -> Result<(), Halt> {
    let directory = match make_parents(&job.root, &op.path) {
        Err(e) if beneath::is_absent(&e) || e.kind() == io::ErrorKind::AlreadyExists => return Err(refuse(job, op)),
        other => other.map_err(|e| job.fail(&op.path, e))?,
    };
    if look(job, op)? == Standing::Directory && remove_empty(&job.root, &op.path).is_err() {
        return Err(refuse(job, op));
    }
    let pair = pair(job, Place { directory, name: op.path.name() }, op.number);
    match pair.put() {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(refuse(job, op)),
        other => other.map_err(|e| job.fail(&op.path, e))?,
    }
    Ok(job.step(Step::Swapped(&op.path))?)
}

fn delete(job: &Job, op: &Op) -> Result<(), Halt> {
    clear(job, op.number)?;
    let place = match job.root.place(&op.path) {
        Err(e) if beneath::is_absent(&e) => return Err(refuse(job, op)),
        other => other.map_err(|e| job.fail(&op.path, e))?,
    };
    if !job.atomic && !look(job, op)?.is(op.old.as_ref()) {
        return Err(refuse(job, op));
    }
    match pair(job, place, op.number).take() {
        Err(e) if beneath::is_absent(&e) => return Err(refuse(job, op)),
        other => other.map_err(|e| job.fail(&op.path, e))?,
    }
    job.step(Step::Swapped(&op.path))?;
    let displaced = job.stage.slot(op.number).map_err(|e| job.fail_stage(e))?;
    if displaced.is(op.old.as_ref()) {
        return Ok(());
    }
    Err(give_back(job, op, displaced).into_halt())
}

fn look(job: &Job, op: &Op) -> Result<Standing, Error> {
    standing(&job.root, &op.path).map_err(|e| job.fail(&op.path, e))
}

/// What came of giving back what a swap displaced by mistake.
pub(super) struct GivenBack {
    conflicts: Vec<Conflict>,
    error: Option<Error>,
}

impl GivenBack {
    fn into_halt(self) -> Halt {
        match self.error {
            Some(error) => Halt::Error(error),
            None => Halt::Conflicts(self.conflicts),
        }
    }
}

/// Puts back what was displaced and is not what the changeset expects.
///
/// Where somebody has meanwhile put yet another file there, both survive: theirs
/// at the path, the displaced one in the stage, and the conflict says where.
pub(super) fn give_back(job: &Job, op: &Op, displaced: Standing) -> GivenBack {
    let mut note = displaced.note();
    let restored = (|| {
        let place = Place { directory: make_parents(&job.root, &op.path)?, name: op.path.name() };
        let pair = pair(job, place, op.number);
        if op.new.is_none() {
            return match pair.put() {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => job.stage.keep(op.number).map(Some),
                other => other.map(|()| None),
            };
        }
        if !look_at(&pair)?.is(op.new.as_ref()) {
            return job.stage.keep(op.number).map(Some);
        }
        pair.exchange()?;
        // Now the slot should hold the new file again; anything else came in between and is kept.
        let slot = job.stage.slot(op.number)?;
        if slot.is(op.new.as_ref()) { Ok(None) } else { job.stage.keep(op.number).map(Some) }
    })();
    let error = match restored {
        Ok(None) => None,
        Ok(Some(kept)) => {
            note += &format!("; a second edit stands there, and the first is kept at `{}`", kept.display());
            None
        }
        Err(e) => Some(job.fail(&op.path, e)),
    };
    GivenBack { conflicts: single(op, displaced.into_entry(), note), error }
}

fn look_at(pair: &Pair<'_>) -> io::Result<Standing> {
    super::standing::standing_at(&pair.place)
}
