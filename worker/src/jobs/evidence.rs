//! Gathers evidence that a reviewer missed: the same tree before the same gate,
//! with its difference shown anew and the step's checks run again.
//!
//! The checks run in copies that are thrown away, so that the tree stays what
//! was judged. What they say is the worker's own word, as everything here is.

use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::ids::StepId;
use checkrein_shared::process::{self, Ending};
use checkrein_shared::records::{Basis, Claim, EvidenceKind, Step, StepAction, Trigger};
use checkrein_shared::time::Timestamp;

use super::apart::{self, Apart};
use super::gate::{self, Again};
use super::{End, effect, step};
use crate::desk::{Desk, JobError};
use crate::execute::Ran;
use crate::ground::{self, Ground};
use crate::orders::Order;
use crate::propose::named;
use crate::recorder::Recorder;
use crate::{failure, preconditions};

/// A command that says yes or no.
struct Check<'a> {
    name: &'a str,
    argv: &'a [String],
    time: Duration,
}

/// Runs the checks of a step and opens the gate again.
pub(crate) async fn run(desk: &Desk, id: &StepId) -> Result<End, JobError> {
    let Some(step) = desk.job.plan.step(id) else {
        return Err(JobError::Nonsense(format!("step `{id}` is not in the plan")));
    };
    let target = preconditions::target(&desk.spec, &desk.job.root_id)?;
    let mut recorder = desk.recorder(Some(id)).await?;
    let ground = ground::stand(desk, &mut recorder, target).await?;
    let mut again = Again::default();
    for check in checks(desk, step).await {
        let claim = run_check(desk, &mut recorder, &ground, &check, &mut again).await?;
        again.claims.extend(claim);
        match desk.orders.now() {
            Order::Lost => return Ok(End::Silent),
            Order::Exit | Order::Stop => return Ok(super::step_end::interrupted_early(desk, &ground)),
            Order::Continue | Order::Park => {}
        }
    }
    let head = desk.head().await?;
    let trigger = gate::pending(desk, head.as_ref()).unwrap_or(Trigger::PlanSubgraphDone);
    gate::reopen(desk, &mut recorder, &ground, (trigger, head), again).await
}

/// The step's own command, where it can simply run again, and the verifiers that it names.
async fn checks<'a>(desk: &'a Desk, step: &'a Step) -> Vec<Check<'a>> {
    let own = match &step.action {
        StepAction::Run(argv) if effect::is_free(desk, step, argv).await => {
            Some(Check { name: step.id.as_str(), argv, time: step::time_limit(desk, step) })
        }
        StepAction::Run(_) | StepAction::Prompt(_) => None,
    };
    let verifiers = step.verify.iter().filter_map(|name| {
        let verifier = desk.policy.verifier(name)?;
        Some(Check { name, argv: verifier.argv(), time: verifier.timeout.to_duration() })
    });
    own.into_iter().chain(verifiers).collect()
}

/// Runs one check in a copy of its own. `None` where it can't run here: then there is nothing to claim.
async fn run_check(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    check: &Check<'_>,
    again: &mut Again,
) -> Result<Option<Claim>, JobError> {
    let apart = Apart { argv: check.argv, time: check.time, variables: Vec::new() };
    match apart::run(desk, ground, apart).await? {
        Ok(ran) if ran.finished.ending == Ending::Cancelled => Ok(None),
        Ok(ran) => {
            again.confinement = Some(ran.finished.confinement.clone());
            Ok(Some(record(desk, recorder, ground, check, &ran).await?))
        }
        Err(process::Error::Refused(refusal)) => {
            tracing::warn!(check = check.name, error = with_causes(&refusal), "a check can't run here");
            Ok(None)
        }
        Err(error) => Err(JobError::Process(error)),
    }
}

async fn record(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    check: &Check<'_>,
    ran: &Ran,
) -> Result<Claim, JobError> {
    let now = Timestamp::now();
    let name = format!("{}-e{}", check.name, desk.job.epoch);
    let log = named(EvidenceKind::Log, &name);
    recorder.add(log.clone(), "text/plain", &ran.output, ran.dropped_bytes, now).await?;
    let run = step::test_run(check.argv, ground.tree.digest, &ran.finished, log);
    let test = named(EvidenceKind::Test, &name);
    recorder.add_record(test.clone(), "application/json", &run, now).await?;
    let text = format!("`{}` run again: {}", check.name, failure::ending_text(ran.finished.ending));
    Ok(Claim { text, refs: vec![test], basis: Basis::SelfReported })
}
