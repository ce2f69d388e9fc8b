//! What the end of a step's command means: done, failed, interrupted, and
//! whether a checkpoint is due.
//!
//! It runs nothing. Whatever is said here about the step is the worker's own
//! word; a reviewer verifies it.

use checkrein_shared::process::{Ending, Finished};
use checkrein_shared::records::{
    AttemptOutcome, Basis, Claim, EffectClass, EvidenceRef, IssueRef, Severity, Step, StepAction, Trigger,
};
use checkrein_shared::time::{Span, Timestamp};

use super::{End, regression, statement};
use crate::claims::Said;
use crate::desk::{Desk, JobError};
use crate::ground::Ground;
use crate::orders::Order;
use crate::propose::{self, Difference, Proposal, Stored};
use crate::recorder::Recorder;
use crate::room::Room;
use crate::submit::Sent;
use crate::trigger::{self, Occasion, StepEnd};
use crate::{failure, policy};

/// What a step's command left.
pub(crate) struct Left<'a> {
    pub(crate) step: &'a Step,
    pub(crate) ground: &'a Ground,
    pub(crate) room: &'a Room,
    /// The command, where one ran.
    pub(crate) ran: Option<&'a Finished>,
    pub(crate) ending: Ending,
    pub(crate) confinement: String,
    /// The ref of its output, and the output as it is stored.
    pub(crate) log: (EvidenceRef, Vec<u8>),
    pub(crate) tree: Stored,
    pub(crate) started_at: Timestamp,
    /// Whether it was claimed as an effect.
    pub(crate) acts: bool,
    /// What is said of its end, where that is not just its exit code.
    pub(crate) told: Option<String>,
    /// What it leaves open besides.
    pub(crate) issues: Vec<IssueRef>,
}

impl Left<'_> {
    fn changed(&self) -> bool {
        self.tree.digest != self.ground.tree.digest
    }

    /// A command that reads only and changed nothing says yes or no: a test.
    fn is_test(&self) -> bool {
        let reads = matches!(self.step.action, StepAction::Run(_)) && self.step.effect == EffectClass::ReadOnly;
        reads && !self.acts && !self.changed()
    }
}

/// Orders came before the command was started.
pub(crate) fn interrupted_early(desk: &Desk, ground: &Ground) -> End {
    match desk.orders.now() {
        Order::Stop => {
            let (base, tree) = (Some(ground.base.digest), Some(ground.tree.digest));
            End::report(AttemptOutcome::Stopped { base, tree })
        }
        Order::Lost => End::Silent,
        Order::Continue | Order::Park | Order::Exit => released(),
    }
}

fn released() -> End {
    End::report(AttemptOutcome::Released { after: Span::from_millis(0), reason: "the worker is shutting down".into() })
}

/// Judges the end of a command.
pub(crate) async fn conclude(desk: &Desk, recorder: &mut Recorder, left: Left<'_>) -> Result<End, JobError> {
    let order = desk.orders.now();
    match (left.ending, order) {
        (_, Order::Lost) => Ok(End::Silent),
        (_, Order::Stop) => Ok(End::report(AttemptOutcome::Stopped {
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
    let mut said = statement::read(desk, recorder, left).await?;
    let spoke = !said.claims.is_empty() || !said.issues.is_empty();
    if left.is_test() {
        regression::record(desk, recorder, left).await?;
    }
    let ended = || format!("step `{}` ended with exit code 0", left.step.id);
    let text = left.told.clone().unwrap_or_else(ended);
    said.issues.extend(left.issues.iter().cloned());
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
    End::report(AttemptOutcome::StepDone {
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
    let how = failure::ending_text(left.ending);
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
    let regressed = left.is_test() && regression::passed_before(desk, recorder, left).await;
    if left.is_test() {
        regression::record(desk, recorder, left).await?;
    }
    if regressed && let Some(end) = regression::report(desk, recorder, left, &difference, &error).await? {
        return Ok(end);
    }
    Ok(End::report(AttemptOutcome::StepFailed {
        step: left.step.id.clone(),
        error,
        error_hash: failure::error_hash(&left.step.id, &how, &lines, &left.room.scratch()),
        base: Some(left.ground.base.digest),
        tree: Some(left.tree.digest),
        evidence_index: Some(recorder.index().await?),
    }))
}

/// What the checkpoint at a step's end says.
pub(super) struct Say<'a> {
    pub(super) occasion: Occasion,
    pub(super) difference: &'a Difference,
    pub(super) completes: bool,
    pub(super) said: Said,
    pub(super) errors: Vec<IssueRef>,
}

/// Submits the checkpoint at a step's end.
pub(super) async fn submit(
    desk: &Desk,
    recorder: &mut Recorder,
    left: &Left<'_>,
    say: Say<'_>,
) -> Result<Sent, JobError> {
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
        confinement: left.confinement.clone(),
    };
    propose::checkpoint(desk, recorder, proposal).await
}
