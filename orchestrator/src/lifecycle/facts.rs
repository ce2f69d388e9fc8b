//! What the rules may know, made from the task and its newest checkpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use checkrein_shared::policy::{
    AttemptFacts, BudgetFacts, ChangesetFacts, CheckpointFacts, DriftFacts, Facts, FindingFacts, ReviewFacts,
    RoundFacts, StepFacts, TaskFacts, TestFacts, VerifierFacts,
};
use checkrein_shared::records::{Judgement, Trigger};
use checkrein_shared::time::Span;

use super::rounds::is_complete;
use super::task::{Answer, Slot, State};
use super::turn::Turn;

impl Turn<'_> {
    pub(super) fn facts(&self, trigger: Option<Trigger>) -> Facts {
        let task = &self.task;
        let step = task.next_step().and_then(|id| task.plan.step(id));
        let head = self.head.as_ref();
        Facts {
            task: TaskFacts {
                id: task.id.to_string(),
                labels: task.spec.labels.clone(),
                objective: task.spec.objective.clone(),
            },
            step: step.map_or_else(StepFacts::default, |s| StepFacts {
                id: s.id.to_string(),
                risk: s.risk.as_str().to_owned(),
            }),
            attempt: AttemptFacts {
                n: i64::from(task.usage.failures) + 1,
                failures: i64::from(task.usage.failures),
                same_error: i64::from(task.usage.same_error),
            },
            budget: BudgetFacts { wall_pct: self.wall_percent(), ..BudgetFacts::default() },
            trigger: trigger.or(head.map(|h| h.trigger)).map_or_else(String::new, |t| t.as_str().to_owned()),
            checkpoint: CheckpointFacts {
                seq: head.map_or(0, |h| count(h.sequence)),
                open_issues: head.map_or(0, |h| count(h.open_issues.len() as u64)),
                hash: head.map_or_else(String::new, |h| h.integrity.checkpoint_hash.to_string()),
            },
            changeset: self.changeset_facts(),
            tests: TestFacts { regressed: self.regressions() },
            round: self.round_facts(),
            reviews: self.review_facts(),
            open_findings: self.finding_facts(),
            verifiers: self.verifier_facts(),
            drift: DriftFacts {
                base: task.drifted.is_some(),
                plan: self.is_stale("plan_hash"),
                spec: self.is_stale("spec_hash"),
            },
            human_changed: !task.editors.is_empty(),
            ..Facts::default()
        }
    }

    fn changeset_facts(&self) -> ChangesetFacts {
        let change = self.context.change;
        ChangesetFacts {
            files: count(change.files),
            lines: count(change.lines),
            paths: change.paths.clone(),
            touched_protected: change.paths.iter().any(|path| self.context.policy.protects(path)),
        }
    }

    fn open_slots(&self) -> &[Slot] {
        match &self.task.state {
            State::Reviewing { slots } => slots,
            _ => &[],
        }
    }

    fn round_facts(&self) -> RoundFacts {
        let slots = self.open_slots();
        let given = |wanted: fn(Judgement) -> bool| {
            slots.iter().filter(|s| matches!(s.answer, Answer::Given(judgement) if wanted(judgement))).count() as u64
        };
        let of_round = self.task.verdicts.iter().filter(|v| v.round == self.task.round);
        RoundFacts {
            n: i64::from(self.task.round),
            complete: is_complete(slots),
            approvals: count(given(|j| j == Judgement::Approved)),
            rejections: count(given(Judgement::is_negative)),
            inconclusive: count(given(|j| j == Judgement::Inconclusive)),
            // A round without a verdict has read nothing.
            coverage_pct: of_round.map(|v| count(v.coverage_pct)).min().unwrap_or(0),
        }
    }

    fn review_facts(&self) -> Vec<ReviewFacts> {
        let mut newest: BTreeMap<(&str, &str), ReviewFacts> = BTreeMap::new();
        for slot in self.open_slots().iter().filter(|s| s.answer != Answer::Awaited) {
            let facts = ReviewFacts {
                name: slot.review.clone(),
                kind: kind_name(slot.kind).to_owned(),
                current: false,
                ..ReviewFacts::default()
            };
            newest.insert((&slot.review, slot.id.as_str()), facts);
        }
        for verdict in &self.task.verdicts {
            let facts = ReviewFacts {
                name: verdict.review.clone(),
                kind: kind_name(verdict.kind).to_owned(),
                verdict: verdict.verdict.as_str().to_owned(),
                risk: verdict.risk.as_str().to_owned(),
                current: verdict.stale.is_empty(),
                findings: count(self.task.findings.iter().filter(|f| f.review == verdict.review).count() as u64),
            };
            newest.insert((&verdict.review, verdict.id.as_str()), facts);
        }
        newest.into_values().collect()
    }

    fn finding_facts(&self) -> Vec<FindingFacts> {
        let facts = |open: &super::task::OpenFinding| FindingFacts {
            id: open.finding.id.to_string(),
            severity: open.finding.severity.as_str().to_owned(),
            status: open.finding.status.as_str().to_owned(),
            age_rounds: i64::from(self.task.round.saturating_sub(open.since_round)),
        };
        self.task.findings.iter().map(facts).collect()
    }

    fn verifier_facts(&self) -> BTreeMap<String, VerifierFacts> {
        let facts = |outcome: &checkrein_shared::records::VerifierOutcome| VerifierFacts {
            ok: outcome.ok,
            exit: outcome.exit.unwrap_or(-1),
            flaky: outcome.flaky,
        };
        self.task.verifiers.iter().map(|(name, outcome)| (name.clone(), facts(outcome))).collect()
    }

    fn regressions(&self) -> i64 {
        count(self.task.findings.iter().filter(|f| f.finding.check == "regression").count() as u64)
    }

    fn is_stale(&self, field: &str) -> bool {
        self.task.verdicts.iter().any(|v| v.stale.iter().any(|m| m.field == field))
    }

    /// The smaller of what the task and the policy allow, and what a person allowed on top.
    fn wall_limit_ms(&self) -> Option<u64> {
        Some(self.wall_budget()?.as_millis().saturating_add(self.task.usage.wall_extra_ms))
    }

    fn wall_budget(&self) -> Option<Span> {
        smaller(self.task.spec.budgets.wall, self.context.policy.policy().budgets.task.wall)
    }

    /// How many review rounds there may be.
    pub(super) fn round_limit(&self) -> Option<u64> {
        smaller(self.task.spec.budgets.rounds, self.context.policy.policy().budgets.task.rounds)
    }

    /// How much time under lease is left, where there is a limit.
    pub(super) fn wall_left(&self) -> Option<Duration> {
        self.wall_limit_ms().map(|limit| Duration::from_millis(limit.saturating_sub(self.task.usage.wall_ms)))
    }

    fn wall_percent(&self) -> i64 {
        self.wall_limit_ms().map_or(0, |limit| count(self.task.usage.wall_ms.saturating_mul(100) / limit.max(1)))
    }

    /// Allows as much wall time again as there was in all.
    pub(super) fn raise_budget(&mut self) {
        if let Some(limit) = self.wall_budget() {
            self.task.usage.wall_extra_ms = self.task.usage.wall_extra_ms.saturating_add(limit.as_millis());
        }
    }
}

fn kind_name(kind: checkrein_shared::records::ReviewKind) -> &'static str {
    use checkrein_shared::records::ReviewKind;
    match kind {
        ReviewKind::Rules => "rules",
        ReviewKind::Model => "model",
        ReviewKind::Command => "command",
        ReviewKind::Human => "human",
    }
}

/// The smaller of two limits, where there is one.
fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (limit, None) | (None, limit) => limit,
    }
}

/// Expressions count in signed numbers.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
