//! Putting back what was swapped, as far as nobody has changed it since.
//!
//! It goes through the operations in reverse. A path that no longer stands as this
//! apply left it belongs to whoever changed it: it is left alone and named.

use std::io;

use checkrein_shared::tree::RelPath;

use super::forward::give_back;
use super::plan::Op;
use super::run::Job;
use super::standing::{Standing, standing_at};
use super::swap::{Pair, make_parents};
use super::{Error, Step};
use crate::workspace::beneath::Place;

/// Undoes the operations at the indexes in `done`, then empties the stage. Returns the paths that stay changed.
///
/// # Errors
///
/// [`Error::Stopped`] only; what fails otherwise is a path that stays changed.
pub(super) fn undo(job: &Job, done: &[usize]) -> Result<Vec<RelPath>, Error> {
    let mut left = Vec::new();
    for (index, op) in job.ops.iter().enumerate().rev() {
        let undone = if done.contains(&index) {
            job.step(Step::Undoing(&op.path))?;
            undo_one(job, op)
        } else {
            settle(job, op)
        };
        match undone {
            Ok(true) => {}
            Ok(false) => left.push(op.path.clone()),
            Err(error) => {
                tracing::error!(path = %op.path, %error, "a path could not be put back");
                left.push(op.path.clone());
            }
        }
    }
    left.reverse();
    if let Err(error) = empty_stage(job) {
        tracing::warn!(stage = %job.stage.path.display(), %error, "the stage of an undone apply remains");
    }
    Ok(left)
}

fn undo_one(job: &Job, op: &Op) -> io::Result<bool> {
    let (old, new) = (op.old.as_ref(), op.new.as_ref());
    let slot = job.stage.slot(op.number)?;
    let place = Place { directory: make_parents(&job.root, &op.path)?, name: op.path.name() };
    let pair = Pair { place, stage: &job.stage, number: op.number, atomic: job.atomic };
    let target = standing_at(&pair.place)?;
    if new.is_none() {
        // Deleted before, and its file may have been deleted by somebody else at the same time.
        return Ok(target.is(None) && slot.is(old) && pair.put().is_ok());
    }
    if !target.is(new) {
        return Ok(false);
    }
    if old.is_none() {
        pair.take()?;
        let taken = job.stage.slot(op.number)?;
        if taken.is(new) {
            super::swap::prune_parents(&job.root, &op.path);
            return Ok(true);
        }
        pair.put()?;
        return Ok(false);
    }
    if !slot.is(old) {
        return Ok(false);
    }
    pair.exchange()?;
    let taken = job.stage.slot(op.number)?;
    if taken.is(new) {
        return Ok(true);
    }
    // Somebody wrote to the new file between looking and swapping: it is theirs, so it goes back.
    pair.exchange()?;
    Ok(false)
}

/// Gives back what a crash left displaced and unchecked in the slot of an operation that did not count as done.
fn settle(job: &Job, op: &Op) -> io::Result<bool> {
    let slot = job.stage.slot(op.number)?;
    let foreign = slot != Standing::Nothing && !slot.is(op.old.as_ref()) && !slot.is(op.new.as_ref());
    if foreign && op.old.is_some() {
        return Ok(give_back(job, op, slot).error.is_none());
    }
    Ok(true)
}

/// Removes what an undone apply leaves behind; anything that is not its own stays, with its stage.
fn empty_stage(job: &Job) -> io::Result<()> {
    for op in &job.ops {
        let slot = job.stage.slot(op.number)?;
        if slot.is(op.new.as_ref()) && slot != Standing::Nothing {
            job.stage.remove(&op.number.to_string())?;
        }
        job.stage.remove(&format!("{}.new", op.number))?;
    }
    job.stage.remove("plan")?;
    job.stage.remove("plan.new")?;
    job.stage.sync()?;
    job.stage.dissolve(&job.root)
}
