//! The lifecycle: which event leads from which state where.
//!
//! `docs/lifecycle.md` shows the same as a table, and a test holds the two
//! against each other. Synchronous, without clock, randomness or I/O.

use super::decision::{Decision, IllegalTransition};
use super::event::{Event, EventKind};
use super::task::Task;
use super::turn::{Context, Handled, Turn};

/// Decides what follows from an event.
///
/// # Errors
///
/// [`IllegalTransition`] where the event must not happen in the task's state.
pub fn decide(task: &Task, event: &Event, context: &Context<'_>) -> Result<Decision, IllegalTransition> {
    let mut turn = Turn::new(task, event.at, event.kind.name(), *context);
    turn.settle_wall();
    let handled = dispatch(&mut turn, &event.kind);
    turn.finish(handled)
}

fn dispatch(turn: &mut Turn<'_>, event: &EventKind) -> Handled {
    match event {
        EventKind::LeaseTaken { job_id, epoch, worker } => turn.lease_taken(job_id, *epoch, worker),
        EventKind::LeaseExpired { epoch } => turn.lease_expired(*epoch),
        EventKind::MessageDied { message, epoch, reason } => turn.message_died(message, *epoch, reason),
        EventKind::DispatchTimedOut { epoch } => turn.dispatch_timed_out(*epoch),
        EventKind::CheckpointWritten { checkpoint, record, completes } => {
            turn.checkpoint_written(checkpoint, *record, completes.as_ref())
        }
        EventKind::PreconditionsChecked { epoch, worker, checks } => turn.preconditions_checked(*epoch, worker, checks),
        EventKind::SavePointTaken { worker, save_point } => turn.save_point_taken(worker, save_point),
        EventKind::AttemptEnded { attempt } => turn.attempt_ended(attempt),
        EventKind::VerdictPublished { verdict, envelope } => turn.verdict_published(verdict, *envelope),
        EventKind::ReviewTimedOut { round } => turn.review_timed_out(*round),
        EventKind::TargetDrifted { base, target, paths: _ } => turn.target_drifted(*base, *target),
        EventKind::Amended { by, spec, plan } => turn.amended(by, spec.as_deref(), plan.as_ref()),
        EventKind::Approved { by, hash, note: _ } => turn.approved(by, *hash),
        EventKind::Rejected { by, hash, reason } => turn.rejected(by, *hash, reason),
        EventKind::ChangesRequested { by, hash, text } => turn.changes_requested(by, *hash, text),
        EventKind::ItemClaimed { by } => turn.item_claimed(by),
        EventKind::ItemExpired { item, stage } => turn.item_expired(item, *stage),
        EventKind::DeadlineMissed { item } => turn.deadline_missed(item),
        EventKind::RedeemRequested { request } => turn.redeem_requested(request),
        EventKind::EffectClaimed { request } => turn.effect_claimed(request),
        EventKind::EffectSettled { settlement } | EventKind::EffectProbed { settlement } => {
            turn.effect_settled(settlement)
        }
        EventKind::EffectJudged { by, key, done, reason } => turn.effect_judged(key, by, *done, reason),
        EventKind::BudgetHit { budget } => turn.budget_hit(budget),
        EventKind::PauseRequested { by } => turn.pause_requested(by),
        EventKind::ResumeRequested { by } => turn.resume_requested(by),
        EventKind::TakeoverRequested { by, folder } => turn.takeover_requested(by, folder),
        EventKind::HandedBack { by, tree, started_from, note } => {
            turn.handed_back(by, *tree, *started_from, note.as_deref())
        }
        EventKind::CancelRequested { by } => turn.cancel_requested(by),
        EventKind::KeyCompromised { reviewer, since } => turn.key_compromised(reviewer, *since),
        EventKind::FindingClosed { by, finding, reason } => turn.finding_closed(by, finding, reason),
    }
}
