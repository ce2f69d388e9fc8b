//! The stages of a review, one file each, in this order: load, validate
//! integrity, verify current, read specification and open risks, inspect the
//! evidence index, fetch what has to be read, run verifiers, judge, bind and
//! sign, publish.
//!
//! A stage either hands on what it found or ends the review; nothing after it
//! can turn that into an approval. The narrative of the worker, its full logs and
//! its conversation are not read: they hide defects.

mod bind;
mod cite;
mod current;
mod fetch;
mod index;
mod integrity;
mod judge;
mod load;
mod publish;
mod reading;
mod risks;
mod verify;

use std::collections::BTreeSet;

use checkrein_shared::blob::Blobs;
use checkrein_shared::causes::with_causes;
use checkrein_shared::coordinator::Coordinator;
use checkrein_shared::ids::InstanceId;
use checkrein_shared::records::{Judgement, ReviewRequest, Verdict};
use checkrein_shared::time::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::error::{Early, Error, Stop};
use crate::ledger::Ledger;
use crate::verifiers::Workshop;

pub(crate) use bind::sign;
pub(crate) use publish::publish;

/// What a review needs besides its request.
pub(crate) struct Context<'a> {
    pub(crate) instance: &'a InstanceId,
    pub(crate) blobs: &'a dyn Blobs,
    pub(crate) coordinator: &'a dyn Coordinator,
    pub(crate) workshop: &'a Workshop,
    pub(crate) cancel: &'a CancellationToken,
    /// When the review began.
    pub(crate) now: Timestamp,
}

/// Carries out one review up to the verdict.
///
/// # Errors
///
/// [`Error`] where nothing can be said now. Everything else is a verdict, and never an approval by default.
pub(crate) async fn review(context: &Context<'_>, request: &ReviewRequest) -> Result<Verdict, Error> {
    let ledger = Ledger::new(context.blobs);
    let opinion = match look(context, &ledger, request).await {
        Ok(opinion) => opinion,
        Err(Stop::Answer(early)) => judge::early(early, request, ledger.fetched()),
        Err(Stop::Again(error)) => return Err(error),
    };
    Ok(bind::bind(context, request, opinion))
}

/// The verdict of a reviewer that tried often enough: it can't tell, and says why.
pub(crate) fn give_up(context: &Context<'_>, request: &ReviewRequest, error: &Error) -> Verdict {
    let reasons = vec![format!("the review could not be carried out: {}", with_causes(error))];
    let early = Early { judgement: Judgement::Inconclusive, raised: Vec::new(), reasons };
    bind::bind(context, request, judge::early(early, request, BTreeSet::new()))
}

/// The stages from load to judge.
async fn look(context: &Context<'_>, ledger: &Ledger<'_>, request: &ReviewRequest) -> Result<judge::Opinion, Stop> {
    let loaded = load::load(ledger, request).await?;
    let mut raised = integrity::validate(request, &loaded)?;
    raised.extend(current::verify(context.coordinator, request, &loaded).await?);
    let risks = risks::read(ledger, request).await?;
    let index = index::inspect(ledger, &loaded).await?;
    raised.extend(index.raised.clone());
    let fetched = fetch::fetch(ledger, request, loaded, risks, index).await?;
    let verified = verify::run(context, request, fetched).await?;
    judge::judge(ledger, verified, raised).await
}
