//! Talks to the ledger: claims until there is an answer, and settles until it
//! is taken, also when the lease is lost: what happened, happened.

use std::time::Duration;

use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest, Error, START_WINDOW, Settled, Settlement};
use checkrein_shared::digest::Digest;
use tokio::time::Instant;

use crate::desk::Desk;
use crate::orders::Order;
use crate::submit::Backoff;

/// How long it is tried to say what came of an effect. Afterwards nobody knows, and the ledger takes it so.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(600);

/// What is left of the start window for starting a process.
const START_MARGIN: Duration = Duration::from_secs(5);

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The ledger's answer. A granted claim is fresh enough to start.
    Answered(ClaimAnswer),
    /// Orders came first.
    Over,
}

/// Asks to start an effect until there is an answer. An answer that took longer than the start window is none.
pub(crate) async fn ask(desk: &Desk, request: &ClaimRequest) -> Asked {
    let mut backoff = Backoff::new();
    let usable = START_WINDOW.to_duration().saturating_sub(START_MARGIN);
    loop {
        // Nothing new is started once somebody wants the worker to let go.
        if desk.orders.now() >= Order::Park {
            return Asked::Over;
        }
        let asked_at = Instant::now();
        match desk.services.coordinator.claim_effect(request.clone()).await {
            Ok(ClaimAnswer::Granted { .. }) if asked_at.elapsed() >= usable => {
                tracing::warn!(task.id = %request.task_id, "a claim was granted too late to start, and is made again");
                continue;
            }
            Ok(answer) => return Asked::Answered(answer),
            Err(Error::Refused(reason)) => return Asked::Answered(ClaimAnswer::Refused { reason }),
            Err(Error::Unavailable(reason)) => {
                tracing::warn!(task.id = %request.task_id, reason, "an effect can't be claimed yet");
            }
        }
        backoff.wait().await;
    }
}

/// Says what came of an effect.
pub(crate) async fn settle(desk: &Desk, key: Digest, outcome: Settled) {
    let settlement = Settlement {
        task_id: desk.job.task_id.clone(),
        key,
        epoch: desk.job.epoch,
        worker: desk.services.config.instance.clone(),
        outcome,
    };
    let told = async {
        let mut backoff = Backoff::new();
        loop {
            match desk.services.coordinator.settle_effect(settlement.clone()).await {
                Ok(()) => return,
                Err(Error::Refused(reason)) => {
                    tracing::error!(effect.key = %key, reason, "what came of an effect is refused");
                    return;
                }
                Err(Error::Unavailable(reason)) => {
                    tracing::warn!(effect.key = %key, reason, "what came of an effect can't be said yet");
                }
            }
            backoff.wait().await;
        }
    };
    if tokio::time::timeout(SETTLE_TIME_MAX, told).await.is_err() {
        tracing::error!(effect.key = %key, "nobody could be told what came of an effect; it counts as unknown");
    }
}
