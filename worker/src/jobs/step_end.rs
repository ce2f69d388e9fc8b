//! What the end of a step's command means: done, failed, interrupted, and
//! whether a checkpoint is due.
//!
//! It runs nothing. Whatever is said here about the step is the worker's own
//! word; a reviewer verifies it.

use checkrein_shared::json;
use checkrein_shared::process::{Ending, Finished};
use checkrein_shared::records::{
    AttemptOutcome, Basis, Claim, EffectClass, EvidenceKind, EvidenceRef, IssueRef, Severity, Step, StepAction,
    TestRun, Trigger,
};
use checkrein_shared::time::{Span, Timestamp};

use super::End;
use super::step::{self, of_attempt};
use crate::claims::{self, Grounds, Said};
use crate::desk::{Desk, JobError};
use crate::ground::Ground;
use crate::orders::Order;
use crate::propose::{self, Difference, Proposal, Stored};
use crate::recorder::Recorder;
use crate::results::{self, Found};
use crate::room::Room;
use crate::submit::Sent;
use crate::trigger::{self, Occasion, StepEnd};
use crate::{failure, policy};

/// What a step's command left.
pub(crate) struct Left<'a> {
    pub(crate) step: &'a Step,
    pub(crate) ground: &'a Ground,
    pub(crate) room: &'a Room,
    pub(crate) ran: &'a Finished,
    /// The ref of its output, and the output as it is stored.
    pub(crate) log: (EvidenceRef, Vec<u8>),
    pub(crate) tree: Stored,
    pub(crate) started_at: Timestamp,
}

impl Left<'_> {
    fn changed(&self) -> bool {
        self.tree.digest != self.ground.tree.digest
    }

    /// A command that reads only and changed nothing says yes or no: a test.
    fn is_test(&self) -> bool {
        let reads = matches!(self.step.action, StepAction::Run(_)) && self.step.effect == EffectClass::ReadOnly;
        reads && !self.changed()
    }
}

/// Orders came before the command was started.
pub(crate) fn interrupted_early(desk: &Desk, ground: &Ground) -> Result<End, JobError> {
    Ok(match desk.orders.now() {
        Order::Stop => {
            let (base, tree) = (Some(ground.base.digest), Some(ground.tree.digest));
            End::Report(AttemptOutcome::Stopped { base, tree })
        }
        Order::Lost => End::Silent,
        Order::Continue | Order::Park | Order::Exit => released(),
    })
}

fn released() -> End {
    End::Report(AttemptOutcome::Released { after: Span::from_millis(0), reason: "the worker is shutting down".into() })
}

/// Judges the end of a command.
pub(crate) async fn conclude(desk: &Desk, recorder: &mut Recorder, left: Left<'_>) -> Result<End, JobError> {
    let order = desk.orders.now();
    match (left.ran.ending, order) {
        (_, Order::Lost) => Ok(End::Silent),
        (_, Order::Stop) => Ok(End::Report(AttemptOutcome::Stopped {
            base: Some(left.ground.base.digest),
            tree: Some(left.tree.digest),
        })),
        (Ending::Cancelled, _) => interrupted(desk, recorder, &left, order).await,
        (ending, _) if ending.is_success() => done(desk, recorder, &left, order).await,
        _ => failed(desk, recorder, &left).await,
    }
}

/// A pause or the worker's end killed the command: what there is goes into a checkpoint.
async fn interrupted(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>, order: Order) -> Result<End, JobError> {
    let gate = order != Order::Exit;
    let text = format!("step `{}` was interrupted, and its work is unfinished", left.step.id);
    let issue = IssueRef {
        id: format!("interrupted-{}-{}", left.step.id, desk.job.epoch),
        severity: Severity::Low,
        text,
        refs: vec![left.log.0.clone()],
    };
    let occasion = Occasion { trigger: Trigger::TaskBeforePause, gate };
    let said = Said { claims: Vec::new(), issues: vec![issue] };
    let difference = Difference::between(desk, &left.ground.base, &left.tree).await;
    let say = Say { occasion, difference: &difference, completes: false, said, errors: Vec::new() };
    match submit(desk, recorder, left, say).await? {
        Sent::Accepted if !gate => Ok(released()),
        sent => Ok(End::parked(&sent)),
    }
}

async fn done(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>, order: Order) -> Result<End, JobError> {
    let job = &desk.job;
    let mut said = said(desk, recorder, left).await?;
    let spoke = !said.claims.is_empty() || !said.issues.is_empty();
    if left.is_test() {
        record_test(desk, recorder, left).await?;
    }
    let text = format!("step `{}` ended with exit code 0", left.step.id);
    said.claims.insert(0, Claim { text, refs: vec![left.log.0.clone()], basis: Basis::SelfReported });
    let end = StepEnd {
        plan: &job.plan,
        step: left.step,
        completed: &job.completed,
        changed: left.changed(),
        spoke,
        apply_per_step: desk.policy.apply_per_step(),
        since_checkpoint: since_checkpoint(desk, left).await?,
        min_interval: desk.policy.min_interval(),
        max_interval: desk.policy.max_interval(),
        pause: order == Order::Park,
    };
    let difference = Difference::between(desk, &left.ground.base, &left.tree).await;
    let facts = policy::facts(desk, left.step, &difference, said.issues.len());
    let Some(occasion) = trigger::after_step(&end, |trigger| desk.policy.fires(trigger, &facts)) else {
        return Ok(step_done(left, recorder.index().await?));
    };
    let say = Say { occasion, difference: &difference, completes: true, said, errors: Vec::new() };
    match submit(desk, recorder, left, say).await? {
        Sent::Accepted if !occasion.gate => Ok(step_done(left, recorder.index().await?)),
        sent => Ok(End::parked(&sent)),
    }
}

fn step_done(left: &Left<'_>, evidence_index: checkrein_shared::digest::Digest) -> End {
    End::Report(AttemptOutcome::StepDone {
        step: left.step.id.clone(),
        base: left.ground.base.digest,
        tree: left.tree.digest,
        evidence_index,
    })
}

/// How long ago the newest checkpoint was written; where there is none, how long this attempt took.
async fn since_checkpoint(desk: &Desk, left: &Left<'_>) -> Result<Span, JobError> {
    let from = desk.head().await?.map_or(left.started_at, |head| head.created_at);
    let millis = Timestamp::now().since(from).as_millis();
    Ok(Span::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
}

/// A failure: evidence of what was tried, and an error that can be compared with the next one.
async fn failed(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>) -> Result<End, JobError> {
    let how = failure::ending_text(left.ran.ending);
    let lines = failure::last_lines(&left.log.1);
    let text = format!("step `{}` failed: {how}\n{}", left.step.id, lines.join("\n"));
    let error = IssueRef {
        id: format!("failed-{}-{}", left.step.id, desk.job.epoch),
        severity: Severity::High,
        text: text.trim_end().to_owned(),
        refs: vec![left.log.0.clone()],
    };
    let name = format!("{}-e{}", left.step.id, desk.job.epoch);
    let difference = Difference::between(desk, &left.ground.base, &left.tree).await;
    difference.store(recorder, &name, Timestamp::now()).await?;
    let regressed = left.is_test() && passed_before(desk, recorder, left).await;
    if left.is_test() {
        record_test(desk, recorder, left).await?;
    }
    if regressed && let Some(end) = report_regression(desk, recorder, left, &difference, &error).await? {
        return Ok(end);
    }
    Ok(End::Report(AttemptOutcome::StepFailed {
        step: left.step.id.clone(),
        error,
        error_hash: failure::error_hash(&left.step.id, &how, &lines, &left.room.scratch()),
        base: Some(left.ground.base.digest),
        tree: Some(left.tree.digest),
        evidence_index: Some(recorder.index().await?),
    }))
}

/// A test that passed before fails: worth a checkpoint where the policy says so. `None` where the failure is still to be
/// reported.
async fn report_regression(
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

/// What the checkpoint at a step's end says.
struct Say<'a> {
    occasion: Occasion,
    difference: &'a Difference,
    completes: bool,
    said: Said,
    errors: Vec<IssueRef>,
}

async fn submit(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>, say: Say<'_>) -> Result<Sent, JobError> {
    if say.occasion.gate {
        // What is judged next is judged against this base: say so now if it is no longer the target.
        left.ground.report_drift(desk).await?;
    }
    let proposal = Proposal {
        occasion: say.occasion,
        base: &left.ground.base,
        tree: &left.tree,
        difference: say.difference,
        completes: say.completes.then_some(&left.step.id),
        claims: say.said.claims,
        issues: say.said.issues,
        errors: say.errors,
        git_commit: left.ground.git_commit.clone(),
        confinement: left.ran.confinement.clone(),
    };
    propose::checkpoint(desk, recorder, proposal).await
}

/// Reads the agent's result file and checks its claims against index and tree.
async fn said(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>) -> Result<Said, JobError> {
    let now = Timestamp::now();
    let found = results::read(&left.room.result());
    let source = of_attempt(EvidenceKind::Result, &desk.job, &left.step.id);
    if let Found::Result(_, bytes) | Found::Refused(Some(bytes), _) = &found {
        recorder.add(source.clone(), "application/json", bytes, 0, now).await?;
    }
    let file_of = |reference: &EvidenceRef| propose::file_of(reference, &left.tree.manifest);
    let said = {
        let recorder: &Recorder = recorder;
        let exists = |r: &EvidenceRef| match r.kind() {
            EvidenceKind::File => file_of(r).is_some(),
            _ => recorder.get(r).is_some(),
        };
        let redact = |text: &str| recorder.redact(text);
        let grounds = Grounds { log: &left.log.0, exists: &exists, redact: &redact, epoch: desk.job.epoch };
        match found {
            Found::Nothing => Said::default(),
            Found::Result(file, _) => claims::judge(&file, &source, &grounds),
            Found::Refused(bytes, why) => claims::refused(&why, bytes.as_ref().map(|_| &source), &grounds),
        }
    };
    for reference in said.claims.iter().flat_map(|claim| &claim.refs) {
        if let Some((digest, size)) = file_of(reference) {
            recorder.add_stored(reference.clone(), "application/octet-stream", digest, size, now);
        }
    }
    Ok(said)
}

async fn record_test(desk: &Desk, recorder: &mut Recorder, left: &Left<'_>) -> Result<(), JobError> {
    let StepAction::Run(command) = &left.step.action else { return Ok(()) };
    let run = step::test_run(command, left.tree.digest, left.ran, left.log.0.clone());
    let reference = of_attempt(EvidenceKind::Test, &desk.job, &left.step.id);
    recorder.add_record(reference, "application/json", &run, Timestamp::now()).await?;
    Ok(())
}

/// Whether the newest earlier run of this step passed.
async fn passed_before(desk: &Desk, recorder: &Recorder, left: &Left<'_>) -> bool {
    let runs = recorder.known().iter().filter(|(reference, evidence)| {
        reference.kind() == EvidenceKind::Test && evidence.step.as_ref() == Some(&left.step.id)
    });
    let Some((_, newest)) = runs.max_by_key(|(_, evidence)| evidence.created_at) else { return false };
    let bytes = desk.services.blobs.get(newest.digest, 1 << 20).await;
    let run = bytes.ok().and_then(|bytes| json::parse_as::<TestRun>("test run", &bytes).ok());
    run.is_some_and(|run| run.passed())
}
