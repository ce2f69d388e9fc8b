//! A step that changes the world outside: claimed before it starts, settled afterwards, probed where nobody knows.
//!
//! What is begun outside goes on by itself: a dead worker does not stop it.

use std::collections::BTreeMap;

use checkrein_shared::coordinator::{
    self, ClaimAnswer, ClaimRequest, Directive, ProbeAnswer, START_WINDOW, Settled, Settlement,
};
use checkrein_shared::digest::Digest;
use checkrein_shared::records::{Basis, CallArguments, Claim, EffectCall, EffectResult, Step, StepAction, Trigger};
use checkrein_shared::time::Span;
use tokio::sync::oneshot;

use super::records::{self, Tree};
use super::{Attempt, BEAT, jobs};
use crate::oracle::Start;

/// How long the command may take, in milliseconds.
const TIME_LIMIT: u64 = 60_000;

/// What is left of the start window for starting a process, in milliseconds.
const START_MARGIN: u64 = 5_000;

/// What is to be done about the step.
pub(super) enum Effect {
    /// It happened, now or before: go on.
    Happened,
    /// Its command failed.
    Failed,
    /// The job is over.
    Over,
}

/// How a command ended.
enum Ending {
    Done,
    Failed,
    CutOff,
}

/// Asks the ledger, and does what it says.
pub(super) async fn run(attempt: &Attempt, step: &Step, base: &Tree, tree: &Tree) -> Effect {
    let world = &attempt.world;
    let call = call(step);
    let run = Digest::of(format!("{:?} {} {}", attempt.process, attempt.job.epoch, world.exec.now()));
    // It may wake up when somebody else has the task.
    vanishes(attempt, 1, "before it claims").await;
    for _ in 0..30 {
        let asked_at = world.exec.now();
        match ask(attempt, &call, run).await {
            Some(ClaimAnswer::Granted { key, .. }) => {
                if world.exec.now() - asked_at < START_WINDOW.as_millis() - START_MARGIN {
                    return execute(attempt, step, (key, run), tree).await;
                }
            }
            Some(ClaimAnswer::Free | ClaimAnswer::Done { .. }) => return Effect::Happened,
            Some(ClaimAnswer::Gated { .. }) => return propose(attempt, step, &call, (base, tree)).await,
            Some(ClaimAnswer::Probe { key, not_done_counts_in, .. }) => {
                if let Some(wait) = probe(attempt, key, not_done_counts_in).await {
                    jobs::release(attempt, wait).await;
                    return Effect::Over;
                }
            }
            Some(ClaimAnswer::Unknown { .. } | ClaimAnswer::Refused { .. }) => return Effect::Failed,
            None => world.sleep(700).await,
        }
        attempt.beat().await;
        if attempt.order() == Directive::Lost {
            return Effect::Over;
        }
    }
    Effect::Over
}

async fn ask(attempt: &Attempt, call: &EffectCall, run: Digest) -> Option<ClaimAnswer> {
    let request = ClaimRequest {
        task_id: attempt.job.task_id.clone(),
        epoch: attempt.job.epoch,
        worker: attempt.me.clone(),
        run,
        call: call.clone(),
        time_limit: Span::from_millis(TIME_LIMIT),
    };
    match attempt.world.call(|o| async move { o.coordinator().claim_effect(request).await }).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(coordinator::Error::Refused(reason))) => Some(ClaimAnswer::Refused { reason }),
        Ok(Err(coordinator::Error::Unavailable(_))) | Err(_) => None,
    }
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

/// Is not heard of for longer than a lease lasts, now and then; says whether that was so. `times`: how much oftener
/// than others misbehave.
async fn vanishes(attempt: &Attempt, times: u64, when: &str) -> bool {
    let world = &attempt.world;
    let vanishes = world.fault(world.scenario.misconduct * times);
    if vanishes {
        world.say(|| format!("{} is not heard of: {when}", attempt.me));
        world.sleep(world.rng.between(20_000, 90_000)).await;
    }
    vanishes
}

/// Writes the checkpoint that shows exactly this call, and parks.
async fn propose(attempt: &Attempt, step: &Step, call: &EffectCall, (base, tree): (&Tree, &Tree)) -> Effect {
    let gate = (Trigger::ToolBeforeHighRisk, true);
    let mut record = records::checkpoint(attempt, gate, base, tree, None).record;
    // One that shows nothing opens no gate.
    if !attempt.world.fault(attempt.world.scenario.misconduct) {
        let refs = vec![EffectCall::shown_as(&step.id, call.hash())];
        let text = format!("step `{}` has not started", step.id);
        record.summary.completed.push(Claim { text, refs, basis: Basis::SelfReported });
    }
    let ready = records::seal(attempt, record, None);
    attempt.submit(&ready.message, ready.record.integrity.checkpoint_hash).await;
    Effect::Over
}

/// Finds out whether it happened. `Some`: its answer counts only in so many milliseconds.
async fn probe(attempt: &Attempt, key: Digest, counts_in: Span) -> Option<u64> {
    let world = &attempt.world;
    let answer = match world.oracle.borrow().outside(key).happened {
        _ if world.rng.percent(10) => ProbeAnswer::Unclear,
        0 => ProbeAnswer::NotDone,
        _ => ProbeAnswer::Done,
    };
    let early = answer == ProbeAnswer::NotDone && counts_in.as_millis() > 0;
    // Some don't know that it is too early to say.
    if early && !world.fault(world.scenario.misconduct * 4) {
        return Some(counts_in.as_millis());
    }
    vanishes(attempt, 1, "before it says what its probe says").await;
    settle(attempt, key, Settled::Probed(answer)).await;
    None
}

async fn execute(attempt: &Attempt, step: &Step, (key, run): (Digest, Digest), tree: &Tree) -> Effect {
    let world = &attempt.world;
    if vanishes(attempt, 1, "before it starts what it has claimed").await {
        // The start window is over.
        if world.rng.percent(50) {
            settle(attempt, key, Settled::NotStarted { why: "it slept".into() }).await;
        }
        return Effect::Over;
    }
    let start = Start { task: &attempt.job.task_id, step: &step.id, key, epoch: attempt.job.epoch, run };
    world.oracle.borrow_mut().effect_begins(&start);
    world.say(|| format!("{} acts outside in epoch {}", attempt.me, attempt.job.epoch));
    let mut ended = begin(attempt, key);
    vanishes(attempt, 3, "while its command runs").await;
    // It waits for what it has begun, whatever it is told meanwhile.
    let ending = loop {
        match world.exec.timeout(BEAT, &mut ended).await {
            Some(ending) => break ending.unwrap_or(Ending::CutOff),
            None => attempt.beat().await,
        }
    };
    if vanishes(attempt, 1, "before it says what came of its command").await && world.rng.percent(50) {
        return Effect::Over;
    }
    let done = |left| Settled::Done(EffectResult { exit_code: 0, output: None, from: Some(tree.digest), tree: left });
    match ending {
        Ending::Done => {
            settle(attempt, key, done(None)).await;
            settle(attempt, key, done(Some(tree.digest))).await;
            Effect::Happened
        }
        Ending::Failed => {
            settle(attempt, key, Settled::Failed { why: "it said no".into() }).await;
            Effect::Failed
        }
        Ending::CutOff => {
            settle(attempt, key, Settled::Unknown { why: "it took too long".into() }).await;
            Effect::Failed
        }
    }
}

/// Starts the command. It belongs to nobody: it ends by itself, or by its time limit.
fn begin(attempt: &Attempt, key: Digest) -> oneshot::Receiver<Ending> {
    let world = attempt.world.clone();
    let (say, ended) = oneshot::channel();
    attempt.world.exec.spawn(attempt.world.exec.process(), async move {
        let rng = &world.rng;
        let takes = if rng.once_in(2) { rng.between(10, 2 * TIME_LIMIT) } else { rng.between(10, 6_000) };
        let fails = rng.percent(20);
        let happens_at = rng.below(takes);
        world.sleep(happens_at.min(TIME_LIMIT)).await;
        if !fails && happens_at < TIME_LIMIT {
            world.oracle.borrow_mut().effect_happens(key);
        }
        world.sleep((takes - happens_at).min(TIME_LIMIT.saturating_sub(happens_at))).await;
        world.oracle.borrow_mut().effect_ends(key);
        let ending = match () {
            () if takes >= TIME_LIMIT => Ending::CutOff,
            () if fails => Ending::Failed,
            () => Ending::Done,
        };
        // Its worker may be dead.
        let _gone = say.send(ending);
    });
    ended
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
        if !matches!(answer, Ok(Err(coordinator::Error::Unavailable(_))) | Err(_)) {
            return;
        }
        attempt.world.sleep(800).await;
    }
}
