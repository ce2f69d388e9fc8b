//! Workers' questions about effects, answered from the engine.
//!
//! The core decides, the journal keeps, and only then is an answer read from
//! what is kept: a claim that was overtaken in between is told as it stands.

use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::{ClaimAnswer, ClaimRequest, Error, Settled, Settlement};

use crate::coordinator::failed;
use crate::engine::{self, Engine, Handled};
use crate::ledger;
use crate::lifecycle::{EventKind, Reason, claim_answer};

/// Has the core decide about a claim, and says what came of it.
pub(crate) async fn claim(engine: &Engine, request: ClaimRequest) -> Result<ClaimAnswer, Error> {
    let task = request.task_id.clone();
    let key = request.call.key(&task);
    let event = EventKind::EffectClaimed { request: Box::new(request.clone()) };
    match engine.handle(&task, event, None).await {
        Ok(Handled::Ignored(Reason::NoEffect, _)) => return Ok(ClaimAnswer::Free),
        Ok(_) => {}
        Err(error @ (engine::Error::Illegal(_) | engine::Error::NoTask(_))) => {
            return Ok(ClaimAnswer::Refused { reason: error.to_string() });
        }
        Err(error) => return Err(unavailable(&error)),
    }
    let (task, _) = engine.task(&task).await.map_err(|error| unavailable(&error))?;
    let entry = ledger::entry(engine.store(), &task.id, &key).await.map_err(|error| unavailable(&error))?;
    Ok(match entry {
        Some(entry) => claim_answer(&task, &entry, &request, engine.clock().now()),
        None => ClaimAnswer::Refused { reason: "the claim left no entry in the ledger".to_owned() },
    })
}

/// Takes what a worker says about an effect. What is late or known already is taken as well: it changes nothing.
pub(crate) async fn settle(engine: &Engine, settlement: Settlement) -> Result<(), Error> {
    let task = settlement.task_id.clone();
    let settlement = Box::new(settlement);
    let event = match settlement.outcome {
        Settled::Probed(_) => EventKind::EffectProbed { settlement },
        _ => EventKind::EffectSettled { settlement },
    };
    engine.handle(&task, event, None).await.map(drop).map_err(failed)
}

fn unavailable(error: &engine::Error) -> Error {
    Error::Unavailable(with_causes(error))
}
