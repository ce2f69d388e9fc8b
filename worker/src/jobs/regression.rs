//! Steps that are tests: their outcomes as evidence, and what passed before.
//!
//! A command that reads only and changed nothing says yes or no. It is the
//! worker's own run; reviewers run their verifiers themselves.

use checkrein_shared::json;
use checkrein_shared::records::{EvidenceKind, IssueRef, StepAction, TestRun, Trigger};
use checkrein_shared::time::Timestamp;

use super::End;
use super::step::{self, of_attempt};
use super::step_end::{Left, Say, submit};
use crate::claims::Said;
use crate::desk::{Desk, JobError};
use crate::policy;
use crate::propose::Difference;
use crate::recorder::Recorder;
use crate::submit::Sent;
use crate::trigger::Occasion;

/// The largest record of a test run that is read.
const RUN_BYTES_MAX: u64 = 1 << 20;

/// A test that passed before fails: worth a checkpoint where the policy says so. `None` where the failure is still to be
/// reported.
pub(super) async fn report(
    desk: &Desk,
    recorder: &mut Recorder,
    left: &Left<'_>,
    difference: &Difference,
    error: &IssueRef,
) -> Result<Option<End>, JobError> {
    let mut facts = policy::facts(desk, left.step, difference, 1);
    facts.tests.regressed = 1;
    let Some(gate) = desk.policy.fires(Trigger::TestRegressed, &facts) else { return Ok(None) };
    let occasion = Occasion { trigger: Trigger::TestRegressed, gate };
    let say = Say { occasion, difference, completes: false, said: Said::default(), errors: vec![error.clone()] };
    match submit(desk, recorder, left, say).await? {
        Sent::Accepted if !gate => Ok(None),
        sent => Ok(Some(End::parked(&sent))),
    }
}

/// Keeps the outcome of a step that is a test.
pub(super) async fn record(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>) -> Result<(), JobError> {
    let (StepAction::Run(command), Some(ran)) = (&left.step.action, left.ran) else { return Ok(()) };
    let run = step::test_run(command, left.tree.digest, ran, left.log.0.clone());
    let reference = of_attempt(EvidenceKind::Test, &desk.job, &left.step.id);
    recorder.add_record(reference, "application/json", &run, Timestamp::now()).await?;
    Ok(())
}

/// Whether the newest earlier run of this step passed.
pub(super) async fn passed_before(desk: &Desk, recorder: &Recorder, left: &Left<'_>) -> bool {
    let runs = recorder.known().iter().filter(|(reference, evidence)| {
        reference.kind() == EvidenceKind::Test && evidence.step.as_ref() == Some(&left.step.id)
    });
    let Some((_, newest)) = runs.max_by_key(|(_, evidence)| evidence.created_at) else { return false };
    let bytes = desk.services.blobs.get(newest.digest, RUN_BYTES_MAX).await;
    let run = bytes.ok().and_then(|bytes| json::parse_as::<TestRun>("test run", &bytes).ok());
    run.is_some_and(|run| run.passed())
}
