//! The six conditions of going on, looked at before any job and journaled each
//! as holding, failing, or explained.
//!
//! What fails here is refused where the job meets it (see
//! [`crate::preconditions`]); this is the record of having looked, so that it is
//! known later what an attempt stood on.

use checkrein_shared::coordinator::{ConditionsReport, Error};
use checkrein_shared::records::{CheckOutcome, Checked, Conversation, JobKind, Precondition, Step, StepAction};

use crate::checkpoint::runtime_version;
use crate::desk::{Desk, JobError};
use crate::submit::Backoff;
use crate::{measure, preconditions};

/// Looks at everything and has it journaled. `false` where the attempt is over.
pub(crate) async fn report(desk: &Desk) -> Result<bool, JobError> {
    let checks = all(desk).await?;
    let job = &desk.job;
    let mut backoff = Backoff::new();
    while !desk.orders.lost() {
        let report = ConditionsReport {
            task_id: job.task_id.clone(),
            epoch: job.epoch,
            worker: desk.services.config.instance.clone(),
            checks: checks.clone(),
        };
        match desk.services.coordinator.conditions(report).await {
            Ok(()) => return Ok(true),
            Err(Error::Refused(reason)) => {
                tracing::info!(job.id = %job.job_id, reason, "the job is not wanted any more");
                return Ok(false);
            }
            Err(Error::Unavailable(reason)) => {
                tracing::warn!(job.id = %job.job_id, reason, "the conditions can't be journaled now");
            }
        }
        backoff.wait().await;
    }
    Ok(false)
}

async fn all(desk: &Desk) -> Result<Vec<Checked>, JobError> {
    let outcomes = [
        (Precondition::WorkspacePresent, workspace(desk)),
        (Precondition::BaseUnchanged, base(desk).await?),
        (Precondition::RuntimeCompatible, runtime(desk).await?),
        (Precondition::ApprovalsStillValid, unseen()),
        (Precondition::LedgerConsulted, unseen()),
        (Precondition::SecretsResolvable, secrets(desk)),
    ];
    Ok(outcomes.into_iter().map(|(condition, outcome)| Checked { condition, outcome }).collect())
}

fn pass() -> CheckOutcome {
    CheckOutcome::Pass {}
}

fn fail(why: impl Into<String>) -> CheckOutcome {
    CheckOutcome::Fail { why: why.into() }
}

fn explained(why: impl Into<String>) -> CheckOutcome {
    CheckOutcome::Explained { why: why.into() }
}

fn workspace(desk: &Desk) -> CheckOutcome {
    match preconditions::target(&desk.spec, &desk.job.root_id) {
        Ok(_) => pass(),
        Err(unmet) => fail(unmet.to_string()),
    }
}

async fn base(desk: &Desk) -> Result<CheckOutcome, JobError> {
    let Some(base) = desk.job.base else { return Ok(explained("the workspace as it is now becomes the base")) };
    let Ok(target) = preconditions::target(&desk.spec, &desk.job.root_id) else {
        return Ok(fail("without the workspace it can't be measured"));
    };
    let rules = measure::rules_of(&desk.services, base, &target).await?;
    let now = measure::only(&desk.services, &desk.job.root_id, &target, &rules).await?.digest;
    if now == base {
        return Ok(pass());
    }
    let follows = match desk.job.kind {
        JobKind::Rebase => "this job puts the work on top of it",
        JobKind::Apply { .. } => "every file is compared before it is replaced, or the apply was begun before",
        JobKind::Step { .. } | JobKind::Evidence { .. } => "it is reported, and a rebase follows before the gate",
    };
    Ok(explained(format!("the workspace is {now}, not {base}: {follows}")))
}

/// The step that the job runs.
fn step(desk: &Desk) -> Option<(&Step, &Conversation)> {
    match &desk.job.kind {
        JobKind::Step { step, conversation } => Some((desk.job.plan.step(step)?, conversation)),
        JobKind::Apply { .. } | JobKind::Rebase | JobKind::Evidence { .. } => None,
    }
}

async fn runtime(desk: &Desk) -> Result<CheckOutcome, JobError> {
    if let Some((step, conversation)) = step(desk)
        && let Err(unmet) = preconditions::runtime(&desk.spec, step, conversation, &desk.policy)
    {
        return Ok(fail(unmet.to_string()));
    }
    let (before, now) = (desk.head().await?.map(|head| head.runtime_version), runtime_version(&desk.spec));
    Ok(match before {
        Some(before) if before != now => explained(format!(
            "the newest checkpoint was made by {before}, and this is {now}: nothing of it is inherited"
        )),
        _ => pass(),
    })
}

/// What only the orchestrator can look at: it replaces this where it journals the report.
fn unseen() -> CheckOutcome {
    explained("nothing was looked at here: the orchestrator judges it")
}

fn secrets(desk: &Desk) -> CheckOutcome {
    let runs_agent = step(desk).is_some_and(|(step, _)| matches!(step.action, StepAction::Prompt(_)));
    let Some(agent) = desk.spec.agent.as_ref().filter(|_| runs_agent) else { return pass() };
    let missing = desk.services.config.environment.missing(agent);
    if missing.is_empty() { pass() } else { fail(format!("the environment lacks {}", missing.join(", "))) }
}
