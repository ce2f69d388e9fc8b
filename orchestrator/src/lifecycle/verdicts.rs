//! Verdicts: which count, which have gone stale, which carry over, and what
//! they leave open.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::{InstanceId, ReviewId};
use checkrein_shared::records::{
    Bindings, FindingStatus, JobKind, Judgement, Mismatch, RequiredAction, ReviewKind, ReviewerType, SourceRef,
    Trigger, Verdict,
};
use checkrein_shared::time::Timestamp;

use crate::guards::guard;

use super::decision::Reason;
use super::rules::On;
use super::task::{Answer, FINDINGS_MAX, OpenFinding, Slot, State, VerdictState};
use super::turn::{Handled, Turn};

/// The field under which a revoked key shows in a stale verdict.
pub(super) const KEY_FIELD: &str = "reviewer_key";

impl Turn<'_> {
    pub(super) fn verdict_published(&mut self, verdict: &Verdict, envelope: Digest) -> Handled {
        let before = |v: &VerdictState| v.id == verdict.review_id && v.inherited_from.is_none();
        let known = self.task.verdicts.iter().any(before) || self.task.judged.contains(&verdict.review_id);
        if !guard!(VerdictOnlyOnce, !known) {
            return Ok(Some(Reason::Duplicate));
        }
        let differences = self.differences(&verdict.bindings);
        let kind = kind_of(verdict);
        // A reviewer's key never answers for a person, nor for another kind of reviewer.
        let is_kind = |s: &Slot| guard!(VerdictOfAskedKind, s.item.is_none() && s.kind == kind);
        let is_asked = |s: &&Slot| s.id == verdict.review_id && is_kind(s);
        let open = self.slots_mut().and_then(|s| s.iter().find(is_asked).cloned());
        let current = guard!(VerdictIsCurrent, differences.is_empty());
        let review = open.as_ref().map_or_else(|| self.review_name(verdict), |s| s.review.clone());
        self.record_verdict(verdict, envelope, &review, differences);
        self.take_findings(verdict, &review, current);
        if let Some(slot) = open
            && current
            && matches!(slot.answer, Answer::Awaited | Answer::TimedOut)
        {
            self.answer(&slot, verdict.verdict);
            self.take_actions(verdict, &review);
            for outcome in &verdict.verifiers {
                self.task.verifiers.insert(outcome.name.clone(), outcome.clone());
            }
            return self.conclude_round();
        }
        if verdict.verdict.is_negative() { self.late_negative(verdict, &review, current) } else { Ok(None) }
    }

    fn answer(&mut self, answered: &Slot, judgement: Judgement) {
        if let Some(slot) = self.slots_mut().and_then(|s| s.iter_mut().find(|s| s.id == answered.id)) {
            slot.answer = Answer::Given(judgement);
        }
    }

    /// A negative verdict outside its round: an unredeemed grant dies, and the rules may have a say.
    fn late_negative(&mut self, verdict: &Verdict, review: &str, current: bool) -> Handled {
        match self.task.state.clone() {
            State::Queued { job: JobKind::Apply { .. } } | State::Running { job: JobKind::Apply { .. }, .. }
                if current =>
            {
                if self.has_redeemed() {
                    self.task.late_veto = true;
                    return Ok(None);
                }
                self.take_actions(verdict, review);
                self.void_grants("a reviewer objected");
                self.ask_rules(On::Late)
            }
            State::Queued { .. } if current && self.is_call_allowed() => {
                self.take_actions(verdict, review);
                self.void_grants("a reviewer objected");
                self.ask_rules(On::Late)
            }
            State::Running { .. } | State::Paused { .. } if current && self.is_call_allowed() => {
                // A call that has not started stops at its gate again; what has started is not stopped.
                self.take_actions(verdict, review);
                self.void_grants("a reviewer objected");
                Ok(None)
            }
            _ => {
                if let Some(item) = self.asked_mut() {
                    // Whoever has the page open has not seen this: an approval must name the new hash.
                    let old = item.hash;
                    item.hash = Digest::of(format!("{old} {}", verdict.review_id));
                    item.stale.push(Mismatch {
                        field: "findings".into(),
                        old: old.to_string(),
                        new: item.hash.to_string(),
                    });
                }
                // Elsewhere there is nothing under way that it could stop; its findings veto the next `continue`.
                Ok(None)
            }
        }
    }

    fn record_verdict(&mut self, verdict: &Verdict, envelope: Digest, review: &str, stale: Vec<Mismatch>) {
        let kind = kind_of(verdict);
        self.push_verdict(VerdictState {
            id: verdict.review_id.clone(),
            review: review.to_owned(),
            kind,
            round: verdict.round,
            envelope: Some(envelope),
            verdict: verdict.verdict,
            risk: verdict.risk,
            coverage_pct: verdict.coverage.percent,
            bindings: verdict.bindings.clone(),
            reviewer: verdict.reviewer.identity.clone(),
            at: self.at,
            inherited_from: None,
            stale,
            verifiers: verdict.verifiers.iter().map(|outcome| outcome.name.clone()).collect(),
        });
    }

    pub(super) fn push_verdict(&mut self, verdict: VerdictState) {
        self.task.verdicts.push(verdict);
    }

    /// The name of the review that a verdict outside any open round answers, from the review's id.
    fn review_name(&self, verdict: &Verdict) -> String {
        let prefix = format!("rv-{}-{:04}-{}-", self.task.id.short(), verdict.bindings.sequence, verdict.round);
        let name = verdict.review_id.as_str().strip_prefix(&prefix).and_then(|rest| rest.rsplit_once('-'));
        name.map_or_else(|| "unknown".to_owned(), |(name, _)| name.to_owned())
    }

    fn take_actions(&mut self, verdict: &Verdict, review: &str) {
        if verdict.verdict == Judgement::Approved {
            return;
        }
        let evidence = |r: &SourceRef| match r {
            SourceRef::Evidence(reference) => Some(reference.clone()),
            SourceRef::File { .. } | SourceRef::Checkpoint(_) => None,
        };
        let refs: Vec<_> =
            verdict.findings.iter().flat_map(|f| f.source_refs.iter().filter_map(evidence)).take(20).collect();
        for text in verdict.required_actions.iter().take(50) {
            let (text, from) = (text.clone(), review.to_owned());
            self.task.required_actions.push(RequiredAction { text, finding: None, refs: refs.clone(), from });
        }
    }

    /// Opens, keeps and closes findings. A negative verdict's findings count whatever its currency.
    fn take_findings(&mut self, verdict: &Verdict, review: &str, current: bool) {
        let negative = verdict.verdict.is_negative();
        if !current && !negative {
            return;
        }
        for finding in &verdict.findings {
            let known = self.task.findings.iter().position(|f| f.finding.id == finding.id && f.review == review);
            match (finding.status, known) {
                (FindingStatus::Fixed, Some(index))
                    if guard!(FixIsShown, current && !finding.source_refs.is_empty()) =>
                {
                    self.task.findings.remove(index);
                }
                (FindingStatus::Fixed, _) => {}
                (_, Some(index)) => {
                    let open = &mut self.task.findings[index];
                    open.finding = finding.clone();
                    // The same review that raised it has seen it again and approved: it stays visible, without veto.
                    open.veto = negative;
                }
                (_, None) if self.task.findings.len() < FINDINGS_MAX => self.task.findings.push(OpenFinding {
                    finding: finding.clone(),
                    review: review.to_owned(),
                    since_round: verdict.round,
                    veto: negative,
                }),
                (_, None) => {}
            }
        }
    }

    /// The fields in which bindings differ from what is in force now.
    fn differences(&self, bindings: &Bindings) -> Vec<Mismatch> {
        match self.task.live_bindings() {
            Some(live) => bindings.differences(&live),
            None => vec![Mismatch {
                field: "checkpoint_id".into(),
                old: bindings.checkpoint_id.to_string(),
                new: "none".into(),
            }],
        }
    }

    /// Marks every verdict that no longer equals what is in force. Once stale, always stale.
    pub(super) fn mark_stale(&mut self) {
        let Some(live) = self.task.live_bindings() else { return };
        let fresh = |v: &&mut VerdictState| guard!(StaleStaysStale, v.stale.is_empty());
        for verdict in self.task.verdicts.iter_mut().filter(fresh) {
            verdict.stale = verdict.bindings.differences(&live);
        }
    }

    /// Fills a slot with the newest approval of the same review, where every condition of inheritance holds.
    pub(super) fn inherit(&mut self, slot: &mut Slot) -> bool {
        let Some(subject) = &self.task.subject else { return false };
        if subject.trigger == Trigger::ToolBeforeHighRisk {
            // Bindings do not hold the call: what was said of another one, or of an earlier start, is no consent.
            return false;
        }
        let now = subject.bindings.clone();
        // One approval fills one place: that of the same instance, in a round in which none of its peers objected.
        let same = |v: &&VerdictState| v.review == slot.review && v.round < self.task.round;
        let newest_round = self.task.verdicts.iter().filter(same).map(|v| v.round).max();
        let mut peers = self.task.verdicts.iter().filter(same).filter(|v| Some(v.round) == newest_round);
        if peers.clone().any(|v| v.verdict != Judgement::Approved) {
            return false;
        }
        let newest = peers.find(|v| instance(&v.id) == instance(&slot.id));
        let Some(old) = newest.filter(|v| v.verdict == Judgement::Approved && v.kind != ReviewKind::Human) else {
            return false;
        };
        let revoked = old.stale.iter().any(|m| m.field == KEY_FIELD);
        let relevant = self.context.unaffected.contains(&slot.review);
        let verified = self.verifiers_in_force().is_subset(&old.verifiers);
        let holds = guard!(InheritanceHolds, can_inherit(&old.bindings, &now, relevant));
        if !guard!(RevokedIsNotInherited, !revoked) || !verified || !holds {
            return false;
        }
        let carried = VerdictState {
            id: slot.id.clone(),
            round: self.task.round,
            bindings: now,
            at: self.at,
            inherited_from: Some(old.id.clone()),
            stale: Vec::new(),
            ..old.clone()
        };
        slot.answer = Answer::Given(carried.verdict);
        self.push_verdict(carried);
        true
    }

    pub(super) fn key_compromised(&mut self, reviewer: &InstanceId, since: Timestamp) -> Handled {
        let mut hit = false;
        for verdict in self.task.verdicts.iter_mut().filter(|v| &v.reviewer == reviewer && v.at >= since) {
            hit |= verdict.stale.is_empty();
            let (old, new) = (verdict.reviewer.to_string(), format!("revoked since {since}"));
            verdict.stale.push(Mismatch { field: KEY_FIELD.into(), old, new });
        }
        if !hit {
            return Ok(Some(Reason::NotInThisState));
        }
        let (trigger, applies) = (self.task.subject.as_ref().map(|s| s.trigger), self.has_redeemed());
        match (&mut self.task.state, trigger) {
            (State::Queued { job: JobKind::Apply { .. } } | State::Reviewing { .. }, Some(trigger)) if !applies => {
                self.void_grants("a reviewer's key was revoked");
                self.start_round(trigger)
            }
            (State::Queued { .. } | State::Running { .. } | State::Paused { .. } | State::Waiting { .. }, _) => {
                self.void_grants("a reviewer's key was revoked");
                if let Some(item) = self.asked_mut() {
                    let (old, new) = (reviewer.to_string(), format!("revoked since {since}"));
                    item.stale.push(Mismatch { field: KEY_FIELD.into(), old, new });
                }
                Ok(None)
            }
            (State::Cancelling { .. }, _) => Ok(Some(Reason::NotInThisState)),
            _ => Ok(None),
        }
    }
}

fn kind_of(verdict: &Verdict) -> ReviewKind {
    match verdict.reviewer.kind {
        ReviewerType::Rules => ReviewKind::Rules,
        ReviewerType::Model => ReviewKind::Model,
        ReviewerType::Command => ReviewKind::Command,
        ReviewerType::Human => ReviewKind::Human,
    }
}

/// The instance in a review's id: its last number.
fn instance(id: &ReviewId) -> &str {
    id.as_str().rsplit('-').next().unwrap_or_default()
}

/// Whether an approval bound to `old` carries over to `now`. With `relevant`, files that the review neither
/// read nor covered may differ.
fn can_inherit(old: &Bindings, now: &Bindings, relevant: bool) -> bool {
    let files = old.base == now.base && old.tree == now.tree && old.changeset_hash == now.changeset_hash;
    old.spec_hash == now.spec_hash
        && old.constraints_hash == now.constraints_hash
        && old.plan_hash == now.plan_hash
        && old.policy_digest == now.policy_digest
        && old.tool_schema_fingerprint == now.tool_schema_fingerprint
        && old.runtime_version == now.runtime_version
        && (files || relevant)
}
