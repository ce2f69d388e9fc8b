//! A step that changes the world outside: claimed before it starts, settled afterwards, probed where nobody knows.

use std::collections::BTreeMap;

use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest, Directive, ProbeAnswer, Settled, Settlement};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{CallArguments, EffectCall, EffectResult, Step, StepAction, Trigger};
use checkrein_shared::time::Span;

use super::records::Tree;
use super::{Attempt, jobs};

/// What is to be done about the step.
pub(super) enum Effect {
    /// It happened, now or before: go on.
    Happened,
    /// Its command failed.
    Failed,
    /// The job is over.
    Over,
}

/// Asks the ledger, and does what it says.
pub(super) async fn run(attempt: &Attempt, step: &Step, base: &Tree, tree: &Tree) -> Effect {
    let world = &attempt.world;
    let run = Digest::of(format!("{} {} {}", attempt.me, attempt.job.epoch, world.exec.now()));
    for _ in 0..30 {
        let request = ClaimRequest {
            task_id: attempt.job.task_id.clone(),
            epoch: attempt.job.epoch,
            worker: attempt.me.clone(),
            run,
            call: call(step),
            time_limit: Span::from_secs(60),
        };
        let answer = world.call(|o| async move { o.coordinator().claim_effect(request).await }).await;
        match answer {
            Ok(Ok(ClaimAnswer::Granted { key, .. })) => return execute(attempt, key, tree).await,
            Ok(Ok(ClaimAnswer::Free | ClaimAnswer::Done { .. })) => return Effect::Happened,
            Ok(Ok(ClaimAnswer::Gated { .. })) => {
                jobs::submit(attempt, (Trigger::ToolBeforeHighRisk, true), base, tree, None).await;
                return Effect::Over;
            }
            Ok(Ok(ClaimAnswer::Probe { key, not_done_counts_in, .. })) => {
                let happened = world.outside.borrow().contains(&key);
                let wait = not_done_counts_in.as_millis();
                if !happened && wait > 0 {
                    jobs::release(attempt, wait).await;
                    return Effect::Over;
                }
                let answer = if happened { ProbeAnswer::Done } else { ProbeAnswer::NotDone };
                settle(attempt, key, Settled::Probed(answer)).await;
            }
            Ok(Ok(ClaimAnswer::Unknown { .. } | ClaimAnswer::Refused { .. })) => return Effect::Failed,
            Ok(Err(_)) | Err(_) => world.sleep(700).await,
        }
        attempt.beat().await;
        if attempt.order() == Directive::Lost {
            return Effect::Over;
        }
    }
    Effect::Over
}

fn call(step: &Step) -> EffectCall {
    let argv = match &step.action {
        StepAction::Run(argv) => argv.clone(),
        StepAction::Prompt(prompt) => vec![prompt.clone()],
    };
    EffectCall {
        step: step.id.clone(),
        tool: EffectCall::tool_of(&step.id),
        arguments: CallArguments::Command(argv),
        ordinal: 0,
        cwd: ".".into(),
        environment: BTreeMap::new(),
    }
}

async fn execute(attempt: &Attempt, key: Digest, tree: &Tree) -> Effect {
    let world = &attempt.world;
    world.oracle.borrow_mut().effect_begins(&attempt.job.task_id, key, attempt.job.epoch);
    world.say(|| format!("{} acts outside in epoch {}", attempt.me, attempt.job.epoch));
    // It finishes what it has begun, whatever it is told meanwhile.
    world.sleep(world.rng.between(10, 6_000)).await;
    let fails = world.rng.percent(20);
    if !fails {
        world.outside.borrow_mut().insert(key);
    }
    world.sleep(world.rng.between(10, 3_000)).await;
    let outcome = if fails {
        Settled::Failed { why: "it said no".into() }
    } else {
        Settled::Done(EffectResult { exit_code: 0, output: None, from: Some(tree.digest), tree: None })
    };
    settle(attempt, key, outcome).await;
    if fails { Effect::Failed } else { Effect::Happened }
}

/// Says what came of it, for as long as it takes: what happened, happened.
async fn settle(attempt: &Attempt, key: Digest, outcome: Settled) {
    for _ in 0..60 {
        let settlement = Settlement {
            task_id: attempt.job.task_id.clone(),
            key,
            epoch: attempt.job.epoch,
            worker: attempt.me.clone(),
            outcome: outcome.clone(),
        };
        let answer = attempt.world.call(|o| async move { o.coordinator().settle_effect(settlement).await }).await;
        if !matches!(answer, Ok(Err(checkrein_shared::coordinator::Error::Unavailable(_))) | Err(_)) {
            return;
        }
        attempt.world.sleep(800).await;
    }
}
