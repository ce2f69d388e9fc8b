//! Ninth stage: binds the opinion to what was asked about, and signs it.
//!
//! The bindings are those of the request: a verdict answers exactly that
//! question. Before an approval they were compared with the record's own and with
//! those in force.

use checkrein_shared::causes::with_causes;
use checkrein_shared::json;
use checkrein_shared::records::{ReviewRequest, Reviewer, ReviewerType, Verdict};
use checkrein_shared::signing::{PayloadType, SigningKey};

use super::Context;
use super::judge::Opinion;
use crate::error::Error;
use crate::quote;

/// The version of the verdict record that this build writes.
const FORMAT: u32 = 1;

/// Binds an opinion.
pub(super) fn bind(context: &Context<'_>, request: &ReviewRequest, opinion: Opinion) -> Verdict {
    let bindings = request.bindings.clone();
    Verdict {
        format: FORMAT,
        review_id: request.review_id.clone(),
        checkpoint_id: bindings.checkpoint_id.clone(),
        checkpoint_hash: bindings.checkpoint_hash,
        bindings,
        verdict: opinion.judgement,
        risk: opinion.risk,
        findings: opinion.findings,
        invalid_findings: opinion.invalid.iter().map(|text| quote::sentence(text)).collect(),
        missing_evidence: opinion.missing.iter().map(|text| quote::sentence(text)).collect(),
        required_actions: opinion.actions,
        confidence: opinion.confidence,
        coverage: opinion.coverage,
        evidence: opinion.evidence,
        verifiers: opinion.verifiers,
        reviewer: Reviewer { kind: ReviewerType::Rules, model: None, identity: context.instance.clone() },
        round: request.round,
        created_at: context.now,
    }
}

/// Signs a verdict. The envelope is what the blob store keeps.
pub(crate) fn sign(verdict: &Verdict, key: &SigningKey) -> Result<Vec<u8>, Error> {
    let payload = json::canonical(verdict).map_err(|e| Error::Verdict(with_causes(&e)))?;
    let envelope = key.sign(PayloadType::Verdict, &payload);
    json::canonical(&envelope).map_err(|e| Error::Verdict(with_causes(&e)))
}
