//! What jobs do, one kind a file, and what becomes of their ends.

mod apart;
mod apply;
mod call_gate;
mod effect;
mod effect_done;
mod evidence;
mod gate;
mod probe;
mod rebase;
mod regression;
mod statement;
mod step;
mod step_end;
mod trace;

use checkrein_shared::causes::with_causes;
use checkrein_shared::records::{AttemptOutcome, Job, JobKind};
use checkrein_shared::time::Span;

use crate::conditions;
use crate::config::Services;
use crate::desk::{Desk, JobError};
use crate::orders::Orders;
use crate::submit::{self, Sent};

pub(crate) use step::attempt_number;

/// How long until a job that failed for reasons of this worker is tried again.
const RETRY_AFTER: Span = Span::from_secs(10);

/// The longest reason for giving a job back, in characters.
const REASON_CHARS_MAX: usize = 2_000;

/// How a job ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It has something to say.
    Report(Box<AttemptOutcome>),
    /// A gating checkpoint said it, or nothing may be said any more.
    Silent,
}

impl End {
    /// The job's report.
    pub(crate) fn report(outcome: AttemptOutcome) -> Self {
        Self::Report(Box::new(outcome))
    }

    /// What follows from a checkpoint after which the job has nothing more to say.
    pub(crate) fn parked(sent: &Sent) -> Self {
        if let Sent::Refused(reason) = sent {
            tracing::error!(reason, "the checkpoint is refused, and the job ends without a word");
        }
        Self::Silent
    }
}

/// Runs a job and reports how it ended.
pub(crate) async fn run(services: &Services, job: &Job, orders: &Orders) {
    let ended = match Desk::load(services, job, orders).await {
        Ok(desk) => begin(&desk).await,
        Err(error) => Err(error),
    };
    let outcome = match ended {
        Ok(End::Report(outcome)) => *outcome,
        Ok(End::Silent) => return,
        Err(error) if error.is_lasting() => failed(services, job, &error),
        Err(error) => released(job, &error),
    };
    let settles = matches!(outcome, AttemptOutcome::Applied { .. });
    if orders.lost() && !settles {
        tracing::info!(job.id = %job.job_id, "the lease is lost, and nothing is reported");
        return;
    }
    match submit::attempt(services, job, outcome, orders).await {
        Ok(Sent::Accepted) => {}
        Ok(Sent::Refused(_) | Sent::Lost) => tracing::info!(job.id = %job.job_id, "the lease was lost meanwhile"),
        Err(error) => {
            tracing::error!(job.id = %job.job_id, error = with_causes(&error), "the job's end can't be reported")
        }
    }
}

/// Has the conditions journaled, and begins.
async fn begin(desk: &Desk) -> Result<End, JobError> {
    if !conditions::report(desk).await? {
        return Ok(End::Silent);
    }
    match &desk.job.kind {
        JobKind::Step { step, conversation } => step::run(desk, step, conversation).await,
        JobKind::Apply { grant, changeset } => apply::run(desk, grant, changeset).await,
        JobKind::Rebase => rebase::run(desk).await,
        JobKind::Evidence { step } => evidence::run(desk, step).await,
    }
}

/// What would go wrong on every worker again is a failure for the rules, and in the end for a person.
fn failed(services: &Services, job: &Job, error: &JobError) -> AttemptOutcome {
    let why: String = with_causes(error).chars().take(REASON_CHARS_MAX).collect();
    tracing::warn!(job.id = %job.job_id, reason = why, "the job fails");
    let step = match &job.kind {
        JobKind::Step { step, .. } | JobKind::Evidence { step } => Some(step),
        JobKind::Apply { .. } | JobKind::Rebase => job.completed.last(),
    };
    match step.or(job.plan.order().first().copied()) {
        Some(step) => step::failure(
            services,
            job,
            step,
            job.kind.as_str(),
            format!("its {} job failed: {why}", job.kind.as_str()),
        ),
        None => AttemptOutcome::Released { after: RETRY_AFTER, reason: why },
    }
}

fn released(job: &Job, error: &JobError) -> AttemptOutcome {
    let reason = with_causes(error);
    tracing::warn!(job.id = %job.job_id, reason, "the job can't go on here and is given back");
    AttemptOutcome::Released { after: RETRY_AFTER, reason: reason.chars().take(REASON_CHARS_MAX).collect() }
}
