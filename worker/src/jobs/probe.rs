//! Asks a step's probe whether its effect happened.
//!
//! `Done` counts at once. `Not done` counts only when the effect can no longer
//! be under way; before, it is asked again later.

use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::ProbeAnswer;
use checkrein_shared::digest::Digest;
use checkrein_shared::process;
use checkrein_shared::records::Step;
use tokio::time::Instant;

use super::apart::{self, Apart};
use super::effect;
use crate::desk::{Desk, JobError};
use crate::effects::KEY_VARIABLE;
use crate::ground::Ground;
use crate::orders::Order;

/// How long a probe may take.
const PROBE_TIME_MAX: Duration = Duration::from_secs(60);

/// How long an answer that counts is waited for here; beyond, the slot is freed.
const WAIT_HERE_MAX: Duration = Duration::from_secs(3);

/// What came of asking a probe.
pub(super) enum Probed {
    /// An answer that counts.
    Answered(ProbeAnswer),
    /// `Not done`, too early to count: ask again after this.
    AskLater(Duration),
    /// Orders came first.
    Over,
}

/// Asks the probe, and where its `not done` counts only a little later, again then.
pub(super) async fn ask(
    desk: &Desk,
    ground: &Ground,
    (step, key): (&Step, Digest),
    argv: &[String],
    counts_in: Duration,
) -> Result<Probed, JobError> {
    let counts_at = Instant::now() + counts_in;
    loop {
        let early = counts_at.saturating_duration_since(Instant::now());
        let answer = once(desk, ground, step, key, argv).await?;
        if desk.orders.now() >= Order::Park {
            return Ok(Probed::Over);
        }
        match answer {
            ProbeAnswer::NotDone if early > WAIT_HERE_MAX => return Ok(Probed::AskLater(early)),
            ProbeAnswer::NotDone if !early.is_zero() => {
                let mut orders = desk.orders.clone();
                tokio::select! {
                    () = tokio::time::sleep_until(counts_at) => {}
                    () = orders.at_least(Order::Park) => return Ok(Probed::Over),
                }
            }
            answer => return Ok(Probed::Answered(answer)),
        }
    }
}

async fn once(
    desk: &Desk,
    ground: &Ground,
    step: &Step,
    key: Digest,
    argv: &[String],
) -> Result<ProbeAnswer, JobError> {
    let variables = vec![
        (KEY_VARIABLE.into(), key.to_hex().into()),
        ("CHECKREIN_TASK".into(), desk.job.task_id.as_str().into()),
        ("CHECKREIN_STEP".into(), step.id.as_str().into()),
    ];
    match apart::run(desk, ground, Apart { argv, time: PROBE_TIME_MAX, variables }).await? {
        Ok(ran) => {
            let answer = effect::probe_answer(ran.finished.ending);
            tracing::info!(task.id = %desk.job.task_id, step.id = %step.id, ?answer, "the probe was asked");
            Ok(answer)
        }
        Err(process::Error::Refused(refusal)) => {
            tracing::warn!(step.id = %step.id, error = with_causes(&refusal), "the probe can't run here");
            Ok(ProbeAnswer::Unclear)
        }
        Err(error) => Err(JobError::Process(error)),
    }
}
