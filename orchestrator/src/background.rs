//! What goes on by itself: sending the outbox, firing timers, expiring leases.
//!
//! Each turn only finds out that something is due and hands it to the engine
//! or the bus; each survives errors by being tried again later. The loops add
//! the waiting and nothing else, so a driver that takes the turns one at a time
//! runs the same code.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use checkrein_shared::bus::{Bus, PublishError};
use checkrein_shared::causes::with_causes;
use checkrein_shared::ids::TaskId;
use serde::Deserialize as _;
use tokio_util::sync::CancellationToken;

use crate::engine::{self, Engine};
use crate::guards::guard;
use crate::leases::Leases;
use crate::lifecycle::{EventKind, State, Timer};
use crate::listing;

/// How many messages or timers are taken at a time.
const BATCH: usize = 128;

/// The longest that a loop sleeps before it looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long an error is waited out.
const PAUSE: Duration = Duration::from_millis(500);

/// Publishes what was committed and not delivered yet, oldest first.
pub(crate) async fn relay(engine: Arc<Engine>, bus: Arc<dyn Bus>, shutdown: CancellationToken) {
    let mut changes = engine.store().changes();
    loop {
        let wait = match publish_pending(&engine, bus.as_ref()).await {
            Ok(true) => Duration::ZERO,
            Ok(false) => LOOK_AGAIN,
            Err(why) => {
                tracing::warn!(why, "messages wait in the outbox");
                PAUSE
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
            changed = changes.changed(), if !wait.is_zero() => if changed.is_err() { return },
        }
    }
}

/// Publishes one batch; says whether there may be more.
pub(crate) async fn publish_pending(engine: &Engine, bus: &dyn Bus) -> Result<bool, String> {
    let pending = engine.store().pending_messages(BATCH).await.map_err(|e| with_causes(&e))?;
    let full = pending.len() == BATCH;
    let mut delivered = Vec::new();
    let mut failed = None;
    for row in pending {
        let message = match row.to_message() {
            Ok(message) => message,
            Err(error) => {
                failed = Some(error.to_string());
                continue;
            }
        };
        let id = message.id.clone();
        let taken = bus.publish(message).await;
        if guard!(MarkedOnceTaken, taken.is_ok()) {
            delivered.push(id);
        }
        match taken {
            Ok(()) => {}
            Err(error @ PublishError::Invalid(_)) => failed = Some(error.to_string()),
            Err(error) => {
                failed = Some(error.to_string());
                break;
            }
        }
    }
    if !delivered.is_empty() {
        engine.store().mark_delivered(delivered, engine.clock().now()).await.map_err(|e| with_causes(&e))?;
    }
    failed.map_or(Ok(full), Err)
}

/// Turns due timers into events.
pub(crate) async fn timers(engine: Arc<Engine>, shutdown: CancellationToken) {
    let mut changes = engine.store().changes();
    loop {
        let wait = match fire_due(&engine).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(error = %with_causes(&error), "timers can't fire now");
                PAUSE
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}

/// Fires what is due and says how long until the next.
pub(crate) async fn fire_due(engine: &Engine) -> Result<Duration, engine::Error> {
    let now = engine.clock().now();
    for due in engine.store().due_timers(now, BATCH).await? {
        let fired = match Timer::deserialize(due.kind) {
            Ok(timer) => fire(engine, &due.task, timer).await,
            Err(error) => Err(engine::Error::State { task: due.task.clone(), why: error.to_string() }),
        };
        // One task whose data is damaged must not stop the timers of all others.
        if let Err(error) = fired {
            tracing::error!(task.id = %due.task, error = %with_causes(&error), "a timer can't fire");
        }
    }
    let next = engine.store().next_timer_at().await?;
    // A timer that fired and did not move is tried again, but not at once.
    let wait = next.map_or(LOOK_AGAIN, |at| at.since(engine.clock().now()).max(Duration::from_millis(20)));
    Ok(wait.min(LOOK_AGAIN))
}

async fn fire(engine: &Engine, task: &TaskId, timer: Timer) -> Result<(), engine::Error> {
    let event = match timer {
        Timer::Dispatch { epoch } => EventKind::DispatchTimedOut { epoch },
        Timer::Review { round } => EventKind::ReviewTimedOut { round },
        Timer::Item { item, stage } => EventKind::ItemExpired { item, stage },
        Timer::Wall {} => EventKind::BudgetHit { budget: "wall".to_owned() },
    };
    match engine.handle(task, event, None).await {
        Ok(_) => Ok(()),
        Err(error @ (engine::Error::Illegal(_) | engine::Error::NoTask(_))) => {
            tracing::warn!(task.id = %task, %error, "a timer fired in vain");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Expires leases whose workers have fallen silent.
pub(crate) async fn leases(engine: Arc<Engine>, leases: Arc<Leases>, shutdown: CancellationToken) {
    loop {
        expire(&engine, &leases).await;
        let wait = leases.next().map_or(LOOK_AGAIN, |left| left.clamp(Duration::from_millis(20), LOOK_AGAIN));
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Expires every lease that has run out.
pub(crate) async fn expire(engine: &Engine, leases: &Leases) {
    for (task, epoch) in leases.take_expired() {
        if let Err(error) = engine.handle(&task, EventKind::LeaseExpired { epoch }, None).await {
            tracing::warn!(task.id = %task, error = %with_causes(&error), "a lease could not be expired");
            leases.arm(&task, epoch);
        }
    }
}

/// After a restart: attempts that were running get a full lease. Where workers, reviewers and the bus lived in
/// the process that died, attempts end at once, and what waited on the bus is sent again.
pub(crate) async fn recover(engine: &Engine, leases: &Leases, all_died: bool) -> Result<(), engine::Error> {
    let now = engine.clock().now();
    let (mut running, mut waiting, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    listing::each_task(engine, |task, _| {
        let overdue = task.items().into_iter().filter(|item| item.deadline.is_some_and(|deadline| deadline <= now));
        missed.extend(overdue.map(|item| (task.id.clone(), item.id.clone())));
        match task.state {
            State::Running { .. } | State::Cancelling { .. } => running.push((task.id.clone(), task.epoch)),
            State::Queued { .. } => waiting.push((task.id.clone(), task.epoch, true)),
            State::Reviewing { .. } => waiting.push((task.id.clone(), task.epoch, false)),
            _ => {}
        }
    })
    .await?;
    for (task, item) in missed {
        engine.handle(&task, EventKind::DeadlineMissed { item }, None).await?;
    }
    for (task, epoch) in running {
        if all_died {
            engine.handle(&task, EventKind::LeaseExpired { epoch }, None).await?;
        } else {
            leases.arm(&task, epoch);
        }
    }
    let unsent: BTreeSet<TaskId> =
        engine.store().pending_messages(BATCH).await?.into_iter().map(|row| row.task).collect();
    // A job that is still in the outbox goes out anyway; of several reviews some may have been sent and lost.
    let is_lost = |(task, _, is_job): &(TaskId, u64, bool)| all_died && !(*is_job && unsent.contains(task));
    for (task, epoch, _) in waiting.into_iter().filter(is_lost) {
        engine.handle(&task, EventKind::DispatchTimedOut { epoch }, None).await?;
    }
    Ok(())
}
