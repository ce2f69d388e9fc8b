//! A step: preconditions, scratch, command, and what it left.
//!
//! Each attempt starts from the job alone: its base and tree, its required
//! actions. Nothing of an earlier attempt on this worker is looked at. What
//! the end of the command means is judged in [`super::step_end`].

use std::path::PathBuf;
use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::process::{self, Ending, Finished};
use checkrein_shared::records::{
    AttemptOutcome, Conversation, EvidenceKind, EvidenceRef, IssueRef, Job, Severity, Step, StepAction, TestRun,
};
use checkrein_shared::time::{Span, Timestamp};

use super::effect::{self, Before};
use super::step_end::{self, Left};
use super::{End, effect_done};
use crate::config::Services;
use crate::desk::{Desk, JobError};
use crate::environment;
use crate::execute::{self, Call};
use crate::ground::Ground;
use crate::orders::Order;
use crate::propose::named;
use crate::recorder::Recorder;
use crate::resume::{self, Standing};
use crate::room::Room;
use crate::saves::Saver;
use crate::{briefing, failure, preconditions};

/// How long a step may take where neither task nor policy says it.
const WALL_DEFAULT: Span = Span::from_secs(24 * 3_600);

/// Runs a step.
pub(crate) async fn run(desk: &Desk, id: &StepId, conversation: &Conversation) -> Result<End, JobError> {
    let job = &desk.job;
    let Some(step) = job.plan.step(id) else {
        return Err(JobError::Nonsense(format!("step `{id}` is not in the plan")));
    };
    let started_at = Timestamp::now();
    let host = &desk.services.config.environment;
    let target = match preconditions::step(job, &desk.spec, step, conversation, (&desk.policy, host)) {
        Ok(target) => target,
        Err(unmet) => {
            tracing::warn!(task.id = %job.task_id, condition = ?unmet.condition(), "a precondition is not met");
            let how = format!("{:?}", unmet.condition());
            return Ok(never_ran(desk, step, &how, &unmet.to_string()));
        }
    };
    let room = desk.services.cache.room(job)?;
    let end = in_room(desk, &room, step, target, started_at).await;
    room.close().await;
    end
}

async fn in_room(
    desk: &Desk,
    room: &Room,
    step: &Step,
    target: PathBuf,
    started_at: Timestamp,
) -> Result<End, JobError> {
    let mut recorder = desk.recorder(Some(&step.id)).await?;
    let Standing { ground, scratch, from } = resume::stand(desk, room, &mut recorder, step, target).await?;
    if desk.orders.now() >= Order::Exit {
        return Ok(step_end::interrupted_early(desk, &ground));
    }
    let told = from.told(desk);
    let mut call = call(desk, room, &ground, &recorder, (step, told.as_deref())).await?;
    let claim = match effect::before(desk, &mut recorder, &ground, (step, room), &mut call).await? {
        Before::Free => None,
        Before::Granted(claim) => Some(claim),
        Before::Done(done) => return effect_done::complete(desk, &mut recorder, &ground, (step, room), done).await,
        Before::Over(end) => return Ok(end),
    };
    let saver =
        Saver { desk, step: &step.id, room, ground: &ground, scratch: &scratch, index: recorder.index().await? };
    let is_agent = call.agent.is_some();
    let running = execute::run(&desk.services, room, call, &desk.orders);
    let ran = tokio::select! {
        ran = running => ran,
        () = saver.run(), if is_agent => unreachable!("saving goes on for as long as the command runs"),
    };
    if let Some(claim) = &claim {
        claim.settle(desk, &ran).await;
    }
    let ran = match ran {
        Ok(ran) => ran,
        Err(process::Error::Refused(refusal)) => {
            return Ok(never_ran(desk, step, "never started", &with_causes(&refusal)));
        }
        Err(error) => return Err(JobError::Process(error)),
    };
    if desk.orders.lost() {
        return Ok(End::Silent);
    }
    let log = record_output(&mut recorder, &desk.job, step, &ran).await?;
    let tree = ground.snapshot(desk, &scratch).await?;
    if is_agent {
        saver.save_last(tree.digest).await;
    }
    if let (Some(claim), Some(output)) = (&claim, recorder.get(&log.0)) {
        claim.settle_result(desk, &ran, output.digest, tree.digest).await;
    }
    let finished = &ran.finished;
    let left = Left {
        step,
        ground: &ground,
        room,
        ran: Some(finished),
        ending: finished.ending,
        confinement: finished.confinement.clone(),
        log,
        tree,
        started_at,
        acts: claim.is_some(),
        told: None,
        issues: Vec::new(),
    };
    step_end::conclude(desk, &mut recorder, left).await
}

/// The number of this attempt at the step, from 1, reviews that sent it back included.
pub(crate) fn attempt_number(job: &Job) -> u64 {
    u64::from(job.round.max(1)) + u64::from(job.failures)
}

async fn call<'a>(
    desk: &'a Desk,
    room: &Room,
    ground: &'a Ground,
    recorder: &Recorder,
    (step, told): (&'a Step, Option<&str>),
) -> Result<Call<'a>, JobError> {
    let host = &desk.services.config.environment;
    let mut variables = environment::scrubbed(host, &room.home(), &room.temporary());
    let attempt = attempt_number(&desk.job);
    let mut say = |name: &str, value: String| variables.insert(name.into(), value.into());
    say("CHECKREIN_TASK", desk.job.task_id.to_string());
    say("CHECKREIN_STEP", step.id.to_string());
    say("CHECKREIN_ATTEMPT", attempt.to_string());
    let (argv, agent) = match &step.action {
        StepAction::Run(argv) => (argv, None),
        StepAction::Prompt(prompt) => {
            let agent = desk.spec.agent.as_ref().ok_or_else(|| JobError::Nonsense("there is no agent".to_owned()))?;
            let instruction = briefing::lay_out(desk, room, recorder, (step, prompt, told), attempt).await?;
            variables.insert("CHECKREIN_INSTRUCTION".into(), instruction.into());
            variables.insert("CHECKREIN_RESULT".into(), room.result().into());
            variables.insert("CHECKREIN_RUN_STATE".into(), room.run_state().into());
            variables = environment::for_agent(host, agent, variables);
            (&agent.command, Some(agent))
        }
    };
    Ok(Call {
        argv,
        variables,
        time: time_limit(desk, step),
        target: &ground.target,
        agent,
        confinement_required: desk.policy.confinement_required(),
        patient: false,
    })
}

/// How long a step's command may take.
pub(crate) fn time_limit(desk: &Desk, step: &Step) -> Duration {
    let limits = [step.handling.timeout, desk.policy.step_wall(), desk.spec.budgets.wall, Some(WALL_DEFAULT)];
    limits.into_iter().flatten().min().unwrap_or(WALL_DEFAULT).to_duration()
}

/// Keeps what the command printed.
async fn record_output(
    recorder: &mut Recorder,
    job: &Job,
    step: &Step,
    ran: &execute::Ran,
) -> Result<(EvidenceRef, Vec<u8>), JobError> {
    let log = of_attempt(EvidenceKind::Log, job, &step.id);
    let shown = recorder.add(log.clone(), "text/plain", &ran.output, ran.dropped_bytes, Timestamp::now()).await?;
    Ok((log, shown))
}

/// The outcome of a command that says yes or no.
pub(crate) fn test_run(command: &[String], tree: Digest, finished: &Finished, log: EvidenceRef) -> TestRun {
    let exit_code = match finished.ending {
        Ending::Exited(code) => Some(i64::from(code)),
        Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => None,
    };
    TestRun {
        command: command.to_vec(),
        tree,
        exit_code,
        timed_out: finished.ending == Ending::TimedOut,
        duration_ms: u64::try_from(finished.duration().as_millis()).unwrap_or(u64::MAX),
        log,
    }
}

/// The ref of something that this attempt at a step leaves.
pub(crate) fn of_attempt(kind: EvidenceKind, job: &Job, step: &StepId) -> EvidenceRef {
    named(kind, &format!("{step}-e{}", job.epoch))
}

/// The end of a step whose command did not run at all.
fn never_ran(desk: &Desk, step: &Step, how: &str, why: &str) -> End {
    End::report(failure(&desk.services, &desk.job, &step.id, how, format!("it did not run: {why}")))
}

/// A failure that left nothing new behind.
pub(crate) fn failure(services: &Services, job: &Job, step: &StepId, how: &str, why: String) -> AttemptOutcome {
    let error_hash = failure::error_hash(step, how, std::slice::from_ref(&why), &services.config.cache_dir);
    AttemptOutcome::StepFailed {
        step: step.clone(),
        error: IssueRef {
            id: format!("failed-{step}-{}", job.epoch),
            severity: Severity::High,
            text: format!("step `{step}` failed: {why}"),
            refs: Vec::new(),
        },
        error_hash,
        base: job.base,
        tree: job.tree,
        evidence_index: job.evidence_index,
    }
}
