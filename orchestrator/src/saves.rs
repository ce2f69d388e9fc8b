//! What workers save and say about the start of their attempts, made into events.
//!
//! Everything that a save point names must be there before it is journaled, and
//! is young again, so that no garbage collector takes it in between.

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{ConditionsReport, Error, SaveAnswer, SaveRequest};
use checkrein_shared::ids::TaskId;
use checkrein_shared::records::{CheckOutcome, LaterEffect, REASON_CHARS_MAX, RUN_STATE_BYTES_MAX, SavePoint};

use crate::coordinator::failed;
use crate::engine::{self, Engine, Handled};
use crate::ledger;
use crate::lifecycle::{EventKind, Reason, Task};

/// The most conditions in one report: each once.
const CHECKS_MAX: usize = 16;

/// How many effects an agent is told about that goes back.
const LATER_EFFECTS_MAX: usize = 50;

/// The longest call in that list, in characters.
const CALL_CHARS_MAX: usize = 200;

/// How many entries of the ledger are looked through for them.
const LEDGER_ENTRIES_MAX: usize = 1_000;

/// Takes a save point.
pub(crate) async fn take(engine: &Engine, request: SaveRequest) -> Result<SaveAnswer, Error> {
    let SaveRequest { task_id, worker, save_point } = request;
    if let Some(reason) = unusable(engine, &save_point).await? {
        return Ok(SaveAnswer::Refused { reason });
    }
    let event = EventKind::SavePointTaken { worker, save_point: Box::new(save_point) };
    match engine.handle(&task_id, event, None).await {
        Ok(Handled::Advanced(..) | Handled::Ignored(Reason::Duplicate, _)) => Ok(SaveAnswer::Saved),
        Ok(Handled::Ignored(reason, _)) => Ok(SaveAnswer::Refused { reason: format!("{reason:?}") }),
        Err(error @ (engine::Error::Illegal(_) | engine::Error::NoTask(_))) => {
            Ok(SaveAnswer::Refused { reason: error.to_string() })
        }
        Err(error) => Err(unavailable(&error)),
    }
}

/// Why a save point can't be taken, whatever the task is doing.
async fn unusable(engine: &Engine, saved: &SavePoint) -> Result<Option<String>, Error> {
    let named = [Some(saved.run_state.digest), Some(saved.base), Some(saved.tree), saved.evidence_index];
    for digest in named.into_iter().flatten() {
        let size = engine.blobs().keep(digest).await.map_err(|error| unavailable(&error))?;
        match size {
            None => return Ok(Some(format!("the blob {digest} that it names is not stored"))),
            Some(size) if digest == saved.run_state.digest && size > RUN_STATE_BYTES_MAX => {
                return Ok(Some(format!("the run state has {size} bytes, more than {RUN_STATE_BYTES_MAX}")));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

/// Journals what came of the conditions of an attempt.
pub(crate) async fn conditions(engine: &Engine, report: ConditionsReport) -> Result<(), Error> {
    let ConditionsReport { task_id, epoch, worker, mut checks } = report;
    checks.truncate(CHECKS_MAX);
    for check in &mut checks {
        if let CheckOutcome::Fail { why } | CheckOutcome::Explained { why } = &mut check.outcome {
            *why = why.chars().take(REASON_CHARS_MAX).collect();
        }
    }
    let event = EventKind::PreconditionsChecked { epoch, worker, checks };
    match engine.handle(&task_id, event, None).await {
        Ok(Handled::Advanced(..)) => Ok(()),
        Ok(Handled::Ignored(reason, _)) => Err(Error::Refused(format!("the attempt is over: {reason:?}"))),
        Err(error) => Err(failed(error)),
    }
}

/// Effects since the newest checkpoint.
pub(crate) async fn later_effects(engine: &Engine, task: &Task) -> Result<Vec<LaterEffect>, engine::Error> {
    let since = match &task.head {
        Some(head) => engine.loader().checkpoint(head.record).await?.created_at,
        None => task.created_at,
    };
    let mut later = entries(engine, &task.id).await?;
    later.retain(|entry| entry.created_at >= since);
    later.sort_by_key(|entry| entry.created_at);
    later.truncate(LATER_EFFECTS_MAX);
    let told = |entry: checkrein_shared::records::EffectEntry| LaterEffect {
        call: shown(&entry.call),
        status: entry.status.name().to_owned(),
    };
    Ok(later.into_iter().map(told).collect())
}

/// A call in a line.
fn shown(call: &checkrein_shared::records::EffectCall) -> String {
    match call.argv() {
        [] => call.tool.clone(),
        argv => argv.join(" ").chars().take(CALL_CHARS_MAX).collect(),
    }
}

async fn entries(engine: &Engine, task: &TaskId) -> Result<Vec<checkrein_shared::records::EffectEntry>, engine::Error> {
    ledger::page(engine.store(), Some(task), None, LEDGER_ENTRIES_MAX).await
}

fn unavailable(error: &dyn std::error::Error) -> Error {
    Error::Unavailable(with_causes(error))
}
