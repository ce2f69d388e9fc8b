//! Opens a gate again for work that has been before it already: on another
//! base, or with more evidence. Nothing of the work itself changes here.

use checkrein_shared::records::{Checkpoint, Claim, EvidenceRef, Role, Trigger};

use super::End;
use crate::desk::{Desk, JobError};
use crate::ground::Ground;
use crate::propose::{self, Difference, Proposal};
use crate::recorder::Recorder;
use crate::trigger::Occasion;

/// What the new checkpoint says besides what the old one said.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub(crate) claims: Vec<Claim>,
    /// What confined the commands that ran for it; `None` where none ran.
    pub(crate) confinement: Option<String>,
}

/// The gate that the work stands before: that of the newest checkpoint; else, with the plan complete, the last one.
pub(crate) fn pending(desk: &Desk, head: Option<&Checkpoint>) -> Option<Trigger> {
    if desk.plan_is_complete() {
        return Some(Trigger::ChangesetBeforeApply);
    }
    // A step that is to be done again since then has left that gate; it will come to one of its own.
    let stands = |head: &&Checkpoint| {
        head.gate && head.trigger != Trigger::TaskBeforePause && head.plan.completed_step_ids == desk.job.completed
    };
    head.filter(stands).map(|head| head.trigger)
}

/// Submits the work for the gate `trigger` and parks.
pub(crate) async fn reopen(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    (trigger, head): (Trigger, Option<Checkpoint>),
    again: Again,
) -> Result<End, JobError> {
    ground.report_drift(desk).await?;
    let difference = Difference::between(desk, &ground.base, &ground.tree).await;
    let head = head.filter(|head| head.author.role == Role::Worker);
    let (mut claims, errors, before) = match head {
        Some(head) => (head.summary.completed, head.open_errors, Some(head.workspace.confinement)),
        None => Default::default(),
    };
    claims.retain(|claim| still_holds(recorder, ground, claim));
    claims.extend(again.claims);
    let confinement = again.confinement.or(before).unwrap_or_else(|| "none: nothing ran".to_owned());
    let proposal = Proposal {
        occasion: Occasion { trigger, gate: true },
        base: &ground.base,
        tree: &ground.tree,
        difference: &difference,
        completes: None,
        claims,
        issues: Vec::new(),
        errors,
        git_commit: ground.git_commit.clone(),
        confinement,
    };
    let sent = propose::checkpoint(desk, recorder, proposal).await?;
    Ok(End::parked(&sent))
}

/// A claim about a file that is another one by now says nothing any more.
fn still_holds(recorder: &Recorder, ground: &Ground, claim: &Claim) -> bool {
    let unchanged = |reference: &EvidenceRef| match propose::file_of(reference, &ground.tree.manifest) {
        Some((digest, _)) => recorder.get(reference).is_some_and(|evidence| evidence.digest == digest),
        None => recorder.get(reference).is_some() && !propose::names_file(reference),
    };
    claim.refs.iter().all(unchanged)
}
