//! A step's command that acts outside the scratch: asks the ledger before it
//! starts, and says what came of it.
//!
//! What the ledger answers is done here: start, complete without running, probe,
//! or stop before the gate. It decides nothing about what may start.

use std::path::Path;
use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest, ProbeAnswer, Settled};
use checkrein_shared::digest::Digest;
use checkrein_shared::process::{self, Ending};
use checkrein_shared::records::{AttemptOutcome, EffectCall, EffectClass, EffectResult, Step, StepAction};
use checkrein_shared::time::{Span, Timestamp};

use super::call_gate::{self, Proposed};
use super::effect_done::DoneBefore;
use super::probe::{self, Probed};
use super::{End, step, step_end};
use crate::desk::{Desk, JobError};
use crate::effects::{self, Asked, KEY_VARIABLE};
use crate::environment::Variables;
use crate::execute::{Call, Ran};
use crate::failure;
use crate::ground::Ground;
use crate::recorder::Recorder;
use crate::room::Room;

/// A claim that was granted.
#[derive(Debug)]
pub(super) struct Claim {
    key: Digest,
    /// The tree that the command starts from.
    from: Digest,
}

/// What is to be done about a step's command.
pub(super) enum Before {
    /// It does nothing outside: run it.
    Free,
    /// Run it now, and settle it.
    Granted(Claim),
    /// It happened before: complete the step without running it.
    Done(DoneBefore),
    /// The job is over.
    Over(End),
}

/// Whether a step has to be claimed before it starts: its author says so, or the policy may for commands.
pub(super) fn may_act(desk: &Desk, step: &Step) -> bool {
    let is_command = matches!(step.action, StepAction::Run(_));
    step.effect != EffectClass::ReadOnly || (is_command && desk.policy.lists(&EffectCall::tool_of(&step.id)))
}

/// What the step is about to do: its command, or a whole run of its agent, whose calls nobody sees one by one.
fn named(desk: &Desk, step: &Step, call: &Call<'_>) -> EffectCall {
    match &step.action {
        StepAction::Run(_) => effects::of_step(&step.id, call.argv, &call.variables),
        StepAction::Prompt(prompt) => effects::of_agent(&step.id, (call.argv, prompt), desk.job.round, &call.variables),
    }
}

/// Whether a step's command may run once more just to look at what it says. Asked only where its author says so too.
pub(super) async fn is_free(desk: &Desk, step: &Step, argv: &[String]) -> bool {
    if !may_act(desk, step) {
        return true;
    }
    let named = effects::of_step(&step.id, argv, &Variables::new());
    let place = std::path::Path::new(desk.job.job_id.as_str());
    let request = request(desk, place, named, step::time_limit(desk, step));
    let asked = step.effect == EffectClass::ReadOnly;
    asked && matches!(effects::ask(desk, &request).await, Asked::Answered(ClaimAnswer::Free))
}

/// Asks the ledger what is to be done, and does it up to the start. Gives `call` the key and the time that it may take.
pub(super) async fn before(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    (step, room): (&Step, &Room),
    call: &mut Call<'_>,
) -> Result<Before, JobError> {
    if !may_act(desk, step) {
        return Ok(Before::Free);
    }
    let named = named(desk, step, call);
    call.variables.insert(KEY_VARIABLE.into(), effects::key_of(&desk.job, &named).to_hex().into());
    let request = request(desk, &room.scratch(), named, call.time);
    loop {
        let answer = match effects::ask(desk, &request).await {
            Asked::Answered(answer) => answer,
            Asked::Over => return Ok(Before::Over(step_end::interrupted_early(desk, ground))),
        };
        match answer {
            ClaimAnswer::Free => {
                call.variables.remove(std::ffi::OsStr::new(KEY_VARIABLE));
                return Ok(Before::Free);
            }
            ClaimAnswer::Granted { key, time_limit } => {
                call.time = time_limit.to_duration();
                // A pause waits for it, and the worker's end for a while: what is cut off is what nobody knows about.
                call.patient = true;
                return Ok(Before::Granted(Claim { key, from: ground.tree.digest }));
            }
            ClaimAnswer::Done { result, how, .. } => return Ok(Before::Done(DoneBefore { result, how })),
            ClaimAnswer::Gated { dry_run, why, .. } => {
                let proposed = Proposed { step, call: &request.call, dry_run, why };
                return Ok(Before::Over(call_gate::reach(desk, recorder, ground, proposed).await?));
            }
            ClaimAnswer::Probe { key, argv, not_done_counts_in } => {
                let counts_in = not_done_counts_in.to_duration();
                match probe::ask(desk, ground, (step, key), &argv, counts_in).await? {
                    Probed::Answered(answer) => effects::settle(desk, key, Settled::Probed(answer)).await,
                    Probed::AskLater(wait) => return Ok(Before::Over(later(wait))),
                    Probed::Over => return Ok(Before::Over(step_end::interrupted_early(desk, ground))),
                }
            }
            ClaimAnswer::Unknown { why, .. } => {
                let why = format!("nobody knows whether it took effect: {why}");
                return Ok(Before::Over(failed(desk, step, "effect unknown", why)));
            }
            ClaimAnswer::Refused { reason } => {
                return Ok(Before::Over(failed(desk, step, "refused", format!("it did not run: {reason}"))));
            }
        }
    }
}

fn request(desk: &Desk, place: &Path, call: EffectCall, time: Duration) -> ClaimRequest {
    // A room is made once, so that its name and the time name this run among all of all processes.
    let run = format!("{}\n{}", place.display(), Timestamp::now());
    ClaimRequest {
        task_id: desk.job.task_id.clone(),
        epoch: desk.job.epoch,
        worker: desk.services.config.instance.clone(),
        run: Digest::of(run),
        call,
        time_limit: Span::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }
}

fn failed(desk: &Desk, step: &Step, how: &str, why: String) -> End {
    End::report(step::failure(&desk.services, &desk.job, &step.id, how, why))
}

/// The slot is freed until a probe's answer counts.
fn later(wait: Duration) -> End {
    let after = Span::from_millis(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let reason = format!("the probe says that the effect did not happen, which counts in {} s", wait.as_secs() + 1);
    End::report(AttemptOutcome::Released { after, reason })
}

impl Claim {
    /// Says what came of the command as soon as it is over, before anything else is done: nothing may come in between.
    pub(super) async fn settle(&self, desk: &Desk, ran: &Result<Ran, process::Error>) {
        let outcome = match ran {
            Ok(ran) => match ran.finished.ending {
                Ending::Exited(0) => Settled::Done(self.result(None, None)),
                Ending::Exited(_) => Settled::Failed { why: failure::ending_text(ran.finished.ending) },
                // A request may have left before the end came.
                ending => Settled::Unknown { why: failure::ending_text(ending) },
            },
            Err(process::Error::Refused(refusal)) => Settled::NotStarted { why: with_causes(refusal) },
            Err(error @ (process::Error::Supervisor { .. } | process::Error::TooLarge { .. })) => {
                Settled::NotStarted { why: with_causes(error) }
            }
            Err(error) => Settled::Unknown { why: with_causes(error) },
        };
        effects::settle(desk, self.key, outcome).await;
    }

    /// Adds what the command left, when that is stored: the next attempt goes on from there.
    pub(super) async fn settle_result(&self, desk: &Desk, ran: &Ran, output: Digest, tree: Digest) {
        if ran.finished.ending == Ending::Exited(0) {
            effects::settle(desk, self.key, Settled::Done(self.result(Some(output), Some(tree)))).await;
        }
    }

    fn result(&self, output: Option<Digest>, tree: Option<Digest>) -> EffectResult {
        EffectResult { exit_code: 0, output, from: Some(self.from), tree }
    }
}

/// What a probe's exit code says.
pub(super) fn probe_answer(ending: Ending) -> ProbeAnswer {
    match ending {
        Ending::Exited(0) => ProbeAnswer::Done,
        Ending::Exited(1) => ProbeAnswer::NotDone,
        Ending::Exited(_) | Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => ProbeAnswer::Unclear,
    }
}
