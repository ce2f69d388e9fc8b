//! The swaps: each path takes its new state, and what it displaced is compared.

use std::io;

use super::classify::Remains;
use super::plan::Op;
use super::run::{Job, single};
use super::source::clear;
use super::standing::{Standing, standing, standing_at};
use super::survey::conflict;
use super::swap::{Pair, make_parents, remove_empty};
use super::{Conflict, Error, Step};
use crate::workspace::beneath::Place;

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

/// An error of a swap is a conflict where the path no longer stands as expected, and a failure otherwise.
fn or_refuse<T>(job: &Job, op: &Op, result: io::Result<T>) -> Result<T, Halt> {
    result.map_err(|e| match look(job, op) {
        Ok(found) if !found.is(op.old.as_ref()) => Halt::Conflicts(vec![conflict(op, found)]),
        _ => job.fail(&op.path, e).into(),
    })
}

fn replace(job: &Job, op: &Op) -> Result<(), Halt> {
    let place = or_refuse(job, op, job.root.place(&op.path))?;
    or_refuse(job, op, pair(job, place, op.number).exchange())?;
    check(job, op)
}

fn delete(job: &Job, op: &Op) -> Result<(), Halt> {
    clear(job, op.number)?;
    let place = or_refuse(job, op, job.root.place(&op.path))?;
    or_refuse(job, op, pair(job, place, op.number).take())?;
    check(job, op)
}

fn add(job: &Job, op: &Op) -> Result<(), Halt> {
    let directory = or_refuse(job, op, make_parents(&job.root, &op.path))?;
    if look(job, op)? == Standing::Directory {
        or_refuse(job, op, remove_empty(&job.root, &op.path))?;
    }
    let place = Place { directory, name: op.path.name() };
    or_refuse(job, op, pair(job, place, op.number).put())?;
    Ok(job.step(Step::Swapped(&op.path))?)
}

/// Compares what was displaced, which nobody but this apply can reach by name any more.
fn check(job: &Job, op: &Op) -> Result<(), Halt> {
    job.step(Step::Swapped(&op.path))?;
    let displaced = job.stage.slot(op.number).map_err(|e| job.fail_stage(e))?;
    if displaced.is(op.old.as_ref()) {
        return Ok(());
    }
    let given_back = give_back(job, op, displaced);
    Err(given_back.error.map_or(Halt::Conflicts(given_back.conflicts), Halt::Error))
}

fn look(job: &Job, op: &Op) -> Result<Standing, Error> {
    standing(&job.root, &op.path).map_err(|e| job.fail(&op.path, e))
}

/// What came of giving back what a swap displaced by mistake.
pub(super) struct GivenBack {
    pub(super) conflicts: Vec<Conflict>,
    pub(super) error: Option<Error>,
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
        if !standing_at(&pair.place)?.is(op.new.as_ref()) {
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
