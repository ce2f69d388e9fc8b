//! Where a step goes on from: its save point with exactly that tree, or, where
//! that can't be restored, the newest checkpoint of the step or its beginning.
//!
//! What the steps before have done is never lost by it; where that can't be had,
//! a person is asked. A run state is never resumed on another tree than its own. Whoever goes back
//! is told from where, and what happened outside since.

use std::path::PathBuf;
use std::sync::PoisonError;

use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{RUN_STATE_BYTES_MAX, SavePoint, Step, StepAction};

use back::{Back, Place};

use crate::desk::{Desk, JobError};
use crate::ground::{self, Ground};
use crate::recorder::Recorder;
use crate::room::Room;
use crate::workspace::Scratch;

mod back;

/// The ground and the scratch of a step, and what its agent goes on from.
pub(crate) struct Standing {
    pub(crate) ground: Ground,
    pub(crate) scratch: Scratch,
    pub(crate) from: Origin,
}

/// What an agent goes on from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Nothing of its own: its conversation begins, and the files are the job's.
    Beginning,
    /// What the attempt before had saved, with the files of that moment.
    SavePoint,
    /// An earlier moment, because what was saved later can't be restored.
    Back {
        /// Which.
        place: Place,
        /// Why.
        why: String,
        /// Whether a run state belonged to it.
        has_state: bool,
    },
}

/// Measures, restores and cuts what a step stands on.
pub(crate) async fn stand(
    desk: &Desk,
    room: &Room,
    recorder: &mut Recorder,
    step: &Step,
    target: PathBuf,
) -> Result<Standing, JobError> {
    let Some(saved) = desk.job.resume.clone().filter(|_| matches!(step.action, StepAction::Prompt(_))) else {
        let ground = ground::stand(desk, recorder, target).await?;
        let scratch = ground.cut(desk, room).await?;
        return Ok(Standing { ground, scratch, from: Origin::Beginning });
    };
    match restore(desk, room, recorder, target.clone(), &saved).await {
        Ok(standing) => Ok(standing),
        Err(error) if error.is_lost_blob() => {
            let why = with_causes(&error);
            tracing::warn!(task.id = %desk.job.task_id, why, "the save point can't be restored; going back");
            room.clear_scratch()?;
            rewind(desk, room, recorder, target, (saved, why)).await
        }
        Err(error) => Err(error),
    }
}

async fn restore(
    desk: &Desk,
    room: &Room,
    recorder: &mut Recorder,
    target: PathBuf,
    saved: &SavePoint,
) -> Result<Standing, JobError> {
    let state = fetch(desk, saved.run_state.digest).await?;
    let ground = ground::stand_at(desk, recorder, target, (Some(saved.base), Some(saved.tree))).await?;
    let scratch = ground.cut(desk, room).await?;
    hand_over(desk, room, &state, saved.clone())?;
    Ok(Standing { ground, scratch, from: Origin::SavePoint })
}

/// Goes back as little as possible, and never behind the work of the steps before.
async fn rewind(
    desk: &Desk,
    room: &Room,
    recorder: &mut Recorder,
    target: PathBuf,
    (saved, why): (SavePoint, String),
) -> Result<Standing, JobError> {
    let head = desk.head().await?;
    let Some(back) = Back::of(&saved, head.as_ref(), &desk.job.completed) else {
        return Err(JobError::NoWayBack(why));
    };
    let (base, tree) = (saved.base, back.tree);
    let ground = ground::stand_at(desk, recorder, target, (Some(base), Some(tree))).await?;
    let scratch = ground.cut(desk, room).await?;
    let mut has_state = false;
    if let Some(digest) = back.run_state {
        // Without it the conversation begins anew on the checkpoint's files.
        match fetch(desk, digest).await {
            Ok(state) => {
                let mut saved = SavePoint { tree, ..saved };
                saved.run_state.digest = digest;
                hand_over(desk, room, &state, saved)?;
                has_state = true;
            }
            Err(error) if error.is_lost_blob() => {
                tracing::warn!(task.id = %desk.job.task_id, %error, "the checkpoint's run state is lost, too");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Standing { ground, scratch, from: Origin::Back { place: back.place, why, has_state } })
}

async fn fetch(desk: &Desk, digest: Digest) -> Result<Vec<u8>, JobError> {
    let state = desk.services.blobs.get(digest, RUN_STATE_BYTES_MAX).await;
    state.map_err(|error| JobError::Blob("the run state", error))
}

fn hand_over(desk: &Desk, room: &Room, state: &[u8], saved: SavePoint) -> Result<(), JobError> {
    std::fs::write(room.run_state(), state).map_err(|e| JobError::Io("hand the agent its saved progress", e))?;
    *desk.saved.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved);
    Ok(())
}

impl Origin {
    /// What the agent is told about it; `None` where there is nothing to say.
    pub(crate) fn told(&self, desk: &Desk) -> Option<String> {
        match self {
            Self::Beginning => None,
            Self::SavePoint => Some(
                "An earlier attempt at this step was interrupted. The files are those of the moment at which your \
                 progress was saved, and the file in `CHECKREIN_RUN_STATE` holds what you had saved."
                    .to_owned(),
            ),
            Self::Back { place, why, has_state } => {
                let place = match place {
                    Place::Checkpoint(name) => format!("checkpoint {name}"),
                    Place::Beginning => "the beginning of this step".to_owned(),
                };
                let state = if *has_state { "and so is your saved progress" } else { "and no saved progress is left" };
                let mut text = format!(
                    "Your newest progress can't be restored ({why}). The files are those of {place}, {state}.\n"
                );
                if !desk.job.later_effects.is_empty() {
                    text.push_str("\nThis happened outside after that, and must not be done again on a guess:\n");
                    for effect in &desk.job.later_effects {
                        text.push_str(&format!("- {}: {}\n", effect.status, effect.call));
                    }
                }
                Some(text)
            }
        }
    }
}
