//! Eighth stage: what follows from all that.
//!
//! A finding that blocks asks for changes; a damaged record is rejected; what
//! could not be read or run, or rests on a citation that does not hold, leaves the
//! question open. Only where nothing of this is the case is a change approved.

use std::collections::BTreeSet;

use checkrein_shared::digest::Digest;
use checkrein_shared::records::{
    Confidence, Coverage, EvidenceIndex, Finding, FindingStatus, Judgement, ReviewRequest, Risk, VerifierOutcome,
};

use super::cite;
use super::verify::Verified;
use crate::check::{Check, Level, Raised};
use crate::checks;
use crate::error::{Early, Stop};
use crate::findings::{self, Settled};
use crate::ledger::Ledger;
use crate::quote;
use crate::subject::Subject;

/// The most findings and notes that a verdict lists.
const LISTED_MAX: usize = 200;

/// The most required actions, and the longest one.
const ACTIONS_MAX: usize = 50;
const ACTION_CHARS_MAX: usize = 4_000;

/// A verdict's content, before it is bound.
#[derive(Debug)]
pub(super) struct Opinion {
    pub(super) judgement: Judgement,
    pub(super) risk: Risk,
    pub(super) confidence: Confidence,
    pub(super) findings: Vec<Finding>,
    pub(super) invalid: Vec<String>,
    pub(super) missing: Vec<String>,
    pub(super) actions: Vec<String>,
    pub(super) coverage: Coverage,
    pub(super) evidence: EvidenceIndex,
    pub(super) verifiers: Vec<VerifierOutcome>,
}

/// The opinion of a review that ended early. It is never an approval, and its coverage says how far it came.
pub(super) fn early(early: Early, request: &ReviewRequest, fetched: BTreeSet<Digest>) -> Opinion {
    let settled = findings::first_time(early.raised, Level::Block);
    let judgement = match early.judgement {
        Judgement::Approved => Judgement::Inconclusive,
        other => other,
    };
    Opinion {
        judgement,
        risk: Risk::R2,
        confidence: if judgement == Judgement::Rejected { Confidence::High } else { Confidence::Low },
        actions: if judgement.is_negative() { actions(&settled) } else { Vec::new() },
        findings: settled.into_iter().map(|s| s.finding).collect(),
        invalid: Vec::new(),
        missing: early.reasons,
        coverage: Coverage::new(fetched, required(request)),
        evidence: EvidenceIndex::default(),
        verifiers: Vec::new(),
    }
}

/// What every review has to read, whatever the change is.
fn required(request: &ReviewRequest) -> BTreeSet<Digest> {
    let bound = &request.bindings;
    let records = [request.checkpoint.record, request.policy, request.spec, request.open_findings];
    records.into_iter().chain([bound.base, bound.tree, bound.changeset_hash, bound.evidence_root]).collect()
}

/// Runs the checks and weighs what they raise.
pub(super) async fn judge(ledger: &Ledger<'_>, verified: Verified, earlier: Vec<Raised>) -> Result<Opinion, Stop> {
    let Verified { fetched, evidence } = verified;
    let subject = &fetched.subject;
    let raised = earlier.into_iter().chain(checks::run_all(subject)).collect();
    let settled = findings::settle(subject, raised);
    let (settled, invalid) = cite::check(ledger, subject, &evidence, settled).await?;
    let coverage = Coverage::new(ledger.fetched(), fetched.required);
    let doubt = !fetched.missing.is_empty() || coverage.percent < 100 || invalid.iter().any(|i| i.blocks);
    let judgement = weigh(&settled, doubt);
    let mut missing = fetched.missing;
    missing.extend(settled.iter().filter(|s| is_doubt(s)).map(|s| s.finding.claim.clone()));
    missing.extend(invalid.iter().filter(|i| i.blocks).map(|i| format!("a finding could not be checked: {}", i.why)));
    if coverage.percent < 100 && missing.is_empty() {
        missing.push(format!("only {} % of what had to be read was read", coverage.percent));
    }
    Ok(Opinion {
        judgement,
        risk: risk(subject, &settled),
        confidence: confidence(judgement, subject),
        actions: if judgement.is_negative() { actions(&settled) } else { Vec::new() },
        findings: settled.into_iter().take(LISTED_MAX).map(|s| s.finding).collect(),
        invalid: invalid.into_iter().take(LISTED_MAX).map(|i| i.why).collect(),
        missing: bounded(missing),
        coverage,
        verifiers: subject.runs.iter().filter_map(|run| run.outcome()).collect(),
        evidence,
    })
}

/// What is not current says nothing about the change itself.
fn is_doubt(settled: &Settled) -> bool {
    settled.blocks() && settled.check == Check::Currency
}

fn weigh(settled: &[Settled], doubt: bool) -> Judgement {
    let blocking = || settled.iter().filter(|s| s.blocks());
    if blocking().any(|s| s.check == Check::Integrity) {
        Judgement::Rejected
    } else if blocking().any(|s| !is_doubt(s)) {
        Judgement::ChangesRequired
    } else if doubt || blocking().next().is_some() {
        Judgement::Inconclusive
    } else {
        Judgement::Approved
    }
}

/// A change that is accepted reaches the target; what it does by itself there, or gives away, reaches further.
fn risk(subject: &Subject, settled: &[Settled]) -> Risk {
    let open = || settled.iter().filter(|s| s.finding.status != FindingStatus::Fixed);
    let own = if open().any(|s| matches!(s.check, Check::PolicyOrCi | Check::Secrets)) {
        Risk::R3
    } else if subject.changeset.is_empty() {
        Risk::R1
    } else {
        Risk::R2
    };
    let step = subject.checkpoint.plan.current_step_id.as_ref();
    let step = step.and_then(|id| subject.plan.as_ref()?.step(id)).map(|step| step.risk);
    step.map_or(own, |step| own.max(step))
}

fn confidence(judgement: Judgement, subject: &Subject) -> Confidence {
    let ran = subject.runs.iter().any(|run| !run.attempts.is_empty());
    let flaky = subject.runs.iter().any(|run| run.is_flaky());
    match judgement {
        Judgement::Inconclusive => Confidence::Low,
        _ if flaky => Confidence::Medium,
        Judgement::Approved if !ran => Confidence::Medium,
        _ => Confidence::High,
    }
}

/// What has to be done, the gravest first.
fn actions(settled: &[Settled]) -> Vec<String> {
    let mut wanted: Vec<&Settled> = settled.iter().filter(|s| s.blocks() && !s.action.is_empty()).collect();
    wanted.sort_by_key(|s| std::cmp::Reverse(s.finding.severity));
    let mut actions: Vec<String> =
        wanted.iter().take(ACTIONS_MAX).map(|s| s.action.chars().take(ACTION_CHARS_MAX).collect()).collect();
    let more = wanted.len().saturating_sub(ACTIONS_MAX);
    if more > 0 {
        let checks: BTreeSet<&str> = wanted[ACTIONS_MAX..].iter().map(|s| s.check.as_str()).collect();
        actions
            .push(format!("{more} further findings of {} are not listed: do the same for them.", quote::list(checks)));
    }
    actions
}

fn bounded(mut list: Vec<String>) -> Vec<String> {
    let more = list.len().saturating_sub(LISTED_MAX);
    list.truncate(LISTED_MAX);
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    list
}

#[cfg(test)]
mod tests {
    use checkrein_shared::records::Severity;

    use super::*;
    use crate::check::field;
    use crate::testing::{Sample, request};

    fn settled(check: Check, level: Level) -> Settled {
        let raised = Raised::new(check, Severity::High, "x", vec![field("plan")]).act("Do it.");
        let mut one = findings::first_time(vec![raised], Level::Block).remove(0);
        one.level = level;
        one
    }

    #[test]
    fn only_a_review_without_doubts_and_blocking_findings_approves() {
        let warn = settled(Check::Size, Level::Warn);
        let block = settled(Check::Secrets, Level::Block);
        let broken = settled(Check::Integrity, Level::Block);
        let stale = settled(Check::Currency, Level::Block);
        let mut fixed = block.clone();
        fixed.finding.status = FindingStatus::Fixed;
        for (list, doubt, expected) in [
            (vec![], false, Judgement::Approved),
            (vec![warn.clone(), fixed.clone()], false, Judgement::Approved),
            (vec![], true, Judgement::Inconclusive),
            (vec![fixed], true, Judgement::Inconclusive),
            (vec![stale.clone()], false, Judgement::Inconclusive),
            (vec![stale, block.clone()], true, Judgement::ChangesRequired),
            (vec![block.clone(), warn], true, Judgement::ChangesRequired),
            (vec![block, broken], false, Judgement::Rejected),
        ] {
            assert_eq!(weigh(&list, doubt), expected, "{list:?} {doubt}");
        }
    }

    #[test]
    fn an_early_answer_never_approves() {
        for judgement in [Judgement::Approved, Judgement::Inconclusive, Judgement::Rejected] {
            let request = request(&Sample::new().subject().checkpoint);
            let answer = Early { judgement, raised: Vec::new(), reasons: vec!["x".into()] };
            let opinion = early(answer, &request, BTreeSet::from([request.policy]));
            assert_ne!(opinion.judgement, Judgement::Approved);
            assert!(opinion.coverage.percent < 50, "{:?}", opinion.coverage);
        }
    }

    #[test]
    fn actions_are_bounded_and_say_what_they_leave_out() {
        let many: Vec<Settled> = (0..60).map(|_| settled(Check::Secrets, Level::Block)).collect();
        let actions = actions(&many);
        assert_eq!(actions.len(), ACTIONS_MAX + 1);
        assert!(actions[ACTIONS_MAX].contains("10 further findings of `secrets`"));
        assert_eq!(bounded(vec![String::new(); 300]).last().unwrap(), "and 100 more");
    }

    #[test]
    fn a_change_that_runs_by_itself_later_is_a_higher_risk() {
        let nothing = Sample::new().subject();
        let change = Sample::new().tree("a", "x\n").subject();
        assert_eq!(risk(&nothing, &[]), Risk::R1);
        assert_eq!(risk(&change, &[]), Risk::R2);
        assert_eq!(risk(&change, &[settled(Check::PolicyOrCi, Level::Warn)]), Risk::R3);
    }
}
