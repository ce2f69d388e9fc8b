//! A rebase: the task's changes on top of the target as it is now.
//!
//! Where both sides changed different paths, the scratch's tree is made anew
//! and whatever was approved has to be looked at again. Where they overlap, the
//! paths are reported. Nothing is merged, and the target is only read.

use checkrein_shared::records::{AttemptOutcome, Checkpoint, Trigger};
use checkrein_shared::tree::node;
use checkrein_shared::tree::rebase::{Rebased, rebase};

use super::End;
use super::gate::{self, Again};
use crate::desk::{Desk, JobError};
use crate::ground::{self, Ground, bounded};
use crate::propose::Stored;
use crate::recorder::Recorder;
use crate::{git_head, preconditions};

/// Measures the target and moves the task's changes onto it.
pub(crate) async fn run(desk: &Desk) -> Result<End, JobError> {
    let job = &desk.job;
    let target = preconditions::target(&desk.spec, &job.root_id)?;
    let mut recorder = desk.recorder(None).await?;
    let head = desk.head().await?;
    let old = match job.base {
        Some(base) => Some(ground::load(desk, base).await?),
        None => None,
    };
    let (base, rules) = ground::new_base(desk, &mut recorder, &target, old.as_ref()).await?;
    let tree = match (old, job.tree) {
        (Some(old), Some(tree)) if tree != old.digest => {
            let tree = ground::load(desk, tree).await?;
            match moved(desk, &old, &tree, &base).await? {
                Ok(tree) => tree,
                Err(paths) => {
                    let target = base.digest;
                    return Ok(End::report(AttemptOutcome::RebaseOverlap { target, paths, evidence: None }));
                }
            }
        }
        _ => base.clone(),
    };
    let git_commit = git_head::commit(&target);
    let ground = Ground { target, base, tree, rules, git_commit };
    settle(desk, &mut recorder, &ground, head).await
}

/// The tree on the new base, stored; or the paths that both sides changed.
async fn moved(
    desk: &Desk,
    old: &Stored,
    tree: &Stored,
    base: &Stored,
) -> Result<Result<Stored, Vec<String>>, JobError> {
    match rebase(&old.manifest, &tree.manifest, &base.manifest) {
        Rebased::Overlap(paths) => Ok(Err(bounded(paths.iter().map(ToString::to_string)))),
        Rebased::Clean(manifest) => {
            let digest = node::store_tree(&*desk.services.blobs, &manifest, Some(&base.manifest)).await?;
            Ok(Ok(Stored { digest, manifest }))
        }
    }
}

/// Opens the gate again before which the work stands, or goes on with the plan.
async fn settle(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    head: Option<Checkpoint>,
) -> Result<End, JobError> {
    match gate::pending(desk, head.as_ref()) {
        // What stands before a call is shown anew by the step's own next attempt, with a dry run on these files.
        Some(trigger) if trigger != Trigger::ToolBeforeHighRisk => {
            gate::reopen(desk, recorder, ground, (trigger, head), Again::default()).await
        }
        _ => Ok(End::report(AttemptOutcome::Rebased {
            base: ground.base.digest,
            tree: ground.tree.digest,
            evidence_index: recorder.index().await?,
        })),
    }
}
