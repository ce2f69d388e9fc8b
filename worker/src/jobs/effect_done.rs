//! Completes a step whose effect happened in an earlier attempt, without
//! running anything: with what that attempt left, as far as it was stored.

use checkrein_shared::process::Ending;
use checkrein_shared::records::{EffectResult, EvidenceKind, IssueRef, Severity, Step};
use checkrein_shared::time::Timestamp;

use super::End;
use super::step::of_attempt;
use super::step_end::{self, Left};
use crate::desk::{Desk, JobError};
use crate::ground::{self, Ground};
use crate::propose::Stored;
use crate::recorder::Recorder;
use crate::room::Room;

/// The most of an earlier output that is read: what is kept of one, and room for marks.
const OUTPUT_BYTES_MAX: u64 = crate::execute::OUTPUT_BYTES_MAX * 2;

/// An effect that happened before.
#[derive(Debug)]
pub(super) struct DoneBefore {
    pub(super) result: Option<EffectResult>,
    /// How that is known, for people.
    pub(super) how: String,
}

/// Completes the step.
pub(super) async fn complete(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    (step, room): (&Step, &Room),
    done: DoneBefore,
) -> Result<End, JobError> {
    let (tree, lost) = tree(desk, ground, done.result.as_ref()).await?;
    let log = of_attempt(EvidenceKind::Log, &desk.job, &step.id);
    let bytes = match done.result.as_ref().and_then(|result| result.output) {
        Some(output) => {
            let blobs = &desk.services.blobs;
            blobs.get(output, OUTPUT_BYTES_MAX).await.map_err(|e| JobError::Blob("an earlier output", e))?
        }
        None => format!("not run again: {}\n", done.how).into_bytes(),
    };
    let shown = recorder.add(log.clone(), "text/plain", &bytes, 0, Timestamp::now()).await?;
    let issue = lost.map(|text| IssueRef {
        id: format!("lost-files-{}-{}", step.id, desk.job.epoch),
        severity: Severity::Low,
        text: format!("step `{}` took effect, and {text}", step.id),
        refs: vec![log.clone()],
    });
    let told = format!("step `{}` took effect before and was not run again: {}", step.id, done.how);
    let left = Left {
        step,
        ground,
        room,
        ran: None,
        ending: Ending::Exited(0),
        confinement: "none: nothing ran".to_owned(),
        log: (log, shown),
        tree,
        started_at: Timestamp::now(),
        acts: true,
        told: Some(told),
        issues: issue.into_iter().collect(),
    };
    step_end::conclude(desk, recorder, left).await
}

/// The scratch as the earlier attempt left it, where it is known and goes on from the same tree; else what was lost.
async fn tree(
    desk: &Desk,
    ground: &Ground,
    result: Option<&EffectResult>,
) -> Result<(Stored, Option<&'static str>), JobError> {
    match result {
        Some(EffectResult { tree: Some(tree), from: Some(from), .. }) if *from == ground.tree.digest => {
            Ok((ground::load(desk, *tree).await?, None))
        }
        // It changed nothing, or what it changed is there already.
        Some(EffectResult { tree: Some(tree), from, .. }) if *tree == ground.tree.digest || Some(*tree) == *from => {
            Ok((ground.tree.clone(), None))
        }
        Some(EffectResult { tree: Some(_), .. }) => {
            Ok((ground.tree.clone(), Some("what it changed in the files belongs to another tree and is left out")))
        }
        _ => Ok((ground.tree.clone(), Some("what it may have changed in the files is not known"))),
    }
}
